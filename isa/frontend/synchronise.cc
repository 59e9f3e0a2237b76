#include "isa/frontend/synchronise.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>

#include "isa/base/error.h"
#include "isa/frontend/memory_operands.h"

namespace trn::isa::frontend {
namespace {

constexpr std::uint32_t kNone = 0xffffffff;
constexpr std::uint32_t kFirstTransferSemaphore = kEngines;
constexpr std::uint32_t kSpareSemaphores = 24;  ///< for engines that count past the maximum
constexpr std::uint32_t kMostPerLine = 32;
constexpr std::uint32_t kIncrement = 16;  ///< one an engine

/// What is certain of each engine: so many of its instructions are complete, and so many its
/// sequencer has passed, so that what they waited for is there.
struct Clock {
  std::array<std::uint32_t, kEngines> done{};
  std::array<std::uint32_t, kEngines> passed{};

  void merge(const Clock& other) {
    for (std::size_t e = 0; e < kEngines; ++e) {
      done[e] = std::max(done[e], other.done[e]);
      passed[e] = std::max(passed[e], other.passed[e]);
    }
  }
};

class Synchroniser {
 public:
  Synchroniser(const Builder& builder, const Dependences& dependences,
               const std::vector<std::uint32_t>& order, SyncStats& stats, std::int64_t drop)
      : nodes_(builder.nodes()),
        max_(builder.options().semaphore_max),
        dependences_(dependences),
        order_(order),
        stats_(stats),
        drop_(drop),
        result_(nodes_.size()),
        sequence_(nodes_.size(), 0),
        position_(nodes_.size(), 0),
        snapshot_(nodes_.size()),
        signals_(nodes_.size(), false),
        needs_(nodes_.size()) {
    share_semaphores();
  }

  std::vector<NodeSync> run() {
    for (std::uint32_t i = 0; i < order_.size(); ++i) {
      position_[order_[i]] = i;
      visit(order_[i]);
    }
    number_engines();
    for (const std::uint32_t node : order_) write_waits(node);
    return std::move(result_);
  }

 private:
  struct TransferState {
    SemaphoreId semaphore = kNoSemaphore;
    std::uint32_t value = 0;
    /// For each engine, the first of its instructions that has waited for this transfer.
    std::array<std::uint32_t, kEngines> observer{};
  };
  struct Line {
    std::vector<SemaphoreId> semaphores{};
    std::size_t next = 0;
  };
  struct SemaphoreState {
    std::uint32_t value = 0;
    std::uint32_t last_transfer = kNone;
  };

