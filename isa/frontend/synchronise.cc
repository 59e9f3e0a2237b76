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

using Clock = std::array<std::uint32_t, kEngines>;  ///< instructions of each engine known complete

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
        snapshot_(nodes_.size()),
        signals_(nodes_.size(), false),
        needs_(nodes_.size()) {
    share_semaphores();
  }

  std::vector<NodeSync> run() {
    for (const std::uint32_t node : order_) visit(node);
    number_engines();
    for (const std::uint32_t node : order_) write_waits(node);
    return std::move(result_);
  }

 private:
  /// Waiting for an instruction of an engine, by its number in the stream, or for a transfer.
  struct Need {
    std::uint32_t producer = 0;
    bool transfer = false;
    Wait wait{};  ///< of a transfer
  };
  struct TransferState {
    SemaphoreId semaphore = kNoSemaphore;
    std::uint32_t value = 0;
    /// For each engine, the first of its instructions that has waited for this transfer.
    std::array<std::uint32_t, kEngines> observer{};
  };
  struct Line {
    std::uint32_t first = 0;
    std::uint32_t count = 1;
    std::uint32_t next = 0;
  };
  struct SemaphoreState {
    std::uint32_t value = 0;
    std::uint32_t last_transfer = kNone;
    std::array<std::uint32_t, kEngines> last_waiter{};  ///< sequence number, 0: none
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
      const std::uint32_t own = std::min(most, std::bit_ceil(count));
      lines_[line] = {kFirstTransferSemaphore + next % pool, std::min(own, pool - next % pool), 0};
      next += own;
    }
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

  bool knows_transfer(const Clock& clock, std::uint32_t node) const {
    const TransferState& state = transfers_.at(node);
    for (std::size_t e = 0; e < kEngines; ++e) {
      if (state.observer[e] != 0 && clock[e] >= state.observer[e]) return true;
    }
    return false;
  }

  void visit(std::uint32_t node) {
    const std::size_t engine = index(nodes_[node].engine);
    Clock& clock = clocks_[engine];
    const std::uint32_t number = ++issued_[engine];
    sequence_[node] = number;
    stream_[engine].push_back(node);
    const auto producers = dependences_.of(node);
    stats_.dependences += producers.size();
    std::array<std::uint32_t, kEngines> last{};  // node + 1
    std::vector<std::uint32_t> transfers;
    const auto need = [&](std::uint32_t producer) {
      if (is_transfer(nodes_[producer].op)) {
        transfers.push_back(producer);
      } else {
        const std::size_t e = index(nodes_[producer].engine);
        if (clock[e] < sequence_[producer] &&
            (last[e] == 0 || sequence_[last[e] - 1] < sequence_[producer])) {
          last[e] = producer + 1;
        }
      }
    };
    for (const std::uint32_t producer : producers) need(producer);
    if (is_transfer(nodes_[node].op)) assign_semaphore(node, need);

    // What another wait brings along needs none of its own.
    for (std::size_t a = 0; a < kEngines; ++a) {
      for (std::size_t b = 0; b < kEngines; ++b) {
        if (a == b || last[a] == 0 || last[b] == 0) continue;
        if (snapshot_[last[b] - 1][a] >= sequence_[last[a] - 1]) last[a] = 0;
      }
    }
    std::vector<Need>& needs = needs_[node];
    Clock known = clock;
    for (std::size_t e = 0; e < kEngines; ++e) {
      if (last[e] == 0) continue;
      const std::uint32_t producer = last[e] - 1;
      const Clock& brought = snapshot_[producer];
      for (std::size_t i = 0; i < kEngines; ++i) known[i] = std::max(known[i], brought[i]);
      known[e] = std::max(known[e], sequence_[producer]);
      signals_[producer] = true;
      needs.push_back({producer, false, {}});
    }
    std::sort(transfers.begin(), transfers.end());
    transfers.erase(std::unique(transfers.begin(), transfers.end()), transfers.end());
    for (const std::uint32_t producer : transfers) {
      if (observed_by(producer, engine) || knows_transfer(known, producer)) continue;
      TransferState& state = transfers_.at(producer);
      needs.push_back({producer,
                       true,
                       {state.semaphore, WaitCondition::GreaterEqual, std::int64_t{state.value}}});
      states_[state.semaphore].last_waiter[engine] = number;
    }
    // On this engine whatever comes later knows it, as the sequencer itself has waited.
    for (const std::uint32_t producer : transfers) {
      std::uint32_t& first = transfers_.at(producer).observer[engine];
      if (first == 0) first = number;
    }
    clock = known;
    snapshot_[node] = clock;
  }

  bool observed_by(std::uint32_t transfer, std::size_t engine) const {
    return transfers_.at(transfer).observer[engine] != 0;
  }

  template <class NeedFunction>
  void assign_semaphore(std::uint32_t node, const NeedFunction& need) {
    Line& line = lines_.at(key(nodes_[node]));
    const auto semaphore = static_cast<SemaphoreId>(line.first + line.next);
    line.next = (line.next + 1) % line.count;
    SemaphoreState& state = states_[semaphore];
    // Its parts arrive engine by engine: the one before must be over, or the count is ambiguous.
    if (state.last_transfer != kNone) need(state.last_transfer);
    if (state.value + kIncrement > max_) {
      for (std::size_t e = 0; e < kEngines; ++e) {
        if (state.last_waiter[e] != 0) need(stream_[e][state.last_waiter[e] - 1]);
      }
      result_[node].reset = semaphore;
      state.value = 0;
      state.last_waiter = {};
    }
    state.value += kIncrement;
    state.last_transfer = node;
    transfers_[node] = {semaphore, state.value, {}};
    result_[node].completion = {semaphore, kIncrement};
  }

  void number_engines() {
    std::uint32_t spare = kSemaphores - kSpareSemaphores;
    std::array<SemaphoreId, kEngines> semaphore{};
    std::array<std::uint32_t, kEngines> value{};
    for (std::size_t e = 0; e < kEngines; ++e) semaphore[e] = static_cast<SemaphoreId>(e);
    for (const std::uint32_t node : order_) {
      if (!signals_[node]) continue;
      const std::size_t e = index(nodes_[node].engine);
      if (value[e] == max_) {
        if (spare == kSemaphores) {
          throw InputError("kernel",
                           fmt::format("more than {} semaphores of {} would be needed; trace it in "
                                       "parts",
                                       kSpareSemaphores + kEngines, max_));
        }
        semaphore[e] = static_cast<SemaphoreId>(spare++);
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
    for (const Need& need : needs_[node]) {
      if (static_cast<std::int64_t>(stats_.waits++) == drop_) continue;
      if (need.transfer) {
        waits.push_back(need.wait);
      } else {
        const auto& [semaphore, value] = numbers_.at(need.producer);
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
  std::vector<Clock> snapshot_;          ///< what was known when it began
  std::vector<bool> signals_;
  std::vector<std::vector<Need>> needs_;
  std::array<Clock, kEngines> clocks_{};
  std::array<std::uint32_t, kEngines> issued_{};
  std::array<std::vector<std::uint32_t>, kEngines> stream_{};
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
