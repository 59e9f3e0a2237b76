#include "isa/frontend/rewrite.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "isa/frontend/hazards.h"
#include "isa/frontend/lifetime.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/rough.h"

namespace trn::isa::frontend {
namespace {

std::uint32_t storage_index(const auto& operand) {
  return index(storage_of(address_of(operand).base));
}

constexpr std::uint32_t kAnyElementBytes = 16;  // no dtype has more

/// The load of a node that copies elements of up to so many bytes between fixed places of HBM and
/// SBUF; else null.
const DmaDirect2d* plain_load(const Node& node, std::uint32_t element_bytes) {
  const auto* load = std::get_if<DmaDirect2d>(&node.op);
  const bool plain =
      load != nullptr && load->src.memory == Memory::Hbm && load->dst.memory == Memory::Sbuf &&
      !load->index.present() && load->src.address.constant() && load->dst.address.constant() &&
      load->src.dtype == load->dst.dtype && bytes_of(load->dst.dtype) <= element_bytes;
  return plain ? load : nullptr;
}

/// How many instructions write each tensor.
std::vector<std::uint32_t> count_writers(const Builder& builder) {
  std::vector<std::uint32_t> writers(builder.storages().size(), 0);
  for (const Node& node : builder.nodes()) {
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      if (is_result(name)) ++writers[storage_index(operand)];
    });
  }
  return writers;
}

/// What a load reads and where in its tile it puts it, apart from which tile it is.
std::string key_of(const DmaDirect2d& load) {
  std::string key;
  const auto add = [&](std::int64_t number) {
    key.append(reinterpret_cast<const char*>(&number), sizeof number);
  };
  add(load.src.address.base);
  add(bytes_in(load.dst.address.base));
  for (const DmaSide* side : {&load.src, &load.dst}) {
    add(static_cast<std::int64_t>(side->dtype));
    add(side->element_bytes);
    for (std::size_t d = 0; d < side->dims; ++d) {
      add(side->pattern[d].stride_bytes);
      add(side->pattern[d].size);
    }
    add(-1);
  }
  return key;
}

/// Loaded tiles that are kept, up to a number of bytes of a partition: those that are wanted again
/// first.
class HeldTiles {
 public:
  /// next: for each load, the next one of the same (next_loads).
  HeldTiles(std::int64_t bytes, std::vector<std::uint32_t> next)
      : bytes_(bytes), next_(std::move(next)) {}

  /// The tile that holds what node `load` would put into `tile`, if there is one.
  std::optional<std::uint32_t> use(const std::string& key, std::uint32_t load,
                                   std::uint32_t /*tile*/) {
    const auto known = by_key_.find(key);
    if (known == by_key_.end()) return std::nullopt;
    const Entry entry = known->second;
    forget(key);
    add(key, load, entry.tile, entry.bytes);
    return entry.tile;
  }

  void add(const std::string& key, std::uint32_t load, std::uint32_t tile, std::int64_t bytes) {
    by_key_[key] = {tile, bytes, by_next_.emplace(next_[load], key)};
    total_ += bytes;
    while (total_ > bytes_) forget(std::string(std::prev(by_next_.end())->second));
  }

  void forget_all() {
    by_key_.clear();
    by_next_.clear();
    total_ = 0;
  }

  void forget(const std::string& key) {
    const auto known = by_key_.find(key);
    if (known == by_key_.end()) return;
    total_ -= known->second.bytes;
    by_next_.erase(known->second.at);
    by_key_.erase(known);
  }

 private:
  using ByNext = std::multimap<std::uint32_t, std::string>;
  struct Entry {
    std::uint32_t tile = 0;
    std::int64_t bytes = 0;
    ByNext::iterator at{};
  };

  std::int64_t bytes_;
  std::vector<std::uint32_t> next_;
  std::int64_t total_ = 0;
  ByNext by_next_{};  ///< keys by the node that wants them next
  std::unordered_map<std::string, Entry> by_key_{};
};

/// Loaded tiles that are kept until a number of bytes of a partition have been loaded, their own
/// included, as in a buffer that loads go round.
class PassingTiles {
 public:
  /// may: by tile, whether its load may be left out.
  PassingTiles(std::int64_t bytes, std::vector<bool> may) : bytes_(bytes), may_(std::move(may)) {}

