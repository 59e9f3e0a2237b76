#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "isa/frontend/builder.h"

namespace trn::isa::frontend {

inline constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
inline constexpr std::int64_t kTileAlignment = 64;  ///< bytes within a partition

constexpr std::int64_t align(std::int64_t value, std::int64_t to) {
  return (value + to - 1) / to * to;
}

/// Nodes from the first to the last use of a tensor.
struct Lifetime {
  std::uint32_t first = kNever;
  std::uint32_t last = 0;
  [[nodiscard]] bool used() const { return first != kNever; }
  [[nodiscard]] bool overlaps(const Lifetime& other) const {
    return first <= other.last && other.first <= last;
  }
};

/// By StorageId.
std::vector<Lifetime> lifetimes(const Builder& builder);

/// A stretch of bytes that is taken for a time.
struct Block {
  Lifetime life{};
  std::int64_t bytes = 0;
  std::int64_t alignment = kTileAlignment;
  std::int64_t address = 0;
};

/// Bytes of a partition that nothing holds, in stretches by address, with when the last use of each
/// was, in whatever the caller counts time.
class FreeList {
 public:
  explicit FreeList(std::int64_t limit) { gaps_.push_back({0, limit, 0}); }

  /// Where that many bytes have been free for longest, so that filling them waits for nobody;
  /// stretches that touch count as one, free since the last of them.
  [[nodiscard]] std::optional<std::int64_t> oldest(std::int64_t bytes) const;
  void take(std::int64_t begin, std::int64_t end);
  void give_back(std::int64_t begin, std::int64_t end, double since);
  [[nodiscard]] std::int64_t bytes() const;

  struct Gap {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    double since = 0;
  };
  [[nodiscard]] const std::vector<Gap>& gaps() const { return gaps_; }

 private:
  std::vector<Gap> gaps_{};
};

/// Throws a CapacityError that names the tiles in a memory when it is full.
[[noreturn]] void refuse(const Builder& builder, Memory memory, std::int64_t limit,
                         std::vector<std::uint32_t> live, std::uint32_t location,
                         std::string_view hint);

}  // namespace trn::isa::frontend
