#include "isa/base/bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "isa/base/error.h"

namespace trn {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

TEST(Bytes, VarintsComeBack) {
  ByteWriter out;
  std::vector<std::uint64_t> values = {0, 1, 127, 128, 16383, 16384};
  for (unsigned bit = 20; bit < 64; ++bit) values.push_back((std::uint64_t{1} << bit) - bit);
  values.push_back(std::numeric_limits<std::uint64_t>::max());
  for (std::uint64_t value : values) out.varint(value);
  ByteReader in(out.bytes(), "f");
  for (std::uint64_t value : values) EXPECT_EQ(in.varint(), value);
  EXPECT_TRUE(in.done());
}

TEST(Bytes, SignedVarintsOfSmallMagnitudeTakeAByte) {
  for (std::int64_t value : {0, -1, 1, -64, 63}) {
    ByteWriter out;
    out.signed_varint(value);
    EXPECT_EQ(out.size(), 1U) << value;
    EXPECT_EQ(ByteReader(out.bytes(), "f").signed_varint(), value);
  }
  for (std::int64_t value :
       {std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    ByteWriter out;
    out.signed_varint(value);
    EXPECT_EQ(ByteReader(out.bytes(), "f").signed_varint(), value);
  }
}

TEST(Bytes, NumbersAreLittleEndian) {
  ByteWriter out;
  out.u32(0x04030201);
  EXPECT_THAT(out.bytes(), testing::ElementsAre(1, 2, 3, 4));
}

TEST(Bytes, ReadingPastTheEndNamesTheByte) {
  const std::vector<std::uint8_t> bytes = {1, 2, 3};
  ByteReader in(bytes, "some.bin", 100);
  in.u8();
  EXPECT_THAT([&] { in.u32(); }, ThrowsMessage<InputError>(HasSubstr("some.bin: byte 101")));
  EXPECT_THAT([&] { in.raw(3); }, ThrowsMessage<InputError>(HasSubstr("byte 101")));
}

TEST(Bytes, AStringLongerThanTheRestIsRefusedWithoutAllocatingIt) {
  ByteWriter out;
  out.varint(std::uint64_t{1} << 60U);
  ByteReader in(out.bytes(), "f");
  EXPECT_THROW(in.string(), InputError);
}

TEST(Bytes, AVarintOfElevenBytesIsRefused) {
  const std::vector<std::uint8_t> bytes(20, 0xff);
  EXPECT_THROW(ByteReader(bytes, "f").varint(), InputError);
  const std::vector<std::uint8_t> few(9, 0xff);
  EXPECT_THROW(ByteReader(few, "f").varint(), InputError);
}

TEST(Bytes, Crc32HasItsPublishedCheckValue) {
  // Of "123456789", as every catalogue of checksums lists it.
  EXPECT_EQ(crc32(as_bytes("123456789")), 0xcbf43926U);
  EXPECT_EQ(crc32(as_bytes("")), 0U);
}

TEST(Bytes, Crc32MayBeContinued) {
  const std::string text = "the quick brown fox jumps over the lazy dog, twice";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    const std::string_view view = text;
    EXPECT_EQ(crc32(as_bytes(view.substr(cut)), crc32(as_bytes(view.substr(0, cut)))),
              crc32(as_bytes(view)));
  }
}

}  // namespace
}  // namespace trn
