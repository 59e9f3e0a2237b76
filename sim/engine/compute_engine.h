#pragma once

#include "sim/engine/engine.h"

namespace trn::sim {

/// An engine with one pipeline: Vector, GpSimd, and Sync, which has none.
///
/// A reported start s is followed by the effective one, e, from which the unit is held:
///   s >= s' + issue' (+ restart' when the unit had been idle)
///   e >= s (+ restart when the unit was idle), e >= e' + occupancy'
/// with primes for the instruction before; the result is there at e + latency.
/// Source: docs/sources.md#profiles-pipeline.
class ComputeEngine : public Engine {
 public:
  using Engine::Engine;

 protected:
  [[nodiscard]] Time earliest(const Uop& uop) const override;
  Execution execute(const Uop& uop, Time start, bool waited) override;
  /// Holds the pipeline for `cost`.
  Execution occupy(const PipelineCost& cost, Time start, bool waited);

 private:
  Time free_ = 0;       // the next instruction may start
  Time unit_free_ = 0;  // and hold the unit
};

}  // namespace trn::sim
