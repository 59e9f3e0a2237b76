#include "isa/frontend/spill.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/rough.h"

namespace trn::isa::frontend {
namespace {

/// Shares SBUF by lifetime, tile by tile in program order, and spills what has to wait longest.
class Spiller {
 public:
  Spiller(Builder& builder, const std::vector<Block>& fixed, std::int64_t limit)
      : builder_(builder), fixed_(fixed), limit_(limit), free_(limit) {
    // Explicit placements hold their bytes throughout: rare, and never wrong.
    for (const Block& block : fixed) free_.take(block.address, block.address + block.bytes);
  }

  void run(Placement& placement) {
    find_uses();
    std::vector<Node> old = std::move(builder_.nodes());
    nodes_.reserve(old.size());
    for (now_ = 0; now_ < old.size(); ++now_) {
      look_ahead(old);
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
        if (--it.soon == 0) soon_bytes_ -= room_for(s);
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
    std::uint32_t soon = 0;  ///< uses from this node to the horizon
    bool loaded = false;     ///< a transfer writes it first
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
            Tile& it = tiles_[s];
            if (it.uses.empty()) it.loaded = is_transfer(builder_.nodes()[n].op);
            if (it.uses.empty() || it.uses.back() != n) it.uses.push_back(n);
          });
    }
    for (std::uint32_t s = 0; s < tiles_.size(); ++s) tiles_[s].current = s;
    address_.resize(storages.size(), 0);
  }

  /// Moves the horizon to where an engine, or the DMA engines, will have worked for
  /// spill_ahead_ns.
  void look_ahead(const std::vector<Node>& nodes) {
    const double most = builder_.options().spill_ahead_ns;
    for (; horizon_ < nodes.size(); ++horizon_) {
      const Node& node = nodes[horizon_];
      const double takes = rough_ns(node.op, node.engine);
      double& work = work_ahead_[worker(node)];
      if (horizon_ > now_ && work + takes > most) break;
      work += takes;
      for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, const auto& operand) {
        const std::uint32_t s = index(storage_of(address_of(operand).base));
        if (is_mine(s) && tile(s).soon++ == 0) soon_bytes_ += room_for(s);
      });
    }
    work_ahead_[worker(nodes[now_])] -= rough_ns(nodes[now_].op, nodes[now_].engine);
  }
  /// Loads have moved up before, and have their bytes in time.
  [[nodiscard]] std::int64_t room_for(std::uint32_t s) const {
    return tiles_[s].loaded ? 0 : size_of(s);
  }

  void bring_in(std::uint32_t s, std::uint32_t location) {
    const std::int64_t bytes = size_of(s);
    std::optional<std::int64_t> at = free_.oldest(bytes);
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
    free_.take(*at, *at + bytes);
    peak_ = std::max(peak_, *at + bytes);
    if (spilling_ && builder_.options().spill_ahead_ns != 0) evict_ahead();
  }

  /// Saves tiles before their bytes are needed, so that what takes their place need not wait: those
  /// whose next use is furthest and behind the horizon, until there is room for as much again as
  /// is worked on up to there, but no more than a quarter of the memory.
  void evict_ahead() {
    std::int64_t free_bytes = free_.bytes();
    const std::int64_t room = std::min(soon_bytes_, limit_ / 4);
    while (free_bytes < room) {
      std::optional<std::uint32_t> furthest;
      for (const std::uint32_t s : resident_) {
        if (tile(s).soon != 0) continue;
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
    for (const FreeList::Gap& gap : free_.gaps()) starts.push_back(gap.begin);
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
    free_.give_back(address_[it.current], address_[it.current] + size_of(s), now_ + 1);
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
  FreeList free_;
  std::map<std::uint32_t, Spill> spills_{};
  std::int64_t peak_ = 0;
  bool spilling_ = false;
  std::uint32_t horizon_ = 0;                      ///< first node after those that come soon
  std::array<double, kEngines + 1> work_ahead_{};  ///< up to there, ns; that of DMA engines last
  std::int64_t soon_bytes_ = 0;                    ///< of a partition, of tiles used up to there
};

}  // namespace

void spill(Builder& builder, const std::vector<Block>& fixed, std::int64_t limit,
           Placement& placement) {
  Spiller(builder, fixed, limit).run(placement);
}

}  // namespace trn::isa::frontend
