#include "sim/machine/neuron_core.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <systemc>

#include "isa/base/error.h"
#include "tests/support/program_builder.h"
#include "tests/support/random_program.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::copy;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::round_machine;
using test::run;
using test::shipped_machine;
using testing::HasSubstr;

/// A tile from HBM through Tensor, Vector and Scalar back to HBM, with GpSimd beside.
isa::Trace pipeline() {
  ProgramBuilder program;
  program.at("kernel.py", 1)
      .on(Engine::Sync)
      .add(test::dma_read(128, 1024, isa::DescriptorMode::HardwareDge, 0,
                          {.semaphore = 10, .increment = 16}));
  program.at("kernel.py", 2).on(Engine::Tensor).add(test::load_weights()).waits(10, 16);
  program.add(test::matmul(512)).updates(0);
  program.at("kernel.py", 3).on(Engine::Vector).add(test::copy_bank(0, 512)).waits(0, 1).updates(1);
  program.at("kernel.py", 4)
      .on(Engine::Scalar)
      .add(test::activate(isa::ActivationFunction::Exp, 512))
      .waits(1, 1)
      .updates(2);
  program.at("kernel.py", 5).on(Engine::GpSimd).add(copy(1024));
  program.at("kernel.py", 6).on(Engine::Sync).add(test::dma_write(128, 1024)).waits(2, 1);
  return program.trace();
}

TEST(NeuronCore, EachInstructionWaitsForTheOneThatFeedsIt) {
  const Outcome done = run(pipeline(), round_machine());
  // The read is complete at 600 + 800 + 15 * 16 + 8 * (10 + 204.8) + 10 + 300; DMA to Tensor is 60.
  EXPECT_EQ(done.start(Engine::Tensor), from_ns(3668.4 + 60));
  // The MATMUL follows 2 ns later; its stream begins 56 ns behind the load and ends with 732.
  EXPECT_EQ(done.end(Engine::Tensor, 1), from_ns(3728.4 + 56 + 732));
  EXPECT_EQ(done.start(Engine::Vector), done.end(Engine::Tensor, 1) + ns(11));
  EXPECT_EQ(done.end(Engine::Vector), done.start(Engine::Vector) + ns(260));
  EXPECT_EQ(done.start(Engine::Scalar), done.end(Engine::Vector) + ns(22));
  EXPECT_EQ(done.end(Engine::Scalar), done.start(Engine::Scalar) + ns(1250));
  EXPECT_EQ(done.start(Engine::Sync, 1), done.end(Engine::Scalar) + ns(234));
  // 500 + 700 + 15 * 8 + 8 * (10 + 102.4) + 10 + 400
  EXPECT_EQ(done.result.length, done.start(Engine::Sync, 1) + from_ns(2629.2));
}

TEST(NeuronCore, AnEmptyProgramTakesNoTime) {
  const Outcome done = run(ProgramBuilder().trace(), round_machine());
  EXPECT_EQ(done.result.length, 0);
  EXPECT_EQ(done.result.instructions, 0);
  EXPECT_EQ(done.result.critical_path.total(), 0);
}

TEST(NeuronCore, CountsItsInstructions) {
  const Outcome done = run(pipeline(), round_machine());
  const auto count = [&](Engine engine) {
    return done.result.engines[isa::index(engine)].instructions;
  };
  EXPECT_EQ(count(Engine::Tensor), 2);
  EXPECT_EQ(count(Engine::Vector), 1);
  EXPECT_EQ(count(Engine::Scalar), 1);
  EXPECT_EQ(count(Engine::GpSimd), 1);
  EXPECT_EQ(count(Engine::Sync), 2);
  EXPECT_EQ(done.result.engines[isa::index(Engine::Sync)].data_instructions, 0);
  EXPECT_EQ(done.result.engines[isa::index(Engine::Tensor)].data_instructions, 2);
  EXPECT_EQ(done.result.instructions, 7);
  EXPECT_EQ(done.result.dma.transfers, 2);
}

TEST(NeuronCore, ActiveStalledAndIdleAddUpToTheLength) {
  const Outcome done = run(pipeline(), shipped_machine());
  for (Engine engine : isa::kAllEngines) {
    const EngineStats& stats = done.result.engines[isa::index(engine)];
    EXPECT_EQ(
        std::accumulate(stats.stalled.begin(), stats.stalled.end(), stats.active + stats.idle),
        done.result.length)
        << name_of(engine);
  }
}

