#include "isa/frontend/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"

namespace trn::isa::frontend {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
constexpr std::int64_t kTileAlignment = 64;  // bytes within a partition

std::int64_t align(std::int64_t value, std::int64_t to) { return (value + to - 1) / to * to; }

/// Nodes from the first to the last use of a tensor.
struct Lifetime {
  std::uint32_t first = kNever;
  std::uint32_t last = 0;
  [[nodiscard]] bool used() const { return first != kNever; }
  [[nodiscard]] bool overlaps(const Lifetime& other) const {
    return first <= other.last && other.first <= last;
  }
};

std::vector<Lifetime> lifetimes(const Builder& builder) {
  std::vector<Lifetime> result(builder.storages().size());
  const std::vector<Node>& nodes = builder.nodes();
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    for_each_memory_operand_of_node(nodes[n], [&](std::string_view /*name*/, const auto& operand) {
      Lifetime& life = result[index(storage_of(address_of(operand).base))];
      life.first = std::min(life.first, n);
      life.last = n;
    });
  }
  return result;
}

/// A stretch of bytes that is taken for a time.
struct Block {
  Lifetime life{};
  std::int64_t bytes = 0;
  std::int64_t alignment = kTileAlignment;
  std::int64_t address = 0;
  bool upper = false;   ///< in partitions 64 to 127 only (stack_tiles)
  bool halved = false;  ///< in 64 partitions at most, and others may have the rest
  [[nodiscard]] bool apart_from(const Block& other) const {
    return halved && other.halved && upper != other.upper;
  }
};

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
        const bool meets = !share || other->life.overlaps(ring->block.life);
        if (meets && !ring->block.apart_from(*other)) neighbours.push_back(other);
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

  [[nodiscard]] const std::vector<Block>& fixed() const { return fixed_; }
  [[nodiscard]] const std::vector<std::uint32_t>& tiles() const { return tiles_; }

 private:
  std::vector<Ring> make_rings(std::uint32_t prefetch) const {
    std::map<std::tuple<std::uint32_t, std::int64_t, bool>, std::size_t> by_line;
    std::vector<Ring> rings;
    for (const std::uint32_t tile : tiles_) {
      const Storage& storage = builder_.storages()[tile];
      const std::int64_t bytes = slot_bytes(storage.bytes);
      const bool upper = storage.first_partition != 0;
      const auto [at, added] =
          by_line.emplace(std::tuple(storage.location, bytes, upper), rings.size());
      if (added) rings.push_back({.slot_bytes = bytes, .block = {.upper = upper, .halved = true}});
      if (storage.partitions > kPartitions / 2) rings[at->second].block.halved = false;
      rings[at->second].tiles.push_back(tile);
    }
    for (Ring& ring : rings) {
      ring.most_live = most_live(ring);
      const auto count = static_cast<std::uint32_t>(ring.tiles.size());
      std::uint32_t wanted =
          prefetch == 0 ? ring.most_live : std::max(2 * ring.most_live, prefetch);
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
};

[[noreturn]] void refuse(const Builder& builder, Memory memory, std::int64_t limit,
                         std::vector<std::uint32_t> live, std::uint32_t location,
                         std::string_view hint) {
  std::sort(live.begin(), live.end(), [&](std::uint32_t a, std::uint32_t b) {
    const auto key = [&](std::uint32_t s) { return std::pair(-builder.storages()[s].bytes, s); };
    return key(a) < key(b);
  });
  std::int64_t total = 0;
  std::string text;
  constexpr std::size_t kShown = 8;
  for (std::size_t i = 0; i < live.size(); ++i) {
    const Storage& storage = builder.storages()[live[i]];
    total += storage.bytes;
    if (i >= kShown) continue;
    const SourceLocation& at = builder.locations()[storage.location];
    text += fmt::format("\n  {} {}[{}], {} bytes per partition, {}:{}",
                        storage.name.empty() ? "tile" : storage.name, name_of(storage.dtype),
                        fmt::join(storage.shape, ","), storage.bytes, at.file, at.line);
  }
  if (live.size() > kShown) text += fmt::format("\n  and {} more", live.size() - kShown);
  const SourceLocation& at = builder.locations()[location];
  throw CapacityError(fmt::format(
      "{}:{}: {} is full: {} bytes per partition are live at once, the limit is {}{}:{}", at.file,
      at.line, name_of(memory), total, limit, hint, text));
}

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

/// Makes each block of a blocked tile (dimensions left of the partitions) a tile of its own, so
/// that it lives and moves by itself, when no instruction needs two of them at once. A MEMSET over
/// blocks becomes one for each.
void split_blocks(Builder& builder) {
  std::vector<Storage>& storages = builder.storages();
  const std::size_t count = storages.size();
  std::vector<bool> splits(count, false);
  for (std::size_t s = 0; s < count; ++s) {
    const Storage& it = storages[s];
    splits[s] = it.memory != Memory::Hbm && !it.fixed && it.block_bytes < it.bytes;
  }
  const auto block_of = [&](std::uint32_t s, std::int64_t byte) {
    return byte / storages[s].block_bytes;
  };
  const auto local_region = [](const auto& operand) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand)>, DmaSide>) {
      return region_of(operand, bytes_in(operand.address.base), 0);
    } else {
      return region_of(operand, bytes_in(operand.offset.base));
    }
  };
  for (const Node& node : builder.nodes()) {
    if (std::holds_alternative<Memset>(node.op)) continue;
    for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, const auto& operand) {
      const std::uint32_t s = index(storage_of(address_of(operand).base));
      if (!splits[s]) return;
      const Region region = local_region(operand);
      if (block_of(s, region.begin) != block_of(s, region.end - 1)) splits[s] = false;
    });
  }

  std::vector<std::uint32_t> first_block(count, 0);
  for (std::uint32_t s = 0; s < count; ++s) {
    if (!splits[s]) continue;
    first_block[s] = static_cast<std::uint32_t>(storages.size());
    Storage block = storages[s];
    block.bytes = block.block_bytes;
    block.shape = {block.partitions, block.bytes / bytes_of(block.dtype)};
    const std::int64_t blocks = storages[s].bytes / block.bytes;
    for (std::int64_t i = 0; i < blocks; ++i) storages.push_back(block);
  }
  if (storages.size() == count) return;

  std::vector<Node> nodes;
  nodes.reserve(builder.nodes().size());
  for (Node& node : builder.nodes()) {
    const auto* fill = std::get_if<Memset>(&node.op);
    const std::uint32_t filled = fill == nullptr ? 0 : index(storage_of(fill->dst.offset.base));
    if (fill != nullptr && splits[filled]) {
      const Region region = local_region(fill->dst);
      const std::int64_t last = block_of(filled, region.end - 1);
      for (std::int64_t b = block_of(filled, region.begin); b <= last; ++b) {
        Node part = node;
        Access& dst = std::get<Memset>(part.op).dst;
        const std::int64_t bytes = storages[filled].block_bytes;
        const std::int64_t begin = std::max(region.begin - b * bytes, std::int64_t{0});
        const std::int64_t end = std::min(region.end - b * bytes, bytes);
        if (last > b || b * bytes > region.begin) {  // what is left of it in this block
          dst.dims = 1;
          dst.free[0] = {1, static_cast<std::uint32_t>((end - begin) / bytes_of(dst.dtype))};
        }
        dst.offset = symbolic(static_cast<StorageId>(first_block[filled] + b), begin);
        nodes.push_back(std::move(part));
      }
      continue;
    }
    for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, auto& operand) {
      Affine& address = address_of(operand);
      const std::uint32_t s = index(storage_of(address.base));
      if (!splits[s]) return;
      const std::int64_t b = block_of(s, local_region(operand).begin);
      address.base = symbolic(static_cast<StorageId>(first_block[s] + b),
                              bytes_in(address.base) - b * storages[s].block_bytes);
    });
    nodes.push_back(std::move(node));
  }
  builder.nodes() = std::move(nodes);
}

