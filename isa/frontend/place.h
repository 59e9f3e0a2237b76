#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/frontend/builder.h"

namespace trn::isa::frontend {

/// A tile that did not fit and went to HBM and back.
struct Spill {
  std::string name{};
  std::uint32_t location = 0;  ///< where the tile was made
  std::int64_t bytes = 0;      ///< of one copy, all partitions
  std::uint32_t saves = 0;
  std::uint32_t reloads = 0;
};

/// Where each tensor lies: a byte within its partitions, or of HBM. Indexed by StorageId.
struct Placement {
  std::vector<std::int64_t> address{};
  std::vector<Spill> spills{};
  std::int64_t sbuf_peak_bytes = 0;  ///< highest byte used of a partition
  std::int64_t psum_peak_bytes = 0;
  bool by_lifetime = false;  ///< tiles in SBUF have no places of their own
};

/// Finds places for all tiles of a program. Tiles made on the same line rotate through places of
/// their own, so that what fills the next one overlaps the work on the last one; how many follows
/// from Options and from what fits. When even one place each is too much, tiles share memory by
/// lifetime, and those whose next use is furthest spill to HBM: instructions are added to the
/// builder's nodes. Throws CapacityError when that is not allowed or does not help.
Placement place(Builder& builder);

}  // namespace trn::isa::frontend
