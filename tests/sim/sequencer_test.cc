// The sequencers of the engines: registers, branches, loops, and what they execute themselves.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::CompareOp;
using isa::Dtype;
using isa::Engine;
using isa::RegisterOp;
using isa::UpdateKind;
using isa::WaitCondition;
using test::constant;
using test::copy;
using test::kScratch;
using test::moved;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::reg;
using test::round_machine;
using test::run;
using test::sbuf;
using testing::HasSubstr;

// On round_machine() an instruction of the sequencer takes 10 ns; EVENT_SEMAPHORE is done after 5
// ns and the next follows after 20; DRAIN 6 and 30. Data instructions are handed over 2 ns apart.

template <class Error>
std::string error_of(const isa::Trace& trace, const Machine& machine = round_machine(),
                     const CoreRunOptions& options = {}) {
  try {
    (void)run(trace, machine, options);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

/// The value that a program of the Sync engine leaves in register 1, read from the message of the
/// wait that can never be met: semaphore 0 >= 2^40 + r1.
std::int64_t register_after(ProgramBuilder program) {
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  isa::Affine value = kFar;
  value.term_count = 1;
  value.terms[0] = {1, 1};
  const std::string message = error_of<DeadlockError>(
      program.on(Engine::Sync).add(isa::EventSemaphore{}).waits(0, value).trace());
  const std::size_t at = message.find(">= ");
  if (at == std::string::npos) return std::numeric_limits<std::int64_t>::min();
  return std::stoll(message.substr(at + 3)) - kFar;
}
std::int64_t calculated(RegisterOp op, std::int32_t a, std::int32_t b) {
  return register_after(ProgramBuilder()
                            .add(isa::RegisterMove{2, constant(a)})
                            .add(isa::RegisterAlu{op, 1, reg(2), constant(b)}));
}

TEST(Sequencer, StartsAtTheLaunchDelayOfItsEngine) {
  Machine machine = round_machine();
  machine.config.chip.scalar.launch_delay = 170;
  machine.config.chip.sync.launch_delay = 0;
  ProgramBuilder program;
  for (Engine engine : isa::kAllEngines) program.on(engine).add(test::nop(10));
  const Outcome done = run(program.trace(), machine);
  EXPECT_EQ(done.start(Engine::Sync), 0);
  EXPECT_EQ(done.start(Engine::Scalar), ns(170));
  EXPECT_EQ(done.start(Engine::Tensor), ns(100));
}

TEST(Sequencer, HandsInstructionsOverOneAfterTheOther) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(3, copy()).trace(), round_machine());
  for (int i : {0, 1, 2})
    EXPECT_EQ(done.record.at(Engine::Vector, static_cast<std::uint64_t>(i)).ready, ns(100 + 2 * i));
}

TEST(Sequencer, RefillsBehindTheFirstInstructionAfterASemaphore) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(isa::EventSemaphore{}).add(3, copy()).trace(),
          round_machine());
  EXPECT_EQ(done.end(Engine::Vector, 0), ns(105));
  EXPECT_EQ(done.record.at(Engine::Vector, 1).ready, ns(120));
  EXPECT_EQ(done.record.at(Engine::Vector, 2).ready, ns(140));  // refill 20
  EXPECT_EQ(done.record.at(Engine::Vector, 3).ready, ns(142));
}

TEST(Sequencer, RunsAheadOfItsEngine) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(2, copy()).add(test::nop(10)).trace(),
          round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(104));  // while the first COPY runs until 360
}

TEST(Sequencer, RunsAheadByTheQueueAndNotFurther) {
  // Eight fit behind the first; with nine, the NOP waits for the second to start, at 210.
  for (const auto& [queued, start] : {std::pair{8U, ns(118)}, std::pair{9U, ns(212)}}) {
    const Outcome done =
        run(ProgramBuilder().on(Engine::Vector).add(1 + queued, copy()).add(test::nop(10)).trace(),
            round_machine());
    EXPECT_EQ(done.start(Engine::Vector, 1 + queued), start) << queued;
  }
}

