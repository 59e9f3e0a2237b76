#include "isa/frontend/schedule.h"

#include <algorithm>
#include <array>
#include <deque>

#include "isa/base/check.h"
#include "isa/frontend/rough.h"

namespace trn::isa::frontend {
namespace {

class Scheduler {
 public:
  Scheduler(const Builder& builder, const Dependences& dependences)
      : nodes_(builder.nodes()),
        lookahead_(builder.options().dma_lookahead),
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
      begin(*best);
      order.push_back(best->node);
    }
    return order;
  }

 private:
  struct Choice {
    std::size_t engine = 0;
    std::size_t position = 0;  ///< in pending_
    std::uint32_t node = 0;
    double start = 0;
    double key = 0;  ///< what the order goes by
  };

  /// A store by software descriptors goes this much later than when its data should be there: held
  /// up, it would hold up the loads behind it, and the estimate is rough.
  [[nodiscard]] double slack(std::uint32_t node) const {
    const auto* copy = std::get_if<DmaDirect2d>(&nodes_[node].op);
    const bool store = copy != nullptr && copy->mode == DescriptorMode::SoftwareDge &&
                       copy->dst.memory == Memory::Hbm;
    return store ? slack_ns_ : 0;
  }

  std::optional<Choice> choose(std::size_t engine) const {
    const auto& pending = pending_[engine];
    std::optional<Choice> best;
    bool head = true;  // no instruction of the engine's own passed yet
    const std::size_t reach = std::min<std::size_t>(pending.size(), std::size_t{lookahead_} + 1);
    for (std::size_t i = 0; i < reach; ++i) {
      const std::uint32_t node = pending[i];
      if (i > 0 && (nodes_[node].fence || nodes_[pending[0]].fence)) break;
      const bool transfer = is_transfer(nodes_[node].op);
      if (transfer || head) {
        if (open_[node] == 0) {
          const double start = std::max(free_[engine], ready_[node]);
          const double key = std::max(start, ready_[node] + slack(node));
          if (!best || key < best->key) best = {engine, i, node, start, key};
          if (key <= free_[engine]) break;  // none can be earlier
        }
      }
      if (!transfer) head = false;
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
  double slack_ns_;
  std::vector<double> ready_;
  std::vector<std::uint32_t> open_;  ///< producers that have not begun
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
  return Scheduler(builder, dependences).run();
}

}  // namespace trn::isa::frontend
