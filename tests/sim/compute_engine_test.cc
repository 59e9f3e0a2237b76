#include "sim/engine/compute_engine.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>

#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Dtype;
using isa::Engine;
using test::bank;
using test::copy;
using test::copy_bank;
using test::kScratch;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::psum;
using test::round_machine;
using test::run;
using test::sbuf;

// On round_machine() a COPY takes 100 ns to the next one and 250 ns to its result, 10 ns more from
// idle; TENSOR_SCALAR the same, but it holds the unit for 120 ns. Engines begin at 100 ns.

TEST(ComputeEngine, TheFirstInstructionStartsAtTheLaunchAndRestartsTheUnit) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(copy()).trace(), round_machine());
  EXPECT_EQ(done.start(Engine::Vector), ns(100));
  EXPECT_EQ(done.end(Engine::Vector), ns(360));  // 100 + 10 + 250
  EXPECT_EQ(done.result.length, ns(360));
}

TEST(ComputeEngine, TheInitiationIntervalIsApartFromTheLatency) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(3, copy()).trace(), round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(210));  // 100 + 10 + 100
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(310));
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(460));
  EXPECT_EQ(done.end(Engine::Vector, 2), ns(560));
}

TEST(ComputeEngine, AUnitHeldBeyondTheIntervalDelaysTheEffectiveStart) {
  const Outcome done =
      run(ProgramBuilder()
              .on(Engine::Vector)
              .add(3, test::tensor_scalar(sbuf(64), sbuf(64, Dtype::Fp32, kScratch)))
              .trace(),
          round_machine());
  // Reported 210 and 310; in effect 110 + 120 = 230 and 350.
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(210));
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(480));
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(310));
  EXPECT_EQ(done.end(Engine::Vector, 2), ns(600));
}

/// Vector runs a COPY at 100 and one that becomes ready at `ready`.
Outcome second_ready_at(std::uint32_t ready) {
  // Sync's NOP ends at 100 + n, and Vector sees it 51 ns later.
  return run(ProgramBuilder()
                 .on(Engine::Sync)
                 .add(test::nop(ready - 151))
                 .updates(0)
                 .on(Engine::Vector)
                 .add(copy())
                 .add(copy())
                 .waits(0, 1)
                 .trace(),
             round_machine());
}

TEST(ComputeEngine, AnInstructionThatFindsTheUnitBusyDoesNotRestartIt) {
  const Outcome done = second_ready_at(210);  // the moment at which the unit is free
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(210));
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(460));
}

TEST(ComputeEngine, AnInstructionThatFindsTheUnitIdleRestartsIt) {
  const Outcome done = second_ready_at(211);
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(211));
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(471));  // 211 + 10 + 250
}

TEST(ComputeEngine, AStallBeginsWhenTheLastResultIsThere) {
  // The first COPY ends at 360.
  EXPECT_EQ(second_ready_at(360).record.at(Engine::Vector, 1).reason, StallReason::None);
  const InstructionRecord stalled = second_ready_at(361).record.at(Engine::Vector, 1);
  EXPECT_EQ(stalled.reason, StallReason::WaitSync);
  EXPECT_EQ(stalled.stall, ns(1));
}

TEST(ComputeEngine, AnUpdateMayComeWhenTheOperandsAreRead) {
  isa::Trace trace = ProgramBuilder()
                         .on(Engine::Vector)
                         .add(copy())
                         .updates(0)
                         .on(Engine::Scalar)
                         .add(copy())
                         .waits(0, 1)
                         .trace();
  EXPECT_EQ(run(trace, round_machine()).start(Engine::Scalar), ns(360 + 22));  // at the result
  // The unit holds its operands from 110 for 100 ns.
  trace.code[0].streams[isa::index(Engine::Vector)][0].sync.update.when =
      isa::UpdateWhen::OperandsRead;
  EXPECT_EQ(run(trace, round_machine()).start(Engine::Scalar), ns(210 + 22));
}

TEST(ComputeEngine, EnginesRunSideBySide) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy())
                               .on(Engine::Scalar)
                               .add(copy())
                               .on(Engine::GpSimd)
                               .add(copy())
                               .trace(),
                           round_machine());
  for (Engine engine : {Engine::Vector, Engine::Scalar, Engine::GpSimd})
    EXPECT_EQ(done.end(engine), ns(360)) << name_of(engine);
}

