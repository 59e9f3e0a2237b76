#include "isa/frontend/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <queue>
#include <tuple>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "isa/frontend/lifetime.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/rewrite.h"
#include "isa/frontend/rough.h"
#include "isa/frontend/spill.h"
#include "isa/frontend/split.h"

namespace trn::isa::frontend {
namespace {

/// The lowest address where a block fits between those that live with it; none when it would pass
/// `limit`.
std::optional<std::int64_t> lowest_fit(const Block& block, std::vector<const Block*>& neighbours,
                                       std::int64_t limit) {
  std::sort(neighbours.begin(), neighbours.end(),
            [](const Block* a, const Block* b) { return a->address < b->address; });
  std::int64_t at = 0;
  for (const Block* other : neighbours) {
    if (at + block.bytes <= other->address) break;
    at = std::max(at, align(other->address + other->bytes, block.alignment));
  }
  if (at + block.bytes > limit) return std::nullopt;
  return at;
}

/// By StorageId, whether sums read a tile one after another: products into tiles of PSUM that do
/// not live together, as in a loop over columns or rows inside the one that loads the tile.
std::vector<bool> kept_over_sums(const Builder& builder, const std::vector<Lifetime>& lives) {
  std::vector<Lifetime> sums(lives.size());  // from the earliest end of a sum to the latest begin
  std::vector<bool> kept(lives.size(), false);
  std::optional<std::uint32_t> stationary;
  for (const Node& node : builder.nodes()) {
    if (const auto* weights = std::get_if<LdWeights>(&node.op))
      stationary = index(storage_of(weights->src.offset.base));
    const auto* product = std::get_if<Matmul>(&node.op);
    if (product == nullptr) continue;
    const Lifetime& sum = lives[index(storage_of(product->dst.offset.base))];
    const std::uint32_t moving = index(storage_of(product->src.offset.base));
    for (const std::uint32_t tile : {stationary.value_or(moving), moving}) {
      sums[tile].first = std::min(sums[tile].first, sum.last);
      sums[tile].last = std::max(sums[tile].last, sum.first);
      kept[tile] = sums[tile].first < sums[tile].last;
    }
  }
  return kept;
}

/// Tiles made on one line, of one size.
struct Ring {
  std::vector<std::uint32_t> tiles{};  ///< by first use
  std::int64_t slot_bytes = 0;
  std::uint32_t most_live = 0;
  std::uint32_t slots = 0;
  Block block{};
};

class MemoryPlacer {
 public:
  MemoryPlacer(const Builder& builder, const std::vector<Lifetime>& lives, Memory memory,
               std::int64_t limit)
      : builder_(builder), lives_(lives), memory_(memory), limit_(limit) {
    for (std::uint32_t s = 0; s < builder.storages().size(); ++s) {
      const Storage& storage = builder.storages()[s];
      if (storage.memory != memory || !lives[s].used()) continue;
      if (storage.fixed) {
        fixed_.push_back({lives[s], storage.bytes, 1, *storage.fixed});
      } else {
        tiles_.push_back(s);
      }
    }
    std::sort(tiles_.begin(), tiles_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair(lives[a].first, a) < std::pair(lives[b].first, b);
    });
    kept_ = kept_over_sums(builder, lives);
  }

  /// Places all by rings with up to `prefetch` places beyond what must be; false when it does not
  /// fit. share: rings that do not live together may have the same bytes, which makes the later one
  /// wait for the earlier one's last use.
  bool place_rings(std::uint32_t prefetch, bool share, std::vector<std::int64_t>& address,
                   std::int64_t& peak) const {
    std::vector<Ring> rings = make_rings(prefetch);
    std::vector<Ring*> order;
    order.reserve(rings.size());
    for (Ring& ring : rings) order.push_back(&ring);
    std::stable_sort(order.begin(), order.end(),
                     [](const Ring* a, const Ring* b) { return a->block.bytes > b->block.bytes; });
    std::vector<const Block*> placed;
    placed.reserve(fixed_.size() + rings.size());
    for (const Block& block : fixed_) placed.push_back(&block);
    for (Ring* ring : order) {
      std::vector<const Block*> neighbours;
      for (const Block* other : placed) {
        if (!share || other->life.overlaps(ring->block.life)) neighbours.push_back(other);
      }
      const auto at = lowest_fit(ring->block, neighbours, limit_);
      if (!at) return false;
      ring->block.address = *at;
      placed.push_back(&ring->block);
    }
    peak = 0;
    for (const Block* block : placed) peak = std::max(peak, block->address + block->bytes);
    for (const Ring& ring : rings) assign_slots(ring, address);
    return true;
  }