TEST(Sequencer, ANopTakesItsCycles) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Sync)
                               .add(test::nop(0))
                               .add(test::nop(777))
                               .add(test::nop(10))
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.end(Engine::Sync, 0), ns(110));
  EXPECT_EQ(done.start(Engine::Sync, 1), ns(110));
  EXPECT_EQ(done.end(Engine::Sync, 1), ns(887));
  EXPECT_EQ(done.start(Engine::Sync, 2), ns(887));
}

TEST(Sequencer, ADrainWaitsForTheResultsOfItsEngine) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(2, copy()).add(isa::Drain{}).add(copy()).trace(),
          round_machine());
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(460));
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(460));
  EXPECT_EQ(done.end(Engine::Vector, 2), ns(466));
  EXPECT_EQ(done.start(Engine::Vector, 3), ns(490));
}

TEST(Sequencer, ADrainOfAnIdleEngineTakesItsOwnTime) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(isa::Drain{}).add(test::nop(10)).trace(),
          round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 0), ns(100));
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(130));
}

TEST(Sequencer, ASemaphoreInstructionWaitsAndUpdates) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy())
                               .updates(3)
                               .on(Engine::Sync)
                               .add(isa::EventSemaphore{})
                               .waits(3, 1)
                               .updates(4)
                               .on(Engine::Scalar)
                               .add(copy())
                               .waits(4, 1)
                               .trace(),
                           round_machine());
  // The COPY ends at 360; Vector to a control instruction of Sync: 100 + 20 + 4. Sync to Scalar's
  // pipeline: 50 + 2.
  EXPECT_EQ(done.start(Engine::Sync), ns(484));
  EXPECT_EQ(done.end(Engine::Sync), ns(489));
  EXPECT_EQ(done.start(Engine::Scalar), ns(541));
  EXPECT_EQ(done.record.at(Engine::Scalar, 0).reason, StallReason::WaitSync);
}

TEST(Sequencer, ClearsARangeOfSemaphores) {
  ProgramBuilder program;
  program.on(Engine::Sync);
  for (isa::SemaphoreId id = 3; id <= 6; ++id) program.add(isa::EventSemaphore{}).updates(id);
  program.add(isa::SemaphoreRangeClear{4, 5});
  program.add(isa::EventSemaphore{}).waits(4, 0, WaitCondition::Equal);
  program.add(isa::EventSemaphore{}).waits(5, 0, WaitCondition::Equal);
  program.add(isa::EventSemaphore{}).waits(3, 1, WaitCondition::Equal);
  program.add(isa::EventSemaphore{}).waits(6, 1, WaitCondition::Equal);
  EXPECT_EQ(run(program.trace(), round_machine()).record.executed(Engine::Sync), 9);
}

TEST(Sequencer, EventsAreSetAndCleared) {
  ProgramBuilder program;
  constexpr isa::SemaphoreId kEvent = isa::kFirstEvent + 9;
  program.on(Engine::Sync).add(isa::EventSemaphore{}).updates(kEvent);
  program.on(Engine::Vector)
      .add(isa::EventSemaphore{})
      .waits(kEvent, 1)
      .updates(kEvent, UpdateKind::Write, 0);
  program.on(Engine::Scalar).add(isa::EventSemaphore{}).waits(kEvent, 0, WaitCondition::LessEqual);
  EXPECT_EQ(run(program.trace(), round_machine()).result.instructions, 3);
}

// ---- registers ----

TEST(Registers, CalculateAndWrapAroundAtThirtyTwoBits) {
  constexpr std::int32_t kMin = std::numeric_limits<std::int32_t>::min();
  constexpr std::int32_t kMax = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(calculated(RegisterOp::Add, 3, 4), 7);
  EXPECT_EQ(calculated(RegisterOp::Add, kMax, 1), kMin);
  EXPECT_EQ(calculated(RegisterOp::Subtract, 3, 4), -1);
  EXPECT_EQ(calculated(RegisterOp::Subtract, kMin, 1), kMax);
  EXPECT_EQ(calculated(RegisterOp::Multiply, -3, 4), -12);
  EXPECT_EQ(calculated(RegisterOp::Multiply, 65536, 65536), 0);
  EXPECT_EQ(calculated(RegisterOp::And, 12, 10), 8);
  EXPECT_EQ(calculated(RegisterOp::Or, 12, 10), 14);
  EXPECT_EQ(calculated(RegisterOp::Xor, 12, 10), 6);
  EXPECT_EQ(calculated(RegisterOp::ShiftLeft, 1, 31), kMin);
  EXPECT_EQ(calculated(RegisterOp::ShiftLeft, 3, 32), 3);     // five bits of the distance count
  EXPECT_EQ(calculated(RegisterOp::ShiftRight, -1, 28), 15);  // logical
  EXPECT_EQ(calculated(RegisterOp::Minimum, -5, 3), -5);
  EXPECT_EQ(calculated(RegisterOp::Maximum, -5, 3), 3);
}

