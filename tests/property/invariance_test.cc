// What changes nothing: the order of construction, running again, names.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <variant>
#include <vector>

#include "tests/support/random_program.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::digest;
using test::RandomProgramMaker;
using test::run;
using test::shipped_machine;

constexpr std::uint32_t kSeeds = 40;

/// Calls `check(trace, digest of its run)` for random programs on the shipped machine.
template <class Check>
void for_each_run(const Machine& machine, Check&& check) {
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const isa::Trace trace = RandomProgramMaker(seed).make().trace;
    check(trace, digest(run(trace, machine)));
    if (testing::Test::HasFailure()) return;
  }
}

TEST(Invariance, TheOrderOfConstruction) {
  const Machine machine = shipped_machine();
  for_each_run(machine, [&](const isa::Trace& trace, const std::string& expected) {
    EXPECT_EQ(digest(run(trace, machine, {.reverse_construction = true})), expected);
  });
}

/// All engines begin at once and PSUM is crowded: ties are common.
TEST(Invariance, TheOrderOfConstructionWhenMuchHappensAtOnce) {
  Machine machine = test::round_machine();
  machine.config.chip.semaphores.max_value = 65'535;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const isa::Trace trace = RandomProgramMaker(seed, {.steps = 60}).make().trace;
    ASSERT_EQ(digest(run(trace, machine, {.reverse_construction = true})),
              digest(run(trace, machine)));
  }
}

TEST(Invariance, RunningAgain) {
  const Machine machine = shipped_machine();
  for_each_run(machine, [&](const isa::Trace& trace, const std::string& expected) {
    EXPECT_EQ(digest(run(trace, machine)), expected);
  });
}

TEST(Invariance, TheNumberOfTheCore) {
  const Machine machine = shipped_machine();
  for_each_run(machine, [&](isa::Trace trace, const std::string& expected) {
    trace.header.cores = {{6, 0, 0}};
    EXPECT_EQ(digest(run(trace, machine)), expected);
  });
}

TEST(Invariance, TheNumbersOfSemaphores) {
  const Machine machine = shipped_machine();
  std::mt19937 random(1);
  for_each_run(machine, [&](isa::Trace trace, const std::string& expected) {
    std::vector<isa::SemaphoreId> renamed(isa::kSemaphores);
    for (std::size_t i = 0; i < renamed.size(); ++i) renamed[i] = static_cast<isa::SemaphoreId>(i);
    std::shuffle(renamed.begin(), renamed.end(), random);
    for (auto& stream : trace.code[0].streams) {
      for (isa::Instr& instr : stream) {
        if (instr.sync.wait.present())
          instr.sync.wait.semaphore = renamed[instr.sync.wait.semaphore];
        if (instr.sync.update.present())
          instr.sync.update.semaphore = renamed[instr.sync.update.semaphore];
        if (auto* dma = std::get_if<isa::DmaDirect2d>(&instr.op))
          dma->completion.semaphore = renamed[dma->completion.semaphore];
      }
    }
    EXPECT_EQ(digest(run(trace, machine)), expected);
  });
}

TEST(Invariance, ProgramsBesideTheOneThatRuns) {
  const Machine machine = shipped_machine();
  for_each_run(machine, [&](isa::Trace trace, const std::string& expected) {
    trace.code.insert(trace.code.begin(), isa::Program{});
    trace.header.cores = {{0, 1, 0}};
    EXPECT_EQ(digest(run(trace, machine)), expected);
  });
}

TEST(Invariance, AnObserver) {
  const Machine machine = shipped_machine();
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const isa::Trace trace = RandomProgramMaker(seed).make().trace;
    EXPECT_EQ(run_core(trace, machine.config, *machine.costs).length,
              run(trace, machine).result.length);
  }
}

/// A copy of the trace in which each loop with constant count is written out.
isa::Trace unrolled(const isa::Trace& trace) {
  isa::Trace out = trace;
  for (auto& stream : out.code[0].streams) {
    std::vector<isa::Instr> flat;
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const auto* loop = std::get_if<isa::Loop>(&stream[i].op);
      if (loop == nullptr) {
        flat.push_back(stream[i]);
        continue;
      }
      const auto end = i + static_cast<std::size_t>(loop->end);
      for (std::int32_t round = 0; round < loop->count.constant; ++round)
        flat.insert(flat.end(), stream.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    stream.begin() + static_cast<std::ptrdiff_t>(end));
      i = end;
    }
    stream = flat;
  }
  return out;
}

TEST(Invariance, LoopsTakeTheTimeOfTheirUnrolledForm) {
  const Machine machine = shipped_machine();
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const isa::Trace looped = RandomProgramMaker(seed).make().trace;
    const CoreResult a = run_core(looped, machine.config, *machine.costs);
    const CoreResult b = run_core(unrolled(looped), machine.config, *machine.costs);
    EXPECT_EQ(a.length, b.length);
    EXPECT_EQ(a.instructions, b.instructions);
    for (Engine engine : isa::kAllEngines) {
      const std::size_t i = isa::index(engine);
      EXPECT_EQ(a.engines[i].data_instructions, b.engines[i].data_instructions);
      EXPECT_EQ(a.engines[i].sbuf_read_bytes, b.engines[i].sbuf_read_bytes);
      EXPECT_EQ(a.engines[i].sbuf_write_bytes, b.engines[i].sbuf_write_bytes);
      EXPECT_EQ(a.engines[i].psum_read_bytes, b.engines[i].psum_read_bytes);
    }
    EXPECT_EQ(a.tensor.hardware_flops, b.tensor.hardware_flops);
    EXPECT_EQ(a.dma.transfer_bytes, b.dma.transfer_bytes);
  }
}

}  // namespace
}  // namespace trn::sim
