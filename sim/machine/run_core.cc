#include "sim/machine/run_core.h"

#include <fmt/format.h>

#include "sim/core/simulation.h"
#include "sim/machine/neuron_core.h"

namespace trn::sim {

CoreResult run_core(const isa::Code& code, const MachineConfig& machine, const CostTable& costs,
                    const CoreRunOptions& options) {
  const isa::CoreBinding binding =
      code.info().cores.empty() ? isa::CoreBinding{} : code.info().cores.front();
  Simulation simulation;
  HbmStack hbm(fmt::format("hbm{}", binding.core / 2).c_str(), machine.chip.hbm);
  NeuronCore core(fmt::format("nc{}", binding.core).c_str(), machine,
                  {code, binding, costs, options.observer, from_ns(options.time_limit_s * 1e9),
                   options.reverse_construction},
                  simulation, hbm);
  simulation.run();
  return core.result();
}

}  // namespace trn::sim