TEST(NeuronCore, ActiveTimeIsTheUnionOfDurationsWithoutWaiting) {
  // A COPY from 100 to 360 and one from 210 to 460; an EVENT_SEMAPHORE is no activity.
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(2, copy()).add(isa::EventSemaphore{}).trace(),
          round_machine());
  const EngineStats& stats = done.result.engines[isa::index(Engine::Vector)];
  EXPECT_EQ(stats.active, ns(360));
  EXPECT_EQ(stats.instruction_time, ns(260 + 250 + 5));
  EXPECT_EQ(stats.stalled[static_cast<std::size_t>(StallReason::Launch)], ns(100));
  EXPECT_EQ(stats.idle, 0);
}

TEST(NeuronCore, StallsHaveTheirReasonAndPlace) {
  const Outcome done = run(pipeline(), round_machine());
  const auto stall = [&](Engine engine, StallReason reason) -> const StallAt* {
    for (const StallAt& entry : done.result.stalls)
      if (entry.engine == engine && entry.reason == reason) return &entry;
    return nullptr;
  };
  const StallAt* tensor = stall(Engine::Tensor, StallReason::WaitDma);
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->location, 2);  // the second place of the table: kernel.py:2
  EXPECT_EQ(tensor->time, done.start(Engine::Tensor));
  const StallAt* sync = stall(Engine::Sync, StallReason::WaitScalar);
  ASSERT_NE(sync, nullptr);
  EXPECT_EQ(sync->location, 6);
  EXPECT_EQ(sync->time, done.start(Engine::Sync, 1) - done.end(Engine::Sync, 0));
}

TEST(NeuronCore, StallsByPlaceAddUpToStallsByReason) {
  const Outcome done = run(pipeline(), shipped_machine());
  for (Engine engine : isa::kAllEngines) {
    std::array<Time, kStallReasons> sums{};
    for (const StallAt& stall : done.result.stalls)
      if (stall.engine == engine) sums[static_cast<std::size_t>(stall.reason)] += stall.time;
    EXPECT_EQ(sums, done.result.engines[isa::index(engine)].stalled) << name_of(engine);
  }
}

TEST(NeuronCore, TheCriticalPathAddsUpToTheLength) {
  const Outcome done = run(pipeline(), shipped_machine());
  EXPECT_EQ(done.result.critical_path.total(), done.result.length);
}

TEST(NeuronCore, TheCriticalPathFollowsTheChainOfCauses) {
  const Outcome done = run(pipeline(), round_machine());
  const auto spent = [&](Resource resource) {
    return done.result.critical_path.spent[static_cast<std::size_t>(resource)];
  };
  EXPECT_EQ(spent(Resource::Launch), ns(100));
  EXPECT_EQ(spent(Resource::Vector), ns(260));
  EXPECT_EQ(spent(Resource::Scalar), ns(1250));
  EXPECT_EQ(spent(Resource::GpSimd), 0);
  EXPECT_EQ(spent(Resource::Tensor), ns(788));                    // 56 + 732
  EXPECT_EQ(spent(Resource::Semaphore), ns(60 + 11 + 22 + 234));  // its four hand-overs
}

TEST(NeuronCore, ReversingTheConstructionChangesNothing) {
  const std::string forward = test::digest(run(pipeline(), shipped_machine()));
  const std::string reversed =
      test::digest(run(pipeline(), shipped_machine(), {.reverse_construction = true}));
  EXPECT_EQ(forward, reversed);
}

TEST(NeuronCore, AHundredRunsInARowAreEqual) {
  const Machine machine = shipped_machine();
  const std::string first = test::digest(run(pipeline(), machine));
  for (int i = 1; i < 100; ++i) ASSERT_EQ(test::digest(run(pipeline(), machine)), first) << i;
}

TEST(NeuronCore, TheNumberOfTheCoreChangesNothing) {
  isa::Trace other = pipeline();
  other.header.cores = {{11, 0, 0}};
  const Outcome done = run(other, shipped_machine());
  EXPECT_EQ(test::digest(done), test::digest(run(pipeline(), shipped_machine())));
  EXPECT_EQ(done.result.core, 11);
  EXPECT_EQ(done.result.chip, 1);  // eight cores a chip
}

TEST(NeuronCore, RunsTheProgramThatItIsBoundTo) {
  isa::Trace trace = pipeline();
  trace.code.push_back(ProgramBuilder().on(Engine::Vector).add(copy()).trace().code[0]);
  trace.header.cores = {{0, 1, 0}};
  EXPECT_EQ(run(trace, round_machine()).result.instructions, 1);
}