/// Cuts loads of long rows into pieces of `piece_bytes` of a row. A tile without a second place can
/// then be filled anew piece by piece behind its last readers.
void cut_loads(Builder& builder, std::uint32_t piece_bytes) {
  std::vector<Node> cut;
  cut.reserve(builder.nodes().size());
  for (Node& node : builder.nodes()) {
    const auto* load = std::get_if<DmaDirect2d>(&node.op);
    const bool long_rows =
        load != nullptr && load->src.memory == Memory::Hbm && load->dst.memory == Memory::Sbuf &&
        !load->index.present() && load->src.dtype == load->dst.dtype &&
        load->src.element_bytes == load->dst.element_bytes &&
        load->dst.element_bytes > piece_bytes && load->dst.element_bytes % piece_bytes == 0;
    if (!long_rows) {
      cut.push_back(std::move(node));
      continue;
    }
    for (std::uint32_t at = 0; at < load->dst.element_bytes; at += piece_bytes) {
      Node piece = node;
      auto& op = std::get<DmaDirect2d>(piece.op);
      for (DmaSide* side : {&op.src, &op.dst}) {
        side->element_bytes = piece_bytes;
        side->address.base += at;
      }
      piece.fence = node.fence && at == 0;
      cut.push_back(std::move(piece));
    }
  }
  builder.nodes() = std::move(cut);
}

