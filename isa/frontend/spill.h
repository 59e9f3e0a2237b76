#pragma once

#include <cstdint>
#include <span>

#include "isa/frontend/lifetime.h"
#include "isa/frontend/place.h"

namespace trn::isa::frontend {

/// Places the tiles of SBUF by lifetime, in program order, where bytes have been free for longest;
/// when none are, the tiles whose next use is furthest go to HBM and come back: their transfers are
/// added to the builder's nodes. fixed: explicit placements.
void spill(Builder& builder, const std::vector<Block>& fixed, std::int64_t limit,
           Placement& placement);

}  // namespace trn::isa::frontend
