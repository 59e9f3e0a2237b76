// More of something never makes a run longer.
//
// Real schedules know exceptions, and so does the model: an instruction that becomes free a moment
// earlier may find its unit idle and restart it, a trigger may come close behind another, a read
// may just miss its ring's last transfer, a clock window may fall on the other side of a threshold,
// two engines may meet in a bank or on the bus where they passed each other before. calm_machine()
// has none of these, and there the property is exact, as long as one ring has the DMA engines to
// itself: rings that share them may take their turns in another order. Elsewhere the exceptions are
// small.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/random_program.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using test::RandomOptions;
using test::RandomProgramMaker;

constexpr std::uint32_t kSeeds = 30;

/// The shipped machine without what lets an earlier start delay something else.
Machine calm_machine() {
  Machine machine = test::shipped_machine();
  ChipConfig& chip = machine.config.chip;
  chip.tensor.clock_gating = false;
  chip.psum.bank_conflict = 0;
  chip.dma.hardware.trigger_close = 0;
  chip.dma.hardware.read_restart = 0;
  chip.dma.hardware.read_spread = 0;
  chip.dma.software.fetch = 0;
  chip.dma.software.fetch_per_packet = 0;
  chip.dma.software.fetch_restart = 0;
  chip.dma.software.hold_behind = 0;
  chip.tensor.refill = chip.tensor.dispatch;
  for (auto& [cost_class, lists] : chip.costs.rows) {
    for (auto& [engine, rows] : lists.by_engine) {
      // Without the modes that GpSimd takes away, and without restarts.
      std::erase_if(rows, [](const CostRowConfig& row) {
        return row.when && row.when->find("contended") != std::string::npos;
      });
      for (CostRowConfig& row : rows) row.restart_cycles.reset();
    }
  }
  test::rebuild_costs(machine);
  return machine;
}

struct Change {
  std::string name;
  std::function<void(ChipConfig&)> apply;
};

std::vector<Change> engine_changes() {
  const auto faster = [](EngineConfig& engine) { engine.clock *= 1.5; };
  return {
      {"tensor clock",
       [=](ChipConfig& chip) {
         faster(chip.tensor);
         chip.tensor.cold_clock *= 1.5;
       }},
      {"vector clock", [=](ChipConfig& chip) { faster(chip.vector); }},
      {"scalar clock", [=](ChipConfig& chip) { faster(chip.scalar); }},
      {"gpsimd clock", [=](ChipConfig& chip) { faster(chip.gpsimd); }},
      {"sync clock", [=](ChipConfig& chip) { faster(chip.sync); }},
      {"tensor queue", [](ChipConfig& chip) { chip.tensor.queue_depth *= 2; }},
      {"vector queue", [](ChipConfig& chip) { chip.vector.queue_depth *= 2; }},
      {"scalar queue", [](ChipConfig& chip) { chip.scalar.queue_depth *= 2; }},
      {"hand-over",
       [](ChipConfig& chip) {
         for (HandOverConfig* to : {&chip.semaphores.to_compute, &chip.semaphores.to_control,
                                    &chip.semaphores.to_trigger})
           for (HandOverRow* row :
                {&to->tensor, &to->vector, &to->scalar, &to->gpsimd, &to->sync, &to->dma})
             *row = {row->tensor / 2, row->vector / 2, row->scalar / 2, row->gpsimd / 2,
                     row->sync / 2};
       }},
      {"dispatch", [](ChipConfig& chip) { chip.vector.dispatch /= 2; }},
      {"read after write", [](ChipConfig& chip) { chip.vector.read_after_write /= 2; }},
      {"launch", [](ChipConfig& chip) { chip.tensor.launch_delay /= 2; }},
  };
}

std::vector<Change> dma_changes() {
  return {
      {"DMA bandwidth", [](ChipConfig& chip) { chip.dma.bandwidth_per_engine *= 1.5; }},
      {"HBM bandwidth", [](ChipConfig& chip) { chip.hbm.bandwidth_per_stack *= 1.5; }},
      {"packet overhead", [](ChipConfig& chip) { chip.dma.packet_overhead /= 2; }},
      {"completion",
       [](ChipConfig& chip) {
         chip.dma.hardware.read.completion /= 2;
         chip.dma.software.read.completion /= 2;
       }},
      {"start",
       [](ChipConfig& chip) {
         chip.dma.hardware.read.start /= 2;
         chip.dma.hardware.write.start /= 2;
       }},
      {"trigger", [](ChipConfig& chip) { chip.dma.hardware.trigger_hold /= 2; }},
  };
}

Time length(const isa::Trace& trace, const Machine& machine) {
  return run_core(trace, machine.config, *machine.costs).length;
}

/// The largest share by which a change for the better made a random program longer.
double worst_slowdown(const Machine& base, const Change& change, const RandomOptions& options) {
  Machine better = base;
  change.apply(better.config.chip);
  test::rebuild_costs(better);
  double worst = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    const isa::Trace trace = RandomProgramMaker(seed, options).make().trace;
    const Time before = length(trace, base);
    const Time after = length(trace, better);
    const double slowdown = static_cast<double>(after - before) / static_cast<double>(before);
    if (slowdown > worst) {
      worst = slowdown;
      testing::Test::RecordProperty(change.name, fmt::format("seed {}: {:.4f}", seed, slowdown));
    }
  }
  return worst;
}

TEST(Monotonicity, FasterEnginesAreNeverSlower) {
  const Machine machine = calm_machine();
  for (const Change& change : engine_changes())
    EXPECT_LE(worst_slowdown(machine, change, {.dma = false}), 0) << change.name;
}

TEST(Monotonicity, FasterDmaIsNeverSlowerOnOneRing) {
  const Machine machine = calm_machine();
  for (const Change& change : dma_changes())
    EXPECT_LE(worst_slowdown(machine, change, {.one_ring = true}), 0) << change.name;
}

TEST(Monotonicity, TriggersThatComeEarlierMakeSmallExceptions) {
  // A trigger that comes a moment earlier takes its ring's engines before what was due first.
  const Machine machine = calm_machine();
  for (const Change& change : engine_changes())
    EXPECT_LE(worst_slowdown(machine, change, {.one_ring = true}), 1e-3) << change.name;
}

TEST(Monotonicity, RingsThatShareEnginesMakeSmallExceptions) {
  const Machine machine = calm_machine();
  for (const auto& changes : {engine_changes(), dma_changes()})
    for (const Change& change : changes)
      EXPECT_LE(worst_slowdown(machine, change, {}), 0.025) << change.name;
}

TEST(Monotonicity, OnTheShippedMachineTheExceptionsAreSmall) {
  // A trigger that comes a moment earlier, behind an instruction of GpSimd that is over sooner, can
  // find its ring dry or a read under way: each costs 500 to 1000 ns.
  const Machine machine = test::shipped_machine();
  for (const auto& changes : {engine_changes(), dma_changes()})
    for (const Change& change : changes)
      EXPECT_LE(worst_slowdown(machine, change, {}), 0.1) << change.name;
}

TEST(Monotonicity, MoreWorkAtTheEndIsNeverFaster) {
  // A prefix of a program ends no later than all of it.
  const Machine machine = test::shipped_machine();
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    Time last = 0;
    for (const std::size_t steps : {10U, 50U, 100U, 200U}) {
      const Time now = length(RandomProgramMaker(seed, {.steps = steps}).make().trace, machine);
      EXPECT_GE(now, last) << steps;
      last = now;
    }
  }
}

}  // namespace
}  // namespace trn::sim