TEST(Registers, AreZeroAtFirst) { EXPECT_EQ(register_after(ProgramBuilder()), 0); }

TEST(Registers, MoveFromConstantsAndRegisters) {
  EXPECT_EQ(register_after(ProgramBuilder()
                               .add(isa::RegisterMove{5, constant(-9)})
                               .add(isa::RegisterMove{1, reg(5)})),
            -9);
}

TEST(Registers, ALoadFillsAsManyAsItSays) {
  isa::TensorLoad load;
  load.src = test::hbm_rows(3, 4, Dtype::Int32);
  load.dst = 0;
  load.count = 2;
  load.value = 77;
  EXPECT_EQ(register_after(ProgramBuilder().add(load)), 77);
  load.count = 1;
  EXPECT_EQ(register_after(ProgramBuilder().add(load)), 0);
}

TEST(Registers, TheRankIsTheCoresOwn) {
  EXPECT_EQ(register_after(ProgramBuilder().core(0, 5).add(isa::RankId{1})), 5);
}

TEST(Registers, AnAddressMayFollowTheRank) {
  for (const std::uint32_t rank : {0U, 3U}) {
    const isa::Access tile = moved(sbuf(64), {{isa::kRankRegister, 4096}});
    const Outcome done =
        run(ProgramBuilder().core(0, rank).on(Engine::Vector).add(copy(tile, tile)).trace(),
            round_machine());
    EXPECT_EQ(done.result.sbuf.peak_bytes, 4096 * rank + 256);
  }
}

TEST(Registers, AWaitMayFollowALoopCounter) {
  // The n-th iteration waits for n + 1 of Vector's COPYs.
  ProgramBuilder program;
  isa::Affine value = 1;
  value.term_count = 1;
  value.terms[0] = {7, 1};
  program.on(Engine::Scalar).loop(7, constant(4)).add(copy()).waits(3, value).end_loop();
  program.on(Engine::Vector);
  for (int i = 0; i < 4; ++i) program.add(copy()).updates(3);
  const Outcome done = run(program.trace(), round_machine());
  // COPYs of Vector end at 360, 460 ...; to Scalar it takes 22 ns.
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(done.record.at(Engine::Scalar, i).ready, ns(382 + 100 * static_cast<Time>(i)));
}

// ---- branches ----

TEST(Branch, GoesWhereTheComparisonSays) {
  struct Case {
    CompareOp op;
    bool less;
    bool equal;
    bool greater;
  };
  for (const Case& c :
       {Case{CompareOp::Always, true, true, true}, Case{CompareOp::Equal, false, true, false},
        Case{CompareOp::NotEqual, true, false, true}, Case{CompareOp::Less, true, false, false},
        Case{CompareOp::LessEqual, true, true, false}, Case{CompareOp::Greater, false, false, true},
        Case{CompareOp::GreaterEqual, false, true, true}}) {
    const auto taken = [&](std::int32_t a, std::int32_t b) {
      const Outcome done = run(ProgramBuilder()
                                   .on(Engine::Sync)
                                   .add(isa::RegisterMove{3, constant(a)})
                                   .add(isa::CompareBranch{c.op, reg(3), constant(b), 3})
                                   .add(2, test::nop(10))  // skipped when taken
                                   .add(test::nop(10))
                                   .trace(),
                               round_machine());
      return done.record.executed(Engine::Sync) == 3;
    };
    EXPECT_EQ(taken(-2, 1), c.less) << name_of(c.op);
    EXPECT_EQ(taken(1, 1), c.equal) << name_of(c.op);
    EXPECT_EQ(taken(1, -2), c.greater) << name_of(c.op);
  }
}

