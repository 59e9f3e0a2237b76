#include "isa/frontend/hazards.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <unordered_map>

#include "isa/frontend/memory_operands.h"
#include "isa/frontend/place.h"

namespace trn::isa::frontend {
namespace {

constexpr std::int64_t kCellPartitions = 32;
constexpr std::int64_t kCellBytes = 1024;
constexpr std::int64_t kHbmCells = 512;
constexpr std::int64_t kMinHbmCellBytes = 4096;
constexpr std::int64_t kSbufCells = 256 * 1024 / kCellBytes;
constexpr std::int64_t kPsumCells = 16;
constexpr std::uint32_t kNobody = 0xffffffff;

struct Touch {
  std::uint32_t node = 0;
  std::uint32_t observer = kNobody;  ///< of a write: the last to read it, which waited for it
  bool write = false;
  Region region{};
};

struct Found {
  std::uint32_t node = 0;
  std::uint32_t observer = kNobody;
  bool write = false;
};

/// What was touched, filed by cells of memory.
class Map {
 public:
  Map(const Builder& builder, bool in_order) : builder_(builder), in_order_(in_order) {
    sbuf_.resize(static_cast<std::size_t>(kSbufCells * (kPartitions / kCellPartitions)));
    psum_.resize(static_cast<std::size_t>(kPsumCells * (kPartitions / kCellPartitions)));
    hbm_.resize(builder.storages().size());
    written_.resize(builder.storages().size(), false);
    for (const Node& node : builder.nodes()) {
      for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
        if (is_result(name)) written_[index(storage_of(address_of(operand).base))] = true;
      });
    }
  }

  /// Whether order can matter at all: nobody waits for a tensor in HBM that is never written. On
  /// chip, other tiles may have the same bytes.
  [[nodiscard]] bool matters(std::uint32_t storage) const {
    return written_[storage] || builder_.storages()[storage].memory != Memory::Hbm;
  }

  /// Adds to `found` what a read or write must come after.
  void find(const Region& region, bool write, std::uint32_t node, std::vector<Found>& found) {
    for_each_cell(region, [&](std::vector<Touch>& cell, const Region& /*extent*/) {
      for (Touch& touch : cell) {
        if (touch.node == node || (!write && !touch.write)) continue;
        if (!touch.region.overlaps(region)) continue;
        found.push_back({touch.node, touch.observer, touch.write});
        if (!write) touch.observer = node;
      }
    });
  }

  void insert(const Region& region, bool write, std::uint32_t node) {
    const std::vector<Node>& nodes = builder_.nodes();
    const bool by_itself = is_transfer(nodes[node].op) || !in_order_;
    for_each_cell(region, [&](std::vector<Touch>& cell, const Region& extent) {
      std::erase_if(cell, [&](const Touch& touch) {
        if (!region.dense() || !covers(region, touch.region, extent)) return false;
        if (write) return true;  // whoever comes after this write comes after those
        // Of reads by one engine, in order, the last stands for all.
        return !touch.write && !by_itself && !is_transfer(nodes[touch.node].op) &&
               nodes[touch.node].engine == nodes[node].engine;
      });
      cell.push_back({node, kNobody, write, region});
    });
  }

 private:
  /// Whether `region` has all that `other` has within a cell.
  static bool covers(const Region& region, const Region& other, const Region& extent) {
    return region.first_partition <= std::max(other.first_partition, extent.first_partition) &&
           region.end_partition >= std::min(other.end_partition, extent.end_partition) &&
           region.begin <= std::max(other.begin, extent.begin) &&
           region.end >= std::min(other.end, extent.end);
  }