/// Shares SBUF by lifetime, tile by tile in program order, and spills what has to wait longest.
class Spiller {
 public:
  Spiller(Builder& builder, const std::vector<Block>& fixed, std::int64_t limit)
      : builder_(builder), fixed_(fixed), limit_(limit) {
    free_.push_back({0, limit, 0});
    // Explicit placements hold their bytes throughout: rare, and never wrong.
    for (const Block& block : fixed) reserve(block.address, block.address + block.bytes);
  }

  void run(Placement& placement) {
    find_uses();
    std::vector<Node> old = std::move(builder_.nodes());
    nodes_.reserve(old.size());
    for (now_ = 0; now_ < old.size(); ++now_) {
      Node node = std::move(old[now_]);
      std::vector<std::uint32_t> wanted;
      std::vector<std::uint32_t> written;
      for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
        const std::uint32_t s = index(storage_of(address_of(operand).base));
        if (!is_mine(s)) return;
        wanted.push_back(s);
        if (is_result(name)) written.push_back(s);
      });
      pinned_ = wanted;
      for (const std::uint32_t s : wanted) {
        if (!tile(s).resident) bring_in(s, node.location);
      }
      for (const std::uint32_t s : written) tile(s).dirty = true;
      for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, auto& operand) {
        Affine& address = address_of(operand);
        const std::uint32_t s = index(storage_of(address.base));
        if (is_mine(s)) {
          address.base = symbolic(static_cast<StorageId>(tile(s).current), bytes_in(address.base));
        }
      });
      nodes_.push_back(std::move(node));
      for (const std::uint32_t s : wanted) {
        Tile& it = tile(s);
        while (it.next < it.uses.size() && it.uses[it.next] <= now_) ++it.next;
        if (it.next == it.uses.size() && it.resident) free(s);
      }
    }
    builder_.nodes() = std::move(nodes_);
    placement.address = std::move(address_);
    placement.address.resize(builder_.storages().size(), 0);
    for (auto& [s, spill] : spills_) placement.spills.push_back(spill);
    placement.sbuf_peak_bytes = peak_;
  }

 private:
  struct Tile {
    std::vector<std::uint32_t> uses{};
    std::size_t next = 0;
    bool resident = false;
    bool dirty = false;                   ///< HBM does not have what the tile has
    bool saved = false;                   ///< HBM has had it once
    std::uint32_t current = 0;            ///< storage that stands for it since its last reload
    std::optional<std::uint32_t> home{};  ///< storage in HBM
  };

  bool is_mine(std::uint32_t s) const { return s < tiles_.size() && !tiles_[s].uses.empty(); }
  Tile& tile(std::uint32_t s) { return tiles_[s]; }

  void find_uses() {
    const auto& storages = builder_.storages();
    tiles_.resize(storages.size());
    for (std::uint32_t n = 0; n < builder_.nodes().size(); ++n) {
      for_each_memory_operand_of_node(
          builder_.nodes()[n], [&](std::string_view /*name*/, const auto& operand) {
            const std::uint32_t s = index(storage_of(address_of(operand).base));
            if (storages[s].memory != Memory::Sbuf || storages[s].fixed) return;
            if (tiles_[s].uses.empty() || tiles_[s].uses.back() != n) tiles_[s].uses.push_back(n);
          });
    }
    for (std::uint32_t s = 0; s < tiles_.size(); ++s) tiles_[s].current = s;
    address_.resize(storages.size(), 0);
  }

  /// Bytes that nothing holds.
  struct Gap {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint32_t since = 0;  ///< node after the last use
  };

  /// Where that many bytes have been free for longest, so that filling them waits for nobody; gaps
  /// that touch count as one, free since the last of them.
  std::optional<std::int64_t> gap(std::int64_t bytes) const {
    std::optional<std::int64_t> best;
    std::uint32_t best_since = 0;
    for (std::size_t first = 0; first < free_.size(); ++first) {
      std::uint32_t since = 0;
      for (std::size_t last = first; last < free_.size(); ++last) {
        if (last > first && free_[last].begin != free_[last - 1].end) break;
        since = std::max(since, free_[last].since);
        if (free_[last].end - free_[first].begin < bytes) continue;
        if (!best || since < best_since) {
          best = free_[first].begin;
          best_since = since;
        }
        break;
      }
    }
    return best;
  }

  void reserve(std::int64_t begin, std::int64_t end) {
    std::vector<Gap> left;
    left.reserve(free_.size() + 1);
    for (const Gap& gap : free_) {
      if (gap.end <= begin || end <= gap.begin) {
        left.push_back(gap);
        continue;
      }
      if (gap.begin < begin) left.push_back({gap.begin, begin, gap.since});
      if (end < gap.end) left.push_back({end, gap.end, gap.since});
    }
    free_ = std::move(left);
  }

  void give_back(std::int64_t begin, std::int64_t end) {
    const auto after =
        std::find_if(free_.begin(), free_.end(), [&](const Gap& gap) { return gap.begin >= end; });
    free_.insert(after, {begin, end, now_ + 1});
  }

  void bring_in(std::uint32_t s, std::uint32_t location) {
    const std::int64_t bytes = size_of(s);
    std::optional<std::int64_t> at = gap(bytes);
    spilling_ = spilling_ || !at;
    if (!at) at = make_room(bytes, location);
    Tile& it = tile(s);
    if (it.saved) {
      const Storage copy = builder_.storages()[s];
      it.current = static_cast<std::uint32_t>(builder_.storages().size());
      builder_.storages().push_back(copy);
      address_.push_back(0);
      move(s, false);
      ++spills_[s].reloads;
      it.dirty = false;
    }
    it.resident = true;
    resident_.insert(s);
    address_[it.current] = *at;
    reserve(*at, *at + bytes);
    peak_ = std::max(peak_, *at + bytes);
    if (spilling_) evict_ahead();
  }

  /// Saves tiles before their bytes are needed, so that what takes their place need not wait: those
  /// whose next use is furthest, until spill_ahead_bytes are free.
  void evict_ahead() {
    std::int64_t free_bytes = 0;
    for (const Gap& gap : free_) free_bytes += gap.end - gap.begin;
    while (free_bytes < builder_.options().spill_ahead_bytes) {
      std::optional<std::uint32_t> furthest;
      for (const std::uint32_t s : resident_) {
        if (is_pinned(s)) continue;
        if (!furthest || next_use(s) > next_use(*furthest)) furthest = s;
      }
      if (!furthest) return;
      free_bytes += size_of(*furthest);
      evict(*furthest);
    }
  }
  [[nodiscard]] std::uint32_t next_use(std::uint32_t s) const {
    return tiles_[s].uses[tiles_[s].next];
  }

  /// Spills the tiles of one stretch of bytes: that whose first next use is furthest.
  std::int64_t make_room(std::int64_t bytes, std::uint32_t location) {
    std::vector<std::uint32_t> live(resident_.begin(), resident_.end());
    const auto begin_of = [&](std::uint32_t s) { return address_[tiles_[s].current]; };
    std::sort(live.begin(), live.end(),
              [&](std::uint32_t a, std::uint32_t b) { return begin_of(a) < begin_of(b); });
    std::vector<std::int64_t> starts = {0};
    for (const std::uint32_t s : live) starts.push_back(begin_of(s));
    for (const Gap& gap : free_) starts.push_back(gap.begin);
    std::optional<std::int64_t> best;
    std::uint32_t best_next = 0;
    for (const std::int64_t start : starts) {
      if (start + bytes > limit_ || held(start, start + bytes)) continue;
      std::uint32_t next = kNever;
      for (const std::uint32_t s : live) {
        if (begin_of(s) + size_of(s) <= start || start + bytes <= begin_of(s)) continue;
        next = is_pinned(s) ? 0 : std::min(next, next_use(s));
        if (next == 0) break;
      }
      if (next != 0 && (!best || next > best_next)) {
        best = start;
        best_next = next;
      }
    }
    if (!best || !builder_.options().spill) {
      refuse(builder_, Memory::Sbuf, limit_, live, location,
             best ? ", and spilling is off" : ", and all of it is in use by one instruction");
    }
    for (const std::uint32_t s : live) {
      if (begin_of(s) + size_of(s) > *best && *best + bytes > begin_of(s)) evict(s);
    }
    return *best;
  }

  [[nodiscard]] bool is_pinned(std::uint32_t s) const {
    return std::find(pinned_.begin(), pinned_.end(), s) != pinned_.end();
  }
  [[nodiscard]] std::int64_t size_of(std::uint32_t s) const {
    return align(builder_.storages()[s].bytes, kTileAlignment);
  }
  /// Whether an explicit placement has some of these bytes.
  [[nodiscard]] bool held(std::int64_t begin, std::int64_t end) const {
    return std::any_of(fixed_.begin(), fixed_.end(), [&](const Block& block) {
      return block.address < end && begin < block.address + block.bytes;
    });
  }

  void evict(std::uint32_t s) {
    Tile& it = tile(s);
    if (it.dirty || !it.saved) {
      move(s, true);
      it.saved = true;
      it.dirty = false;
      ++spills_[s].saves;
    }
    free(s);
  }

  void free(std::uint32_t s) {
    Tile& it = tile(s);
    it.resident = false;
    resident_.erase(s);
    give_back(address_[it.current], address_[it.current] + size_of(s));
  }

  /// Adds the transfer between a tile and its place in HBM.
  void move(std::uint32_t s, bool save) {
    Tile& it = tile(s);
    const Storage storage = builder_.storages()[s];
    if (!it.home) {
      Storage home = storage;
      home.memory = Memory::Hbm;
      home.kind = TensorKind::Internal;
      home.name = "spill_" + (storage.name.empty() ? std::string("tile") : storage.name);
      home.bytes = storage.bytes * storage.partitions;
      it.home = static_cast<std::uint32_t>(builder_.storages().size());
      builder_.storages().push_back(home);
      address_.push_back(0);
      spills_[s] = {home.name, storage.location, home.bytes, 0, 0};
    }
    DmaSide on_chip;
    on_chip.memory = Memory::Sbuf;
    on_chip.dtype = Dtype::Uint8;
    on_chip.element_bytes = static_cast<std::uint32_t>(storage.bytes);
    on_chip.dims = 1;
    on_chip.pattern[0] = {kSbufPartitionStride, static_cast<std::uint32_t>(storage.partitions)};
    on_chip.address = symbolic(static_cast<StorageId>(it.current), 0);
    DmaSide home = on_chip;
    home.memory = Memory::Hbm;
    home.pattern[0].stride_bytes = storage.bytes;
    home.address = symbolic(static_cast<StorageId>(*it.home), 0);
    DmaDirect2d op;
    op.src = save ? on_chip : home;
    op.dst = save ? home : on_chip;
    op.mode = builder_.options().hardware_descriptors ? DescriptorMode::HardwareDge
                                                      : DescriptorMode::Static;
    op.spill = true;
    nodes_.push_back(
        {.op = op, .engine = save ? Engine::Scalar : Engine::Sync, .location = storage.location});
  }

  Builder& builder_;
  const std::vector<Block>& fixed_;
  std::int64_t limit_;
  std::vector<Node> nodes_{};
  std::uint32_t now_ = 0;
  std::vector<Tile> tiles_{};
  std::set<std::uint32_t> resident_{};
  std::vector<std::uint32_t> pinned_{};
  std::vector<std::int64_t> address_{};
  std::vector<Gap> free_{};  ///< by address
  std::map<std::uint32_t, Spill> spills_{};
  std::int64_t peak_ = 0;
  bool spilling_ = false;
};

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
  for (std::uint32_t more = options.prefetch_tiles;; more /= 2) {
    for (const bool share : {false, true}) {
      if (sbuf.place_rings(more, share, placement.address, placement.sbuf_peak_bytes)) {
        return placement;
      }
    }
    if (more <= 1) break;
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
  if (options.cut_load_bytes != 0) cut_loads(builder, options.cut_load_bytes);
  const std::vector<std::int64_t> psum = placement.address;
  Spiller(builder, sbuf.fixed(), options.sbuf_partition_bytes).run(placement);
  for (std::size_t s = 0; s < psum.size(); ++s) {
    const Storage& storage = builder.storages()[s];
    if (storage.memory == Memory::Psum || storage.fixed) placement.address[s] = psum[s];
  }
  return placement;
}

}  // namespace trn::isa::frontend