TEST(Branch, MayGoBack) {
  // r1 counts to 5: MOVE, then five times NOP, ADD and BRANCH.
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Sync)
                               .add(isa::RegisterMove{1, constant(0)})
                               .add(test::nop(10))
                               .add(isa::RegisterAlu{RegisterOp::Add, 1, reg(1), constant(1)})
                               .add(isa::CompareBranch{CompareOp::Less, reg(1), constant(5), -2})
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.record.executed(Engine::Sync), 16);
  EXPECT_EQ(done.result.length, ns(100 + 16 * 10));
}

TEST(Branch, MayEndTheProgram) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Sync)
                               .add(isa::CompareBranch{CompareOp::Always, {}, {}, 3})
                               .add(2, test::nop(10))
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.record.executed(Engine::Sync), 1);
}

TEST(Branch, OutsideTheProgramIsAnErrorWithItsPlace) {
  for (const std::int64_t target : {-2, 3}) {
    ProgramBuilder program;
    program.at("kernel.py", 12)
        .on(Engine::Sync)
        .add(test::nop(10))
        .add(isa::CompareBranch{CompareOp::Always, {}, {}, target});
    const std::string error = error_of<InputError>(program.trace());
    EXPECT_THAT(error, HasSubstr("#1"));
    EXPECT_THAT(error, HasSubstr("kernel.py:12"));
  }
}

TEST(Branch, AnEndlessLoopIsAnErrorWithItsPlace) {
  const std::string error =
      error_of<InputError>(ProgramBuilder()
                               .at("kernel.py", 9)
                               .on(Engine::Sync)
                               .add(test::nop(10))
                               .add(isa::CompareBranch{CompareOp::Always, {}, {}, -1})
                               .trace(),
                           round_machine(), {.time_limit_s = 1e-5});
  EXPECT_THAT(error, HasSubstr("kernel.py:9"));
  EXPECT_THAT(error, HasSubstr("still running"));
}

TEST(Branch, AnEndlessLoopOfDataInstructionsIsAnErrorToo) {
  const std::string error =
      error_of<InputError>(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy())
                               .add(isa::CompareBranch{CompareOp::Always, {}, {}, -1})
                               .trace(),
                           round_machine(), {.time_limit_s = 1e-5});
  EXPECT_THAT(error, HasSubstr("still running"));
}

TEST(Branch, AProgramWithinTheTimeLimitPasses) {
  EXPECT_NO_THROW(run(ProgramBuilder().on(Engine::Sync).add(test::nop(9000)).trace(),
                      round_machine(), {.time_limit_s = 1e-5}));
}

// ---- loops ----

TEST(Loop, RunsItsBodyAsOftenAsItSays) {
  for (const std::int32_t count : {0, 1, 2, 7}) {
    const Outcome done = run(ProgramBuilder()
                                 .on(Engine::Sync)
                                 .loop(1, constant(count))
                                 .add(test::nop(10))
                                 .end_loop()
                                 .add(test::nop(10))
                                 .trace(),
                             round_machine());
    EXPECT_EQ(done.record.executed(Engine::Sync), static_cast<std::uint64_t>(count + 1));
  }
}

TEST(Loop, ANegativeCountRunsNothing) {
  EXPECT_EQ(run(ProgramBuilder()
                    .on(Engine::Sync)
                    .loop(1, constant(-3))
                    .add(test::nop(10))
                    .end_loop()
                    .trace(),
                round_machine())
                .record.executed(Engine::Sync),
            0);
}

TEST(Loop, AnEmptyBodyIsALoopToo) {
  EXPECT_EQ(run(ProgramBuilder().on(Engine::Sync).loop(1, constant(5)).end_loop().trace(),
                round_machine())
                .record.executed(Engine::Sync),
            0);
}

TEST(Loop, TheCountMayBeARegister) {
  EXPECT_EQ(run(ProgramBuilder()
                    .on(Engine::Sync)
                    .add(isa::RegisterMove{9, constant(3)})
                    .loop(1, reg(9))
                    .add(test::nop(10))
                    .end_loop()
                    .trace(),
                round_machine())
                .record.executed(Engine::Sync),
            4);
}

