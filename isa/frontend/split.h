#pragma once

#include <cstdint>

#include "isa/frontend/builder.h"

namespace trn::isa::frontend {

/// Makes each block of a blocked tile (dimensions left of the partitions) a tile of its own, so
/// that it lives and moves by itself, when no instruction needs two of them at once. A MEMSET over
/// blocks becomes one for each.
void split_blocks(Builder& builder);

/// Takes tiles whose columns are used in equal pieces as tiles blocked by these pieces; whether
/// there is one. MEMSETs do not count, as they can be split; nor pieces under 512 bytes, for which
/// a transfer is dear.
bool block_by_use(Builder& builder);

/// Cuts loads of long rows into pieces of `piece_bytes` of a row. A tile without a second place can
/// then be filled anew piece by piece behind its last readers.
void cut_loads(Builder& builder, std::uint32_t piece_bytes);

}  // namespace trn::isa::frontend
