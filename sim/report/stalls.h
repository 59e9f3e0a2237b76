#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "isa/program.h"
#include "sim/core/observer.h"
#include "sim/core/time.h"
#include "sim/machine/core_result.h"

namespace trn::sim {

/// The time of one engine, every instant of it: busy + the stalls + idle = the device time,
/// exactly.
struct EngineAccount {
  isa::Engine engine = isa::Engine::Tensor;
  std::uint64_t instructions = 0;
  Time busy = 0;
  Time idle = 0;  ///< after its last instruction
  std::array<Time, kStallReasons> stalled{};

  [[nodiscard]] Time stalled_total() const;
  [[nodiscard]] Time total() const { return busy + idle + stalled_total(); }
};

/// Time that an engine lost before the instructions of one source line, for one reason.
struct Stall {
  std::uint32_t core = 0;
  isa::Engine engine = isa::Engine::Tensor;
  StallReason reason = StallReason::None;
  std::string source;  ///< `attention.py:12`; empty when the trace does not say
  std::string label;   ///< what the trace calls the instructions, when it gives no line
  Time time = 0;
};

/// Accounts of the five engines. Checks that each adds up to the core's length.
std::vector<EngineAccount> engine_accounts(const CoreResult& core);

/// Adds up the stalls of a run by engine, reason and source line.
class StallTable final : public Observer {
 public:
  /// A trace without source lines may have as many labels as instructions: beyond this many rows,
  /// the shorter ones of an engine and reason are one row without a place.
  static constexpr std::size_t kRows = 1000;

  void on_instruction(const InstructionRecord& record) override;

  /// Longest first; equal ones by engine, reason and place in the trace.
  [[nodiscard]] std::vector<Stall> rows(const isa::TraceInfo& trace, std::uint32_t core) const;

 private:
  struct Key {
    isa::Engine engine{};
    StallReason reason{};
    isa::SourceRef at{};  ///< a location, or a label; or neither
    friend auto operator<=>(const Key& a, const Key& b) {
      return std::tuple(a.engine, a.reason, a.at.location, a.at.label) <=>
             std::tuple(b.engine, b.reason, b.at.location, b.at.label);
    }
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };

  std::unordered_map<Key, Time, Hash> times_;
};

/// `attention.py:12`, or empty for an unknown place.
std::string source_text(const isa::TraceInfo& trace, std::uint32_t location);

}  // namespace trn::sim