  /// As HeldTiles has it; a tile that is used grows no younger.
  std::optional<std::uint32_t> use(const std::string& key, std::uint32_t /*load*/,
                                   std::uint32_t tile) const {
    const auto known = by_key_.find(key);
    const bool held = known != by_key_.end() && loaded_ - known->second.begin <= bytes_;
    return held && may_[tile] ? std::optional(known->second.tile) : std::nullopt;
  }

  void add(const std::string& key, std::uint32_t /*load*/, std::uint32_t tile, std::int64_t bytes) {
    by_key_[key] = {tile, loaded_};
    loaded_ += bytes;
  }

  void forget_all() { by_key_.clear(); }
  void forget(const std::string& key) { by_key_.erase(key); }

 private:
  struct Entry {
    std::uint32_t tile = 0;
    std::int64_t begin = 0;  ///< bytes loaded before
  };

  std::int64_t bytes_;
  std::vector<bool> may_;
  std::int64_t loaded_ = 0;
  std::unordered_map<std::string, Entry> by_key_{};
};

/// Nothing is published of smaller ones: docs/concepts/scheduling.md#what-is-not-loaded-again.
constexpr std::int64_t kRecentElementBytes = 4;

/// By tile, whether a load of it may be left out by reuse_recent_loads.
std::vector<bool> passing_tiles(const Builder& builder) {
  const std::vector<Storage>& storages = builder.storages();
  const std::vector<Lifetime> lives = lifetimes(builder);
  std::vector<std::uint32_t> tiles;
  for (std::uint32_t s = 0; s < storages.size(); ++s) {
    const bool wide = bytes_of(storages[s].dtype) == kRecentElementBytes;
    if (storages[s].memory == Memory::Sbuf && lives[s].used() && wide) tiles.push_back(s);
  }
  const auto line = [&](std::uint32_t s) {
    return std::tuple(storages[s].location, storages[s].bytes);
  };
  std::sort(tiles.begin(), tiles.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::tuple(line(a), lives[a].first) < std::tuple(line(b), lives[b].first);
  });
  std::vector<bool> result(storages.size(), false);
  for (std::size_t first = 0, last = 0; first < tiles.size(); first = last) {
    bool alone = true;
    for (last = first + 1; last < tiles.size() && line(tiles[last]) == line(tiles[first]); ++last)
      alone = alone && !lives[tiles[last - 1]].overlaps(lives[tiles[last]]);
    for (std::size_t i = first; i < last; ++i) result[tiles[i]] = alone;
  }
  return result;
}

/// The load of a node that may be left out when its tile still holds what it reads; else null.
const DmaDirect2d* reusable(const Builder& builder, const std::vector<std::uint32_t>& writers,
                            const Node& node, std::uint32_t element_bytes) {
  const DmaDirect2d* load = plain_load(node, element_bytes);
  if (load == nullptr) return nullptr;
  const std::uint32_t tile = storage_index(load->dst);
  return writers[tile] == 1 && !builder.storages()[tile].fixed ? load : nullptr;
}

/// For each load, the next node that loads the same.
std::vector<std::uint32_t> next_loads(const Builder& builder,
                                      const std::vector<std::uint32_t>& writers) {
  const std::vector<Node>& nodes = builder.nodes();
  std::vector<std::uint32_t> next(nodes.size(), std::numeric_limits<std::uint32_t>::max());
  std::unordered_map<std::string, std::uint32_t> later;
  for (auto n = static_cast<std::uint32_t>(nodes.size()); n-- > 0;) {
    const DmaDirect2d* load =
        reusable(builder, writers, nodes[n], builder.options().reuse_element_bytes);
    if (load == nullptr) continue;
    const auto [known, first] = later.try_emplace(key_of(*load), n);
    if (first) continue;
    next[n] = known->second;
    known->second = n;
  }
  return next;
}

