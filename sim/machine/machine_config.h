#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "isa/base/describe.h"
#include "isa/types.h"
#include "sim/core/cost_config.h"
#include "sim/core/semaphore_config.h"
#include "sim/dma/dma_config.h"
#include "sim/engine/engine_config.h"
#include "sim/memory/memory_config.h"

namespace trn::sim {

/// What the runtime does around a kernel. It synchronises the two cores of a logical core and
/// cannot be replayed from one, hence constants. Source: docs/sources.md#profiles-prologue.
struct RuntimeConfig {
  bool include = false;
  double prologue = 0;
  double epilogue = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"include", &RuntimeConfig::include, "",
              "whether profiled_total_ns counts prologue and epilogue"},
        Field{"prologue", &RuntimeConfig::prologue, "ns", "before the kernel's first instruction"},
        Field{"epilogue", &RuntimeConfig::epilogue, "ns", "after its last completion"}};
  }
};

/// Instruction fetch; the profiles show it in the prologue only, hence off.
struct FetchConfig {
  bool model = false;
  std::uint32_t instruction_bytes = 0;
  double bandwidth = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"model", &FetchConfig::model, "", "whether sequencers wait for instructions"},
        Field{"instruction_bytes", &FetchConfig::instruction_bytes, "bytes",
              "bytes of an instruction"},
        Field{"bandwidth", &FetchConfig::bandwidth, "B/s", "instruction bytes, each sequencer"}};
  }
};

/// One processor: eight NeuronCores, their memories and DMA engines.
struct ChipConfig {
  std::string name;
  isa::Target target = isa::Target::NeuronCoreV3;
  std::uint32_t cores = 0;
  TensorEngineConfig tensor{};
  EngineConfig vector{};
  ScalarEngineConfig scalar{};
  EngineConfig gpsimd{};
  EngineConfig sync{};
  SemaphoreConfig semaphores{};
  SbufConfig sbuf{};
  PsumConfig psum{};
  HbmConfig hbm{};
  DmaConfig dma{};
  RuntimeConfig runtime{};
  FetchConfig fetch{};
  CostTableConfig costs{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"name", &ChipConfig::name, "", "name"},
        Field{"target", &ChipConfig::target, "", "generation of its cores"},
        Field{"cores", &ChipConfig::cores, "count", "physical NeuronCores"},
        Field{"tensor", &ChipConfig::tensor, "", "Tensor engine"},
        Field{"vector", &ChipConfig::vector, "", "Vector engine"},
        Field{"scalar", &ChipConfig::scalar, "", "Scalar engine"},
        Field{"gpsimd", &ChipConfig::gpsimd, "", "GpSimd engine"},
        Field{"sync", &ChipConfig::sync, "", "Sync engine"},
        Field{"semaphores", &ChipConfig::semaphores, "", "semaphores of a core"},
        Field{"sbuf", &ChipConfig::sbuf, "", "state buffer"},
        Field{"psum", &ChipConfig::psum, "", "accumulators"},
        Field{"hbm", &ChipConfig::hbm, "", "high-bandwidth memory"},
        Field{"dma", &ChipConfig::dma, "", "DMA engines and descriptor generation"},
        Field{"runtime", &ChipConfig::runtime, "", "what the runtime does around a kernel"},
        Field{"fetch", &ChipConfig::fetch, "", "instruction fetch"},
        Field{"costs", &ChipConfig::costs, "", "the cost table: a file name, or its keys"}};
  }
};

enum class Topology : std::uint8_t { Single, Torus2d, Torus3d };

/// How many chips an instance has and how they are linked.
struct SystemConfig {
  std::string instance;
  std::uint32_t chips = 0;
  Topology topology = Topology::Single;
  static constexpr auto fields() {
    return std::tuple{Field{"instance", &SystemConfig::instance, "",
                            "EC2 instance type, as the price list has it"},
                      Field{"chips", &SystemConfig::chips, "count", "chips of the instance"},
                      Field{"topology", &SystemConfig::topology, "", "how NeuronLink joins them"}};
  }
};

/// The state of the machine when a kernel starts, which nothing in a program decides.
struct LaunchState {
  double activity_window_phase = 0;
  static constexpr auto fields() {
    return std::tuple{Field{
        "activity_window_phase", &LaunchState::activity_window_phase, "ns",
        "when the first clock window of the Tensor engine ends, counted from the start of the "
        "runtime's prologue, modulo the window"}};
  }
};

/// Everything that a run depends on besides its trace.
struct MachineConfig {
  std::uint32_t lnc = 0;
  SystemConfig system{};
  ChipConfig chip{};
  LaunchState tensor{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"lnc", &MachineConfig::lnc, "count",
              "physical cores that form a logical core: 1 or 2"},
        Field{"system", &MachineConfig::system, "", "the instance"},
        Field{"chip", &MachineConfig::chip, "", "the chip: a file name, or its keys"},
        Field{"tensor", &MachineConfig::tensor, "", "state of the Tensor engine at launch"}};
  }
};

}  // namespace trn::sim

namespace trn {
template <>
struct EnumNames<sim::Topology> {
  static constexpr std::array<std::string_view, 3> value = {"single", "torus_2d", "torus_3d"};
};
}  // namespace trn