  /// Gives each tile of PSUM whole banks: those that have been free for longest, as the compiler
  /// does in the profiles. False when the banks do not suffice.
  bool place_banks(std::vector<std::int64_t>& address, std::int64_t& peak) const {
    const auto banks = static_cast<std::size_t>(limit_ / bank());
    std::vector<std::uint32_t> free_from(banks, 0);  // node after the last use, 0: never used
    peak = 0;
    for (const std::uint32_t tile : tiles_) {
      const auto count =
          static_cast<std::size_t>((builder_.storages()[tile].bytes + bank() - 1) / bank());
      std::optional<std::size_t> best;
      std::uint32_t best_free = 0;
      for (std::size_t first = 0; first + count <= banks; ++first) {
        const std::uint32_t latest =
            *std::max_element(free_from.begin() + static_cast<long>(first),
                              free_from.begin() + static_cast<long>(first + count));
        if (latest > lives_[tile].first || clashes(first, count, tile)) continue;
        if (!best || latest < best_free) {
          best = first;
          best_free = latest;
        }
      }
      if (!best) return false;
      std::fill_n(free_from.begin() + static_cast<long>(*best), count, lives_[tile].last + 1);
      address[tile] = static_cast<std::int64_t>(*best) * bank();
      peak = std::max(peak, address[tile] + static_cast<std::int64_t>(count) * bank());
    }
    for (const Block& block : fixed_) peak = std::max(peak, block.address + block.bytes);
    return true;
  }

  /// Places all by lifetime: first those that live while half of the memory is filled anew, side by
  /// side from the bottom, then the others where bytes have been free for longest. early: by tile,
  /// from where on it is wanted, if that can be had. ends: by node (rough_ends). False when the
  /// tiles do not fit.
  bool place_lifetimes(const std::vector<std::uint32_t>& early, const std::vector<double>& ends,
                       std::vector<std::int64_t>& address, std::int64_t& peak) const {
    if (place_between(fixed_, tiles_, early, ends, address, peak)) return true;
    std::vector<Block> lasting = fixed_;
    std::vector<std::uint32_t> passing;
    const std::vector<std::int64_t> born = bytes_born();
    for (const std::uint32_t tile : tiles_) {
      const Lifetime& life = lives_[tile];
      if (born[life.last] - born[life.first] <= limit_ / 2) {
        passing.push_back(tile);
        continue;
      }
      Block block{.life = life, .bytes = slot_bytes(builder_.storages()[tile].bytes)};
      std::optional<std::int64_t> at;
      for (const std::uint32_t first : {early[tile], life.first}) {
        block.life.first = first;
        std::vector<const Block*> neighbours;
        for (const Block& other : lasting) {
          if (other.life.overlaps(block.life)) neighbours.push_back(&other);
        }
        at = lowest_fit(block, neighbours, limit_);
        if (at) break;
      }
      if (!at) return false;
      address[tile] = block.address = *at;
      lasting.push_back(block);
    }
    return place_between(lasting, passing, early, ends, address, peak);
  }

