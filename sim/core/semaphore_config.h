#pragma once

#include <cstdint>
#include <tuple>

#include "isa/base/describe.h"
#include "sim/core/semaphores.h"

namespace trn::sim {

/// Hand-over times from one writer, by the engine that waits.
struct HandOverRow {
  double tensor = 0;
  double vector = 0;
  double scalar = 0;
  double gpsimd = 0;
  double sync = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"tensor", &HandOverRow::tensor, "ns", "to the Tensor engine"},
                      Field{"vector", &HandOverRow::vector, "ns", "to the Vector engine"},
                      Field{"scalar", &HandOverRow::scalar, "ns", "to the Scalar engine"},
                      Field{"gpsimd", &HandOverRow::gpsimd, "ns", "to the GpSimd engine"},
                      Field{"sync", &HandOverRow::sync, "ns", "to the Sync engine"}};
  }
};

/// Hand-over times by writer.
struct HandOverConfig {
  HandOverRow tensor{};
  HandOverRow vector{};
  HandOverRow scalar{};
  HandOverRow gpsimd{};
  HandOverRow sync{};
  HandOverRow dma{};
  static constexpr auto fields() {
    return std::tuple{Field{"tensor", &HandOverConfig::tensor, "", "written by the Tensor engine"},
                      Field{"vector", &HandOverConfig::vector, "", "written by the Vector engine"},
                      Field{"scalar", &HandOverConfig::scalar, "", "written by the Scalar engine"},
                      Field{"gpsimd", &HandOverConfig::gpsimd, "", "written by the GpSimd engine"},
                      Field{"sync", &HandOverConfig::sync, "", "written by the Sync engine"},
                      Field{"dma", &HandOverConfig::dma, "", "written by a DMA engine"}};
  }
};

/// The semaphores of a core, and how long it takes until a waiter sees a write.
struct SemaphoreConfig {
  std::uint32_t max_value = 0;
  HandOverConfig to_compute{};
  HandOverConfig to_control{};
  HandOverConfig to_trigger{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"max_value", &SemaphoreConfig::max_value, "count", "largest value"},
        Field{"to_compute", &SemaphoreConfig::to_compute, "",
              "from the writer's end to the start of an instruction that waits in the engine"},
        Field{"to_control", &SemaphoreConfig::to_control, "",
              "to the start of one that the sequencer executes itself"},
        Field{"to_trigger", &SemaphoreConfig::to_trigger, "", "to the trigger of a DMA"}};
  }
};

HandOverTable hand_over_table(const SemaphoreConfig& config);

}  // namespace trn::sim
