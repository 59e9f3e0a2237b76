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
    if (findings_.empty()) check_counting();
    if (findings_.empty()) compare();
    return std::move(findings_);
  }

 private:
  /// A change of a semaphore: by an instruction, or by a transfer when it is over.
  struct Change {
    At at{};
    std::optional<std::uint32_t> transfer{};
    std::int64_t value = 0;  ///< after it, when changes come in this order
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
        const auto change = [&](SemaphoreId id, std::int64_t by) {
          std::vector<Change>& all = changes_[id];
          all.push_back({{e, i}, {}, by + (all.empty() ? 0 : all.back().value)});
        };
        if (instr.sync.update.present()) {
          if (instr.sync.update.kind != UpdateKind::Increment) {
            find(fmt::format("{}: expected semaphores that only count up", name({e, i})));
          }
          change(instr.sync.update.semaphore, 1);
        }
        std::visit(
            [&](const auto& op) {
              if constexpr (requires { op.completion.increment; }) {
                if (op.completion.increment == 0) return;
                change(op.completion.semaphore, op.completion.increment);
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
      const std::int64_t value = instr.sync.wait.value.base;
      std::vector<const Change*> before;
      for (const Change& change : all->second) {
        before.push_back(&change);
        if (change.value >= value) break;
      }
      if (before.empty() || before.back()->value < value) return false;
      for (const Change* change : before) {
        if (next_[change->at.engine] <= change->at.index) return false;
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

  /// Changes of one semaphore come one after the other, or its value tells nothing: each begins
  /// when the one before is over.
  void check_counting() {
    for (const auto& [semaphore, all] : changes_) {
      for (std::size_t i = 1; i < all.size(); ++i) {
        const Change& first = all[i - 1];
        const Change& second = all[i];
        if (!first.transfer && !second.transfer && first.at.engine == second.at.engine) continue;
        const Knowledge& known = begins_[second.at.engine][second.at.index];
        const bool over = first.transfer ? bool{known.transfers[*first.transfer]}
                                         : known.done[first.at.engine] > first.at.index;
        if (!over) {
          find(fmt::format("{} may raise semaphore {} before {} has", name(second.at), semaphore,
                           name(first.at)));
        }
      }
    }
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
        // In order by themselves; but a pipelined engine reads before its last result is there.
        const bool alone = a.at.engine == b.at.engine && !a.transfer && !b.transfer;
        if (alone && !((a.at.index < b.at.index ? a : b).write &&
                       !(a.at.index < b.at.index ? b : a).write)) {
          continue;
        }
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
  std::vector<std::string> findings_{};
};

}  // namespace

std::vector<std::string> check_order(const Program& program, std::size_t most) {
  return Checker(program, most).run();
}

}  // namespace trn::isa::frontend
