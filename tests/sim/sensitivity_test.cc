#include "sim/app/sensitivity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/machines.h"

namespace trn::app {
namespace {

using test::ns;

sim::Interval interval(const std::string& name, const std::string& unit, double value, double low,
                       double high) {
  sim::Interval result;
  result.name = name;
  result.unit = unit;
  result.value = value;
  result.low = low;
  result.high = high;
  result.status = Status::Measured;
  return result;
}

sim::Calibration calibration() {
  sim::Calibration result;
  result.parameters = {interval("chip.dma.software.latency", "ns", 1029, 1000, 1100),
                       interval("chip.dma.software.interval", "ns", 541, 500, 600),
                       interval("chip.semaphores.to_compute.dma", "", 1, 0.5, 2)};
  result.parameters.back().factor = true;
  return result;
}

/// A program that waits for ten descriptors, and once for a hand-over.
sim::Time time_of(const sim::Machine& machine) {
  const sim::ChipConfig& chip = machine.config.chip;
  EXPECT_EQ(machine.config.tensor.activity_window_phase, 7);
  double time = 10 * chip.dma.software.interval + chip.dma.software.latency;
  for (const sim::MachineNumber& number : sim::machine_numbers(machine.config)) {
    if (number.path == "chip.semaphores.to_compute.dma.tensor") time += number.value;
  }
  return sim::from_ns(time);
}

sim::Machine machine(const std::vector<Override>& overrides = {}) {
  sim::Machine result = test::shipped_machine(overrides);
  result.config.tensor.activity_window_phase = 7;  // as a replay sets it
  return result;
}

TEST(Sensitivity, RunsBothEndsAndListsTheMostInfluentialFirst) {
  const sim::Machine base = machine();
  const sim::Time nominal = time_of(base);
  const auto rows = sensitivity(calibration(), base, nominal, time_of);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].parameter, "chip.dma.software.interval");
  EXPECT_EQ(rows[0].at_low - nominal, ns(-410));
  EXPECT_EQ(rows[0].at_high - nominal, ns(590));
  EXPECT_EQ(rows[0].low, "500 ns");
  EXPECT_EQ(rows[0].high, "600 ns");
  EXPECT_EQ(rows[1].parameter, "chip.dma.software.latency");
  EXPECT_EQ(rows[1].at_high - nominal, ns(71));
  EXPECT_EQ(rows[2].at_high - nominal, ns(35));
  EXPECT_EQ(rows[2].value, "x1");
}

TEST(Sensitivity, KeepsWhatIsGivenByHand) {
  const sim::Machine base = machine({{"chip.dma.software.interval", "1000 ns"}});
  sim::Calibration known = sim::without(calibration(), base.overrides);
  const sim::Time nominal = time_of(base);
  const auto rows = sensitivity(known, base, nominal, time_of);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].parameter, "chip.dma.software.latency");
  EXPECT_EQ(rows[0].at_low - nominal, ns(-29));
}

/// A chip of somebody's own.
TEST(Sensitivity, IntervalsAreThoseOfTheMachine) {
  const sim::Machine base = machine({{"chip.dma.software.interval", "1082 ns"}});
  const auto rows = sensitivity(calibration(), base, time_of(base), time_of);
  EXPECT_EQ(rows[0].value, "1082 ns");
  EXPECT_EQ(rows[0].low, "1 us");
  EXPECT_EQ(rows[0].high, "1.2 us");
}

TEST(Sensitivity, IsPartOfTheJson) {
  const sim::Sensitivity row{.parameter = "a.b",
                             .value = "10 ns",
                             .low = "5 ns",
                             .high = "20 ns",
                             .status = Status::Measured,
                             .at_low = ns(90),
                             .at_high = ns(125)};
  EXPECT_EQ(sim::to_json({row}, ns(100)).dump(),
            R"([{"parameter":"a.b","value":"10 ns","low":"5 ns","high":"20 ns","status":"meas",)"
            R"("time_at_low_ns":90,"time_at_high_ns":125,)"
            R"("change_at_low_percent":-10,"change_at_high_percent":25}])");
  EXPECT_FALSE(sim::to_json({row}, 0)[0].contains("change_at_low_percent"));
}

}  // namespace
}  // namespace trn::app
