#include "sim/engine/compute_engine.h"

#include <algorithm>

namespace trn::sim {

Time ComputeEngine::earliest(const Uop&) const { return free_; }

Engine::Execution ComputeEngine::occupy(const PipelineCost& cost, Time start, bool waited) {
  const Time restart = waited ? cost.restart : 0;
  const Time effective = std::max(start + restart, unit_free_);
  free_ = start + restart + cost.issue;
  unit_free_ = effective + cost.occupancy;
  return {unit_free_, effective + cost.latency};
}

Engine::Execution ComputeEngine::execute(const Uop& uop, Time start, bool waited) {
  if (!uop.shared) return occupy(uop.cost, start, waited);
  PipelineCost cost = context().shared.bus_taken(start) ? uop.contended : uop.cost;
  const Time delay = context().shared.bank_delay(id());
  context().shared.extend(id(), delay);
  cost.issue += delay;
  cost.occupancy += delay;
  cost.latency += delay;
  return occupy(cost, start, waited);
}

}  // namespace trn::sim