  [[nodiscard]] const std::vector<Block>& fixed() const { return fixed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& tiles() const { return tiles_; }

 private:
  /// Bytes of all tiles first used up to each node.
  [[nodiscard]] std::vector<std::int64_t> bytes_born() const {
    std::vector<std::int64_t> born(builder_.nodes().size(), 0);
    for (const std::uint32_t tile : tiles_) {
      born[lives_[tile].first] += slot_bytes(builder_.storages()[tile].bytes);
    }
    std::partial_sum(born.begin(), born.end(), born.begin());
    return born;
  }

  /// Places tiles, by first use, beside the blocks that live with them.
  bool place_between(const std::vector<Block>& lasting, const std::vector<std::uint32_t>& passing,
                     const std::vector<std::uint32_t>& early, const std::vector<double>& ends,
                     std::vector<std::int64_t>& address, std::int64_t& peak) const {
    const auto by_end = [](const Block* a, const Block* b) { return a->life.last > b->life.last; };
    std::priority_queue<const Block*, std::vector<const Block*>, decltype(by_end)> alive(by_end);
    peak = 0;
    for (const Block& block : lasting) {
      if (block.life.used()) alive.push(&block);
      peak = std::max(peak, block.address + block.bytes);
    }
    std::deque<Block> placed;
    FreeList free(limit_);
    using Birth = std::pair<std::uint32_t, std::uint32_t>;  // node, tile
    std::priority_queue<Birth, std::vector<Birth>, std::greater<>> births;
    for (const std::uint32_t tile : passing) births.emplace(early[tile], tile);
    while (!births.empty()) {
      const auto [first, tile] = births.top();
      births.pop();
      Block block{.life = {first, lives_[tile].last},
                  .bytes = slot_bytes(builder_.storages()[tile].bytes)};
      for (; !alive.empty() && alive.top()->life.last < block.life.first; alive.pop()) {
        const Block& over = *alive.top();
        free.take(over.address, over.address + over.bytes);
        free.give_back(over.address, over.address + over.bytes, ends[over.life.last]);
      }
      FreeList open = free;
      for (const Block& other : lasting) {
        if (other.life.overlaps(block.life)) open.take(other.address, other.address + other.bytes);
      }
      const auto at = open.oldest(block.bytes);
      if (!at && first < lives_[tile].first) {
        births.emplace(lives_[tile].first, tile);
        continue;
      }
      if (!at) return false;
      address[tile] = block.address = *at;
      free.take(*at, *at + block.bytes);
      peak = std::max(peak, *at + block.bytes);
      alive.push(&placed.emplace_back(block));
    }
    return true;
  }

  std::vector<Ring> make_rings(std::uint32_t prefetch) const {
    std::map<std::pair<std::uint32_t, std::int64_t>, std::size_t> by_line;
    std::vector<Ring> rings;
    const std::uint32_t kept = builder_.options().prefetch_kept_tiles;
    for (const std::uint32_t tile : tiles_) {
      const Storage& storage = builder_.storages()[tile];
      const std::int64_t bytes = slot_bytes(storage.bytes);
      const auto [at, added] = by_line.emplace(std::pair(storage.location, bytes), rings.size());
      if (added) rings.push_back({.slot_bytes = bytes});
      rings[at->second].tiles.push_back(tile);
    }
    for (Ring& ring : rings) {
      ring.most_live = most_live(ring);
      const auto count = static_cast<std::uint32_t>(ring.tiles.size());
      const bool single = ring.most_live == 1 && kept_[ring.tiles.front()];
      const std::uint32_t more = single ? std::min(prefetch, kept) : prefetch;
      std::uint32_t wanted = prefetch == 0 ? ring.most_live : std::max(2 * ring.most_live, more);
      // A few large tiles are not worth a quarter of the memory.
      while (wanted > 2 * ring.most_live && wanted * ring.slot_bytes > limit_ / 4) wanted /= 2;
      ring.slots = std::min(count, std::max(wanted, ring.most_live));
      ring.block.bytes = ring.slots * ring.slot_bytes;
      ring.block.alignment = memory_ == Memory::Psum ? ring.slot_bytes : kTileAlignment;
      if (memory_ == Memory::Psum && ring.slot_bytes > bank()) ring.block.alignment = bank();
      for (const std::uint32_t tile : ring.tiles) {
        ring.block.life.first = std::min(ring.block.life.first, lives_[tile].first);
        ring.block.life.last = std::max(ring.block.life.last, lives_[tile].last);
      }
    }
    return rings;
  }

  /// Whether an explicit placement lies in these banks while the tile lives.
  [[nodiscard]] bool clashes(std::size_t first, std::size_t count, std::uint32_t tile) const {
    const std::int64_t begin = static_cast<std::int64_t>(first) * bank();
    const std::int64_t end = begin + static_cast<std::int64_t>(count) * bank();
    return std::any_of(fixed_.begin(), fixed_.end(), [&](const Block& block) {
      return block.life.overlaps(lives_[tile]) && block.address < end &&
             begin < block.address + block.bytes;
    });
  }

  [[nodiscard]] std::int64_t bank() const { return builder_.options().psum_bank_bytes; }

  [[nodiscard]] std::int64_t slot_bytes(std::int64_t bytes) const {
    if (memory_ != Memory::Psum) return align(bytes, kTileAlignment);
    if (bytes > bank()) return align(bytes, bank());
    return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(bytes)));
  }

