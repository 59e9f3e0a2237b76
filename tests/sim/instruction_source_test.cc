#include "sim/engine/instruction_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/support/generated_code.h"
#include "tests/support/instructions.h"
#include "tests/support/machines.h"
#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::GeneratedCode;
using testing::ElementsAre;

constexpr std::uint64_t kBlock = isa::kBlockInstructions;

/// A Vector stream of that many COPYs; the i-th one has i % 7 + 1 elements.
GeneratedCode copies(std::uint64_t count) {
  return GeneratedCode({0, count, 0, 0, 0}, [](Engine, std::uint64_t index) {
    isa::Instr instr;
    instr.op = test::copy(static_cast<std::uint32_t>(index % 7 + 1));
    return instr;
  });
}

class InstructionSourceTest : public testing::Test {
 protected:
  InstructionSource source(const isa::Code& code) {
    return InstructionSource(code, 0, Engine::Vector, lowering_);
  }
  Machine machine_ = test::round_machine();
  Lowering lowering_{machine_.config.chip, *machine_.costs};
};

TEST_F(InstructionSourceTest, GivesEachInstructionReadyForExecution) {
  const GeneratedCode code = copies(kBlock + 3);
  InstructionSource source = this->source(code);
  EXPECT_EQ(source.size(), kBlock + 3);
  for (const std::uint64_t index :
       {std::uint64_t{0}, std::uint64_t{5}, kBlock - 1, kBlock, kBlock + 2}) {
    const Uop& uop = InstructionSource::uop(source.block(index), index);
    EXPECT_EQ(uop.index, index);
    EXPECT_EQ(uop.sbuf_read, 4 * (index % 7 + 1));
  }
}

TEST_F(InstructionSourceTest, ReadsABlockWhenItIsFirstNeeded) {
  const GeneratedCode code = copies(3 * kBlock);
  InstructionSource source = this->source(code);
  EXPECT_TRUE(code.blocks_read.empty());
  (void)source.block(2 * kBlock);
  EXPECT_THAT(code.blocks_read, ElementsAre(2));
}

TEST_F(InstructionSourceTest, ReadsABlockOnceForAllItsInstructions) {
  const GeneratedCode code = copies(2 * kBlock);
  InstructionSource source = this->source(code);
  for (std::uint64_t index = 0; index < 2 * kBlock; ++index) (void)source.block(index);
  EXPECT_THAT(code.blocks_read, ElementsAre(0, 1));
}

TEST_F(InstructionSourceTest, KeepsTheBlocksOfALoop) {
  // Straight code keeps few blocks, so that they may be read again in the first rounds of a loop.
  const GeneratedCode code = copies(10 * kBlock);
  InstructionSource source = this->source(code);
  const auto round = [&] {
    for (std::uint64_t block = 0; block < 4; ++block) (void)source.block(block * kBlock);
  };
  for (int i = 0; i < 3; ++i) round();
  const std::size_t read = code.blocks_read.size();
  EXPECT_LE(read, 8);
  for (int i = 0; i < 10; ++i) round();
  EXPECT_EQ(code.blocks_read.size(), read);
}

TEST_F(InstructionSourceTest, ABlockIsRightHoweverOftenItCameAndWent) {
  const GeneratedCode code = copies(64 * kBlock);
  InstructionSource source = this->source(code);
  std::mt19937 random(1);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t index = random() % (64 * kBlock);
    const Uop& uop = InstructionSource::uop(source.block(index), index);
    ASSERT_EQ(uop.index, index);
    ASSERT_EQ(uop.sbuf_read, 4 * (index % 7 + 1));
  }
}

TEST_F(InstructionSourceTest, KeepsABlockThatInstructionsUnderWayNeed) {
  const GeneratedCode code = copies(20 * kBlock);
  InstructionSource source = this->source(code);
  Block& first = source.block(0);
  ++first.pins;
  const Uop& uop = InstructionSource::uop(first, 5);
  for (std::uint64_t block = 1; block < 20; ++block) (void)source.block(block * kBlock);
  EXPECT_EQ(first.number, 0);
  EXPECT_EQ(uop.index, 5);
  EXPECT_EQ(uop.sbuf_read, 24);
  EXPECT_EQ(&source.block(0), &first);
  EXPECT_EQ(code.blocks_read.size(), 20);  // block 0 was not read again
  --first.pins;
}

TEST_F(InstructionSourceTest, ALoopIsReadNoMoreThanTwice) {
  // Three blocks of COPYs run ten times.
  const std::uint64_t body = 3 * kBlock - 2;
  const GeneratedCode code({0, body + 2, 0, 0, 0}, [&](Engine, std::uint64_t index) {
    isa::Instr instr;
    const auto length = static_cast<std::int64_t>(body + 1);
    if (index == 0) {
      instr.op = isa::Loop{1, test::constant(10), length};
    } else if (index == body + 1) {
      instr.op = isa::EndLoop{1, test::constant(10), -length};
    } else {
      instr.op = test::copy(8);
    }
    return instr;
  });
  const test::Outcome done = test::run(code, machine_);
  EXPECT_EQ(done.result.instructions, 10 * body);
  EXPECT_LE(code.blocks_read.size(), 6);
}

TEST_F(InstructionSourceTest, AStreamThatEndsWithABlockIsComplete) {
  const GeneratedCode code = copies(2 * kBlock);
  EXPECT_EQ(test::run(code, machine_).result.instructions, 2 * kBlock);
}

}  // namespace
}  // namespace trn::sim
