#include "isa/frontend/check_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/roll.h"
#include "isa/text.h"

namespace trn::isa::frontend {
namespace {

/// An instruction by its stream and its index there.
struct At {
  std::size_t engine = 0;
  std::uint32_t index = 0;
  friend bool operator==(const At&, const At&) = default;
};

/// What is certain to be over.
struct Knowledge {
  std::array<std::uint32_t, kEngines> done{};  ///< so many instructions of each engine
  std::vector<bool> transfers{};               ///< by number

  void add(const Knowledge& other) {
    for (std::size_t e = 0; e < kEngines; ++e) done[e] = std::max(done[e], other.done[e]);
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      if (other.transfers[t]) transfers[t] = true;
    }
  }
};

struct Use {
  At at{};
  std::optional<std::uint32_t> transfer{};
  bool write = false;
  Region region{};
};

class Checker {
 public:
  Checker(const Program& program, std::size_t most) : most_(most) {
    for (std::size_t e = 0; e < kEngines; ++e) streams_[e] = unroll(program.streams[e]);
    collect();
  }

  std::vector<std::string> run() {
    bool progress = true;
    while (progress) {
      progress = false;
      for (std::size_t e = 0; e < kEngines; ++e) {
        while (next_[e] < streams_[e].size() && step(e)) progress = true;
      }
    }
    for (std::size_t e = 0; e < kEngines; ++e) {
      if (next_[e] < streams_[e].size()) {
        find(fmt::format("{} waits for what never comes", name({e, next_[e]})));
      }
    }
    if (findings_.empty()) compare();
    return std::move(findings_);
  }

 private:
  /// A change of a semaphore: by an instruction, or by a transfer when it is over.
  struct Change {
    At at{};
    std::optional<std::uint32_t> transfer{};
    std::uint32_t epoch = 0;  ///< counts the times that the semaphore was set to zero
    std::int64_t value = 0;   ///< after it, when changes come in this order
  };

  void collect() {
    for (std::size_t e = 0; e < kEngines; ++e) {
      begins_[e].resize(streams_[e].size());
      for (std::uint32_t i = 0; i < streams_[e].size(); ++i) {
        const Instr& instr = streams_[e][i];
        std::optional<std::uint32_t> transfer;
        if (is_transfer(instr.op)) {
          transfer = static_cast<std::uint32_t>(transfers_.size());
          transfers_.push_back({e, i});
        }
        for_each_memory_operand(instr.op, [&](std::string_view operand, const auto& it) {
          const std::int64_t address = address_of(it).base;
          Use use{{e, i}, transfer, is_result(operand), {}};
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(it)>, DmaSide>) {
            use.region = region_of(it, address, 0);
          } else {
            use.region = region_of(it, address);
          }
          uses_.push_back(use);
        });
        const auto change = [&](SemaphoreId id, bool reset, std::int64_t by) {
          std::vector<Change>& all = changes_[id];
          Change next{{e, i}, {}, all.empty() ? 0 : all.back().epoch, by};
          if (reset) {
            ++next.epoch;
            next.value = 0;
          } else if (!all.empty()) {
            next.value += all.back().value;
          }
          all.push_back(next);
        };
        if (instr.sync.update.present()) {
          const bool reset = instr.sync.update.kind == UpdateKind::Write;
          change(instr.sync.update.semaphore, reset, 1);
        }
        std::visit(
            [&](const auto& op) {
              if constexpr (requires { op.completion.increment; }) {
                if (op.completion.increment == 0) return;
                change(op.completion.semaphore, false, op.completion.increment);
                changes_[op.completion.semaphore].back().transfer = transfer;
              }
            },
            instr.op);
      }
    }
  }

