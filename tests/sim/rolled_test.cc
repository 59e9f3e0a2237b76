// A trace with loops takes exactly the time of the same one written out.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <tuple>
#include <vector>

#include "isa/frontend/roll.h"
#include "tests/support/machines.h"
#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::Outcome;
using test::ProgramBuilder;
using test::run;

constexpr std::int64_t kTiles = 48;

/// Tiles from HBM through all five engines: addresses, PSUM banks and values waited for step,
/// Vector and Scalar meet in banks, Vector and GpSimd on their bus, and sequencers run far ahead.
isa::Trace written_out() {
  ProgramBuilder program;
  for (std::int64_t i = 0; i < kTiles; ++i) {
    isa::DmaSide dst = test::sbuf_rows(128, 1024, isa::Dtype::Bf16, 1024 * (i % 3));
    isa::DmaSide src = test::hbm_rows(128, 1024);
    src.address = 131072 * i;
    program.on(Engine::Sync)
        .add(test::dma(src, dst, isa::DescriptorMode::HardwareDge, 0, {8, 16}))
        .add(test::nop(10));
    if (i >= 3) program.waits(2, i - 2);

    isa::Matmul matmul = test::matmul(512);
    matmul.src.offset = 1024 * (i % 3);
    matmul.dst.offset = test::bank(i % 4);
    program.on(Engine::Tensor).add(test::load_weights()).waits(8, 16 * (i + 1));
    program.add(4, matmul).updates(0);

    isa::TensorTensor add = test::tensor_tensor(test::sbuf(512, isa::Dtype::Bf16, 8192),
                                                test::sbuf(512, isa::Dtype::Bf16, 16384),
                                                test::sbuf(512, isa::Dtype::Bf16, 24576));
    program.on(Engine::Vector).add(test::copy_bank(i % 4, 512)).waits(0, i + 1).updates(1);
    for (std::int64_t j = 0; j < 5; ++j) {
      add.dst.offset = 24576 + 1024 * j;
      program.add(add);
    }
    program.on(Engine::Scalar).add(test::copy_bank((i + 1) % 4, 512)).waits(1, i);
    program.add(isa::EventSemaphore{}).updates(2);
    program.on(Engine::GpSimd).add(2, test::copy());
    program.add(isa::Drain{});
  }
  return program.trace();
}

isa::Trace rolled(const isa::Trace& trace) {
  isa::Trace out = trace;
  for (std::vector<isa::Instr>& stream : out.code[0].streams) {
    isa::Roller roller;
    for (const isa::Instr& instr : stream) roller.push(instr);
    stream = roller.finish();
    EXPECT_LT(stream.size(), 60);
  }
  return out;
}

using Times = std::tuple<Engine, std::uint64_t, Time, Time, Time, StallReason, Time>;
std::vector<Times> times_of(const Outcome& done) {
  std::vector<Times> times;
  for (const InstructionRecord& record : done.record.instructions)
    times.emplace_back(record.engine, record.sequence, record.ready, record.start, record.end,
                       record.reason, record.stall);
  return times;
}

void expect_equal_times(Machine machine) {
  machine.config.chip.semaphores.max_value = 10'000;  // round_machine's is 100
  const isa::Trace flat = written_out();
  const Outcome a = run(flat, machine);
  const Outcome b = run(rolled(flat), machine);
  EXPECT_GT(times_of(a).size(), 800);
  EXPECT_EQ(times_of(a), times_of(b));
  EXPECT_EQ(a.result.length, b.result.length);
  EXPECT_EQ(a.result.instructions, b.result.instructions);
  EXPECT_EQ(a.result.dma.transfer_bytes, b.result.dma.transfer_bytes);
  EXPECT_EQ(a.result.sbuf.peak_bytes, b.result.sbuf.peak_bytes);
  EXPECT_EQ(a.result.psum.peak_bytes, b.result.psum.peak_bytes);
}

TEST(Rolled, TakesTheSameTimeOnTrn2) { expect_equal_times(test::shipped_machine()); }

TEST(Rolled, TakesTheSameTimeOnRoundNumbers) { expect_equal_times(test::round_machine()); }

TEST(Rolled, TakesTheSameTimeWithInstructionFetch) {
  Machine machine = test::round_machine();
  machine.config.chip.fetch.model = true;
  machine.config.chip.fetch.instruction_bytes = 64;
  machine.config.chip.fetch.bandwidth = 1e10;
  expect_equal_times(machine);
}

TEST(Rolled, TakesTheSameTimeWithShortQueues) {
  Machine machine = test::round_machine();
  machine.config.chip.vector.queue_depth = 2;
  machine.config.chip.tensor.queue_depth = 3;
  expect_equal_times(machine);
}

}  // namespace
}  // namespace trn::sim