/// Which MEMSETs fill a tile in SBUF whose next instruction, before any fence, adds to what it has:
/// reads it and writes it.
std::vector<bool> begin_sums(const Builder& builder) {
  const std::vector<Node>& nodes = builder.nodes();
  const std::vector<Storage>& storages = builder.storages();
  std::vector<bool> result(nodes.size(), false);
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> fills;  // by tile
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    const Node& node = nodes[n];
    const auto* fill = std::get_if<Memset>(&node.op);
    if (fill != nullptr && !node.fence) {
      const std::uint32_t tile = storage_index(fill->dst);
      // A tile that the kernel placed may share its bytes with others.
      const bool ours = storages[tile].memory == Memory::Sbuf && !storages[tile].fixed;
      if (ours) fills[tile].push_back(n);
      continue;
    }
    std::vector<std::uint32_t> read;
    std::vector<std::uint32_t> written;
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      (is_result(name) ? written : read).push_back(storage_index(operand));
    });
    for (const std::uint32_t tile : written) {
      if (std::find(read.begin(), read.end(), tile) == read.end()) continue;
      for (const std::uint32_t at : fills[tile]) result[at] = true;
      fills.erase(tile);
    }
    for (const auto* all : {&read, &written}) {
      for (const std::uint32_t tile : *all) fills.erase(tile);
    }
    if (separates(node)) fills.clear();
  }
  return result;
}

/// Leaves out loads of up to so large elements whose data a tile among those held still has.
std::uint64_t leave_out_loads(Builder& builder, const std::vector<std::uint32_t>& writers,
                              std::uint32_t element_bytes, auto&& held) {
  const std::vector<Storage>& storages = builder.storages();
  std::vector<std::vector<std::string>> loaded_from(storages.size());  // keys, by tensor in HBM
  std::vector<std::uint32_t> stands_for(storages.size());
  std::iota(stands_for.begin(), stands_for.end(), 0U);
  std::uint64_t dropped = 0;
  std::vector<Node> result;
  result.reserve(builder.nodes().size());
  for (std::uint32_t n = 0; n < builder.nodes().size(); ++n) {
    Node& node = builder.nodes()[n];
    if (separates(node)) held.forget_all();
    if (const DmaDirect2d* load = reusable(builder, writers, node, element_bytes)) {
      const std::uint32_t tile = storage_index(load->dst);
      const std::string key = key_of(*load);
      if (const auto known = held.use(key, n, tile)) {
        stands_for[tile] = *known;
        ++dropped;
        continue;
      }
      held.add(key, n, tile, storages[tile].bytes);
      loaded_from[storage_index(load->src)].push_back(key);
    }
    for_each_memory_operand_of_node(node, [&](std::string_view name, auto& operand) {
      const std::uint32_t s = storage_index(operand);
      if (stands_for[s] != s) {
        Affine& address = address_of(operand);
        address.base = symbolic(static_cast<StorageId>(stands_for[s]), bytes_in(address.base));
      }
      if (is_result(name) && storages[s].memory == Memory::Hbm) {
        for (const std::string& key : loaded_from[s]) held.forget(key);
        loaded_from[s].clear();
      }
    });
    result.push_back(std::move(node));
  }
  builder.nodes() = std::move(result);
  return dropped;
}

}  // namespace

bool separates(const Node& node) {
  bool touches_memory = false;
  for_each_memory_operand_of_node(
      node, [&](std::string_view /*name*/, const auto& /*operand*/) { touches_memory = true; });
  return node.fence || !touches_memory;
}

void sink_memsets(Builder& builder) {
  const std::vector<bool> sinks = begin_sums(builder);
  std::vector<Node> result;
  result.reserve(builder.nodes().size());
  std::unordered_map<std::uint32_t, std::vector<Node>> waiting;  // by tile
  for (std::uint32_t n = 0; n < builder.nodes().size(); ++n) {
    Node& node = builder.nodes()[n];
    if (sinks[n]) {
      waiting[storage_index(std::get<Memset>(node.op).dst)].push_back(std::move(node));
      continue;
    }
    for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, const auto& operand) {
      const auto known = waiting.find(storage_index(operand));
      if (known == waiting.end()) return;
      for (Node& fill : known->second) result.push_back(std::move(fill));
      waiting.erase(known);
    });
    result.push_back(std::move(node));
  }
  builder.nodes() = std::move(result);
}

