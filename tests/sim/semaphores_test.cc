#include "sim/core/semaphores.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <systemc>
#include <vector>

#include "isa/base/error.h"
#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using isa::Engine;
using isa::UpdateKind;
using isa::WaitCondition;
using test::ns;
using testing::HasSubstr;

constexpr std::uint32_t kMax = 100;

/// 10 ... 60 ns by source, 0 ... 4 ns by waiting engine, 0, 100, 200 ns by kind: all different.
HandOverTable distinct_hand_overs() {
  HandOverTable table{};
  for (std::size_t source = 0; source < kSemaphoreSources; ++source)
    for (std::size_t engine = 0; engine < isa::kEngines; ++engine)
      for (std::size_t kind = 0; kind < kWaiterKinds; ++kind)
        table[source][engine][kind] =
            ns(static_cast<std::int64_t>(10 * (source + 1) + engine + 100 * kind));
  return table;
}

class SemaphoreTest : public testing::Test {
 protected:
  /// Simulated time moves on to `to`.
  static void advance(Time to) {
    if (to > Simulation::now())
      sc_core::sc_start(
          sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(to - Simulation::now())));
  }

  static SemaphoreWrite write(Time at, Engine source, UpdateKind kind = UpdateKind::Increment,
                              std::uint32_t value = 1) {
    SemaphoreWrite write;
    write.at = at;
    write.kind = kind;
    write.value = value;
    write.source = static_cast<std::uint8_t>(source);
    write.engine = source;
    return write;
  }

  /// The Vector engine waits with an instruction of its pipeline.
  static SemaphoreWait wait(std::int64_t value,
                            WaitCondition condition = WaitCondition::GreaterEqual, Time since = 0,
                            isa::SemaphoreId id = 7) {
    return {id, condition, 1, WaiterKind::Compute, value, since};
  }

  std::string error_of_finish() {
    try {
      semaphores_.finish();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  Simulation simulation_;
  Semaphores semaphores_{distinct_hand_overs(), kMax, [](Engine engine, std::uint64_t index) {
                           return fmt::format("{} #{}", name_of(engine), index);
                         }};
};

TEST_F(SemaphoreTest, HandOverTakesTheTimeOfWriterWaiterAndKind) {
  const HandOverTable table = distinct_hand_overs();
  for (std::uint8_t source = 0; source < kSemaphoreSources; ++source) {
    SemaphoreWrite one;
    one.at = ns(1000);
    one.source = source;
    semaphores_.post(source, one);
    for (std::uint8_t engine = 0; engine < isa::kEngines; ++engine) {
      for (std::size_t kind = 0; kind < kWaiterKinds; ++kind) {
        const SemaphoreWait waits{
            source, WaitCondition::GreaterEqual, engine, static_cast<WaiterKind>(kind), 1, 0};
        EXPECT_EQ(semaphores_.evaluate(waits).at, ns(1000) + table[source][engine][kind]);
      }
    }
  }
}

TEST_F(SemaphoreTest, WritesOfOneInstantCountInTheOrderOfTheirSources) {
  // Tensor sets 5, then Vector increments to 6, then Scalar takes 2 away.
  std::vector<SemaphoreWrite> writes = {write(ns(10), Engine::Tensor, UpdateKind::Write, 5),
                                        write(ns(10), Engine::Vector),
                                        write(ns(10), Engine::Scalar, UpdateKind::Subtract, 2)};
  std::vector<std::size_t> order = {0, 1, 2};
  isa::SemaphoreId id = 0;
  do {
    for (std::size_t i : order) semaphores_.post(id, writes[i]);
    ++id;
  } while (std::next_permutation(order.begin(), order.end()));
  advance(ns(10));
  for (isa::SemaphoreId i = 0; i < id; ++i) EXPECT_EQ(semaphores_.value(i), 4) << i;
}

TEST_F(SemaphoreTest, WritesOfOneSourceInOneInstantCountInProgramOrder) {
  SemaphoreWrite first = write(ns(10), Engine::Vector, UpdateKind::Write, 5);
  SemaphoreWrite second = write(ns(10), Engine::Vector, UpdateKind::Write, 9);
  first.order = 1;
  second.order = 2;
  semaphores_.post(7, second);
  semaphores_.post(7, first);
  advance(ns(10));
  EXPECT_EQ(semaphores_.value(7), 9);
}

TEST_F(SemaphoreTest, TheOrderOfPostsDoesNotMatter) {
  // Vector sees Tensor's writes 11 ns later: 1 at 31, 2 at 41, 3 at 51.
  for (Time at : {ns(40), ns(20), ns(30)}) semaphores_.post(7, write(at, Engine::Tensor));
  EXPECT_EQ(semaphores_.evaluate(wait(1)).at, ns(31));
  EXPECT_EQ(semaphores_.evaluate(wait(2)).at, ns(41));
  EXPECT_EQ(semaphores_.evaluate(wait(3)).at, ns(51));
  EXPECT_EQ(semaphores_.evaluate(wait(4)).at, kNever);
}

TEST_F(SemaphoreTest, NamesTheWriteThatSatisfies) {
  for (std::uint64_t index : {3U, 4U, 5U}) {
    SemaphoreWrite increment = write(ns(10) * static_cast<Time>(index), Engine::Tensor);
    increment.index = index;
    semaphores_.post(7, increment);
  }
  const Satisfied second = semaphores_.evaluate(wait(2));
  ASSERT_NE(second.by, nullptr);
  EXPECT_EQ(second.by->index, 4);
}

TEST_F(SemaphoreTest, GreaterEqualHoldsAboveTheValueToo) {
  semaphores_.post(7, write(ns(20), Engine::Tensor, UpdateKind::Add, 9));
  EXPECT_EQ(semaphores_.evaluate(wait(4)).at, ns(31));
}

TEST_F(SemaphoreTest, EqualHoldsWhileTheValueStands) {
  // 2 is seen from 31 (20 + 11) to 51 (40 + 11), exclusive.
  semaphores_.post(7, write(ns(20), Engine::Tensor, UpdateKind::Write, 2));
  semaphores_.post(7, write(ns(40), Engine::Tensor));
  EXPECT_EQ(semaphores_.evaluate(wait(2, WaitCondition::Equal, 0)).at, ns(31));
  EXPECT_EQ(semaphores_.evaluate(wait(2, WaitCondition::Equal, ns(40))).at, ns(40));
  EXPECT_EQ(semaphores_.evaluate(wait(2, WaitCondition::Equal, ns(51) - 1)).at, ns(51) - 1);
  EXPECT_EQ(semaphores_.evaluate(wait(2, WaitCondition::Equal, ns(51))).at, kNever);
  EXPECT_EQ(semaphores_.evaluate(wait(3, WaitCondition::Equal, 0)).at, ns(51));
}

TEST_F(SemaphoreTest, LessEqualHoldsFromTheStartAndAfterAReset) {
  semaphores_.post(7, write(ns(20), Engine::Tensor, UpdateKind::Write, 5));
  semaphores_.post(7, write(ns(40), Engine::Tensor, UpdateKind::Write, 1));
  EXPECT_EQ(semaphores_.evaluate(wait(1, WaitCondition::LessEqual, 0)).at, 0);
  EXPECT_EQ(semaphores_.evaluate(wait(1, WaitCondition::LessEqual, ns(31))).at, ns(51));
}

TEST_F(SemaphoreTest, ABarrierOpensForAllBeforeItIsReset) {
  // Five engines arrive, the last at 50; it resets at 200. Each waits for 5 from its own arrival.
  for (Engine engine : isa::kAllEngines)
    semaphores_.post(7, write(ns(10) * static_cast<Time>(isa::index(engine) + 1), engine));
  semaphores_.post(7, write(ns(200), Engine::Sync, UpdateKind::Write, 0));
  const HandOverTable table = distinct_hand_overs();
  for (Engine engine : isa::kAllEngines) {
    SemaphoreWait waits = wait(5, WaitCondition::Equal);
    waits.engine = static_cast<std::uint8_t>(engine);
    waits.since = ns(10) * static_cast<Time>(isa::index(engine) + 1);
    EXPECT_EQ(semaphores_.evaluate(waits).at,
              ns(50) + table[isa::index(Engine::Sync)][isa::index(engine)][0]);
    waits.since = ns(300);  // the next round has not begun
    EXPECT_EQ(semaphores_.evaluate(waits).at, kNever);
  }
  advance(ns(200));
  EXPECT_EQ(semaphores_.value(7), 0);
}

TEST_F(SemaphoreTest, CountsDownAndSubtracts) {
  semaphores_.post(7, write(ns(10), Engine::Tensor, UpdateKind::Add, 9));
  semaphores_.post(7, write(ns(20), Engine::Tensor, UpdateKind::Decrement));
  semaphores_.post(7, write(ns(30), Engine::Tensor, UpdateKind::Subtract, 5));
  advance(ns(10));
  EXPECT_EQ(semaphores_.value(7), 9);
  advance(ns(20));
  EXPECT_EQ(semaphores_.value(7), 8);
  advance(ns(30));
  EXPECT_EQ(semaphores_.value(7), 3);
}

TEST_F(SemaphoreTest, AWriteCountsAtItsTimeAndNotBefore) {
  semaphores_.post(7, write(ns(10), Engine::Tensor));
  advance(ns(10) - 1);
  EXPECT_EQ(semaphores_.value(7), 0);
  advance(ns(10));
  EXPECT_EQ(semaphores_.value(7), 1);
}

TEST_F(SemaphoreTest, OverflowNamesTheInstructionThatWrites) {
  semaphores_.post(7, write(ns(10), Engine::Tensor, UpdateKind::Write, kMax));
  SemaphoreWrite one_more = write(ns(20), Engine::Scalar);
  one_more.index = 41;
  semaphores_.post(7, one_more);
  const std::string error = error_of_finish();
  EXPECT_THAT(error, HasSubstr("Scalar #41"));
  EXPECT_THAT(error, HasSubstr("semaphore 7 overflows to 101, expected 0 to 100"));
}

TEST_F(SemaphoreTest, UnderflowNamesTheInstructionThatWrites) {
  semaphores_.post(7, write(ns(10), Engine::Tensor));
  SemaphoreWrite two_down = write(ns(20), Engine::GpSimd, UpdateKind::Subtract, 2);
  two_down.index = 5;
  semaphores_.post(7, two_down);
  const std::string error = error_of_finish();
  EXPECT_THAT(error, HasSubstr("GpSimd #5"));
  EXPECT_THAT(error, HasSubstr("semaphore 7 underflows to -1"));
}

TEST_F(SemaphoreTest, TheLargestValueIsNoOverflow) {
  semaphores_.post(7, write(ns(10), Engine::Tensor, UpdateKind::Write, kMax));
  EXPECT_EQ(error_of_finish(), "no error");
}

TEST_F(SemaphoreTest, AnEventCountsToOne) {
  semaphores_.post(isa::kFirstEvent + 3, write(ns(10), Engine::Tensor));
  semaphores_.post(isa::kFirstEvent + 4, write(ns(10), Engine::Tensor, UpdateKind::Write, 1));
  EXPECT_EQ(error_of_finish(), "no error");
  semaphores_.post(isa::kFirstEvent + 3, write(ns(20), Engine::Tensor));
  EXPECT_THAT(error_of_finish(), HasSubstr("event 3 overflows to 2, expected 0 to 1"));
}

TEST_F(SemaphoreTest, AWaitSatisfiedLongAgoCostsNothing) {
  semaphores_.post(7, write(ns(10), Engine::Tensor));
  const Satisfied late = semaphores_.evaluate(wait(1, WaitCondition::GreaterEqual, ns(1000)));
  EXPECT_EQ(late.at, ns(1000));
  EXPECT_EQ(late.by, nullptr);
  // Seen from 21 on: whoever asks from then on waits for nobody.
  EXPECT_EQ(semaphores_.evaluate(wait(1, WaitCondition::GreaterEqual, ns(21))).by, nullptr);
  EXPECT_NE(semaphores_.evaluate(wait(1, WaitCondition::GreaterEqual, ns(21) - 1)).by, nullptr);
}

TEST_F(SemaphoreTest, RefusesAWriteInThePast) {
  advance(ns(100));
  EXPECT_THROW(semaphores_.post(7, write(ns(99), Engine::Tensor)), std::logic_error);
}

/// A model without pruning, ordering or short cuts.
struct PlainSemaphore {
  std::vector<SemaphoreWrite> writes;

  static std::int64_t applied(std::int64_t value, const SemaphoreWrite& write) {
    return write.kind == UpdateKind::Write ? write.value
                                           : value + (write.kind == UpdateKind::Increment ? 1 : -1);
  }
  [[nodiscard]] std::int64_t value(Time now) const {
    std::int64_t value = 0;
    for (const SemaphoreWrite& write : writes)
      if (write.at <= now) value = applied(value, write);
    return value;
  }
  /// First time from `since` on at which the Vector engine sees at least `value`.
  [[nodiscard]] Time reaches(std::int64_t value, Time since) const {
    std::int64_t seen = 0;
    Time from = 0;
    for (std::size_t i = 0; i <= writes.size(); ++i) {
      const Time until = i == writes.size() ? kNever : std::max(from, writes[i].at + ns(11));
      if (seen >= value && until > since) return std::max(from, since);
      if (i == writes.size()) break;
      seen = applied(seen, writes[i]);
      from = until;
    }
    return kNever;
  }
};

TEST_F(SemaphoreTest, ForgettingOldWritesChangesNoAnswer) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937 random(seed);
    const auto id = static_cast<isa::SemaphoreId>(seed);
    PlainSemaphore plain;
    Time at = Simulation::now();
    for (int step = 0; step < 300; ++step) {
      at += ns(static_cast<std::int64_t>(random() % 40 + 1));
      if (at > Simulation::now() + ns(500)) advance(at - ns(500));  // posts run ahead
      const std::int64_t last = plain.value(kNever);
      SemaphoreWrite next = write(at, Engine::Tensor);
      next.order = static_cast<std::uint64_t>(step);
      if (random() % 3 == 0 && last > 0) next.kind = UpdateKind::Decrement;
      if (last >= kMax - 1 || random() % 50 == 0) {
        next.kind = UpdateKind::Write;
        next.value = static_cast<std::uint32_t>(random() % 5);
      }
      semaphores_.post(id, next);
      plain.writes.push_back(next);
      const Time now = Simulation::now();
      ASSERT_EQ(semaphores_.value(id), plain.value(now));
      for (std::int64_t value : {1, 5, 20}) {
        ASSERT_EQ(semaphores_.evaluate(wait(value, WaitCondition::GreaterEqual, now, id)).at,
                  plain.reaches(value, now))
            << "step " << step << " value " << value;
      }
    }
  }
}

