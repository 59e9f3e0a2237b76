#include "sim/machine/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "isa/base/error.h"
#include "tests/support/machines.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace trn::sim {
namespace {

using testing::AllOf;
using testing::HasSubstr;

Calibration shipped() {
  return load_calibration(test::source_path("configs/calibration/trn2.yaml"),
                          test::shipped_machine().config);
}

constexpr std::string_view kHead = "chip: trn2\ndate: 2026-11-30\nrows: [some]\nparameters:\n";
constexpr std::string_view kTail = "unknowns: []\n";

std::string parameter(const std::string& path, const std::string& values,
                      const std::string& acts_on = "{dma: 1}") {
  return "  - {path: " + path + ", " + values + ", acts_on: " + acts_on +
         ", status: meas, source: here}\n";
}

std::filesystem::path write(const std::string& text) {
  return test::write_text(test::scratch_folder() / "calibration.yaml", text);
}

Calibration with(const std::string& parameters) {
  return load_calibration(write(std::string(kHead) + parameters + std::string(kTail)),
                          test::shipped_machine().config);
}

std::string error_of(const std::string& text) {
  try {
    static_cast<void>(load_calibration(write(text), test::shipped_machine().config));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string error_with(const std::string& parameters) {
  return error_of(std::string(kHead) + parameters + std::string(kTail));
}

const Interval& find(const Calibration& calibration, std::string_view name) {
  return *std::find_if(calibration.parameters.begin(), calibration.parameters.end(),
                       [&](const Interval& interval) { return interval.name == name; });
}

TEST(Calibration, ShippedValuesAreTheChips) {
  const MachineConfig config = test::shipped_machine().config;
  const Calibration calibration = shipped();
  EXPECT_GE(calibration.parameters.size(), 20U);
  for (const Interval& interval : calibration.parameters) {
    if (interval.factor) continue;
    const auto numbers = machine_numbers(config);
    const auto number = std::find_if(numbers.begin(), numbers.end(),
                                     [&](const auto& each) { return each.path == interval.name; });
    ASSERT_NE(number, numbers.end()) << interval.name;
    EXPECT_EQ(number->value, interval.value) << interval.name;
  }
  std::vector<std::string> unknowns;
  for (const Interval& interval : calibration.unknowns) unknowns.push_back(interval.name);
  EXPECT_EQ(unknowns, (std::vector<std::string>{"schedule", "gaps", "spills", "places"}));
}

TEST(Calibration, EveryShippedEndIsAValidMachine) {
  for (const Interval& interval : shipped().parameters) {
    for (const double end : {interval.low, interval.high}) {
      const Machine machine =
          test::shipped_machine(set_to(interval, end, test::shipped_machine().config));
      EXPECT_FALSE(machine.overrides.empty());
    }
  }
}

TEST(Calibration, SetsOneParameterToAnEnd) {
  const MachineConfig config = test::shipped_machine().config;
  const Interval interval = find(shipped(), "chip.dma.software.interval");
  const auto set = set_to(interval, interval.high, config);
  ASSERT_EQ(set.size(), 1U);
  EXPECT_EQ(set[0].path, "chip.dma.software.interval");
  EXPECT_EQ(parse_quantity(set[0].value, "ns").value, interval.high);
}

/// A chip of somebody's own is as far from its values, in proportion.
TEST(Calibration, OtherValuesGetIntervalsInProportion) {
  const MachineConfig config =
      test::shipped_machine({{"chip.dma.software.interval", "1000 ns"}}).config;
  const Calibration calibration =
      with(parameter("chip.dma.software.interval", "value: 500 ns, low: 400 ns, high: 600 ns"));
  EXPECT_EQ(set_to(calibration.parameters[0], 400, config)[0].value, "800 ns");
  EXPECT_EQ(set_to(calibration.parameters[0], 600, config)[0].value, "1.2 us");
}

TEST(Calibration, ABlocksNumbersChangeTogether) {
  const MachineConfig config = test::shipped_machine().config;
  const Calibration calibration =
      with(parameter("chip.semaphores.to_compute.dma", "value: 1, low: 0.5, high: 2"));
  EXPECT_TRUE(calibration.parameters[0].factor);
  const auto set = set_to(calibration.parameters[0], 2, config);
  ASSERT_EQ(set.size(), 5U);
  EXPECT_EQ(set[0].path, "chip.semaphores.to_compute.dma.tensor");
  EXPECT_EQ(set[0].value, "70 ns");
  EXPECT_EQ(end_text(calibration.parameters[0], 2), "x2");
}

TEST(Calibration, ConstantsOfTheCostTableAreParameters) {
  const Calibration calibration =
      with(parameter("chip.costs.constants.vector_sbuf", "value: 57, low: 50, high: 60"));
  const auto set = set_to(calibration.parameters[0], 50, test::shipped_machine().config);
  EXPECT_EQ(test::shipped_machine(set).config.chip.costs.constants.at("vector_sbuf"), 50);
}

TEST(Calibration, WhatIsGivenByHandIsKnown) {
  const std::string values = "value: 541 ns, low: 400 ns, high: 600 ns";
  const Calibration all =
      with(parameter("chip.dma.software.interval", values) +
           parameter("chip.semaphores.to_compute", "value: 1, low: 0.5, high: 2"));
  EXPECT_EQ(without(all, {}).parameters.size(), 2U);
  EXPECT_EQ(without(all, {{"chip.dma.software.interval", "541 ns"}}).parameters.size(), 1U);
  EXPECT_EQ(without(all, {{"chip.dma", "other.yaml"}}).parameters.size(), 1U);
  EXPECT_EQ(without(all, {{"chip.semaphores.to_compute.dma.sync", "1 ns"}}).parameters.size(), 1U);
  EXPECT_EQ(without(all, {{"chip.dma.software.latency", "1 ns"}}).parameters.size(), 2U);
}

TEST(Calibration, MistakesHaveAPlace) {
  EXPECT_THAT(error_with(parameter("chip.dma.software.intervall",
                                   "value: 541 ns, low: 500 ns, high: 600 ns")),
              AllOf(HasSubstr("calibration.yaml:5: parameters.0.path"),
                    HasSubstr("did you mean 'chip.dma.software.interval'")));
  EXPECT_THAT(error_with(parameter("chip.dma.software.interval",
                                   "value: 541 ns, low: 550 ns, high: 540 ns")),
              AllOf(HasSubstr("parameters.0.low: expected 0 to the value, 541 ns, got 550 ns"),
                    HasSubstr("parameters.0.high: expected at least the value, 541 ns, got")));
  EXPECT_THAT(
      error_with(parameter("chip.dma.software.interval", "value: 541, low: 500 ns, high: 600 ns")),
      HasSubstr("parameters.0.value: expected a time"));
  EXPECT_THAT(error_with(parameter("chip.semaphores", "value: 2, low: 1, high: 3")),
              HasSubstr("parameters.0.value: expected 1 of a block, got 2"));
  EXPECT_THAT(error_with(parameter("chip.dma.software.interval",
                                   "value: 541 ns, low: 500 ns, high: 600 ns", "{dmaa: 1}")),
              AllOf(HasSubstr("calibration.yaml:5: parameters.0.acts_on.dmaa: unknown key"),
                    HasSubstr("did you mean 'dma'")));
  EXPECT_THAT(error_with(parameter("chip.dma.software.interval",
                                   "value: 541 ns, low: 500 ns, high: 600 ns", "{}")),
              HasSubstr("expected acts_on to name a part of the time"));
  const std::string twice =
      parameter("chip.semaphores", "value: 1, low: 0.5, high: 3", "{semaphore: 1}");
  EXPECT_THAT(error_with(twice + twice),
              HasSubstr("calibration.yaml:6: parameters.1.path: chip.semaphores stands here "
                        "twice"));
}

TEST(Calibration, IsOfOneChipAndOneDay) {
  EXPECT_THAT(error_of("chip: trn9\ndate: 30.11.2026\nrows: []\nparameters: []\nunknowns: []\n"),
              AllOf(HasSubstr(":1: chip: expected trn2, the machine's, got trn9"),
                    HasSubstr(":2: date: expected YYYY-MM-DD, got '30.11.2026'")));
  EXPECT_THAT(error_of("chip: trn2\n"), HasSubstr("missing key 'parameters'"));
}

}  // namespace
}  // namespace trn::sim