  template <class Visit>
  void for_each_cell(const Region& region, const Visit& visit) {
    Region extent;
    if (region.memory == Memory::Hbm) {
      auto& cells = hbm_[region.storage];
      const std::int64_t bytes = builder_.storages()[region.storage].bytes;
      const auto size = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(
          std::max(kMinHbmCellBytes, (bytes + kHbmCells - 1) / kHbmCells))));
      extent.end_partition = 1;
      for (std::int64_t at = region.begin / size; at <= (region.end - 1) / size; ++at) {
        extent.begin = at * size;
        extent.end = extent.begin + size;
        visit(cells[at], extent);
      }
      return;
    }
    auto& cells = region.memory == Memory::Sbuf ? sbuf_ : psum_;
    const std::int64_t columns = region.memory == Memory::Sbuf ? kSbufCells : kPsumCells;
    const std::int64_t last_row = (region.end_partition - 1) / kCellPartitions;
    const std::int64_t last_column = std::min((region.end - 1) / kCellBytes, columns - 1);
    for (std::int64_t row = region.first_partition / kCellPartitions; row <= last_row; ++row) {
      extent.first_partition = row * kCellPartitions;
      extent.end_partition = extent.first_partition + kCellPartitions;
      for (std::int64_t column = region.begin / kCellBytes; column <= last_column; ++column) {
        extent.begin = column * kCellBytes;
        extent.end = extent.begin + kCellBytes;
        visit(cells[static_cast<std::size_t>(row * columns + column)], extent);
      }
    }
  }

  const Builder& builder_;
  bool in_order_;
  std::vector<std::vector<Touch>> sbuf_{};
  std::vector<std::vector<Touch>> psum_{};
  std::vector<std::unordered_map<std::int64_t, std::vector<Touch>>> hbm_{};
  std::vector<bool> written_{};
};

/// The bytes of a pattern, from its innermost dimension on.
class Extent {
 public:
  explicit Extent(std::int64_t element_bytes) : high_(element_bytes), run_(element_bytes) {}

  void add(std::int64_t step, std::int64_t size) {
    if (size == 1) return;
    const std::int64_t reach = step * (size - 1);
    (reach < 0 ? low_ : high_) += reach;
    if (running_ && step == run_) {
      run_ *= size;
    } else if (step != 0) {
      running_ = false;
      pitch_ = std::gcd(pitch_, std::abs(step));
    }
  }

  void put(std::int64_t address, Region& region) const {
    region.begin = address + low_;
    region.end = address + high_;
    const bool apart = pitch_ == 0 || run_ <= pitch_;  // else runs overlap: all between counts
    region.run = apart ? run_ : region.end - region.begin;
    region.pitch = apart ? pitch_ : 0;
  }

 private:
  std::int64_t low_ = 0;  ///< from the address of the pattern's first element
  std::int64_t high_;
  std::int64_t run_;
  std::int64_t pitch_ = 0;
  bool running_ = true;
};

/// Keeps what a consumer has to wait for: each transfer, and the last instruction of each engine,
/// or all of engines without an order.
std::vector<std::uint32_t> reduce(const std::vector<Found>& found, const Builder& builder,
                                  std::uint32_t node, bool in_order) {
  const std::vector<Node>& nodes = builder.nodes();
  std::array<std::uint32_t, kEngines> last;
  last.fill(kNobody);
  std::vector<std::uint32_t> transfers;
  std::vector<std::uint32_t> present;
  present.reserve(found.size());
  for (const Found& it : found) present.push_back(it.node);
  std::sort(present.begin(), present.end());
  present.erase(std::unique(present.begin(), present.end()), present.end());
  for (const Found& it : found) {
    // A write whose reader is waited for is over when the reader is.
    if (it.observer != kNobody && it.observer != node &&
        std::binary_search(present.begin(), present.end(), it.observer)) {
      continue;
    }
    if (is_transfer(nodes[it.node].op) || !in_order) {
      transfers.push_back(it.node);
      continue;
    }
    std::uint32_t& latest = last[index(nodes[it.node].engine)];
    if (latest == kNobody || it.node > latest) latest = it.node;
  }
  std::sort(transfers.begin(), transfers.end());
  transfers.erase(std::unique(transfers.begin(), transfers.end()), transfers.end());
  for (const std::uint32_t producer : last) {
    if (producer != kNobody) transfers.push_back(producer);
  }
  return transfers;
}

}  // namespace

bool is_transfer(const Op& op) {
  return detail::kCosts<Op>[op.index()] == CostClass::DmaTrigger ||
         detail::kCosts<Op>[op.index()] == CostClass::Collective;
}

bool Region::overlaps(const Region& other) const {
  if (first_partition >= other.end_partition || other.first_partition >= end_partition)
    return false;
  if (begin >= other.end || other.begin >= end) return false;
  if (pitch == 0 && other.pitch == 0) return true;
  // Runs that repeat: both lie on a grid of the common pitch; apart when their residues are.
  const std::int64_t grid = std::gcd(pitch, other.pitch);
  if (grid == 0) return true;
  const std::int64_t between = ((other.begin - begin) % grid + grid) % grid;
  return !(between >= run && between + other.run <= grid);
}

