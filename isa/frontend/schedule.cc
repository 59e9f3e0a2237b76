#include "isa/frontend/schedule.h"

#include <algorithm>
#include <array>
#include <deque>
#include <limits>

#include "isa/base/check.h"
#include "isa/frontend/rewrite.h"
#include "isa/frontend/rough.h"

namespace trn::isa::frontend {
namespace {

class Scheduler {
 public:
  Scheduler(const Builder& builder, const Dependences& dependences, std::uint32_t ahead)
      : nodes_(builder.nodes()),
        lookahead_(builder.options().dma_lookahead),
        ahead_(ahead),
        slack_ns_(builder.options().store_slack_ns),
        ready_(nodes_.size(), 0),
        open_(nodes_.size(), 0) {
    std::vector<std::uint32_t> counts(nodes_.size() + 1, 0);
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      for (const std::uint32_t producer : dependences.of(node)) ++counts[producer + 1];
    }
    for (std::size_t i = 1; i < counts.size(); ++i) counts[i] += counts[i - 1];
    first_consumer_ = counts;
    consumers_.resize(counts.back());
    for (std::uint32_t node = 0; node < nodes_.size(); ++node) {
      for (const std::uint32_t producer : dependences.of(node)) {
        consumers_[counts[producer]++] = node;
        ++open_[node];
      }
      pending_[index(nodes_[node].engine)].push_back(node);
    }
    if (ahead_ == 0) return;
    path_.resize(nodes_.size());
    for (std::size_t node = nodes_.size(); node-- > 0;) {
      const Node& at = nodes_[node];
      path_[node] +=
          rough_ns(at.op, at.engine) + (is_transfer(at.op) ? kRoughTriggerNs + kRoughLatencyNs : 0);
      for (const std::uint32_t producer : dependences.of(static_cast<std::uint32_t>(node)))
        path_[producer] = std::max(path_[producer], path_[node]);
    }
  }

  std::vector<std::uint32_t> run() {
    std::vector<std::uint32_t> order;
    order.reserve(nodes_.size());
    while (order.size() < nodes_.size()) {
      std::optional<Choice> best;
      for (std::size_t e = 0; e < kEngines; ++e) {
        if (!choice_known_[e]) choices_[e] = choose(e);
        choice_known_[e] = true;
        const auto& choice = choices_[e];
        if (choice && (!best || choice->key < best->key ||
                       (choice->key == best->key && choice->node < best->node))) {
          best = choice;
        }
      }
      TRN_CHECK(best, "no instruction can begin: {} of {} are ordered", order.size(),
                nodes_.size());
      for (std::size_t i = 0; i < best->nodes; ++i) {
        if (i > 0) {
          best->node = pending_[best->engine][best->position];
          best->start = std::max(free_[best->engine], ready_[best->node]);
        }
        begin(*best);
        order.push_back(best->node);
      }
    }
    return order;
  }

 private:
  struct Choice {
    std::size_t engine = 0;
    std::size_t position = 0;  ///< in pending_
    std::uint32_t node = 0;
    double start = 0;
    double key = 0;         ///< what the order goes by
    std::size_t nodes = 1;  ///< that begin together, from the position on
  };

  /// A store by software descriptors goes this much later than when its data should be there: held
  /// up, it would hold up the loads behind it, and the estimate is rough.
  [[nodiscard]] double slack(std::uint32_t node) const {
    const auto* copy = std::get_if<DmaDirect2d>(&nodes_[node].op);
    const bool store = copy != nullptr && copy->mode == DescriptorMode::SoftwareDge &&
                       copy->dst.memory == Memory::Hbm;
    return store ? slack_ns_ : 0;
  }

  /// Whether weights and the product that they are for stand here, with nothing else for them
  /// behind.
  [[nodiscard]] bool is_product(const std::deque<std::uint32_t>& pending, std::size_t at) const {
    const auto weights = [&](std::size_t i) {
      const Node& node = nodes_[pending[i]];
      return node.waits_for_next && std::holds_alternative<LdWeights>(node.op) && !node.fence;
    };
    return at + 1 < pending.size() && weights(at) &&
           std::holds_alternative<Matmul>(nodes_[pending[at + 1]].op) &&
           (at + 2 == pending.size() || weights(at + 2));
  }

  /// The Tensor engine's next product: of those whose operands are there, or will be first, the one
  /// that most of the program waits for, as a list scheduler has it: so tiles whose places are
  /// wanted are used up first. Both passes of a product stay together.
  std::optional<Choice> choose_product() const {
    const std::size_t engine = index(Engine::Tensor);
    const auto& pending = pending_[engine];
    std::optional<Choice> best;
    double longest = 0;
    for (std::size_t i = 0; i < ahead_ && is_product(pending, i); i += 2) {
      const std::uint32_t weights = pending[i];
      const std::uint32_t product = pending[i + 1];
      if (open_[weights] != 0 || open_[product] != 0) continue;
      const double key = std::max({free_[engine], ready_[weights], ready_[product]});
      const bool begun = std::get<LdWeights>(nodes_[weights].op).pass == Fp32Pass::High;
      const double path = begun ? std::numeric_limits<double>::max() : path_[product];
      if (!best || key < best->key || (key == best->key && path > longest)) {
        best = {engine, i, weights, key, key, 2};
        longest = path;
      }
    }
    return best;
  }

