#include "isa/frontend/split.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"

namespace trn::isa::frontend {
namespace {

constexpr std::int64_t kLeastPieceBytes = 512;

/// The bytes of a tile that an operand touches.
template <class Operand>
Region local_region(const Operand& operand) {
  if constexpr (std::is_same_v<Operand, DmaSide>) {
    return region_of(operand, bytes_in(operand.address.base), 0);
  } else {
    return region_of(operand, bytes_in(operand.offset.base));
  }
}

}  // namespace

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

bool block_by_use(Builder& builder) {
  std::vector<Storage>& storages = builder.storages();
  std::vector<std::int64_t> piece(storages.size(), 0);
  const auto visit = [&](const auto& use) {
    for (const Node& node : builder.nodes()) {
      if (std::holds_alternative<Memset>(node.op)) continue;
      for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, const auto& operand) {
        const std::uint32_t s = index(storage_of(address_of(operand).base));
        if (storages[s].memory == Memory::Sbuf && !storages[s].fixed) {
          use(s, local_region(operand));
        }
      });
    }
  };
  visit([&](std::uint32_t s, const Region& region) {
    piece[s] = std::max(piece[s], region.end - region.begin);
  });
  visit([&](std::uint32_t s, const Region& region) {
    if (piece[s] != 0 && region.begin / piece[s] != (region.end - 1) / piece[s]) piece[s] = 0;
  });
  bool any = false;
  for (std::size_t s = 0; s < storages.size(); ++s) {
    const bool cut = piece[s] >= kLeastPieceBytes && piece[s] < storages[s].bytes;
    if (!cut || storages[s].bytes % piece[s] != 0) continue;
    storages[s].block_bytes = piece[s];
    any = true;
  }
  return any;
}

}  // namespace trn::isa::frontend
