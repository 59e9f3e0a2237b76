#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>

namespace trn::app {

/// SHA-256 as FIPS 180-4 defines it.
class Sha256 {
 public:
  void update(std::span<const std::uint8_t> bytes);
  /// 64 lower-case hex digits; the last call.
  std::string hex();

 private:
  static constexpr std::size_t kBlock = 64;
  void block(const std::uint8_t* bytes);

  std::array<std::uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, kBlock> pending_{};
  std::size_t pending_size_ = 0;
  std::uint64_t size_ = 0;
};

/// Of a file's bytes. Throws InputError when it cannot be read; stops early, with an empty result,
/// when asked to.
std::string sha256_of(const std::filesystem::path& path, const std::stop_token& stop = {});

}  // namespace trn::app
