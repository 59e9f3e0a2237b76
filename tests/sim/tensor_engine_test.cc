#include "sim/engine/tensor_engine.h"

#include <gtest/gtest.h>

#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Dtype;
using isa::Engine;
using isa::Fp32Pass;
using test::load_weights;
using test::matmul;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::round_machine;
using test::run;

// On round_machine() a cycle is 1 ns (2 ns when cold), a gap of 5 cycles lies between two streams,
// weights cost 10 cycles beyond loading, a result drains for 100 ns and 120 cycles.

Outcome stream(const isa::Op& op, std::size_t count = 3, const Machine& machine = round_machine()) {
  return run(ProgramBuilder().on(Engine::Tensor).add(count, op).trace(), machine);
}
Time interval(const isa::Op& op, const Machine& machine = round_machine()) {
  const Outcome done = stream(op, 3, machine);
  EXPECT_EQ(done.start(Engine::Tensor, 1) - done.start(Engine::Tensor, 0),
            done.start(Engine::Tensor, 2) - done.start(Engine::Tensor, 1));
  return done.start(Engine::Tensor, 2) - done.start(Engine::Tensor, 1);
}

TEST(TensorEngine, BackToBackMatmulsTakeAColumnACycleAndAGap) {
  EXPECT_EQ(interval(matmul(512)), ns(517));
  EXPECT_EQ(interval(matmul(128)), ns(133));
  EXPECT_EQ(interval(matmul(64)), ns(69));
}

TEST(TensorEngine, NoMatmulTakesLessThanTheIssueFloor) {
  EXPECT_EQ(interval(matmul(63)), ns(69));
  EXPECT_EQ(interval(matmul(1)), ns(69));
  EXPECT_EQ(interval(matmul(65)), ns(70));
}

TEST(TensorEngine, TheResultComesAfterTheStreamAndTheDrain) {
  const Outcome done = stream(matmul(512));
  EXPECT_EQ(done.start(Engine::Tensor), ns(100));
  EXPECT_EQ(done.end(Engine::Tensor), ns(832));      // 100 + 100 + 512 + 120
  EXPECT_EQ(done.end(Engine::Tensor, 1), ns(1349));  // 617 + 732
}

TEST(TensorEngine, AnFp32PassTakesTwoCyclesAColumn) {
  EXPECT_EQ(interval(matmul(512, Dtype::Fp32, Fp32Pass::Low)), ns(1029));
  EXPECT_EQ(interval(matmul(512, Dtype::Fp32, Fp32Pass::LowHigh)), ns(1029));
}

TEST(TensorEngine, AnFp32ProductIsTwoPassesOrFourCyclesAColumn) {
  // In one instruction: 4 * 512 + 5. In two: 2 * (2 * 512 + 5).
  EXPECT_EQ(interval(matmul(512, Dtype::Fp32)), ns(2053));
  EXPECT_EQ(2 * interval(matmul(512, Dtype::Fp32, Fp32Pass::LowHigh)), ns(2058));
}

TEST(TensorEngine, ATransposeMovesAColumnACycleOrTwoForFp32) {
  isa::Matmul transpose = matmul(128);
  transpose.transpose = true;
  EXPECT_EQ(interval(transpose), ns(133));
  isa::Matmul wide = matmul(128, Dtype::Fp32);
  wide.transpose = true;
  EXPECT_EQ(interval(wide), ns(261));
}

TEST(TensorEngine, DoubleRowHalvesTheTimeOfTheSameContraction) {
  // K = 256: two bf16 MATMULs of 128 rows, or one fp8 MATMUL that holds two rows in a partition.
  isa::Matmul double_row = matmul(1024, Dtype::Fp8E4m3);
  double_row.dst = test::psum(512);
  double_row.mode = isa::PerformanceMode::DoubleRow;
  EXPECT_EQ(interval(double_row), ns(517));
  EXPECT_EQ(2 * interval(double_row), 2 * interval(matmul(512)));
}

TEST(TensorEngine, AnIdleArrayWaitsForItsWeights) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Tensor).add(load_weights(128)).add(matmul(512)).trace(),
          round_machine());
  // 128 columns of bf16 load in 32 cycles. Reported: 32 - 10 + 90.
  EXPECT_EQ(done.start(Engine::Tensor, 0), ns(100));
  EXPECT_EQ(done.end(Engine::Tensor, 0), ns(212));
  // The first column goes 60 + 0.5 * 32 - 20 = 56 ns after the load's start.
  EXPECT_EQ(done.start(Engine::Tensor, 1), ns(102));
  EXPECT_EQ(done.end(Engine::Tensor, 1), ns(888));  // 156 + 732
}

