#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <systemc>
#include <vector>

#include "isa/program.h"
#include "sim/core/lowering.h"
#include "sim/core/observer.h"
#include "sim/core/semaphores.h"
#include "sim/core/simulation.h"
#include "sim/dma/dma_system.h"
#include "sim/engine/scalar_engine.h"
#include "sim/engine/shared_resources.h"
#include "sim/engine/tensor_engine.h"
#include "sim/machine/core_result.h"
#include "sim/machine/machine_config.h"
#include "sim/memory/hbm.h"

namespace trn::sim {

/// What a core needs to run one program.
struct CoreSetup {
  const isa::Code& code;
  isa::CoreBinding binding{};
  const CostTable& costs;
  Observer* observer = nullptr;       ///< may be null
  Time time_limit = kNever;           ///< a program that runs longer is the user's error
  bool reverse_construction = false;  ///< builds the blocks in the other order: nothing may change
};

/// One physical NeuronCore with its program: five engines, semaphores, on-chip memories and DMA.
class NeuronCore : public sc_core::sc_module {
 public:
  NeuronCore(const sc_core::sc_module_name& name, const MachineConfig& config,
             const CoreSetup& setup, Simulation& simulation, HbmStack& hbm);

  /// What the run says; to be called after it. Throws DeadlockError when the program did not end,
  /// InputError when a semaphore overflowed in its last instructions.
  [[nodiscard]] CoreResult result();

 private:
  std::unique_ptr<Engine> make_engine(isa::Engine id, const CoreSetup& setup);
  [[nodiscard]] std::string describe(isa::Engine engine, std::uint64_t index);

  const MachineConfig& config_;
  isa::CoreBinding binding_;
  Lowering lowering_;
  Semaphores semaphores_;
  SharedResources shared_;
  std::unique_ptr<DmaSystem> dma_;
  std::unique_ptr<EngineContext> context_;
  TensorEngine* tensor_ = nullptr;
  ScalarEngine* scalar_ = nullptr;
  std::array<std::unique_ptr<Engine>, isa::kEngines> engines_{};
};

}  // namespace trn::sim
