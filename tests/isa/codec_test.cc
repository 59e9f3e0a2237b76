#include "isa/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "isa/base/error.h"
#include "tests/isa/random_instr.h"

namespace trn::isa {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::vector<std::uint8_t> encoded(const Instr& instr) {
  ByteWriter out;
  SourceRef last;
  encode(instr, last, out);
  return out.take();
}

Instr decoded(const std::vector<std::uint8_t>& bytes, const SourceTables& tables = {}) {
  ByteReader in(bytes, "test.bin");
  SourceRef last;
  Instr instr;
  decode(in, last, tables, instr);
  EXPECT_TRUE(in.done());
  return instr;
}

Access sbuf(std::uint32_t size) {
  Access access;
  access.partitions = 128;
  access.dims = 1;
  access.free[0].size = size;
  return access;
}

TEST(Codec, DecodeUndoesEncodeForEveryInstruction) {
  for (std::uint32_t seed : test::seeds(40)) {
    SCOPED_TRACE(seed);
    test::RandomInstr random(seed);
    for_each_instruction([&]<class T>() {
      SCOPED_TRACE(T::kName);
      const Instr instr = random.of<T>();
      const auto bytes = encoded(instr);
      const Instr again = decoded(bytes);
      EXPECT_EQ(instr.op.index(), again.op.index());
      EXPECT_EQ(instr.sync, again.sync);
      EXPECT_EQ(instr.at, again.at);
      EXPECT_EQ(encoded(again), bytes);
    });
  }
}

TEST(Codec, EveryPrefixOfAnInstructionIsAnInputError) {
  test::RandomInstr random(7);
  for_each_instruction([&]<class T>() {
    SCOPED_TRACE(T::kName);
    const auto bytes = encoded(random.of<T>());
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      const std::vector<std::uint8_t> prefix(bytes.begin(),
                                             bytes.begin() + static_cast<std::ptrdiff_t>(length));
      EXPECT_THROW(decoded(prefix), InputError) << length << " of " << bytes.size();
    }
  });
}

TEST(Codec, EveryChangedByteGivesAnInstructionOrAnInputError) {
  test::RandomInstr random(11);
  for_each_instruction([&]<class T>() {
    SCOPED_TRACE(T::kName);
    auto bytes = encoded(random.of<T>());
    for (std::uint8_t& byte : bytes) {
      const std::uint8_t right = byte;
      for (unsigned value = right % 7U; value < 256; value += 7) {
        byte = static_cast<std::uint8_t>(value);
        ByteReader in(bytes, "test.bin");
        SourceRef last;
        Instr instr;
        try {
          decode(in, last, {}, instr);
          encoded(instr);  // what decodes is well formed
        } catch (const InputError&) {
        }
      }
      byte = right;
    }
  });
}

TEST(Codec, OperandsWithTheirDefaultsTakeNoSpace) {
  Matmul matmul;
  matmul.src = sbuf(512);
  matmul.dst = sbuf(512);
  matmul.dst.memory = Memory::Psum;
  // Opcode, flags, two bytes of mask; an access: head, dtype, offset, stride, two bytes of size.
  EXPECT_EQ(encoded({.op = matmul}).size(), 4U + 2U * 6U);
  matmul.start = false;
  EXPECT_EQ(encoded({.op = matmul}).size(), 4U + 2U * 6U);
}

TEST(Codec, ThePlaceOfTheInstructionBeforeIsNotRepeated) {
  const Instr instr{.at = {.location = 5000, .label = 300}, .op = Drain{}};
  ByteWriter out;
  SourceRef last;
  encode(instr, last, out);
  const std::size_t first = out.size();
  encode(instr, last, out);
  EXPECT_EQ(first, 6U);
  EXPECT_EQ(out.size() - first, 2U);
}

TEST(Codec, AnUnknownOpcodeIsNamedWithItsByte) {
  EXPECT_THAT(
      [] {
        decoded({0xee, 0});
      },
      ThrowsMessage<InputError>(
          AllOf(HasSubstr("test.bin: byte 0"), HasSubstr("unknown opcode 0xee"))));
}

TEST(Codec, UnknownFlagsAreRefused) {
  EXPECT_THAT(
      [] {
        decoded({Drain::kOpcode, 0x10});
      },
      ThrowsMessage<InputError>(HasSubstr("flags")));
}

TEST(Codec, AMaskWithMoreBitsThanOperandsIsRefused) {
  EXPECT_THAT(
      [] {
        decoded({RegisterMove::kOpcode, 0, 4});
      },
      ThrowsMessage<InputError>(HasSubstr("mask")));
}

TEST(Codec, AnEnumeratorPastTheLastNamesInstructionAndOperand) {
  EXPECT_THAT(
      [] {
        decoded({SetOrderingMode::kOpcode, 0, 1, 2});
      },
      ThrowsMessage<InputError>(AllOf(HasSubstr("SET_ORDERING_MODE mode"), HasSubstr("got 2"))));
}

TEST(Codec, ARegisterPast63IsRefused) {
  EXPECT_THAT(
      [] {
        decoded({RankId::kOpcode, 0, 1, 64});
      },
      ThrowsMessage<InputError>(HasSubstr("expected 0..63, got 64")));
  EXPECT_THAT(
      [] {
        decoded({RegisterMove::kOpcode, 0, 2, 65});
      },
      ThrowsMessage<InputError>(HasSubstr("got 65")));
}

TEST(Codec, PartitionsPastTheLastAreRefused) {
  // COPY dst=: head (sbuf, no dimensions), dtype, start 100, 29 partitions.
  EXPECT_THAT(
      [] {
        decoded({Copy::kOpcode, 0, 2, 0, 0, 100, 29, 0});
      },
      ThrowsMessage<InputError>(HasSubstr("COPY dst: expected partitions within 0..127")));
  EXPECT_NO_THROW(decoded({Copy::kOpcode, 0, 2, 0, 0, 100, 28, 0}));
}

TEST(Codec, FiveDimensionsAreRefused) {
  EXPECT_THAT(
      [] {
        decoded({Copy::kOpcode, 0, 2, 0x80 | 5 << 2, 0, 0});
      },
      ThrowsMessage<InputError>(HasSubstr("at most 4 dimensions, got 5")));
}

TEST(Codec, ElementCountsThatWrapAreRefused) {
  Copy copy;
  copy.src = sbuf(1U << 31U);
  copy.src.dims = 2;
  copy.src.free[1].size = 2;
  EXPECT_THAT([&] { decoded(encoded({.op = copy})); },
              ThrowsMessage<InputError>(HasSubstr("fewer than 2^32 elements")));
}

TEST(Codec, APlacePastTheTableIsRefused) {
  const auto bytes = encoded({.at = {.location = 9}, .op = Drain{}});
  EXPECT_NO_THROW(decoded(bytes, {.locations = 10, .labels = 1}));
  EXPECT_THAT([&] { decoded(bytes, {.locations = 9, .labels = 1}); },
              ThrowsMessage<InputError>(HasSubstr("source location is not in the trace's table")));
}

TEST(Codec, NoTwoInstructionsShareAnOpcode) {
  std::vector<int> seen(256, 0);
  for_each_instruction([&]<class T>() { ++seen[T::kOpcode]; });
  for (int count : seen) EXPECT_LE(count, 1);
}

}  // namespace
}  // namespace trn::isa