  /// Each line of the kernel that makes transfers gets semaphores of its own to rotate through.
  void share_semaphores() {
    std::map<Key, std::uint32_t> transfers;
    for (const Node& node : nodes_) {
      if (is_transfer(node.op)) ++transfers[key(node)];
    }
    const std::uint32_t pool = kSemaphores - kSpareSemaphores - kFirstTransferSemaphore;
    std::uint32_t most = kMostPerLine;
    const auto wanted = [&] {
      std::uint32_t sum = 0;
      for (const auto& [line, count] : transfers) sum += std::min(most, std::bit_ceil(count));
      return sum;
    };
    while (most > 1 && wanted() > pool) most /= 2;
    std::uint32_t next = 0;
    for (const auto& [line, count] : transfers) {
      for (std::uint32_t i = 0; i < std::min(most, std::bit_ceil(count)); ++i) {
        // With more lines than semaphores, lines share them.
        lines_[line].semaphores.push_back(
            static_cast<SemaphoreId>(kFirstTransferSemaphore + next++ % pool));
      }
    }
    next_free_ = kFirstTransferSemaphore + std::min(next, pool);
    states_.resize(kSemaphores);
  }
  /// Transfers of one line, engine and size: those that a ring of tiles rotates through.
  using Key = std::tuple<std::uint32_t, Engine, std::uint64_t>;
  static Key key(const Node& node) {
    std::uint64_t bytes = 0;
    for_each_memory_operand(node.op, [&](std::string_view /*name*/, const auto& operand) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand)>, DmaSide>) {
        bytes = std::max(bytes, operand.bytes());
      }
    });
    return {node.location, node.engine, bytes};
  }

  /// Whether somebody who has waited for the transfer is known to have gone on.
  [[nodiscard]] bool knows_transfer(const Clock& clock, std::uint32_t node) const {
    const TransferState& state = transfers_.at(node);
    for (std::size_t e = 0; e < kEngines; ++e) {
      if (state.observer[e] != 0 && clock.passed[e] >= state.observer[e]) return true;
    }
    return false;
  }

  void visit(std::uint32_t node) {
    const std::size_t engine = index(nodes_[node].engine);
    const std::uint32_t number = ++issued_[engine];
    sequence_[node] = number;
    Clock known = clocks_[engine];
    known.passed[engine] = number - 1;

    const auto given = dependences_.of(node);
    stats_.dependences += given.size();
    std::vector<std::uint32_t> producers(given.begin(), given.end());
    if (is_transfer(nodes_[node].op)) assign_semaphore(node, producers);
    // The latest first: it knows most of what the others would tell.
    std::sort(producers.begin(), producers.end(),
              [&](std::uint32_t a, std::uint32_t b) { return position_[a] > position_[b]; });
    producers.erase(std::unique(producers.begin(), producers.end()), producers.end());
    std::vector<std::uint32_t>& needs = needs_[node];
    for (const std::uint32_t producer : producers) {
      const std::size_t e = index(nodes_[producer].engine);
      if (is_transfer(nodes_[producer].op)) {
        std::uint32_t& first = transfers_.at(producer).observer[engine];
        const bool news = !knows_transfer(known, producer);
        if (first == 0) first = number;
        if (!news) continue;
      } else {
        if (known.done[e] >= sequence_[producer]) continue;
        signals_[producer] = true;
        known.done[e] = sequence_[producer];
      }
      known.merge(snapshot_[producer]);
      known.passed[e] = std::max(known.passed[e], sequence_[producer]);
      needs.push_back(producer);
    }
    std::reverse(needs.begin(), needs.end());
    known.passed[engine] = number;
    snapshot_[node] = known;
    clocks_[engine] = known;
  }

  void assign_semaphore(std::uint32_t node, std::vector<std::uint32_t>& producers) {
    Line& line = lines_.at(key(nodes_[node]));
    SemaphoreId& semaphore = line.semaphores[line.next];
    line.next = (line.next + 1) % line.semaphores.size();
    if (states_[semaphore].value + kIncrement > max_) semaphore = fresh_semaphore();
    SemaphoreState& state = states_[semaphore];
    // Its parts arrive engine by engine: the one before must be over, or the count is ambiguous.
    if (state.last_transfer != kNone) producers.push_back(state.last_transfer);
    state.value += kIncrement;
    state.last_transfer = node;
    transfers_[node] = {semaphore, state.value, {}};
    result_[node].completion = {semaphore, kIncrement};
  }

  SemaphoreId fresh_semaphore() {
    if (next_free_ == kSemaphores) {
      throw InputError("kernel", fmt::format("its transfers and instructions need more than {} "
                                             "semaphores of {}; trace it in parts",
                                             kSemaphores, max_));
    }
    return static_cast<SemaphoreId>(next_free_++);
  }

  void number_engines() {
    std::array<SemaphoreId, kEngines> semaphore{};
    std::array<std::uint32_t, kEngines> value{};
    for (std::size_t e = 0; e < kEngines; ++e) semaphore[e] = static_cast<SemaphoreId>(e);
    for (const std::uint32_t node : order_) {
      if (!signals_[node]) continue;
      const std::size_t e = index(nodes_[node].engine);
      if (value[e] == max_) {
        semaphore[e] = fresh_semaphore();
        value[e] = 0;
      }
      ++value[e];
      result_[node].update = {semaphore[e], UpdateKind::Increment, UpdateWhen::Complete, 1};
      numbers_[node] = {semaphore[e], value[e]};
    }
    for (const SemaphoreState& state : states_) stats_.semaphores += state.last_transfer != kNone;
    for (std::size_t e = 0; e < kEngines; ++e) stats_.semaphores += value[e] != 0;
  }

  void write_waits(std::uint32_t node) {
    std::vector<Wait>& waits = result_[node].waits;
    for (const std::uint32_t producer : needs_[node]) {
      if (static_cast<std::int64_t>(stats_.waits++) == drop_) continue;
      if (is_transfer(nodes_[producer].op)) {
        const TransferState& state = transfers_.at(producer);
        waits.push_back({state.semaphore, WaitCondition::GreaterEqual, std::int64_t{state.value}});
      } else {
        const auto& [semaphore, value] = numbers_.at(producer);
        waits.push_back({semaphore, WaitCondition::GreaterEqual, std::int64_t{value}});
      }
    }
    if (waits.size() > 1) stats_.event_semaphores += waits.size() - 1;
  }

  const std::vector<Node>& nodes_;
  std::uint32_t max_;
  const Dependences& dependences_;
  const std::vector<std::uint32_t>& order_;
  SyncStats& stats_;
  std::int64_t drop_;
  std::vector<NodeSync> result_;
  std::vector<std::uint32_t> sequence_;  ///< number in its engine's stream, from 1
  std::vector<std::uint32_t> position_;  ///< in order_
  std::vector<Clock> snapshot_;          ///< what was known when it began
  std::vector<bool> signals_;
  std::vector<std::vector<std::uint32_t>> needs_;  ///< producers
  std::array<Clock, kEngines> clocks_{};
  std::array<std::uint32_t, kEngines> issued_{};
  std::uint32_t next_free_ = 0;  ///< semaphore that nobody uses
  std::map<Key, Line> lines_{};
  std::vector<SemaphoreState> states_{};
  std::unordered_map<std::uint32_t, TransferState> transfers_{};
  std::unordered_map<std::uint32_t, std::pair<SemaphoreId, std::uint32_t>> numbers_{};
};

}  // namespace

std::vector<NodeSync> synchronise(const Builder& builder, const Dependences& dependences,
                                  const std::vector<std::uint32_t>& order, SyncStats& stats,
                                  std::int64_t drop) {
  return Synchroniser(builder, dependences, order, stats, drop).run();
}

}  // namespace trn::isa::frontend