// ---- read after write within an engine ----

/// Two COPYs of the Vector engine, the second of which is free to start at 210; when it reads the
/// result of the first, at 360, it has to wait for 30 ns more.
Time second_start(const isa::Access& written, const isa::Access& read) {
  return run(ProgramBuilder()
                 .on(Engine::Vector)
                 .add(copy(sbuf(64), written))
                 .add(copy(read, sbuf(64, Dtype::Fp32, kScratch)))
                 .trace(),
             round_machine())
      .start(Engine::Vector, 1);
}

TEST(ReadAfterWrite, AReaderWaitsForAnEarlierResultOfItsEngine) {
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4096), sbuf(64, Dtype::Fp32, 4096)), ns(390));
}

TEST(ReadAfterWrite, TheStallHasItsReasonAndRestartsTheUnit) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy(sbuf(64), sbuf(64, Dtype::Fp32, 4096)))
                               .add(copy(sbuf(64, Dtype::Fp32, 4096), sbuf(64)))
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.record.at(Engine::Vector, 1).reason, StallReason::ReadAfterWrite);
  EXPECT_EQ(done.record.at(Engine::Vector, 1).stall, ns(30));  // 360 to 390: the engine was active
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(650));             // 390 + 10 + 250
}

TEST(ReadAfterWrite, OneCommonElementIsEnough) {
  // 64 elements written from 4096 on end at 4352.
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4096), sbuf(64, Dtype::Fp32, 4348)), ns(390));
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4096), sbuf(64, Dtype::Fp32, 4352)), ns(210));
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4096), sbuf(64, Dtype::Fp32, 4096 - 252)), ns(390));
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4096), sbuf(64, Dtype::Fp32, 4096 - 256)), ns(210));
}

TEST(ReadAfterWrite, OtherPartitionsDoNotMatter) {
  const isa::Access tile = sbuf(64, Dtype::Fp32, 4096);
  EXPECT_EQ(second_start(test::within(tile, 0, 64), test::within(tile, 64, 64)), ns(210));
  EXPECT_EQ(second_start(test::within(tile, 0, 64), test::within(tile, 32, 64)), ns(390));
}

TEST(ReadAfterWrite, OtherMemoriesDoNotMatter) {
  EXPECT_EQ(second_start(psum(64, Dtype::Fp32, 4096), sbuf(64, Dtype::Fp32, 4096)), ns(210));
  EXPECT_EQ(second_start(psum(64, Dtype::Fp32, 4096), psum(64, Dtype::Fp32, 4096)), ns(390));
}

TEST(ReadAfterWrite, ReachesBackwardsOverNegativeStrides) {
  // 64 elements from 4348 down to 4096.
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4348, -1), sbuf(1, Dtype::Fp32, 4096)), ns(390));
  EXPECT_EQ(second_start(sbuf(64, Dtype::Fp32, 4348, -1), sbuf(1, Dtype::Fp32, 4092)), ns(210));
}

TEST(ReadAfterWrite, WritingAgainOrWhatIsReadDoesNotWait) {
  const isa::Access tile = sbuf(64, Dtype::Fp32, 4096);
  const isa::Access other = sbuf(64, Dtype::Fp32, 8192);
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy(other, tile))
                               .add(copy(other, tile))
                               .add(copy(sbuf(64), other))
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(210));
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(310));
}

TEST(ReadAfterWrite, AnOperandReadThroughAPointerIsReadToo) {
  isa::TensorScalar scale = test::tensor_scalar(sbuf(64), sbuf(64, Dtype::Fp32, kScratch));
  scale.operand0.kind = isa::ScalarOperand::Kind::Pointer;
  scale.operand0.pointer = sbuf(1, Dtype::Fp32, 4096);
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(copy(sbuf(64), sbuf(64, Dtype::Fp32, 4096)))
                               .add(scale)
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(390));
}

TEST(ReadAfterWrite, AddressesThatRegistersMoveAreResolved) {
  const auto second_start_at = [](std::int32_t offset) {
    return run(ProgramBuilder()
                   .on(Engine::Vector)
                   .add(isa::RegisterMove{5, test::constant(offset)})
                   .add(copy(sbuf(64), sbuf(64, Dtype::Fp32, 4096)))
                   .add(copy(test::moved(sbuf(64), {{5, 1}}), sbuf(64, Dtype::Fp32, kScratch)))
                   .trace(),
               round_machine())
        .start(Engine::Vector, 2);
  };
  // The register takes 10 ns: all is that much later.
  EXPECT_EQ(second_start_at(4096), ns(400));
  EXPECT_EQ(second_start_at(8192), ns(220));
}

