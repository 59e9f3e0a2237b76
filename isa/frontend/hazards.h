#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "isa/frontend/builder.h"

namespace trn::isa::frontend {

struct Placement;

/// Whether a node is a transfer, which runs on after its engine has triggered it.
bool is_transfer(const Op& op);

/// For each node the nodes that must have completed before it begins. Of an engine's own
/// instructions, which complete in order, only the last that matters.
class Dependences {
 public:
  [[nodiscard]] std::span<const std::uint32_t> of(std::uint32_t node) const {
    return std::span(producers_).subspan(begin_[node], begin_[node + 1] - begin_[node]);
  }
  [[nodiscard]] std::size_t size() const { return producers_.size(); }
  void add(std::vector<std::uint32_t> producers) {
    producers_.insert(producers_.end(), producers.begin(), producers.end());
    begin_.push_back(static_cast<std::uint32_t>(producers_.size()));
  }

 private:
  std::vector<std::uint32_t> begin_ = {0};
  std::vector<std::uint32_t> producers_{};
};

/// A rectangle of memory that an instruction touches: partitions by bytes, and within the bytes
/// runs of `run` bytes at multiples of `pitch` from the first (pitch 0: one run).
struct Region {
  Memory memory = Memory::Sbuf;
  std::uint32_t storage = 0;  ///< of HBM regions
  std::int64_t first_partition = 0;
  std::int64_t end_partition = 1;
  std::int64_t begin = 0;  ///< bytes
  std::int64_t end = 0;
  std::int64_t run = 0;
  std::int64_t pitch = 0;

  /// All bytes between begin and end, in all its partitions.
  [[nodiscard]] bool dense() const { return run == end - begin; }
  [[nodiscard]] bool overlaps(const Region& other) const;
};
/// Of an operand whose address is placed (HBM: relative to its tensor).
Region region_of(const Access& operand, std::int64_t address);
Region region_of(const DmaSide& operand, std::int64_t address, std::uint32_t storage);

/// Finds all of a program's dependences: read after write, write after read, write after write, by
/// the bytes that are touched, so that partial overlaps and aliases count and neighbours do not. Of
/// engines that are yet to be put in order also those on themselves, and on each instruction.
Dependences find_dependences(const Builder& builder, const Placement& placement,
                             bool in_order = true);

}  // namespace trn::isa::frontend