std::vector<std::uint32_t> early_places(const Builder& builder) {
  const std::vector<std::uint32_t> writers = count_writers(builder);
  const std::vector<Node>& nodes = builder.nodes();
  std::vector<std::uint32_t> places(nodes.size());
  std::uint32_t last_place = 0;
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    places[n] = n;
    const DmaDirect2d* load = plain_load(nodes[n], kAnyElementBytes);
    if (load == nullptr) continue;
    const bool free = !separates(nodes[n]) && writers[storage_index(load->src)] == 0 &&
                      writers[storage_index(load->dst)] == 1;
    std::array<double, kEngines + 1> passed{};  // by worker
    std::uint32_t at = n;
    for (; free && at > last_place; --at) {
      const Node& before = nodes[at - 1];
      if (separates(before)) break;
      double& sum = passed[worker(before)];
      sum += rough_ns(before.op, before.engine);
      if (sum > builder.options().load_ahead_ns) break;
    }
    while (at < n && at > 0 && nodes[at - 1].waits_for_next) ++at;
    last_place = places[n] = at;
  }
  return places;
}

void hoist_loads(Builder& builder) {
  const std::vector<std::uint32_t> places = early_places(builder);
  std::vector<std::uint32_t> order(places.size());
  std::iota(order.begin(), order.end(), 0U);
  // A load goes before the node whose place it has.
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return std::pair(places[a], places[a] == a) < std::pair(places[b], places[b] == b);
  });
  std::vector<Node> result;
  result.reserve(order.size());
  for (const std::uint32_t n : order) result.push_back(std::move(builder.nodes()[n]));
  builder.nodes() = std::move(result);
}

std::uint64_t reuse_loads(Builder& builder) {
  const std::vector<std::uint32_t> writers = count_writers(builder);
  const Options& options = builder.options();
  return leave_out_loads(builder, writers, options.reuse_element_bytes,
                         HeldTiles(options.reuse_loads_bytes, next_loads(builder, writers)));
}

std::uint64_t reuse_recent_loads(Builder& builder) {
  return leave_out_loads(
      builder, count_writers(builder), kAnyElementBytes,
      PassingTiles(builder.options().reuse_within_bytes, passing_tiles(builder)));
}

namespace {

constexpr std::uint32_t kMergeReach = 64;  ///< instructions between loads that become one

/// Loads that become one: as many tiles, each behind the one before it in HBM.
struct Group {
  std::uint32_t first = 0;  ///< node of the first load
  std::uint32_t tile = 0;   ///< the tensor that holds all, in place of the first's
  std::uint32_t count = 1;
  std::uint32_t last = 0;  ///< node of the last load
  std::int64_t next = 0;   ///< where the next tile's rows begin in HBM
  std::int64_t rows_bytes = 0;
};

/// Whether a load copies whole rows of a matrix into all 128 partitions of its tile.
bool fills_tile(const DmaDirect2d& load, const Storage& tile) {
  return tile.partitions > 1 && load.src.dims == 1 && load.dst.dims == 1 &&
         load.src.pattern[0].size == tile.partitions &&
         load.dst.pattern[0].size == tile.partitions && load.dst.element_bytes == tile.bytes &&
         bytes_in(load.dst.address.base) == 0 && load.src.element_bytes == tile.bytes &&
         load.src.pattern[0].stride_bytes > 0;
}

/// What tiles have in common that may be one row of HBM: line, tensor, bytes of a partition.
using Row = std::tuple<std::uint32_t, std::uint32_t, std::int64_t>;

Row row_of(const Node& node, const DmaDirect2d& load, std::int64_t bytes) {
  return {node.location, storage_index(load.src), bytes};
}

/// From a tile's rows in HBM to those of the next.
std::int64_t rows_bytes_of(const DmaDirect2d& load) {
  return load.src.pattern[0].stride_bytes * load.src.pattern[0].size;
}

/// Tiles that a Tensor instruction of one kind reads: LDWEIGHTS the stationary ones, MATMUL the
/// moving ones.
template <class Instruction>
std::vector<bool> read_by(const Builder& builder) {
  std::vector<bool> result(builder.storages().size(), false);
  for (const Node& node : builder.nodes()) {
    if (!std::holds_alternative<Instruction>(node.op)) continue;
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      if (!is_result(name)) result[storage_index(operand)] = true;
    });
  }
  return result;
}

/// What becomes of loads that fill tiles, by node.
struct Joins {
  std::vector<bool> joins{};   ///< may become part of another one
  std::vector<bool> looped{};  ///< stays in a loop
};