TEST(TensorEngine, WeightsLoadBehindTheRunningMatmul) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Tensor)
                               .add(load_weights(128))
                               .add(matmul(512))
                               .add(load_weights(128))
                               .add(matmul(512))
                               .trace(),
                           round_machine());
  // The first stream is from 156 to 156 + 512 + 5. Its weights' successor loads from 2 ns after its
  // start; reported while streaming: 32 + 80 + 50.
  EXPECT_EQ(done.start(Engine::Tensor, 2), ns(158));
  EXPECT_EQ(done.end(Engine::Tensor, 2), ns(320));
  EXPECT_EQ(done.start(Engine::Tensor, 3), ns(673));  // hidden: as without weights
  EXPECT_EQ(done.end(Engine::Tensor, 3), ns(673 + 732));
}

/// From one MATMUL to the next when each has its own weights.
Time with_new_weights(const isa::LdWeights& weights, const isa::Matmul& product) {
  ProgramBuilder program;
  program.on(Engine::Tensor);
  for (int i = 0; i < 4; ++i) program.add(weights).add(product);
  const Outcome done = run(program.trace(), round_machine());
  return done.end(Engine::Tensor, 7) - done.end(Engine::Tensor, 5);
}

TEST(TensorEngine, NewWeightsEachTimeAreBoundByTheSlowerOfStreamAndLoad) {
  // Loading 128 bf16 columns takes 32 cycles and 10 for the switch: the stream is slower.
  EXPECT_EQ(with_new_weights(load_weights(128), matmul(64)), ns(69));
  EXPECT_EQ(with_new_weights(load_weights(128), matmul(512)), ns(517));
  // An fp32 pass loads two cycles a column: 256 + 10 against 2 * 64 + 5 and 2 * 512 + 5.
  const isa::LdWeights wide = load_weights(128, Dtype::Fp32, Fp32Pass::Low);
  EXPECT_EQ(with_new_weights(wide, matmul(64, Dtype::Fp32, Fp32Pass::LowHigh)), ns(266));
  EXPECT_EQ(with_new_weights(wide, matmul(512, Dtype::Fp32, Fp32Pass::LowHigh)), ns(1029));
}

TEST(TensorEngine, WeightsThatStayCostNothing) {
  ProgramBuilder program;
  program.on(Engine::Tensor).add(load_weights(128)).add(3, matmul(64));
  const Outcome done = run(program.trace(), round_machine());
  EXPECT_EQ(done.start(Engine::Tensor, 3) - done.start(Engine::Tensor, 2), ns(69));
}

TEST(TensorEngine, AColdClockHalvesTheRate) {
  Machine machine = round_machine();
  machine.config.chip.tensor.clock_gating = true;
  machine.config.chip.tensor.activity_window = 1e6;
  EXPECT_EQ(interval(matmul(512), machine), ns(1024));  // no gap when cold
  const Outcome done = stream(matmul(512), 1, machine);
  EXPECT_EQ(done.end(Engine::Tensor), ns(1464));  // 100 + 100 + 2 * (512 + 120)
  EXPECT_EQ(done.result.tensor.warm, 0);
}

TEST(TensorEngine, TheClockRisesWhileAMatmulStreams) {
  Machine machine = round_machine();
  machine.config.chip.tensor.clock_gating = true;
  const Outcome done = stream(matmul(512), 4, machine);
  // Busy from 100 on: 90 % of the window up to 1000. 450 of the first MATMUL's cycles are cold, the
  // other 62 warm, and then 517 each.
  ASSERT_EQ(done.record.clocks.size(), 1);
  EXPECT_EQ(done.record.clocks[0].at, ns(1000));
  EXPECT_EQ(done.start(Engine::Tensor, 1), ns(1062));
  EXPECT_EQ(done.start(Engine::Tensor, 2), ns(1579));
  EXPECT_EQ(done.start(Engine::Tensor, 3), ns(2096));
  // warm from 1000 to the end at 2096 + 732
  EXPECT_EQ(done.result.tensor.warm, ns(1828));
}

TEST(TensorEngine, TheClockFallsBackAfterAnIdleWindow) {
  Machine machine = round_machine();
  machine.config.chip.tensor.clock_gating = true;
  ProgramBuilder program;
  program.on(Engine::Tensor).add(2, matmul(512)).add(matmul(512)).waits(0, 1);
  program.on(Engine::Sync).add(test::nop(9400)).updates(0);
  const Outcome done = run(program.trace(), machine);
  // Warm at 1000; busy to 1579, 58 % of the window up to 2000; idle in the one up to 3000.
  ASSERT_EQ(done.record.clocks.size(), 2);
  EXPECT_EQ(done.record.clocks[1].at, ns(3000));
  // At 9500 + 50 it starts cold, and neither window is busy enough: 100 + 2 * (512 + 120).
  EXPECT_EQ(done.start(Engine::Tensor, 2), ns(9550));
  EXPECT_EQ(done.end(Engine::Tensor, 2), ns(9550 + 1364));
}

