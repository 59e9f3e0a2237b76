#include "isa/base/bytes.h"

#include <fmt/format.h>

#include "isa/base/error.h"

namespace trn {
namespace {

constexpr std::uint32_t kPolynomial = 0xedb88320U;
constexpr std::size_t kSlices = 8;
using CrcTables = std::array<std::array<std::uint32_t, 256>, kSlices>;

constexpr CrcTables make_crc_tables() {
  CrcTables tables{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? kPolynomial : 0U);
    tables[0][byte] = crc;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice) {
    for (std::size_t byte = 0; byte < 256; ++byte) {
      const std::uint32_t before = tables[slice - 1][byte];
      tables[slice][byte] = (before >> 8U) ^ tables[0][before & 0xffU];
    }
  }
  return tables;
}
constexpr CrcTables kCrcTables = make_crc_tables();

std::uint32_t load32(const std::uint8_t* at) {
  return static_cast<std::uint32_t>(at[0]) | static_cast<std::uint32_t>(at[1]) << 8U |
         static_cast<std::uint32_t>(at[2]) << 16U | static_cast<std::uint32_t>(at[3]) << 24U;
}

}  // namespace

std::uint64_t ByteReader::checked_varint() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    const std::uint8_t byte = u8();
    value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number has more than 64 bits");
}

void ByteReader::fail(std::string_view message, std::uint64_t back) const {
  throw InputError(Place{.file = std::string(file_), .byte = offset() - back}, "", message);
}

void ByteReader::fail_short() const { fail("the data ends within a number, string or list"); }

void ByteReader::fail_range(std::string_view what, std::uint64_t value, std::uint64_t max) const {
  fail(fmt::format("{}: expected at most {}, got {}", what, max, value));
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t crc) {
  crc = ~crc;
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  // Eight bytes a step, a table for each: about five times as fast as byte by byte, and the
  // checksum is a good part of the cost of reading a trace.
  for (; left >= kSlices; left -= kSlices, at += kSlices) {
    const std::uint32_t low = load32(at) ^ crc;
    const std::uint32_t high = load32(at + 4);
    crc = kCrcTables[7][low & 0xffU] ^ kCrcTables[6][low >> 8U & 0xffU] ^
          kCrcTables[5][low >> 16U & 0xffU] ^ kCrcTables[4][low >> 24U] ^
          kCrcTables[3][high & 0xffU] ^ kCrcTables[2][high >> 8U & 0xffU] ^
          kCrcTables[1][high >> 16U & 0xffU] ^ kCrcTables[0][high >> 24U];
  }
  for (; left > 0; --left, ++at) crc = (crc >> 8U) ^ kCrcTables[0][(crc ^ *at) & 0xffU];
  return ~crc;
}

}  // namespace trn