/// Notes when it is woken.
class Sleeper : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Sleeper);
  explicit Sleeper(const sc_core::sc_module_name& name) : sc_core::sc_module(name) {
    SC_METHOD(step);
    dont_initialize();
    sensitive << wake.event();
  }
  WakeUp wake{"wake"};
  std::vector<Time> woken;

 private:
  void step() {
    wake.expire(now());
    woken.push_back(now());
  }
  static Time now() { return Simulation::now(); }
};

TEST_F(SemaphoreTest, WakesAWaiterWhenItsConditionIsSeen) {
  Sleeper sleeper("sleeper");
  const SemaphoreWait two = wait(2);
  semaphores_.remember(two, sleeper.wake);
  semaphores_.post(7, write(ns(20), Engine::Tensor));
  semaphores_.post(7, write(ns(40), Engine::Tensor));
  advance(ns(51) - 1);  // 40 + 11 for Tensor to Vector
  EXPECT_TRUE(sleeper.woken.empty());
  advance(ns(60));
  EXPECT_THAT(sleeper.woken, testing::ElementsAre(ns(51)));
}

TEST_F(SemaphoreTest, AnEarlierWriteWakesAWaiterEarlier) {
  Sleeper sleeper("sleeper");
  semaphores_.remember(wait(1), sleeper.wake);
  semaphores_.post(7, write(ns(400), Engine::Tensor));
  semaphores_.post(7, write(ns(40), Engine::Tensor));
  advance(ns(500));
  EXPECT_THAT(sleeper.woken, testing::ElementsAre(ns(51)));
}

TEST_F(SemaphoreTest, AResetBeforeItsTimeKeepsAWaiterAsleep) {
  Sleeper sleeper("sleeper");
  semaphores_.remember(wait(1, WaitCondition::Equal), sleeper.wake);
  semaphores_.post(7, write(ns(400), Engine::Tensor));
  semaphores_.post(7, write(ns(40), Engine::Tensor));  // so that it goes 1 at 40, 2 at 400
  semaphores_.post(7, write(ns(20), Engine::Tensor, UpdateKind::Write, 8));
  advance(ns(1000));
  EXPECT_TRUE(sleeper.woken.empty());
}

TEST_F(SemaphoreTest, AForgottenWaiterIsNotWoken) {
  Sleeper sleeper("sleeper");
  semaphores_.remember(wait(1), sleeper.wake);
  semaphores_.forget(wait(1), sleeper.wake);
  semaphores_.post(7, write(ns(20), Engine::Tensor));
  advance(ns(100));
  EXPECT_TRUE(sleeper.woken.empty());
}

}  // namespace
}  // namespace trn::sim