TEST(TensorEngine, TheWindowsHaveAPhaseThatCountsFromThePrologue) {
  Machine machine = round_machine();
  machine.config.chip.tensor.clock_gating = true;
  // Windows end 700 ns, 1700 ns ... after the start of a prologue of 2100 ns: 600, 1600 ... after
  // the kernel's. 500 of the 1000 ns up to 600 are busy, all of those up to 1600.
  machine.config.chip.runtime.prologue = 2100;
  machine.config.tensor.activity_window_phase = 700;
  const Outcome done = stream(matmul(512), 3, machine);
  ASSERT_GE(done.record.clocks.size(), 1);
  EXPECT_EQ(done.record.clocks[0].at, ns(1600));
}

TEST(TensorEngine, WithoutGatingThePhaseDoesNotMatter) {
  Machine machine = round_machine();
  machine.config.tensor.activity_window_phase = 333;
  EXPECT_EQ(test::digest(stream(matmul(512), 5, machine)), test::digest(stream(matmul(512), 5)));
}

TEST(TensorEngine, CountsItsWork) {
  isa::Matmul transpose = matmul(128);
  transpose.transpose = true;
  isa::Matmul tile = matmul(512);
  tile.src = test::within(tile.src, 0, 32);
  tile.dst = test::within(tile.dst, 0, 64);
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Tensor)
                               .add(load_weights())
                               .add(matmul(512))
                               .add(matmul(256, Dtype::Fp32, Fp32Pass::LowHigh))
                               .add(transpose)
                               .add(tile)
                               .trace(),
                           round_machine());
  const TensorStats& stats = done.result.tensor;
  EXPECT_EQ(stats.matmuls, 4);
  // 2 * rows * columns of the array * moved columns
  const double full = 2.0 * 128 * 128;
  EXPECT_EQ(stats.hardware_flops, full * (512 + 256 + 128) + 2.0 * 32 * 64 * 512);
  EXPECT_EQ(stats.transpose_flops, full * 128);
  EXPECT_EQ(stats.adjusted_hardware_flops, full * (512 + 4 * 256 + 128) + 2.0 * 32 * 64 * 512);
}

TEST(TensorEngine, TheSequencerRunsAheadByTheQueueAndNotFurther) {
  // The first MATMUL leaves the queue at once. With `queued` more behind it, an EVENT_SEMAPHORE is
  // reached 2 ns after the last of them was handed over, as long as they all fit; one more has to
  // wait until the second MATMUL starts, at 617.
  for (const std::uint32_t depth : {4U, 32U}) {
    Machine machine = round_machine();
    machine.config.chip.tensor.queue_depth = depth;
    const auto semaphore_start = [&](std::uint32_t queued) {
      const Outcome done = run(ProgramBuilder()
                                   .on(Engine::Tensor)
                                   .add(1 + queued, matmul(512))
                                   .add(isa::EventSemaphore{})
                                   .trace(),
                               machine);
      return done.start(Engine::Tensor, 1 + queued);
    };
    EXPECT_EQ(semaphore_start(depth), ns(100 + 2 * (depth + 1)));
    EXPECT_EQ(semaphore_start(depth + 1), ns(617 + 2));
  }
}

TEST(TensorEngine, TheShippedQueueHoldsThirtyTwo) {
  EXPECT_EQ(test::shipped_machine().config.chip.tensor.queue_depth, 32);
}

TEST(TensorEngine, TheMovingTileIsReadWhenItsStreamEnds) {
  isa::Trace trace = ProgramBuilder()
                         .on(Engine::Tensor)
                         .add(matmul(512))
                         .updates(9)
                         .on(Engine::Vector)
                         .add(test::copy())
                         .waits(9, 1)
                         .trace();
  trace.code[0].streams[isa::index(Engine::Tensor)][0].sync.update.when =
      isa::UpdateWhen::OperandsRead;
  EXPECT_EQ(run(trace, round_machine()).start(Engine::Vector), ns(617 + 11));
}

TEST(TensorEngine, WaitingForAResultTakesTheHandOver) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Tensor)
                               .add(matmul(512))
                               .updates(9)
                               .on(Engine::Vector)
                               .add(test::copy_bank(0))
                               .waits(9, 1)
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.start(Engine::Vector), ns(832 + 11));
  EXPECT_EQ(done.record.at(Engine::Vector, 0).ready, ns(843));
}

}  // namespace
}  // namespace trn::sim
