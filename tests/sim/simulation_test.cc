#include "sim/core/simulation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>
#include <systemc>
#include <vector>

#include "isa/base/error.h"
#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using test::ns;
using testing::ElementsAre;

/// Wakes itself as its script says: at each activation it asks for the next times.
class Scripted : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Scripted);
  explicit Scripted(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
    SC_METHOD(step);
    dont_initialize();
    sensitive << wake.event();
  }
  WakeUp wake{"wake"};
  std::vector<Time> woken;
  std::function<void(Time)> on_wake = [](Time) {};

 private:
  void step() {
    const Time now = Simulation::now();
    wake.expire(now);
    woken.push_back(now);
    on_wake(now);
  }
};

TEST(WakeUp, WakesAtTheTimeAskedFor) {
  Simulation simulation;
  Scripted block("block");
  block.wake.at(ns(417));
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(ns(417)));
}

TEST(WakeUp, TheEarliestRequestCounts) {
  Simulation simulation;
  Scripted block("block");
  block.wake.at(ns(300));
  block.wake.at(ns(100));
  block.wake.at(ns(200));
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(ns(100)));
}

TEST(WakeUp, AMovedRequestMayBecomeLater) {
  Simulation simulation;
  Scripted block("block");
  block.wake.at(ns(100));
  block.wake.move(ns(200));
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(ns(200)));
}

TEST(WakeUp, ACancelledRequestIsGone) {
  Simulation simulation;
  Scripted block("block");
  block.wake.at(ns(100));
  block.wake.cancel();
  simulation.run();
  EXPECT_TRUE(block.woken.empty());
}

TEST(WakeUp, AServedRequestLeavesRoomForTheNext) {
  Simulation simulation;
  Scripted block("block");
  block.on_wake = [&](Time now) {
    if (now < ns(300)) block.wake.at(now + ns(100));
  };
  block.wake.at(ns(100));
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(ns(100), ns(200), ns(300)));
}

TEST(WakeUp, SoonIsLaterInTheSameInstant) {
  Simulation simulation;
  Scripted block("block");
  block.on_wake = [&](Time) {
    if (block.woken.size() < 3) block.wake.soon();
  };
  block.wake.at(ns(100));
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(ns(100), ns(100), ns(100)));
}

TEST(Simulation, TimeIsExactOverHours) {
  Simulation simulation;
  Scripted block("block");
  const Time two_hours = Time{7200} * 1'000'000'000'000'000;
  block.on_wake = [&](Time now) {
    if (now == two_hours) block.wake.at(two_hours + 1);
  };
  block.wake.at(two_hours);
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(two_hours, two_hours + 1));
}

TEST(Simulation, AnExceptionInAGuardedProcessReachesTheCallerWithItsType) {
  Simulation simulation;
  Scripted block("block");
  block.on_wake = [&](Time) { simulation.guard([] { throw InputError("key", "wrong"); }); };
  block.wake.at(ns(100));
  EXPECT_THROW(simulation.run(), InputError);
}

TEST(Simulation, TheFirstOfTwoExceptionsReachesTheCaller) {
  Simulation simulation;
  Scripted first("first");
  Scripted second("second");
  first.on_wake = [&](Time) { simulation.guard([] { throw InputError("first", "wrong"); }); };
  second.on_wake = [&](Time) { simulation.guard([] { throw DeadlockError("second"); }); };
  first.wake.at(ns(100));
  second.wake.at(ns(200));
  EXPECT_THROW(simulation.run(), InputError);
}

TEST(Simulation, TheNextOneWorksAfterAnException) {
  for (int i = 0; i < 3; ++i) {
    Simulation simulation;
    Scripted block("block");
    block.on_wake = [&](Time) { simulation.guard([] { throw std::runtime_error("wrong"); }); };
    block.wake.at(ns(100));
    EXPECT_THROW(simulation.run(), std::runtime_error);
  }
  Simulation simulation;
  Scripted block("block");
  block.wake.at(ns(100));
  simulation.run();
  EXPECT_THAT(block.woken, ElementsAre(ns(100)));
}

TEST(Simulation, AHundredInARowStartAtZeroWithFreshNames) {
  for (int i = 0; i < 100; ++i) {
    Simulation simulation;
    EXPECT_EQ(Simulation::now(), 0);
    Scripted block("block");
    EXPECT_STREQ(block.name(), "block");  // a name in use would be block_0
    block.wake.at(ns(5));
    simulation.run();
    EXPECT_THAT(block.woken, ElementsAre(ns(5)));
    EXPECT_EQ(Simulation::now(), ns(5));
  }
}

TEST(Time, CyclesAreRoundedOnce) {
  // 2.4 GHz: 416 666.67 fs a cycle. Three cycles are 1.25 ns exactly; a million, 416 666 667 ps.
  EXPECT_EQ(from_cycles(1, 2.4e9), 416'667);
  EXPECT_EQ(from_cycles(3, 2.4e9), 1'250'000);
  EXPECT_EQ(from_cycles(1e6, 2.4e9), 416'666'666'667);
  EXPECT_EQ(from_cycles(2.4e9, 2.4e9), 1'000'000'000'000'000);
}

TEST(Time, BytesTakeTheirTimeAtTheRate) {
  EXPECT_EQ(from_bytes(512, 10e9), ns(51) + 200'000);
  EXPECT_EQ(from_bytes(0, 10e9), 0);
}

}  // namespace
}  // namespace trn::sim
