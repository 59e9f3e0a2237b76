#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trn {

/// Maps signed to unsigned numbers so that small magnitudes stay small: 0, -1, 1, -2 ... become
/// 0, 1, 2, 3 ...
constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1U));
}

/// Appends numbers to a byte string: little endian, or varints of seven bits a byte, low bits
/// first.
class ByteWriter {
 public:
  void u8(std::uint8_t value) { bytes_.push_back(value); }
  void u16(std::uint16_t value) { fixed(value, 2); }
  void u32(std::uint32_t value) { fixed(value, 4); }
  void u64(std::uint64_t value) { fixed(value, 8); }
  void f32(float value) { u32(std::bit_cast<std::uint32_t>(value)); }
  void f64(double value) { u64(std::bit_cast<std::uint64_t>(value)); }
  void varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7U;
    }
    bytes_.push_back(static_cast<std::uint8_t>(value));
  }
  void signed_varint(std::int64_t value) { varint(zigzag(value)); }
  void string(std::string_view text) {
    varint(text.size());
    bytes_.insert(bytes_.end(), text.begin(), text.end());
  }
  void raw(std::span<const std::uint8_t> bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }
  /// Forgets the bytes and keeps the memory.
  void clear() { bytes_.clear(); }
  [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(bytes_); }

 private:
  void fixed(std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      bytes_.push_back(static_cast<std::uint8_t>(value >> (8U * i)));
    }
  }

  std::vector<std::uint8_t> bytes_;
};

/// Reads what ByteWriter wrote. Every read is checked: bytes that end too early or do not mean
/// anything are an InputError that names file and byte. The bytes and the name outlive it.
class ByteReader {
 public:
  /// base: offset of the first byte in `file`, for messages.
  ByteReader(std::span<const std::uint8_t> bytes, std::string_view file, std::uint64_t base = 0)
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()), file_(file), base_(base) {}

  std::uint8_t u8() {
    if (at_ == end_) [[unlikely]]
      fail_short();
    return *at_++;
  }
  std::uint16_t u16() { return static_cast<std::uint16_t>(fixed(2)); }
  std::uint32_t u32() { return static_cast<std::uint32_t>(fixed(4)); }
  std::uint64_t u64() { return fixed(8); }
  float f32() { return std::bit_cast<float>(u32()); }
  double f64() { return std::bit_cast<double>(u64()); }

  std::uint64_t varint() {
    if (remaining() < 10) [[unlikely]]
      return checked_varint();
    const std::uint8_t* at = at_;
    std::uint64_t value = *at & 0x7fU;
    unsigned shift = 7;
    while ((*at++ & 0x80U) != 0) {
      if (shift > 63) [[unlikely]]
        fail("a number has more than 64 bits");
      value |= static_cast<std::uint64_t>(*at & 0x7fU) << shift;
      shift += 7;
    }
    at_ = at;
    return value;
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }
  /// A varint of at most `max`.
  std::uint64_t varint(std::uint64_t max, std::string_view what) {
    const std::uint64_t value = varint();
    if (value > max) [[unlikely]]
      fail_range(what, value, max);
    return value;
  }
  std::span<const std::uint8_t> raw(std::uint64_t count) {
    if (count > remaining()) [[unlikely]]
      fail_short();
    const std::span<const std::uint8_t> result(at_, static_cast<std::size_t>(count));
    at_ += count;
    return result;
  }
  std::string string() {
    const std::uint64_t length = varint();
    const auto text = raw(length);
    return {reinterpret_cast<const char*>(text.data()), text.size()};
  }

  [[nodiscard]] std::uint64_t remaining() const { return static_cast<std::uint64_t>(end_ - at_); }
  [[nodiscard]] bool done() const { return at_ == end_; }
  /// Offset of the next byte in the file.
  [[nodiscard]] std::uint64_t offset() const {
    return base_ + static_cast<std::uint64_t>(at_ - begin_);
  }

  /// The next byte and the way to go on from a later one, for decoders that keep their place in a
  /// register; they look at remaining() first.
  [[nodiscard]] const std::uint8_t* position() const { return at_; }
  void set_position(const std::uint8_t* at) { at_ = at; }

  /// Throws the InputError of this place. back: bytes already read of what is wrong.
  [[noreturn]] void fail(std::string_view message, std::uint64_t back = 0) const;

 private:
  std::uint64_t fixed(unsigned count) {
    if (remaining() < count) [[unlikely]]
      fail_short();
    std::uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i) value |= static_cast<std::uint64_t>(at_[i]) << (8U * i);
    at_ += count;
    return value;
  }
  std::uint64_t checked_varint();
  [[noreturn]] void fail_short() const;
  [[noreturn]] void fail_range(std::string_view what, std::uint64_t value, std::uint64_t max) const;

  const std::uint8_t* begin_;
  const std::uint8_t* at_;
  const std::uint8_t* end_;
  std::string_view file_;
  std::uint64_t base_;
};

/// CRC-32 of IEEE 802.3 (as in zip and PNG); `crc` continues an earlier one.
std::uint32_t crc32(std::span<const std::uint8_t> bytes, std::uint32_t crc = 0);

}  // namespace trn