  std::uint32_t most_live(const Ring& ring) const {
    std::vector<std::uint32_t> ends;  // a heap, earliest first
    std::uint32_t most = 0;
    for (const std::uint32_t tile : ring.tiles) {
      while (!ends.empty() && ends.front() < lives_[tile].first) {
        std::pop_heap(ends.begin(), ends.end(), std::greater<>{});
        ends.pop_back();
      }
      ends.push_back(lives_[tile].last);
      std::push_heap(ends.begin(), ends.end(), std::greater<>{});
      most = std::max(most, static_cast<std::uint32_t>(ends.size()));
    }
    return most;
  }

  /// Each tile takes the place that has been free for longest.
  void assign_slots(const Ring& ring, std::vector<std::int64_t>& address) const {
    std::deque<std::uint32_t> free;
    for (std::uint32_t slot = 0; slot < ring.slots; ++slot) free.push_back(slot);
    std::vector<std::pair<std::uint32_t, std::uint32_t>> live;  // end, slot; a heap
    for (const std::uint32_t tile : ring.tiles) {
      while (!live.empty() && live.front().first < lives_[tile].first) {
        std::pop_heap(live.begin(), live.end(), std::greater<>{});
        free.push_back(live.back().second);
        live.pop_back();
      }
      TRN_CHECK(!free.empty(), "a ring of {} places is too small", ring.slots);
      const std::uint32_t slot = free.front();
      free.pop_front();
      address[tile] = ring.block.address + slot * ring.slot_bytes;
      live.emplace_back(lives_[tile].last, slot);
      std::push_heap(live.begin(), live.end(), std::greater<>{});
    }
  }

  const Builder& builder_;
  const std::vector<Lifetime>& lives_;
  Memory memory_;
  std::int64_t limit_;
  std::vector<Block> fixed_{};
  std::vector<std::uint32_t> tiles_{};
  std::vector<bool> kept_{};
};

/// The tiles alive when most bytes are.
std::vector<std::uint32_t> fullest(const Builder& builder, const std::vector<Lifetime>& lives,
                                   const std::vector<std::uint32_t>& tiles, std::uint32_t& node) {
  std::map<std::uint32_t, std::int64_t> change;
  for (const std::uint32_t tile : tiles) {
    change[lives[tile].first] += builder.storages()[tile].bytes;
    change[lives[tile].last + 1] -= builder.storages()[tile].bytes;
  }
  std::int64_t now = 0;
  std::int64_t most = -1;
  for (const auto& [at, bytes] : change) {
    now += bytes;
    if (now > most) {
      most = now;
      node = at;
    }
  }
  std::vector<std::uint32_t> live;
  for (const std::uint32_t tile : tiles) {
    if (lives[tile].first <= node && node <= lives[tile].last) live.push_back(tile);
  }
  return live;
}

/// From where on each tile is wanted: from its first use, or ahead of that when it is loaded.
std::vector<std::uint32_t> births(const Builder& builder, const std::vector<Lifetime>& lives,
                                  bool ahead) {
  std::vector<std::uint32_t> result(lives.size());
  for (std::size_t s = 0; s < lives.size(); ++s) result[s] = lives[s].first;
  if (!ahead) return result;
  const std::vector<std::uint32_t> places = early_places(builder);
  for (std::uint32_t n = 0; n < places.size(); ++n) {
    if (places[n] == n) continue;
    const auto& load = std::get<DmaDirect2d>(builder.nodes()[n].op);
    result[index(storage_of(load.dst.address.base))] = places[n];
  }
  return result;
}

