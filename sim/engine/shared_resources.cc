#include "sim/engine/shared_resources.h"

#include <algorithm>
#include <cmath>

namespace trn::sim {

Time SharedResources::bank_delay(isa::Engine engine) const {
  const Use& own = uses_[isa::index(engine)];
  Time overlap = 0;
  for (isa::Engine other : isa::kAllEngines) {
    const Use& use = uses_[isa::index(other)];
    if (other == engine || (use.banks & own.banks) == 0 || use.end <= own.start) continue;
    const bool first = use.start < own.start || (use.start == own.start && other < engine);
    if (first) overlap = std::max(overlap, std::min(use.end, own.end) - own.start);
  }
  return std::llround(bank_conflict_ * static_cast<double>(overlap));
}

bool SharedResources::bus_taken(Time start) const {
  const Use& use = uses_[isa::index(isa::Engine::GpSimd)];
  return use.start <= start && start < use.end;
}

}  // namespace trn::sim