/// All loads of one line from one tensor into tiles of one size.
struct Extent {
  std::int64_t bytes = 0;  ///< of a partition, all loads together
  std::int64_t next = 0;
  std::uint32_t in_a_row = 0;
  std::uint32_t longest = 0;  ///< row of tiles behind each other in HBM
  bool stationary = false;
  bool moving = false;
};

Joins find_joins(const Builder& builder) {
  const Options& options = builder.options();
  const std::vector<Storage>& storages = builder.storages();
  const std::vector<std::uint32_t> writers = count_writers(builder);
  const std::vector<bool> stationary = read_by<LdWeights>(builder);
  const std::vector<bool> moving = read_by<Matmul>(builder);
  const std::vector<Node>& nodes = builder.nodes();
  std::map<Row, Extent> extents;
  std::vector<Extent*> extent_of(nodes.size(), nullptr);  // none: no load that fills a tile
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    const DmaDirect2d* load =
        reusable(builder, writers, nodes[n], builder.options().reuse_element_bytes);
    if (load == nullptr || nodes[n].fence) continue;
    const std::uint32_t tile = storage_index(load->dst);
    if (!fills_tile(*load, storages[tile])) continue;
    Extent& extent = extents[row_of(nodes[n], *load, storages[tile].bytes)];
    extent_of[n] = &extent;
    extent.bytes += storages[tile].bytes;
    extent.in_a_row = load->src.address.base == extent.next ? extent.in_a_row + 1 : 1;
    extent.longest = std::max(extent.longest, extent.in_a_row);
    extent.next = load->src.address.base + rows_bytes_of(*load);
    extent.stationary = extent.stationary || stationary[tile];
    extent.moving = extent.moving || moving[tile];
  }

  const auto is_long = [&](const Extent& it) { return it.longest > options.merge_tiles; };
  const auto is_small = [&](const Extent& it) { return it.bytes <= options.merge_far_bytes; };
  bool any = false;  // of the long rows some become fewer transfers
  bool any_moving = false;
  for (const auto& [row, extent] : extents) {
    const bool two_fit = 2 * std::get<2>(row) <= options.merge_loads_bytes;
    if (!is_long(extent) || !is_small(extent) || !two_fit) continue;
    any = true;
    any_moving = any_moving || extent.moving;
  }
  Joins result{std::vector<bool>(nodes.size(), false), std::vector<bool>(nodes.size(), false)};
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (extent_of[n] == nullptr) continue;
    const Extent& extent = *extent_of[n];
    if (is_long(extent)) {
      result.joins[n] = is_small(extent) || (extent.stationary && any_moving);
      result.looped[n] = !any && options.merge_tiles != 0;
    } else {
      result.joins[n] = !extent.stationary || extent.longest >= options.merge_stationary_tiles;
    }
  }
  return result;
}

/// Where a tile lies that has become a part of another one.
struct Part {
  std::uint32_t tile = 0;
  std::int64_t offset = 0;
};

/// Drops nodes, and lets the others name the tiles that parts belong to.
void become_parts(Builder& builder, const std::vector<std::optional<Part>>& parts,
                  const std::vector<bool>& dropped) {
  std::vector<Node>& nodes = builder.nodes();
  std::vector<Node> result;
  result.reserve(nodes.size());
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (dropped[n]) continue;
    for_each_memory_operand_of_node(nodes[n], [&](std::string_view /*name*/, auto& operand) {
      const auto& part = parts[storage_index(operand)];
      if (!part) return;
      Affine& address = address_of(operand);
      address.base =
          symbolic(static_cast<StorageId>(part->tile), bytes_in(address.base) + part->offset);
    });
    result.push_back(std::move(nodes[n]));
  }
  nodes = std::move(result);
}

}  // namespace