TEST(ReadAfterWrite, OtherEnginesNeedSemaphores) {
  ProgramBuilder program;
  program.on(Engine::Vector).add(copy(sbuf(64), sbuf(64, Dtype::Fp32, 4096)));
  program.on(Engine::Scalar).add(copy(sbuf(64, Dtype::Fp32, 4096), sbuf(64)));
  EXPECT_EQ(run(program.trace(), round_machine()).start(Engine::Scalar), ns(100));
}

TEST(StrictOrder, EachInstructionWaitsForTheOneBefore) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(isa::SetOrderingMode{isa::OrderingMode::Strict})
                               .add(3, copy())
                               .trace(),
                           round_machine());
  // The mode takes 10 ns. 110 + 10 + 250 = 370, and again from there.
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(110));
  EXPECT_EQ(done.start(Engine::Vector, 2), ns(370));
  EXPECT_EQ(done.start(Engine::Vector, 3), ns(630));
}

TEST(StrictOrder, EndsWithTheRelaxedMode) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Vector)
                               .add(isa::SetOrderingMode{isa::OrderingMode::Strict})
                               .add(isa::SetOrderingMode{isa::OrderingMode::Relaxed})
                               .add(2, copy())
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.start(Engine::Vector, 3), ns(230));  // 120 + 10 + 100
}

// ---- PSUM banks ----

/// A COPY out of PSUM on Vector and on Scalar, from these banks, at these times.
Outcome two_readers(std::int64_t vector_bank, std::int64_t scalar_bank, double vector_launch = 100,
                    double scalar_launch = 100, bool reverse = false) {
  Machine machine = round_machine();
  machine.config.chip.vector.launch_delay = vector_launch;
  machine.config.chip.scalar.launch_delay = scalar_launch;
  return run(ProgramBuilder()
                 .on(Engine::Vector)
                 .add(copy_bank(vector_bank))
                 .on(Engine::Scalar)
                 .add(2, copy_bank(scalar_bank))
                 .trace(),
             machine, {.reverse_construction = reverse});
}

TEST(PsumBank, TheLaterReaderOfABankIsDelayedByTheOverlap) {
  // Vector holds the bank from 100 to 200; Scalar comes at 140: 60 ns.
  const Outcome done = two_readers(3, 3, 100, 140);
  EXPECT_EQ(done.end(Engine::Vector), ns(360));
  EXPECT_EQ(done.end(Engine::Scalar), ns(460));       // 140 + 10 + 250 + 60
  EXPECT_EQ(done.start(Engine::Scalar, 1), ns(310));  // 140 + 10 + 100 + 60
}

TEST(PsumBank, EitherEngineMayBeTheLaterOne) {
  const Outcome done = two_readers(3, 3, 140, 100);
  EXPECT_EQ(done.end(Engine::Scalar), ns(360));
  EXPECT_EQ(done.end(Engine::Vector), ns(460));
}

TEST(PsumBank, OtherBanksDoNotMeet) {
  const Outcome done = two_readers(3, 4);
  EXPECT_EQ(done.end(Engine::Vector), ns(360));
  EXPECT_EQ(done.end(Engine::Scalar), ns(360));
}

TEST(PsumBank, AReaderThatComesWhenTheOtherLeavesIsNotDelayed) {
  EXPECT_EQ(two_readers(3, 3, 100, 200).end(Engine::Scalar), ns(460));  // 200 + 10 + 250
  EXPECT_EQ(two_readers(3, 3, 100, 199).end(Engine::Scalar), ns(460));  // 1 ns earlier, 1 delayed
}

TEST(PsumBank, InATieTheLowerEngineNumberGoesFirstWhateverTheConstruction) {
  for (const bool reverse : {false, true}) {
    const Outcome done = two_readers(3, 3, 100, 100, reverse);
    EXPECT_EQ(done.end(Engine::Vector), ns(360)) << reverse;
    EXPECT_EQ(done.end(Engine::Scalar), ns(460)) << reverse;  // 100 ns of overlap
  }
}