/// What spills cost, roughly.
double spill_ns(const Builder& builder) {
  double sum = 0;
  for (const Node& node : builder.nodes()) {
    const auto* copy = std::get_if<DmaDirect2d>(&node.op);
    if (copy != nullptr && copy->spill) sum += kRoughTriggerNs + rough_ns(node.op, node.engine);
  }
  return sum;
}

}  // namespace

Placement place(Builder& builder) {
  const Options& options = builder.options();
  split_blocks(builder);
  Placement placement;
  placement.address.resize(builder.storages().size(), 0);
  for (std::size_t s = 0; s < builder.storages().size(); ++s) {
    if (builder.storages()[s].fixed) placement.address[s] = *builder.storages()[s].fixed;
  }
  {
    const std::vector<Lifetime> lives = lifetimes(builder);
    MemoryPlacer psum(builder, lives, Memory::Psum, options.psum_partition_bytes);
    bool fits = psum.place_banks(placement.address, placement.psum_peak_bytes);
    if (!fits) {  // several small tiles to a bank
      fits = psum.place_rings(0, true, placement.address, placement.psum_peak_bytes);
    }
    if (!fits) {
      std::uint32_t node = 0;
      std::vector<std::uint32_t> live = fullest(builder, lives, psum.tiles(), node);
      refuse(builder, Memory::Psum, options.psum_partition_bytes, std::move(live),
             node < builder.nodes().size() ? builder.nodes()[node].location : 0, "");
    }
  }
  const std::vector<Lifetime> lives = lifetimes(builder);
  MemoryPlacer sbuf(builder, lives, Memory::Sbuf, options.sbuf_partition_bytes);
  // With less it is better by lifetime.
  for (const std::uint32_t more : {options.prefetch_tiles, options.prefetch_tiles / 2}) {
    for (const bool share : {false, true}) {
      if (sbuf.place_rings(more, share, placement.address, placement.sbuf_peak_bytes)) {
        return placement;
      }
    }
  }
  placement.by_lifetime = true;
  const std::vector<double> ends = rough_ends(builder);
  for (const bool ahead : {true, false}) {
    if (sbuf.place_lifetimes(births(builder, lives, ahead), ends, placement.address,
                             placement.sbuf_peak_bytes)) {
      return placement;
    }
  }
  std::uint32_t node = 0;
  std::vector<std::uint32_t> live = fullest(builder, lives, sbuf.tiles(), node);
  std::int64_t bytes = 0;
  for (const std::uint32_t s : live) bytes += align(builder.storages()[s].bytes, kTileAlignment);
  if (!options.spill && bytes > options.sbuf_partition_bytes) {
    refuse(builder, Memory::Sbuf, options.sbuf_partition_bytes, std::move(live),
           node < builder.nodes().size() ? builder.nodes()[node].location : 0,
           ", and spilling is off");
  }
  const std::vector<std::int64_t> psum = placement.address;
  hoist_loads(builder);
  if (options.cut_load_bytes != 0) cut_loads(builder, options.cut_load_bytes);
  Builder pieces = builder;
  spill(builder, sbuf.fixed(), options.sbuf_partition_bytes, placement);
  if (block_by_use(pieces)) {
    split_blocks(pieces);
    Placement other = placement;
    other.spills.clear();
    spill(pieces, sbuf.fixed(), options.sbuf_partition_bytes, other);
    if (spill_ns(pieces) < spill_ns(builder)) {
      builder = std::move(pieces);
      placement = std::move(other);
    }
  }
  for (std::size_t s = 0; s < psum.size(); ++s) {
    const Storage& storage = builder.storages()[s];
    if (storage.memory == Memory::Psum || storage.fixed) placement.address[s] = psum[s];
  }
  return placement;
}

}  // namespace trn::isa::frontend