std::uint64_t merge_loads(Builder& builder) {
  std::vector<Storage>& storages = builder.storages();
  const std::size_t count = storages.size();
  std::vector<std::optional<Part>> parts(count);
  std::vector<Node>& nodes = builder.nodes();
  const Joins all = find_joins(builder);
  std::vector<bool> dropped(nodes.size(), false);
  std::map<Row, Group> open;
  std::vector<Group> groups;
  std::uint64_t merged = 0;
  const auto close = [&](const Group& group) {
    if (group.count > 1) groups.push_back(group);
  };
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (separates(nodes[n])) {
      for (const auto& [key, group] : open) close(group);
      open.clear();
    }
    for_each_memory_operand_of_node(nodes[n], [&](std::string_view name, const auto& operand) {
      if (!is_result(name) || operand.memory != Memory::Hbm) return;
      for (auto group = open.begin(); group != open.end();) {  // what is written is not read ahead
        const bool same = std::get<1>(group->first) == storage_index(operand);
        if (same) close(group->second);
        group = same ? open.erase(group) : std::next(group);
      }
    });
    nodes[n].looped = all.looped[n];
    if (!all.joins[n]) continue;
    const auto& load = std::get<DmaDirect2d>(nodes[n].op);
    const std::uint32_t tile = storage_index(load.dst);
    const std::int64_t bytes = storages[tile].bytes;
    const std::int64_t at = load.src.address.base;
    const std::int64_t rows_bytes = rows_bytes_of(load);
    const Row key = row_of(nodes[n], load, bytes);
    const auto known = open.find(key);
    if (known != open.end()) {
      Group& group = known->second;
      const bool fits = (group.count + 1) * bytes <= builder.options().merge_loads_bytes;
      const bool near = n - group.last <= kMergeReach;
      if (at == group.next && rows_bytes == group.rows_bytes && fits && near) {
        parts[tile] = Part{group.tile, group.count * bytes};
        group.next += rows_bytes;
        ++group.count;
        group.last = n;
        dropped[n] = true;
        ++merged;
        continue;
      }
      close(group);
      open.erase(known);
    }
    open.emplace(key, Group{n, tile, 1, n, at + rows_bytes, rows_bytes});
  }
  for (const auto& [key, group] : open) close(group);

  for (const Group& group : groups) {
    auto& load = std::get<DmaDirect2d>(nodes[group.first].op);
    Storage& tile = storages[group.tile];
    const std::int64_t bytes = tile.bytes;
    for (DmaSide* side : {&load.src, &load.dst}) {
      const std::int64_t step = side == &load.src ? group.rows_bytes : bytes;
      side->pattern[1] = {step, group.count};
      side->dims = 2;
    }
    tile.bytes = tile.block_bytes = bytes * group.count;
    tile.shape = {tile.partitions, tile.bytes / bytes_of(tile.dtype)};
  }
  become_parts(builder, parts, dropped);
  return merged;
}

namespace {

constexpr std::uint32_t kStoreReach = 256;  ///< instructions between stores that become one

/// Stores that become one: of as many tiles, each right of the one before it in HBM.
struct StoreGroup {
  std::uint32_t line = 0;
  std::uint32_t tile = 0;  ///< the tensor that holds all, in place of the first's
  std::vector<std::uint32_t> nodes{};
  std::int64_t next = 0;  ///< where the next tile's columns begin in HBM
};

/// The store of a node that copies a whole tile, row by row, to a fixed place in HBM; else null.
const DmaDirect2d* whole_store(const Node& node, const std::vector<Storage>& storages) {
  const auto* store = std::get_if<DmaDirect2d>(&node.op);
  if (store == nullptr || store->src.memory != Memory::Sbuf || store->dst.memory != Memory::Hbm ||
      node.fence || store->index.present() || !store->src.address.constant() ||
      !store->dst.address.constant() || store->src.dtype != store->dst.dtype) {
    return nullptr;
  }
  const Storage& tile = storages[storage_index(store->src)];
  const bool whole =
      !tile.fixed && store->src.dims == 1 && store->dst.dims == 1 &&
      store->src.pattern[0].size == tile.partitions &&
      store->dst.pattern[0].size == tile.partitions && store->src.element_bytes == tile.bytes &&
      store->dst.element_bytes == tile.bytes && bytes_in(store->src.address.base) == 0 &&
      store->dst.pattern[0].stride_bytes > tile.bytes;
  return whole ? store : nullptr;
}

/// By tensor: how many products the sum has that was copied there from PSUM; 0 for other tensors.
std::vector<std::uint32_t> products_of(const Builder& builder,
                                       const std::vector<std::uint32_t>& writers) {
  std::vector<std::uint32_t> products(writers.size(), 0);
  for (const Node& node : builder.nodes()) {
    std::optional<std::uint32_t> sum;
    std::optional<std::uint32_t> to;
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      if (is_result(name)) {
        to = storage_index(operand);
      } else if (builder.storages()[storage_index(operand)].memory == Memory::Psum) {
        sum = storage_index(operand);
      }
    });
    if (sum && to && !std::holds_alternative<Matmul>(node.op)) products[*to] = writers[*sum];
  }
  return products;
}

}  // namespace

