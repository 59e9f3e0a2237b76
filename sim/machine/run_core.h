#pragma once

#include "isa/program.h"
#include "sim/core/cost_table.h"
#include "sim/core/observer.h"
#include "sim/machine/core_result.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

struct CoreRunOptions {
  Observer* observer = nullptr;
  double time_limit_s = 60;           ///< simulated; a program that runs longer is an error
  bool reverse_construction = false;  ///< for the test that nothing depends on it
};

/// Runs the program bound to `code.info().cores[0]` on one physical core, in a SystemC kernel of
/// its own. Throws InputError (a limit, a semaphore that overflows, an endless loop),
/// DeadlockError.
CoreResult run_core(const isa::Code& code, const MachineConfig& machine, const CostTable& costs,
                    const CoreRunOptions& options = {});

}  // namespace trn::sim
