// Memory does not grow with the length of a trace.
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "sim/machine/run_core.h"
#include "tests/support/generated_code.h"
#include "tests/support/instructions.h"
#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using isa::Engine;

/// Bytes of this process in memory now.
std::uint64_t resident_bytes() {
  std::uint64_t total = 0;
  std::uint64_t resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

/// Every engine works; Vector hands over to Scalar by a semaphore that counts up and down, Sync
/// triggers a DMA every fourth instruction.
isa::Instr instruction(Engine engine, std::uint64_t index) {
  isa::Instr instr;
  switch (engine) {
    case Engine::Tensor:
      instr.op = index % 4 == 0 ? isa::Op(test::load_weights()) : isa::Op(test::matmul(128));
      break;
    case Engine::Vector:
      instr.op = test::copy_bank(static_cast<std::int64_t>(index % 8));
      instr.sync.wait = {3, isa::WaitCondition::LessEqual, 20};
      instr.sync.update = {3, isa::UpdateKind::Increment};
      break;
    case Engine::Scalar:
      instr.op = test::copy(128);
      instr.sync.wait = {3, isa::WaitCondition::GreaterEqual, 1};
      instr.sync.update = {3, isa::UpdateKind::Decrement};
      break;
    case Engine::GpSimd:
      instr.op = test::copy(64);
      break;
    case Engine::Sync:
      if (index % 4 == 0) {
        instr.op = test::dma_write(8, 512);
      } else {
        instr.op = test::nop(100);
      }
      break;
  }
  instr.at.location = 0;
  return instr;
}

TEST(Memory, DoesNotFollowTheLengthOfATrace) {
  const Machine machine = test::shipped_machine();
  const auto run = [&](std::uint64_t length) {
    const test::GeneratedCode code({length, length, length, length, length / 4}, instruction);
    return run_core(code, machine.config, *machine.costs).instructions;
  };
  (void)run(20'000);
  const std::uint64_t before = resident_bytes();
  EXPECT_EQ(run(200'000), 200'000 * 4 + 50'000);
  const std::uint64_t after = resident_bytes();
  EXPECT_LT(after, before + 4'000'000) << before << " to " << after;
}

}  // namespace
}  // namespace trn::sim