TEST(Loop, LoopsNest) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Sync)
                               .loop(1, constant(3))
                               .add(test::nop(10))
                               .loop(2, constant(4))
                               .add(test::nop(10))
                               .end_loop()
                               .end_loop()
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.record.executed(Engine::Sync), 3 * (1 + 4));
}

TEST(Loop, TheCounterGoesFromZeroToTheCount) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(isa::RegisterMove{1, constant(0)});
  program.loop(2, constant(5))
      .add(isa::RegisterAlu{RegisterOp::Multiply, 1, reg(1), constant(10)})
      .add(isa::RegisterAlu{RegisterOp::Add, 1, reg(1), reg(2)})
      .end_loop();
  EXPECT_EQ(register_after(program), 1234);  // 0 1 2 3 4 in decimal places
}

TEST(Loop, AddressesFollowSeveralCounters) {
  // 4096 * outer + 256 * inner, up to outer 2, inner 7: the last tile ends at 8192 + 1792 + 256.
  const isa::Access tile = moved(sbuf(64), {{1, 4096}, {2, 256}});
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .loop(1, constant(3))
                               .loop(2, constant(8))
                               .add(copy(tile, tile))
                               .end_loop()
                               .end_loop()
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.result.sbuf.peak_bytes, 10240);
  EXPECT_EQ(done.result.engines[isa::index(Engine::Vector)].data_instructions, 24);
}

TEST(Loop, AnAddressThatLeavesSbufIsAnErrorWithItsPlace) {
  // Partitions of 224 KiB = 229376 bytes: tiles of 32 KiB fit seven times.
  const auto program = [](std::int32_t count) {
    const isa::Access tile = moved(sbuf(8192), {{1, 32768}});
    return ProgramBuilder()
        .at("kernel.py", 33)
        .on(Engine::Vector)
        .loop(1, constant(count))
        .add(copy(tile, sbuf(8192)))
        .end_loop()
        .trace();
  };
  EXPECT_EQ(run(program(7), round_machine()).result.sbuf.peak_bytes, 229376);
  const std::string error = error_of<InputError>(program(8));
  EXPECT_THAT(error, HasSubstr("#1 COPY (kernel.py:33)"));
  EXPECT_THAT(error, HasSubstr("229376 to 262144"));
  EXPECT_THAT(error, HasSubstr("sbuf"));
}

TEST(Loop, AnAddressThatLeavesPsumIsAnError) {
  const isa::Access tile = moved(test::psum(512), {{1, 2048}});
  const std::string error = error_of<InputError>(ProgramBuilder()
                                                     .on(Engine::Vector)
                                                     .loop(1, constant(9))
                                                     .add(copy(tile, sbuf(512)))
                                                     .end_loop()
                                                     .trace());
  EXPECT_THAT(error, HasSubstr("psum"));
}

TEST(Loop, AnAddressBelowZeroIsAnError) {
  const isa::Access tile = moved(sbuf(64, Dtype::Fp32, 256), {{1, -256}});
  const auto program = [&](std::int32_t count) {
    return ProgramBuilder()
        .on(Engine::Vector)
        .loop(1, constant(count))
        .add(copy(tile, sbuf(64)))
        .end_loop()
        .trace();
  };
  EXPECT_EQ(error_of<InputError>(program(2)), "no error");
  EXPECT_THAT(error_of<InputError>(program(3)), HasSubstr("-256 to 0"));
}

TEST(Loop, TakesNoTime) {
  // NOPs of 10 ns in the sequencer, one behind the other.
  const Outcome done = run(
      ProgramBuilder().on(Engine::Sync).loop(1, constant(5)).add(test::nop(10)).end_loop().trace(),
      round_machine());
  EXPECT_EQ(done.result.length, ns(100 + 5 * 10));
}

TEST(Loop, IsNoInstructionThatTheQueueCounts) {
  // As in RunsAheadByTheQueueAndNotFurther: nine wait for the second of them to start.
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy())
                               .loop(1, constant(3))
                               .loop(2, constant(3))
                               .add(copy())
                               .end_loop()
                               .end_loop()
                               .add(test::nop(10))
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 10), ns(212));
}

