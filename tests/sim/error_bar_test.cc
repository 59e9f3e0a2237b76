#include "sim/report/error_bar.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace trn::sim {
namespace {

using testing::IsEmpty;

constexpr std::size_t part(Resource resource) { return static_cast<std::size_t>(resource); }

Interval interval(const std::string& name, double value, double low, double high) {
  Interval result;
  result.name = name;
  result.value = value;
  result.low = low;
  result.high = high;
  return result;
}

/// 10 us: 4 on the Tensor engine, 6 of moving bytes; 15 us of runtime around it.
ErrorBarInput input(const Calibration* calibration) {
  ErrorBarInput in{
      .device_time = from_ns(10'000), .runtime = from_ns(15'000), .calibration = calibration};
  in.critical_path.add(Resource::Tensor, from_ns(4'000));
  in.critical_path.add(Resource::Dma, from_ns(6'000));
  return in;
}

Calibration one(Interval given, Resource resource, double share) {
  given.acts_on[part(resource)] = share;
  Calibration calibration;
  calibration.date = "2026-11-30";
  calibration.parameters.push_back(std::move(given));
  return calibration;
}

TEST(ErrorBar, APartOfTheCriticalPathFollowsItsParameter) {
  // -10 % to +20 % of half of 4 us.
  const Calibration calibration = one(interval("a", 100, 90, 120), Resource::Tensor, 0.5);
  const ErrorBar bar = error_bar(input(&calibration));
  EXPECT_EQ(bar.device_time.low, from_ns(9'800));
  EXPECT_EQ(bar.device_time.high, from_ns(10'400));
  EXPECT_EQ(bar.profiled_total.low, from_ns(24'800));
  EXPECT_EQ(bar.profiled_total.high, from_ns(25'400));
  ASSERT_EQ(bar.causes.size(), 1U);
  EXPECT_EQ(bar.causes[0].shorter, from_ns(200));
  EXPECT_EQ(bar.causes[0].longer, from_ns(400));
}

TEST(ErrorBar, AHigherRateMakesTimesShorter) {
  const Calibration calibration = one(interval("rate", 1, 0.9, 1.2), Resource::Dma, -1);
  const ErrorBar bar = error_bar(input(&calibration));
  EXPECT_EQ(bar.device_time.low, from_ns(8'800));
  EXPECT_EQ(bar.device_time.high, from_ns(10'600));
}

TEST(ErrorBar, CausesAddAsSquares) {
  Calibration calibration = one(interval("a", 1, 1, 1.75), Resource::Tensor, 1);  // 3 us
  calibration.unknowns.push_back(interval("b", 3, 3, 5));                         // 4 us
  calibration.unknowns.back().acts_on[part(Resource::Dma)] = 1;
  const ErrorBar bar = error_bar(input(&calibration));
  EXPECT_EQ(bar.device_time.low, from_ns(10'000));
  EXPECT_EQ(bar.device_time.high, from_ns(15'000));
  ASSERT_EQ(bar.causes.size(), 2U);
  EXPECT_EQ(bar.causes[0].name, "b");  // the larger first
}

TEST(ErrorBar, OneCauseMovesItsPartsTogether) {
  Calibration calibration = one(interval("all", 1, 0.9, 1.1), Resource::Tensor, 1);
  calibration.parameters[0].acts_on[part(Resource::Dma)] = 1;
  const ErrorBar bar = error_bar(input(&calibration));
  EXPECT_EQ(bar.device_time.low, from_ns(9'000));
  EXPECT_EQ(bar.device_time.high, from_ns(11'000));
}

TEST(ErrorBar, WhatIsSpilledMayHaveToMoveAgain) {
  Calibration calibration = one(interval("spills", 1, 1, 2), Resource::Dma, 0);
  calibration.parameters[0].acts_on[kSpillPart] = 1;
  ErrorBarInput in = input(&calibration);
  in.spill = from_ns(500);
  const ErrorBar bar = error_bar(in);
  EXPECT_EQ(bar.device_time.low, from_ns(10'000));
  EXPECT_EQ(bar.device_time.high, from_ns(10'500));
  EXPECT_EQ(bar.profiled_total.high, from_ns(25'500));
}

TEST(ErrorBar, AProgramThatFillsSbufFollowsItsPlaces) {
  Calibration calibration = one(interval("places", 1, 0.9, 1.2), Resource::Dma, 0);
  calibration.parameters[0].acts_on[kFullPart] = 1;
  ErrorBarInput in = input(&calibration);
  EXPECT_EQ(error_bar(in).device_time.low, in.device_time);
  in.full = in.device_time;
  EXPECT_EQ(error_bar(in).device_time.low, from_ns(9'000));
  EXPECT_EQ(error_bar(in).device_time.high, from_ns(12'000));
}

TEST(ErrorBar, TheRuntimeIsInTheProfiledTotalOnly) {
  Calibration calibration = one(interval("prologue", 1, 0.98, 1.02), Resource::Tensor, 0);
  calibration.parameters[0].acts_on[kRuntimePart] = 1;
  const ErrorBar bar = error_bar(input(&calibration));
  EXPECT_EQ(bar.device_time.low, from_ns(10'000));
  EXPECT_EQ(bar.device_time.high, from_ns(10'000));
  EXPECT_EQ(bar.profiled_total.low, from_ns(24'700));
  EXPECT_EQ(bar.profiled_total.high, from_ns(25'300));
  EXPECT_THAT(bar.causes, IsEmpty());
}

TEST(ErrorBar, WithoutACalibrationThePhasesAreTheBar) {
  ErrorBarInput in = input(nullptr);
  in.phases = TimeRange{9'000'000'001, 10'000'000'003};
  const ErrorBar bar = error_bar(in);
  EXPECT_EQ(bar.device_time.low, 9'000'000'001);
  EXPECT_EQ(bar.device_time.high, 10'000'000'003);
  EXPECT_EQ(bar.causes[0].name, "tensor_clock_phase");
  EXPECT_FALSE(to_json(bar).contains("calibration_date"));
}

TEST(ErrorBar, IsNeverBelowNothing) {
  const Calibration calibration = one(interval("a", 1, 0, 9), Resource::Dma, 5);
  EXPECT_EQ(error_bar(input(&calibration)).device_time.low, 0);
}

TEST(ErrorBar, ListsItsCauses) {
  const Calibration calibration = one(interval("a", 100, 90, 120), Resource::Tensor, 0.5);
  const nlohmann::ordered_json json = to_json(error_bar(input(&calibration)));
  EXPECT_EQ(json.dump(), R"({"calibration_date":"2026-11-30",)"
                         R"("causes":[{"cause":"a","shorter_ns":200,"longer_ns":400}]})");
}

}  // namespace
}  // namespace trn::sim