TEST(NeuronCore, AnErrorInAProcessReachesTheCallerAndTheNextRunWorks) {
  const isa::Access outside = test::moved(test::sbuf(64), {{1, 1}});
  const isa::Trace wrong = ProgramBuilder()
                               .on(Engine::Vector)
                               .add(isa::RegisterMove{1, test::constant(300'000)})
                               .add(copy(outside, test::sbuf(64)))
                               .on(Engine::Scalar)
                               .add(50, copy())
                               .trace();
  const std::string before = test::digest(run(pipeline(), shipped_machine()));
  for (int i = 0; i < 3; ++i) {
    EXPECT_THROW(run(wrong, shipped_machine()), InputError);
    EXPECT_EQ(test::digest(run(pipeline(), shipped_machine())), before);
  }
}

TEST(NeuronCore, ReportsTheHighestBytesThatWereAccessed) {
  const Outcome done = run(pipeline(), round_machine());
  EXPECT_EQ(done.result.psum.peak_bytes, 2048);
  EXPECT_EQ(done.result.psum.capacity_bytes, 16'384);
  // GpSimd writes 1024 elements to kScratch.
  EXPECT_EQ(done.result.sbuf.peak_bytes, test::kScratch + 4096);
  EXPECT_EQ(done.result.sbuf.capacity_bytes, 229'376);
}

TEST(NeuronCore, CountsTheBytesOfItsEngines) {
  const Outcome done = run(pipeline(), round_machine());
  const EngineStats& vector = done.result.engines[isa::index(Engine::Vector)];
  EXPECT_EQ(vector.psum_read_bytes, 2048);
  EXPECT_EQ(vector.sbuf_write_bytes, 2048);
  EXPECT_EQ(vector.psum_read_sbuf_write_count, 1);
  EXPECT_EQ(vector.psum_read_sbuf_write_bytes, 2048);
  const EngineStats& tensor = done.result.engines[isa::index(Engine::Tensor)];
  EXPECT_EQ(tensor.sbuf_read_bytes, 128 * 2 + 512 * 2);
  EXPECT_EQ(tensor.psum_write_bytes, 2048);
}

TEST(NeuronCore, NamesTheAssumptionsThatItUsed) {
  EXPECT_TRUE(run(ProgramBuilder().on(Engine::Vector).add(copy()).trace(), shipped_machine())
                  .result.assumed_costs.empty());
  isa::BuiltinCustomOp custom;
  custom.dst = test::sbuf(64);
  EXPECT_THAT(run(ProgramBuilder().on(Engine::GpSimd).add(custom).trace(), shipped_machine())
                  .result.assumed_costs,
              testing::ElementsAre(HasSubstr("custom_op")));
}

TEST(NeuronCore, TheRuntimeIsNotPartOfTheKernel) {
  Machine machine = round_machine();
  machine.config.chip.runtime = {true, 5000, 3000};
  EXPECT_EQ(run(pipeline(), machine).result.length, run(pipeline(), round_machine()).result.length);
}

/// Notes the kernel's count of delta cycles.
class DeltaCounter : public Observer {
 public:
  void on_instruction(const InstructionRecord&) override { note(); }
  void on_packet(const PacketRecord&) override {
    ++packets;
    note();
  }
  std::uint64_t deltas = 0;
  std::uint64_t packets = 0;

 private:
  void note() { deltas = std::max<std::uint64_t>(deltas, sc_core::sc_delta_count()); }
};

TEST(NeuronCore, DeltaCyclesAreBoundedByWhatHappens) {
  // An instruction that meets others in PSUM needs three: it is woken, announces itself, starts. A
  // packet needs two: its engine is woken, and granted its turn.
  test::RandomProgramMaker maker(1, {.steps = 2000});
  const test::RandomProgram program = maker.make();
  const Machine machine = shipped_machine();
  DeltaCounter counter;
  const CoreResult result =
      run_core(program.trace, machine.config, *machine.costs, {.observer = &counter});
  EXPECT_LE(counter.deltas, 3 * result.instructions + 2 * counter.packets);
}

TEST(NeuronCore, APrivateStreamNeedsHardlyAnyActivations) {
  // Nothing outside decides when these COPYs start: no event is spent on each.
  const Outcome done =
      run(ProgramBuilder().on(Engine::Vector).add(10'000, copy()).trace(), round_machine());
  EXPECT_LE(done.result.events, 10'000 / 4);
}

}  // namespace
}  // namespace trn::sim
