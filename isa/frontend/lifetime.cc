#include "isa/frontend/lifetime.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/base/error.h"
#include "isa/frontend/memory_operands.h"

namespace trn::isa::frontend {

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

std::optional<std::int64_t> FreeList::oldest(std::int64_t bytes) const {
  std::optional<std::int64_t> best;
  double best_since = 0;
  for (std::size_t first = 0; first < gaps_.size(); ++first) {
    double since = 0;
    for (std::size_t last = first; last < gaps_.size(); ++last) {
      if (last > first && gaps_[last].begin != gaps_[last - 1].end) break;
      since = std::max(since, gaps_[last].since);
      if (gaps_[last].end - gaps_[first].begin < bytes) continue;
      if (!best || since < best_since) {
        best = gaps_[first].begin;
        best_since = since;
      }
      break;
    }
  }
  return best;
}

void FreeList::take(std::int64_t begin, std::int64_t end) {
  std::vector<Gap> left;
  left.reserve(gaps_.size() + 1);
  for (const Gap& gap : gaps_) {
    if (gap.end <= begin || end <= gap.begin) {
      left.push_back(gap);
      continue;
    }
    if (gap.begin < begin) left.push_back({gap.begin, begin, gap.since});
    if (end < gap.end) left.push_back({end, gap.end, gap.since});
  }
  gaps_ = std::move(left);
}

void FreeList::give_back(std::int64_t begin, std::int64_t end, double since) {
  const auto after =
      std::find_if(gaps_.begin(), gaps_.end(), [&](const Gap& gap) { return gap.begin >= end; });
  gaps_.insert(after, {begin, end, since});
}

std::int64_t FreeList::bytes() const {
  std::int64_t sum = 0;
  for (const Gap& gap : gaps_) sum += gap.end - gap.begin;
  return sum;
}

void refuse(const Builder& builder, Memory memory, std::int64_t limit,
            std::vector<std::uint32_t> live, std::uint32_t location, std::string_view hint) {
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

}  // namespace trn::isa::frontend