  /// Whether an instruction may go ahead of others of its engine: it leaves nothing behind but its
  /// result.
  [[nodiscard]] bool overtakes(std::uint32_t node) const {
    const Op& op = nodes_[node].op;
    return ahead_ != 0 &&
           (std::holds_alternative<Copy>(op) || std::holds_alternative<Cast>(op) ||
            std::holds_alternative<Memset>(op) || std::holds_alternative<TensorTensor>(op));
  }

  /// The first node that waits for this one, or itself.
  [[nodiscard]] std::uint32_t needed(std::uint32_t node) const {
    return first_consumer_[node] == first_consumer_[node + 1] ? node
                                                              : consumers_[first_consumer_[node]];
  }

  std::optional<Choice> choose(std::size_t engine) const {
    if (engine == index(Engine::Tensor) && is_product(pending_[engine], 0) && ahead_ != 0)
      return choose_product();
    const auto& pending = pending_[engine];
    std::optional<Choice> best;
    bool head = true;  // no instruction that keeps its place passed yet
    const std::size_t reach =
        std::min<std::size_t>(pending.size(), std::size_t{std::max(lookahead_, ahead_)} + 1);
    for (std::size_t i = 0; i < reach; ++i) {
      const std::uint32_t node = pending[i];
      if (i > 0 && (nodes_[node].fence || nodes_[pending[0]].fence)) break;
      const bool transfer = is_transfer(nodes_[node].op);
      const bool may = transfer ? i <= lookahead_ : head || overtakes(node);
      if (may && open_[node] == 0) {
        const double start = std::max(free_[engine], ready_[node]);
        const double key = std::max(start, ready_[node] + slack(node));
        if (!best || key < best->key ||
            (ahead_ != 0 && key == best->key && transfer && is_transfer(nodes_[best->node].op) &&
             needed(node) < needed(best->node))) {
          best = {engine, i, node, start, key};
        }
        if (key <= free_[engine] && (ahead_ == 0 || !transfer)) break;  // none is earlier
      }
      if (!transfer && !overtakes(node)) head = false;
    }
    return best;
  }

  void begin(const Choice& choice) {
    auto& pending = pending_[choice.engine];
    pending.erase(pending.begin() + static_cast<long>(choice.position));
    const Node& node = nodes_[choice.node];
    double end = 0;
    if (is_transfer(node.op)) {
      free_[choice.engine] = choice.start + kRoughTriggerNs;
      const double begin = std::max(free_[choice.engine] + kRoughLatencyNs, dma_free_);
      dma_free_ = begin + rough_ns(node.op, node.engine);
      end = dma_free_;
    } else {
      end = free_[choice.engine] = choice.start + rough_ns(node.op, node.engine);
    }
    choice_known_[choice.engine] = false;
    for (std::uint32_t i = first_consumer_[choice.node]; i < first_consumer_[choice.node + 1];
         ++i) {
      const std::uint32_t consumer = consumers_[i];
      ready_[consumer] = std::max(ready_[consumer], end);
      --open_[consumer];
      choice_known_[index(nodes_[consumer].engine)] = false;
    }
  }

  const std::vector<Node>& nodes_;
  std::uint32_t lookahead_;
  std::uint32_t ahead_;  ///< instructions of an engine that one may overtake; 0: none
  double slack_ns_;
  std::vector<double> ready_;
  std::vector<std::uint32_t> open_;  ///< producers that have not begun
  std::vector<double> path_{};       ///< until the program's end
  std::vector<std::uint32_t> first_consumer_{};
  std::vector<std::uint32_t> consumers_{};
  std::array<std::deque<std::uint32_t>, kEngines> pending_{};
  std::array<std::optional<Choice>, kEngines> choices_{};
  std::array<bool, kEngines> choice_known_{};
  std::array<double, kEngines> free_{};
  double dma_free_ = 0;
};

}  // namespace

std::vector<std::uint32_t> schedule(const Builder& builder, const Dependences& dependences) {
  return Scheduler(builder, dependences, 0).run();
}

void interleave(Builder& builder, const Placement& placement) {
  const std::uint32_t ahead = builder.options().lookahead;
  std::vector<Node>& nodes = builder.nodes();
  const bool fixed = std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return (separates(node) && !std::holds_alternative<ActTableLoad>(node.op)) ||
           std::holds_alternative<TensorLoad>(node.op);
  });
  if (ahead == 0 || !placement.by_lifetime || fixed) return;
  const Dependences all = find_dependences(builder, placement, false);
  std::vector<Node> reordered;
  reordered.reserve(nodes.size());
  for (const std::uint32_t node : Scheduler(builder, all, ahead).run())
    reordered.push_back(std::move(nodes[node]));
  nodes = std::move(reordered);
}

}  // namespace trn::isa::frontend