std::uint64_t merge_stores(Builder& builder) {
  std::vector<Storage>& storages = builder.storages();
  std::vector<Node>& nodes = builder.nodes();
  const Options& options = builder.options();
  const std::vector<std::uint32_t> writers = count_writers(builder);
  const std::vector<std::uint32_t> products = products_of(builder, writers);
  std::map<std::uint32_t, StoreGroup> open;  // by tensor in HBM
  std::vector<StoreGroup> groups;
  std::vector<bool> taken(storages.size(), false);  // a tile that is stored twice joins once
  const auto close_all = [&] {
    for (auto& [key, group] : open) groups.push_back(std::move(group));
    open.clear();
  };
  const auto close_those_of = [&](std::uint32_t tensor) {
    const auto group = open.find(tensor);
    if (group == open.end()) return;
    groups.push_back(std::move(group->second));
    open.erase(group);
  };
  for (std::uint32_t n = 0; n < nodes.size(); ++n) {
    if (separates(nodes[n])) close_all();
    const DmaDirect2d* store = whole_store(nodes[n], storages);
    const std::uint32_t tile = store != nullptr ? storage_index(store->src) : 0;
    if (store == nullptr || writers[tile] != 1 || products[tile] == 0 ||
        products[tile] > options.merge_tiles || taken[tile]) {
      // What others read or write in HBM is stored before.
      for_each_memory_operand_of_node(nodes[n],
                                      [&](std::string_view /*name*/, const auto& operand) {
                                        if (operand.memory == Memory::Hbm)
                                          close_those_of(storage_index(operand));
                                      });
      continue;
    }
    const std::int64_t bytes = storages[tile].bytes;
    const std::int64_t at = store->dst.address.base;
    StoreGroup& group = open[storage_index(store->dst)];
    const auto count = static_cast<std::int64_t>(group.nodes.size());
    const bool joins = count > 0 && at == group.next && nodes[n].location == group.line &&
                       bytes == storages[group.tile].bytes &&
                       (count + 1) * bytes <= options.merge_loads_bytes &&
                       n - group.nodes.back() <= kStoreReach;
    if (!joins) {
      groups.push_back(std::move(group));
      group = {.line = nodes[n].location, .tile = tile};
    }
    group.nodes.push_back(n);
    group.next = at + bytes;
    taken[tile] = true;
  }
  close_all();

  std::vector<std::optional<Part>> parts(storages.size());
  std::vector<bool> dropped(nodes.size(), false);
  std::uint64_t merged = 0;
  for (const StoreGroup& group : groups) {
    if (group.nodes.size() < 2) continue;
    const auto& first = std::get<DmaDirect2d>(nodes[group.nodes.front()].op);
    auto& last = std::get<DmaDirect2d>(nodes[group.nodes.back()].op);
    Storage& whole = storages[group.tile];
    const std::int64_t bytes = whole.bytes;
    std::int64_t offset = 0;
    for (const std::uint32_t n : group.nodes) {
      const std::uint32_t tile = storage_index(std::get<DmaDirect2d>(nodes[n].op).src);
      if (tile != group.tile) parts[tile] = Part{group.tile, offset};
      offset += bytes;
      dropped[n] = n != group.nodes.back();
      merged += dropped[n] ? 1 : 0;
    }
    last.src = first.src;
    last.dst = first.dst;
    last.src.element_bytes = last.dst.element_bytes = static_cast<std::uint32_t>(offset);
    whole.bytes = whole.block_bytes = offset;
    whole.shape = {whole.partitions, offset / bytes_of(whole.dtype)};
  }
  become_parts(builder, parts, dropped);
  return merged;
}

}  // namespace trn::isa::frontend