Region region_of(const Access& operand, std::int64_t address) {
  const std::int64_t bytes = bytes_of(operand.dtype);
  Extent extent(bytes);
  for (std::size_t i = 0; i < operand.dims; ++i) {
    extent.add(std::int64_t{operand.free[i].stride} * bytes, operand.free[i].size);
  }
  Region region;
  region.memory = operand.memory;
  region.first_partition = operand.start_partition;
  region.end_partition = operand.start_partition + operand.partitions;
  extent.put(address, region);
  return region;
}

Region region_of(const DmaSide& operand, std::int64_t address, std::uint32_t storage) {
  Region region;
  region.memory = operand.memory;
  region.storage = storage;
  if (operand.memory == Memory::Sbuf) {
    region.first_partition = address / kSbufPartitionStride;
    region.end_partition = region.first_partition + 1;
    address %= kSbufPartitionStride;
  }
  Extent extent(operand.element_bytes);
  for (std::size_t i = 0; i < operand.dims; ++i) {
    const DmaDim& dim = operand.pattern[i];
    if (operand.memory == Memory::Sbuf && std::abs(dim.stride_bytes) >= kSbufPartitionStride) {
      const std::int64_t steps = dim.stride_bytes / kSbufPartitionStride * (dim.size - 1);
      (steps < 0 ? region.first_partition : region.end_partition) += steps;
    } else {
      extent.add(dim.stride_bytes, dim.size);
    }
  }
  extent.put(address, region);
  return region;
}

Dependences find_dependences(const Builder& builder, const Placement& placement, bool in_order) {
  const std::vector<Node>& nodes = builder.nodes();
  Map map(builder, in_order);
  struct Use {
    Region region{};
    bool write = false;
  };
  const auto uses_of = [&](std::uint32_t node, std::vector<Use>& uses) {
    uses.clear();
    const auto indirect = [&](const auto& op) {
      if constexpr (requires { op.index; }) return op.index.present();
      return false;
    };
    const bool gathers = std::visit(indirect, nodes[node].op);
    for_each_memory_operand_of_node(nodes[node], [&](std::string_view name, const auto& operand) {
      const std::int64_t base = address_of(operand).base;
      const std::uint32_t storage = index(storage_of(base));
      if (!map.matters(storage)) return;
      const std::int64_t placed = operand.memory == Memory::Hbm
                                      ? bytes_in(base)
                                      : bytes_in(base) + placement.address[storage];
      Use use;
      use.write = is_result(name);
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand)>, DmaSide>) {
        use.region = region_of(operand, placed, storage);
        if (gathers && operand.memory == Memory::Hbm) {  // any row of the tensor
          use.region.begin = 0;
          use.region.end = builder.storages()[storage].bytes;
          use.region.run = use.region.end;
          use.region.pitch = 0;
        }
      } else {
        use.region = region_of(operand, placed);
      }
      uses.push_back(use);
    });
  };

  Dependences result;
  std::vector<Use> uses;
  std::vector<Use> next_uses;
  std::vector<Found> found;
  for (std::uint32_t node = 0; node < nodes.size(); ++node) {
    found.clear();
    uses_of(node, uses);
    const Engine engine = nodes[node].engine;
    const bool transfer = is_transfer(nodes[node].op);
    const auto collect = [&](const std::vector<Use>& all) {
      for (const Use& use : all) {
        const std::size_t before = found.size();
        map.find(use.region, use.write, node, found);
        if (transfer || !use.write || !in_order) continue;
        // An engine's own earlier reads and writes are over in order.
        found.erase(std::remove_if(found.begin() + static_cast<long>(before), found.end(),
                                   [&](const Found& it) {
                                     return nodes[it.node].engine == engine &&
                                            !is_transfer(nodes[it.node].op);
                                   }),
                    found.end());
      }
    };
    collect(uses);
    if (nodes[node].waits_for_next && node + 1 < nodes.size()) {
      uses_of(node + 1, next_uses);
      collect(next_uses);
    }
    result.add(reduce(found, builder, node, in_order));
    for (const Use& use : uses) map.insert(use.region, use.write, node);
  }
  return result;
}

}  // namespace trn::isa::frontend