  /// Knowledge when the instruction begins; false when it cannot begin yet.
  bool step(std::size_t e) {
    const At at{e, next_[e]};
    const Instr& instr = streams_[e][at.index];
    Knowledge known;
    known.transfers.resize(transfers_.size(), false);
    if (at.index > 0) known = begins_[e][at.index - 1];
    if (instr.sync.wait.present()) {
      const auto all = changes_.find(instr.sync.wait.semaphore);
      if (all == changes_.end()) return false;
      // The wait belongs to the epoch that its stream has seen: resets are on the way to it.
      const std::int64_t value = instr.sync.wait.value.base;
      const std::uint32_t epoch = epoch_for(all->second, at);
      std::vector<const Change*> before;
      for (const Change& change : all->second) {
        if (change.epoch != epoch || change.value == 0) continue;
        if (change.value > value) break;
        before.push_back(&change);
      }
      if (before.empty() || before.back()->value < value) {
        // A value between two changes is reached with the later one.
        for (const Change& change : all->second) {
          if (change.epoch == epoch && change.value >= value) {
            before.push_back(&change);
            break;
          }
        }
      }
      if (before.empty() || before.back()->value < value) return false;
      for (const Change* change : before) {
        if (next_[change->at.engine] <= change->at.index) return false;
      }
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (!in_turn(before, i)) {
          find(fmt::format("{}: semaphore {} does not tell which of its changes have happened",
                           name(at), instr.sync.wait.semaphore));
          break;
        }
      }
      for (const Change* change : before) {
        known.add(begins_[change->at.engine][change->at.index]);
        if (change->transfer) {
          known.transfers[*change->transfer] = true;
        } else {
          std::uint32_t& done = known.done[change->at.engine];
          done = std::max(done, change->at.index + 1);
        }
      }
    }
    begins_[e][at.index] = std::move(known);
    ++next_[e];
    return true;
  }

  /// Whether a change can only come after the one before it.
  bool in_turn(const std::vector<const Change*>& changes, std::size_t i) const {
    if (i == 0) return true;
    const Change& first = *changes[i - 1];
    const Change& second = *changes[i];
    if (!first.transfer && !second.transfer) return first.at.engine == second.at.engine;
    const Knowledge& known = begins_[second.at.engine][second.at.index];
    return first.transfer && known.transfers[*first.transfer];
  }

  /// Epochs begin where one engine sets the semaphore to zero; that engine then uses it first, and
  /// whoever waits for a later epoch's change comes after that change's begin.
  std::uint32_t epoch_for(const std::vector<Change>& all, const At& at) {
    std::uint32_t& epoch = epochs_[{streams_[at.engine][at.index].sync.wait.semaphore, at.engine}];
    const std::int64_t value = streams_[at.engine][at.index].sync.wait.value.base;
    std::int64_t& last =
        last_value_[{streams_[at.engine][at.index].sync.wait.semaphore, at.engine}];
    if (value < last && epoch < all.back().epoch) ++epoch;  // waits of a stream only count up
    last = value;
    return epoch;
  }

  bool before(const Use& first, const Use& second) const {
    const Knowledge& known = begins_[second.at.engine][second.at.index];
    if (first.transfer) return known.transfers[*first.transfer];
    return known.done[first.at.engine] > first.at.index;
  }

  void compare() {
    for (std::size_t i = 0; i < uses_.size(); ++i) {
      for (std::size_t j = i + 1; j < uses_.size(); ++j) {
        const Use& a = uses_[i];
        const Use& b = uses_[j];
        if ((!a.write && !b.write) || a.region.memory != b.region.memory || a.at == b.at) continue;
        if (a.at.engine == b.at.engine && !a.transfer && !b.transfer) continue;
        if (!a.region.overlaps(b.region) || before(a, b) || before(b, a)) continue;
        find(fmt::format("{} and {} touch the same bytes in either order", name(a.at), name(b.at)));
        if (findings_.size() >= most_) return;
      }
    }
  }

  std::string name(const At& at) const {
    return fmt::format("{} #{} {}", name_of(kAllEngines[at.engine]), at.index,
                       instruction_text(streams_[at.engine][at.index]));
  }
  void find(std::string text) {
    if (findings_.size() < most_) findings_.push_back(std::move(text));
  }

  std::size_t most_;
  std::array<std::vector<Instr>, kEngines> streams_{};
  std::array<std::vector<Knowledge>, kEngines> begins_{};
  std::array<std::uint32_t, kEngines> next_{};
  std::vector<At> transfers_{};
  std::vector<Use> uses_{};
  std::map<SemaphoreId, std::vector<Change>> changes_{};
  std::map<std::pair<SemaphoreId, std::size_t>, std::uint32_t> epochs_{};
  std::map<std::pair<SemaphoreId, std::size_t>, std::int64_t> last_value_{};
  std::vector<std::string> findings_{};
};

}  // namespace

std::vector<std::string> check_order(const Program& program, std::size_t most) {
  return Checker(program, most).run();
}

}  // namespace trn::isa::frontend
