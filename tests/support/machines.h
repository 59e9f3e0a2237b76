#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/time.h"
#include "sim/machine/machine_load.h"

namespace trn::test {

/// Whole nanoseconds as simulated time.
constexpr sim::Time ns(std::int64_t nanoseconds) { return nanoseconds * 1'000'000; }

/// configs/systems/trn2.3xlarge.yaml as shipped.
sim::Machine shipped_machine(const std::vector<Override>& overrides = {});

/// The same blocks with round numbers, so that a test can state its times: all clocks are 1 GHz (a
/// cycle is a nanosecond; the Tensor clock is not gated), each engine's first instruction is at
/// 100 ns, the next ones follow 2 ns apart. machines.cc lists the rest.
sim::Machine round_machine();

/// Cycles of one row: to the next start, held, to the result, beside that from idle.
struct RoundCost {
  std::string ii;
  std::string occupancy;
  std::string latency;
  std::string restart = "0";
  std::string when{};  ///< empty: always
};
/// Replaces the rows of a cost class, for all engines; the last one has no condition.
void set_cost(sim::Machine& machine, const std::string& cost_class,
              const std::vector<RoundCost>& rows);

/// To be called after changes to clocks or parameters, which formulas of the cost table use.
void rebuild_costs(sim::Machine& machine);

}  // namespace trn::test
