#include "sim/engine/activity_clock.h"

#include <gtest/gtest.h>

#include "tests/support/machines.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using test::ns;

/// 1 GHz warm, 0.5 GHz cold, windows of 1000 ns; rises at 80 %, falls below 40 %.
TensorEngineConfig config() {
  TensorEngineConfig config;
  config.clock = 1e9;
  config.cold_clock = 0.5e9;
  config.activity_window = 1000;
  config.activity_raise = 0.8;
  config.activity_lower = 0.4;
  config.clock_gating = true;
  return config;
}

/// Warm from 1000 on: the window before was busy throughout.
ActivityClock warm_from_1000(test::Recorder* record = nullptr) {
  ActivityClock clock(config(), ns(1000), record);
  clock.run(0, 0, 500);
  clock.roll(ns(1000));
  return clock;
}

TEST(ActivityClock, StartsCold) {
  ActivityClock clock(config(), ns(1000), nullptr);
  EXPECT_FALSE(clock.warm_at(0));
  EXPECT_EQ(clock.frequency_at(0), 0.5e9);
  EXPECT_EQ(clock.run(0, 0, 100), ns(200));  // 100 cycles of 2 ns
}

TEST(ActivityClock, RisesAtTheEndOfABusyWindowAndNotBefore) {
  test::Recorder record;
  ActivityClock clock(config(), ns(1000), &record);
  EXPECT_EQ(clock.run(0, 0, 400), ns(800));  // busy for exactly 80 %
  clock.roll(ns(1000) - 1);
  EXPECT_TRUE(record.clocks.empty());
  clock.roll(ns(1000));
  ASSERT_EQ(record.clocks.size(), 1);
  EXPECT_EQ(record.clocks[0].at, ns(1000));
  EXPECT_TRUE(record.clocks[0].warm);
  EXPECT_FALSE(clock.warm_at(ns(1000) - 1));
  EXPECT_TRUE(clock.warm_at(ns(1000)));
  EXPECT_EQ(clock.run(ns(1000), ns(1000), 100), ns(1100));
}

TEST(ActivityClock, StaysColdAfterAWindowBusyForLess) {
  ActivityClock clock(config(), ns(1000), nullptr);
  clock.run(0, 0, 399.5);  // 799 ns
  clock.roll(ns(1000));
  EXPECT_FALSE(clock.warm_at(ns(1000)));
}

TEST(ActivityClock, BusyTimeIsOfOneWindow) {
  // 600 ns in each of two windows: neither reaches 80 %.
  ActivityClock clock(config(), ns(1000), nullptr);
  clock.run(ns(400), ns(400), 300);
  clock.run(ns(1000), ns(1000), 300);
  clock.roll(ns(2000));
  EXPECT_FALSE(clock.warm_at(ns(2000)));
}

TEST(ActivityClock, StaysWarmAtTheLowerShareAndFallsBelowIt) {
  {
    ActivityClock clock = warm_from_1000();
    clock.run(ns(1000), ns(1000), 400);  // 40 % of the window up to 2000
    clock.roll(ns(2000));
    EXPECT_TRUE(clock.warm_at(ns(2000)));
  }
  {
    ActivityClock clock = warm_from_1000();
    clock.run(ns(1000), ns(1000), 399);
    clock.roll(ns(2000));
    EXPECT_TRUE(clock.warm_at(ns(2000) - 1));
    EXPECT_FALSE(clock.warm_at(ns(2000)));
  }
}

TEST(ActivityClock, ARunAcrossASwitchCountsItsCyclesOnBothSides) {
  // 900 cycles from 0: 500 of 2 ns up to 1000, where the clock rises, then 400 of 1 ns.
  ActivityClock clock(config(), ns(1000), nullptr);
  EXPECT_EQ(clock.run(0, 0, 900), ns(1400));
  // Looking back, the same: 500 cycles from 500 on are 250 cold ones and 250 warm ones.
  EXPECT_EQ(clock.after(ns(500), 500), ns(1250));
  EXPECT_EQ(clock.after(0, 500), ns(1000));
  EXPECT_EQ(clock.after(ns(1100), 7), ns(1107));
}

TEST(ActivityClock, ARunAcrossWindowsThatDoNotSwitchIsEven) {
  ActivityClock clock = warm_from_1000();
  EXPECT_EQ(clock.run(ns(1000), ns(1000), 3500), ns(4500));
}

