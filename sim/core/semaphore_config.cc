#include "sim/core/semaphore_config.h"

namespace trn::sim {
namespace {

std::array<double, isa::kEngines> columns(const HandOverRow& row) {
  return {row.tensor, row.vector, row.scalar, row.gpsimd, row.sync};
}

std::array<const HandOverRow*, kSemaphoreSources> rows(const HandOverConfig& config) {
  return {&config.tensor, &config.vector, &config.scalar,
          &config.gpsimd, &config.sync,   &config.dma};
}

}  // namespace

HandOverTable hand_over_table(const SemaphoreConfig& config) {
  HandOverTable table{};
  const std::array<const HandOverConfig*, kWaiterKinds> kinds = {
      &config.to_compute, &config.to_control, &config.to_trigger};
  for (std::size_t kind = 0; kind < kWaiterKinds; ++kind) {
    const auto sources = rows(*kinds[kind]);
    for (std::size_t source = 0; source < kSemaphoreSources; ++source) {
      const auto times = columns(*sources[source]);
      for (std::size_t engine = 0; engine < isa::kEngines; ++engine)
        table[source][engine][kind] = from_ns(times[engine]);
    }
  }
  return table;
}

}  // namespace trn::sim
