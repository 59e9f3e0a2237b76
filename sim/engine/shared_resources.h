#pragma once

#include <array>
#include <cstdint>

#include "isa/types.h"
#include "sim/core/time.h"

namespace trn::sim {

/// Where engines of one core meet: the PSUM banks that VectorE and ScalarE read, and the bus that
/// VectorE's fast modes share with GpSimd. Source: docs/sources.md#a2-data-movement.
///
/// An instruction that meets others announces itself in the delta cycle in which it could start and
/// asks in the next one, so that all of an instant are known and the lower engine number goes
/// first, whatever the order of the calls.
class SharedResources {
 public:
  /// bank_conflict: share of the overlap by which the later of two accesses to a bank is delayed.
  explicit SharedResources(double bank_conflict) : bank_conflict_(bank_conflict) {}

  /// The engine starts at `start` and holds `banks` (a mask) until `end`.
  void announce(isa::Engine engine, std::uint8_t banks, Time start, Time end) {
    uses_[isa::index(engine)] = {banks, start, end};
  }

  /// The engine's announced access takes longer by `delay`.
  void extend(isa::Engine engine, Time delay) { uses_[isa::index(engine)].end += delay; }

  /// How much longer the engine's announced access takes because of others in its PSUM banks.
  [[nodiscard]] Time bank_delay(isa::Engine engine) const;

  /// Whether GpSimd holds the bus at `start`, having begun before or at it.
  [[nodiscard]] bool bus_taken(Time start) const;

 private:
  struct Use {
    std::uint8_t banks = 0;
    Time start = 0;
    Time end = 0;
  };
  double bank_conflict_;
  std::array<Use, isa::kEngines> uses_{};
};

}  // namespace trn::sim