TEST(ActivityClock, ARunMayRiseInItsMiddle) {
  // From 500 on: 50 % of the first window, so still cold to 2000: 750 cycles. The second window is
  // full: 250 warm cycles are left.
  ActivityClock clock(config(), ns(1000), nullptr);
  EXPECT_EQ(clock.run(ns(500), ns(500), 1000), ns(2250));
}

TEST(ActivityClock, TimeSinceTheReportedStartCountsAsBusy) {
  // Held from 300 on in effect, reported at 100: 200 + 600 ns are 80 %.
  ActivityClock clock(config(), ns(1000), nullptr);
  clock.run(ns(100), ns(300), 300);
  clock.roll(ns(1000));
  EXPECT_TRUE(clock.warm_at(ns(1000)));
}

TEST(ActivityClock, OverlappingRunsCountOnce) {
  // 0 to 400 and 200 to 600 reported: 600 ns, not 800.
  ActivityClock clock(config(), ns(1000), nullptr);
  clock.run(0, 0, 200);
  clock.run(ns(200), ns(400), 100);
  clock.roll(ns(1000));
  EXPECT_FALSE(clock.warm_at(ns(1000)));
}

TEST(ActivityClock, IdleWindowsKeepTheirPhase) {
  test::Recorder record;
  ActivityClock clock(config(), ns(300), &record);
  clock.roll(ns(1'000'000'000));
  EXPECT_TRUE(record.clocks.empty());
  // The next window ends at 1 000 000 300, the one after it is busy throughout.
  EXPECT_EQ(clock.run(ns(1'000'000'300), ns(1'000'000'300), 600), ns(1'000'001'400));
  ASSERT_EQ(record.clocks.size(), 1);
  EXPECT_EQ(record.clocks[0].at, ns(1'000'001'300));
}

TEST(ActivityClock, AWarmClockFallsAtTheEndOfTheFirstIdleWindow) {
  test::Recorder record;
  ActivityClock clock = warm_from_1000(&record);
  clock.roll(ns(1'000'000));
  ASSERT_EQ(record.clocks.size(), 2);
  EXPECT_EQ(record.clocks[1].at, ns(2000));
  EXPECT_FALSE(record.clocks[1].warm);
}

TEST(ActivityClock, TheFirstWindowHasNotSeenWhatCameBefore) {
  // It ends at 300; of its 1000 ns only 300 can have been busy. The next one ends at 1300.
  test::Recorder record;
  ActivityClock clock(config(), ns(300), &record);
  clock.run(0, 0, 650);
  clock.roll(ns(1300));
  ASSERT_EQ(record.clocks.size(), 1);
  EXPECT_EQ(record.clocks[0].at, ns(1300));
}

TEST(ActivityClock, WithoutGatingItIsAlwaysWarm) {
  TensorEngineConfig ungated = config();
  ungated.clock_gating = false;
  test::Recorder record;
  ActivityClock clock(ungated, ns(1000), &record);
  EXPECT_EQ(clock.run(0, 0, 100), ns(100));
  clock.roll(ns(50'000));
  EXPECT_EQ(clock.run(ns(50'000), ns(50'000), 2500), ns(52'500));
  EXPECT_EQ(clock.warm_until(ns(60'000)), ns(60'000));
  EXPECT_TRUE(record.clocks.empty());
}

TEST(ActivityClock, CountsTheTimeSpentWarm) {
  ActivityClock clock = warm_from_1000();
  EXPECT_EQ(clock.warm_until(ns(1000)), 0);
  EXPECT_EQ(clock.warm_until(ns(1400)), ns(400));
  EXPECT_EQ(clock.warm_until(ns(5000)), ns(1000));  // idle from 1000: cold again at 2000
}

TEST(ActivityClock, OneDecisionAWindowHoweverManyRuns) {
  test::Recorder record;
  ActivityClock clock(config(), ns(1000), &record);
  for (int i = 0; i < 50; ++i) clock.run(ns(20 * i), ns(20 * i), 10);
  clock.roll(ns(1000));
  ASSERT_EQ(record.clocks.size(), 1);
  EXPECT_EQ(record.clocks[0].at, ns(1000));
}

}  // namespace
}  // namespace trn::sim
