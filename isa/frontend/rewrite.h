#pragma once

#include <cstdint>
#include <vector>

#include "isa/frontend/builder.h"

namespace trn::isa::frontend {

/// Whether a node stands between others that must keep their sides: a fence, a loop, a branch, what
/// only sequencers or registers see.
bool separates(const Node& node);

/// Moves each MEMSET that begins a sum in SBUF to just before the first instruction that adds to
/// its tile, as a compiler does that begins a lifetime as late as it can. None moves over a fence
/// or into a device loop.
void sink_memsets(Builder& builder);

/// Where loads of what the program never writes could go, by node: Options::load_ahead_ns before
/// their place, roughly, as a compiler does that hides their latency. Loads keep their order, and
/// none passes a fence or a device loop's edge. All other nodes have their own place.
std::vector<std::uint32_t> early_places(const Builder& builder);

/// Moves loads to their early places.
void hoist_loads(Builder& builder);

/// Leaves out loads of what a tile still holds: the same bytes of HBM, not written since, in a tile
/// that nothing else writes, with no fence and no device loop's edge between. Of loaded tiles,
/// Options::reuse_loads_bytes of a partition are held: those that are loaded again soonest. Only
/// loads of elements of up to Options::reuse_element_bytes. Returns how many loads went.
std::uint64_t reuse_loads(Builder& builder);

/// The same, but a tile is held until Options::reuse_within_bytes of a partition have been loaded,
/// itself included, and only loads of 4-byte elements are left out, of lines whose tiles never live
/// together.
std::uint64_t reuse_recent_loads(Builder& builder);

/// Joins loads of tiles that are made on one line and lie behind each other in HBM, row upon row,
/// into one transfer of up to Options::merge_loads_bytes of a partition, at the place of the first:
/// - in rows of up to Options::merge_tiles tiles, of stationary ones if they are no fewer than
///   Options::merge_stationary_tiles;
/// - in longer rows when all that is so loaded of a tensor has no more than
///   Options::merge_far_bytes of a partition; and in those of stationary tiles, whatever is loaded,
///   when such a row of moving ones is joined.
/// When no longer row is joined, loads of longer rows are marked as looped. Only loads that fill
/// all partitions of a tile that nothing else writes, of elements of up to
/// Options::reuse_element_bytes. Returns how many loads went.
std::uint64_t merge_loads(Builder& builder);

/// Joins stores of whole tiles that are made on one line and lie beside each other in rows of HBM
/// into one transfer of up to Options::merge_loads_bytes of a partition, at the place of the last:
/// where the tiles are sums of no more than Options::merge_tiles products. Returns how many stores
/// went.
std::uint64_t merge_stores(Builder& builder);

}  // namespace trn::isa::frontend
