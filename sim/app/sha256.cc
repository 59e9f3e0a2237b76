#include "sim/app/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <vector>

#include "isa/base/error.h"

namespace trn::app {
namespace {

constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24U | static_cast<std::uint32_t>(bytes[1]) << 16U |
         static_cast<std::uint32_t>(bytes[2]) << 8U | bytes[3];
}

}  // namespace

void Sha256::block(const std::uint8_t* bytes) {
  std::array<std::uint32_t, kRound.size()> w;
  for (std::size_t i = 0; i < 16; ++i) w[i] = big_endian(bytes + 4 * i);
  for (std::size_t i = 16; i < w.size(); ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3U;
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10U;
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const std::uint32_t s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t one = h + s1 + ((e & f) ^ (~e & g)) + kRound[i] + w[i];
    const std::uint32_t s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t two = s0 + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + one;
    d = c;
    c = b;
    b = a;
    a = one + two;
  }
  const std::array<std::uint32_t, 8> sum = {a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < state_.size(); ++i) state_[i] += sum[i];
}

void Sha256::update(std::span<const std::uint8_t> bytes) {
  size_ += bytes.size();
  if (pending_size_ != 0) {
    const std::size_t taken = std::min(bytes.size(), kBlock - pending_size_);
    std::copy_n(bytes.begin(), taken,
                pending_.begin() + static_cast<std::ptrdiff_t>(pending_size_));
    pending_size_ += taken;
    bytes = bytes.subspan(taken);
    if (pending_size_ < kBlock) return;
    block(pending_.data());
    pending_size_ = 0;
  }
  for (; bytes.size() >= kBlock; bytes = bytes.subspan(kBlock)) block(bytes.data());
  std::copy(bytes.begin(), bytes.end(), pending_.begin());
  pending_size_ = bytes.size();
}

std::string Sha256::hex() {
  const std::uint64_t bits = size_ * 8;
  const std::uint8_t one = 0x80;
  const std::uint8_t zero = 0;
  update({&one, 1});
  while (pending_size_ != kBlock - sizeof bits) update({&zero, 1});
  std::array<std::uint8_t, sizeof bits> length;
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::uint8_t>(bits >> 8 * (length.size() - 1 - i));
  update(length);
  std::string text;
  for (std::uint32_t word : state_) text += fmt::format("{:08x}", word);
  return text;
}

std::string sha256_of(const std::filesystem::path& path, const std::stop_token& stop) {
  constexpr std::size_t kChunk = std::size_t{1} << 20U;
  std::ifstream file(path, std::ios::binary);
  std::vector<char> chunk(kChunk);
  Sha256 hash;
  while (file && !stop.stop_requested()) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    hash.update({reinterpret_cast<const std::uint8_t*>(chunk.data()),
                 static_cast<std::size_t>(file.gcount())});
  }
  if (stop.stop_requested()) return {};
  if (!file.eof()) throw InputError(Place{.file = path.string()}, "", "cannot be read");
  return hash.hex();
}

}  // namespace trn::app