TEST(PsumBank, AnAddressInARegisterIsInTheBankWhereItGoes) {
  // Both start at 110 and take 250; the later one of two in a bank waits 100 of them.
  for (const auto& [number, end] : {std::pair{5, ns(360)}, std::pair{3, ns(460)}}) {
    const isa::Access src =
        test::moved(psum(64, Dtype::Fp32, bank(number) - 4096), {{isa::kRankRegister, 2048}});
    const Outcome done = run(ProgramBuilder()
                                 .core(0, 2)
                                 .on(Engine::Vector)
                                 .add(copy_bank(3))
                                 .on(Engine::Scalar)
                                 .add(copy(src, sbuf(64)))
                                 .trace(),
                             round_machine());
    EXPECT_EQ(done.end(Engine::Scalar), end) << number;
  }
}

TEST(PsumBank, SbufHasNoBanks) {
  ProgramBuilder program;
  program.on(Engine::Vector).add(copy()).on(Engine::Scalar).add(copy());
  EXPECT_EQ(run(program.trace(), round_machine()).end(Engine::Scalar), ns(360));
}

TEST(PsumBank, TheTensorEngineDelaysNoReader) {
  ProgramBuilder program;
  program.on(Engine::Tensor).add(test::matmul(512)).on(Engine::Vector).add(copy_bank(0));
  EXPECT_EQ(run(program.trace(), round_machine()).end(Engine::Vector), ns(360));
}

// ---- the bus that Vector shares with GpSimd ----

/// TENSOR_TENSOR on Vector: 100 ns to the next and 250 ns in all, while GpSimd holds the bus 200
/// and 350; GpSimd copies from 100 to 200.
Outcome with_gpsimd(double vector_launch, double gpsimd_launch = 100, bool reverse = false) {
  Machine machine = round_machine();
  machine.config.chip.vector.launch_delay = vector_launch;
  machine.config.chip.gpsimd.launch_delay = gpsimd_launch;
  return run(ProgramBuilder()
                 .on(Engine::GpSimd)
                 .add(copy())
                 .on(Engine::Vector)
                 .add(2, test::tensor_tensor(sbuf(64), sbuf(64, Dtype::Fp32, 4096),
                                             sbuf(64, Dtype::Fp32, kScratch)))
                 .trace(),
             machine, {.reverse_construction = reverse});
}

TEST(SharedBus, VectorFallsBackWhileGpSimdHoldsTheBus) {
  const Outcome done = with_gpsimd(150);
  EXPECT_EQ(done.end(Engine::Vector), ns(510));       // 150 + 10 + 350
  EXPECT_EQ(done.start(Engine::Vector, 1), ns(360));  // 150 + 10 + 200
  EXPECT_EQ(done.end(Engine::Vector, 1), ns(610));    // the bus is free again: 360 + 250
  EXPECT_EQ(done.end(Engine::GpSimd), ns(360));       // GpSimd is not slowed down
}

TEST(SharedBus, IsFreeFromTheMomentThatGpSimdLeaves) {
  EXPECT_EQ(with_gpsimd(199).end(Engine::Vector), ns(559));  // 199 + 10 + 350
  EXPECT_EQ(with_gpsimd(200).end(Engine::Vector), ns(460));  // 200 + 10 + 250
}

TEST(SharedBus, InATieGpSimdHoldsItWhateverTheConstruction) {
  EXPECT_EQ(with_gpsimd(100, 100, false).end(Engine::Vector), ns(460));  // 100 + 10 + 350
  EXPECT_EQ(with_gpsimd(100, 100, true).end(Engine::Vector), ns(460));
}

TEST(SharedBus, AnInstructionUnderWayKeepsItsMode) {
  EXPECT_EQ(with_gpsimd(100, 101).end(Engine::Vector), ns(360));
}

// ---- the shipped rates ----

/// From one instruction to the next of the same kind on the shipped machine, without dependences.
/// busy: GpSimd holds the bus all the while.
Time interval(Engine engine, const isa::Op& op, bool busy = false) {
  ProgramBuilder program;
  program.on(engine).add(4, op);
  if (busy) program.on(Engine::GpSimd).add(copy(sbuf(8192), sbuf(8192, Dtype::Fp32, kScratch)));
  Machine machine = test::shipped_machine();
  machine.config.chip.gpsimd.launch_delay = 0;
  const Outcome done = run(program.trace(), machine);
  return done.start(engine, 3) - done.start(engine, 2);
}