TEST(Loop, OneThatWaitsOrUpdatesIsExecuted) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Sync)
                               .loop(1, constant(2))
                               .updates(3)
                               .add(isa::EventSemaphore{})
                               .waits(3, 1)
                               .end_loop()
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.record.executed(Engine::Sync), 3);
}

TEST(Loop, MillionsOfIterationsWithoutAnInstructionAreAnError) {
  const std::string error =
      error_of<InputError>(ProgramBuilder()
                               .at("kernel.py", 9)
                               .on(Engine::Sync)
                               .loop(1, constant(std::numeric_limits<std::int32_t>::max()))
                               .end_loop()
                               .trace());
  EXPECT_THAT(error, HasSubstr("kernel.py:9"));
  EXPECT_THAT(error, HasSubstr("expected loops to have instructions"));
}

// ---- deadlock ----

TEST(Deadlock, SaysWhoWaitsForWhat) {
  ProgramBuilder program;
  program.at("kernel.py", 7).on(Engine::Vector).add(copy()).updates(3);
  program.add(copy()).waits(3, 2);
  program.at("kernel.py", 8)
      .on(Engine::Scalar)
      .add(isa::EventSemaphore{})
      .waits(isa::kFirstEvent + 6, 1);
  const std::string error = error_of<DeadlockError>(program.trace());
  EXPECT_THAT(error, HasSubstr("vector #1 COPY (kernel.py:7): semaphore 3 >= 2, is 1"));
  EXPECT_THAT(error, HasSubstr("scalar #0 EVENT_SEMAPHORE (kernel.py:8): event 6 >= 1, is 0"));
  EXPECT_THAT(error, testing::Not(HasSubstr("sync")));
}

TEST(Deadlock, NamesTheCore) {
  ProgramBuilder program;
  program.core(5).on(Engine::Vector).add(copy()).waits(3, 2, WaitCondition::Equal);
  EXPECT_THAT(error_of<DeadlockError>(program.trace()),
              HasSubstr("nc5.vector #0 COPY: semaphore 3 == 2, is 0"));
}

TEST(Deadlock, TheNextRunWorks) {
  const isa::Trace stuck = ProgramBuilder().on(Engine::Vector).add(copy()).waits(3, 2).trace();
  const isa::Trace fine = ProgramBuilder().on(Engine::Vector).add(copy()).trace();
  const std::string before = test::digest(run(fine, round_machine()));
  EXPECT_THAT(error_of<DeadlockError>(stuck), HasSubstr("semaphore 3"));
  EXPECT_EQ(test::digest(run(fine, round_machine())), before);
}

TEST(Overflow, NamesTheInstructionThatWrites) {
  // The largest value is 100.
  ProgramBuilder program;
  program.at("kernel.py", 70).on(Engine::Vector);
  for (int i = 0; i < 101; ++i) program.add(copy()).updates(3);
  const std::string error = error_of<InputError>(program.trace());
  EXPECT_THAT(error, HasSubstr("vector #100 COPY (kernel.py:70)"));
  EXPECT_THAT(error, HasSubstr("semaphore 3 overflows to 101"));
}

TEST(Overflow, OfADmaNamesItsTrigger) {
  ProgramBuilder program;
  program.on(Engine::Sync)
      .add(test::dma_read(128, 512, isa::DescriptorMode::HardwareDge, 0,
                          {.semaphore = 4, .increment = 101}));
  EXPECT_THAT(error_of<InputError>(program.trace()), HasSubstr("sync #0 DMA_DIRECT2D"));
}

// ---- instruction fetch ----

TEST(Fetch, TakesItsTimeForEachInstruction) {
  // 64 bytes at 4 GB/s: 16 ns beside the 2 ns of handing over and the 10 ns of a NOP.
  Machine machine = round_machine();
  machine.config.chip.fetch = {true, 64, 4e9};
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(2, copy())
                               .add(test::nop(10))
                               .add(test::nop(10))
                               .trace(),
                           machine);
  EXPECT_EQ(done.record.at(Engine::Vector, 1).ready, ns(118));
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(136));
  EXPECT_EQ(done.start(Engine::Vector, 3), ns(162));
}

}  // namespace
}  // namespace trn::sim