/// Cycles of Vector's 0.96 GHz for each element beyond the 512th, by the difference of two tiles.
double cycles_per_element(const std::function<isa::Op(std::uint32_t)>& op, bool busy = false) {
  const Time longer = interval(Engine::Vector, op(1024), busy);
  const Time shorter = interval(Engine::Vector, op(512), busy);
  const double cycle_fs = kFsPerSecond / test::shipped_machine().config.chip.vector.clock;
  return static_cast<double>(longer - shorter) / cycle_fs / 512;
}

std::function<isa::Op(std::uint32_t)> sbuf_copy(Dtype dtype, std::int32_t stride = 1) {
  return [=](std::uint32_t elements) -> isa::Op {
    return copy(sbuf(elements, dtype, 0, stride), sbuf(elements, dtype, kScratch));
  };
}

TEST(VectorModes, CopiesFourNarrowElementsACycleWithinSbuf) {
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Bf16)), 0.25, 1e-3);
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Fp16)), 0.25, 1e-3);
}

TEST(VectorModes, CopiesTwoWideElementsACycleWithinSbuf) {
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Fp32)), 0.5, 1e-3);
}

TEST(VectorModes, AStrideCostsTheFastModes) {
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Bf16, 2)), 0.5, 1e-3);
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Fp32, 2)), 1, 1e-3);
}

TEST(VectorModes, AStrideOfSixteenBytesHalvesTheRate) {
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Fp32, 3)), 1, 1e-3);  // 12 bytes
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Fp32, 4)), 2, 1e-3);  // 16 bytes
}

TEST(VectorModes, PsumFeedsTwoNarrowElementsACycleOrOneWide) {
  const auto from_psum = [](Dtype dtype) {
    return [=](std::uint32_t elements) -> isa::Op {
      return copy(psum(elements, dtype), sbuf(elements, dtype, kScratch));
    };
  };
  EXPECT_NEAR(cycles_per_element(from_psum(Dtype::Bf16)), 0.5, 1e-3);
  EXPECT_NEAR(cycles_per_element(from_psum(Dtype::Fp32)), 1, 1e-3);
}

TEST(VectorModes, TwoInputsAreReadTwiceAsFastWhenNarrow) {
  const auto add = [](Dtype dtype) {
    return [=](std::uint32_t elements) -> isa::Op {
      return test::tensor_tensor(sbuf(elements, dtype), sbuf(elements, dtype, 8192),
                                 sbuf(elements, dtype, kScratch));
    };
  };
  EXPECT_NEAR(cycles_per_element(add(Dtype::Bf16)), 0.5, 1e-3);
  EXPECT_NEAR(cycles_per_element(add(Dtype::Fp32)), 1, 1e-3);
}

TEST(VectorModes, WhileGpSimdHoldsTheBusEveryModeIsOneElementACycle) {
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Bf16), true), 1, 1e-3);
  EXPECT_NEAR(cycles_per_element(sbuf_copy(Dtype::Fp32), true), 1, 1e-3);
}

TEST(VectorModes, AnOperandReadThroughAPointerCostsAFixedTime) {
  const Machine machine = test::shipped_machine();
  const auto scaled = [](bool pointer, std::uint32_t elements) {
    isa::TensorScalar op =
        test::tensor_scalar(sbuf(elements), sbuf(elements, Dtype::Fp32, kScratch));
    if (pointer) {
      op.operand0.kind = isa::ScalarOperand::Kind::Pointer;
      op.operand0.pointer = sbuf(1, Dtype::Fp32, kScratch / 2);
    }
    return op;
  };
  const Time expected = from_cycles(machine.config.chip.costs.constants.at("vector_pointer"),
                                    machine.config.chip.vector.clock);
  for (std::uint32_t elements : {256U, 1024U}) {
    const Time difference = interval(Engine::Vector, scaled(true, elements)) -
                            interval(Engine::Vector, scaled(false, elements));
    EXPECT_LE(std::abs(difference - expected), 2) << elements;
  }
}

}  // namespace
}  // namespace trn::sim
