#include "sim/report/memory_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "isa/base/error.h"
#include "sim/report/stalls.h"

namespace trn::sim {
namespace {

constexpr std::size_t kLargest = 5;
constexpr std::array<isa::Memory, 3> kMemories = {isa::Memory::Sbuf, isa::Memory::Psum,
                                                  isa::Memory::Hbm};

/// Sums that stay at the largest number instead of starting anew.
std::uint64_t plus(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t sum = a + b;
  return sum < a ? std::numeric_limits<std::uint64_t>::max() : sum;
}

std::uint64_t partitions_of(const isa::Tensor& tensor) {
  const bool by_partition =
      !tensor.shape.empty() && tensor.shape[0] > 0 && tensor.shape[0] <= isa::kPartitions;
  return by_partition ? tensor.shape[0] : isa::kPartitions;
}

/// Bytes that the tensors of a memory take: those of HBM without overlaps, wherever they lie; on
/// chip up to the highest byte of a partition.
std::uint64_t needed(const isa::TraceInfo& trace, isa::Memory memory) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  std::uint64_t highest = 0;
  for (const isa::Tensor& tensor : trace.tensors) {
    if (tensor.memory != memory) continue;
    ranges.emplace_back(tensor.address, plus(tensor.address, tensor.bytes));
    highest = std::max(highest, ranges.back().second);
  }
  if (memory != isa::Memory::Hbm) return highest;
  std::sort(ranges.begin(), ranges.end());
  std::uint64_t sum = 0;
  std::uint64_t reached = 0;
  for (const auto& [begin, end] : ranges) {
    const std::uint64_t from = std::max(begin, reached);
    if (end > from) sum = plus(sum, end - from);
    reached = std::max(reached, end);
  }
  return sum;
}

std::vector<TensorUse> largest_of(const isa::TraceInfo& trace, isa::Memory memory) {
  std::vector<TensorUse> tensors;
  for (const isa::Tensor& tensor : trace.tensors) {
    if (tensor.memory != memory) continue;
    const std::uint64_t bytes =
        memory == isa::Memory::Hbm ? tensor.bytes : tensor.bytes * partitions_of(tensor);
    tensors.push_back({tensor.name, bytes, source_text(trace, tensor.location)});
  }
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const TensorUse& a, const TensorUse& b) { return a.bytes > b.bytes; });
  if (tensors.size() > kLargest) tensors.resize(kLargest);
  return tensors;
}

}  // namespace

std::vector<MemoryUse> memory_use(const isa::TraceInfo& trace, const ChipConfig& chip,
                                  const CoreResult& core) {
  std::vector<MemoryUse> uses;
  for (isa::Memory memory : kMemories) {
    MemoryUse use{.memory = memory};
    const std::uint64_t tensors = needed(trace, memory);
    if (memory == isa::Memory::Hbm) {
      use.capacity_bytes = chip.hbm.stack_size;
      use.peak_bytes = std::max(tensors, core.hbm.peak_bytes);
    } else {
      const bool sbuf = memory == isa::Memory::Sbuf;
      use.partition_capacity_bytes = sbuf ? chip.sbuf.partition_size : chip.psum.partition_size;
      use.partition_peak_bytes =
          std::max(tensors, sbuf ? core.sbuf.peak_bytes : core.psum.peak_bytes);
      use.capacity_bytes = use.partition_capacity_bytes * chip.sbuf.partitions;
      use.peak_bytes = use.partition_peak_bytes * chip.sbuf.partitions;
    }
    use.largest = largest_of(trace, memory);
    uses.push_back(std::move(use));
  }
  return uses;
}

void check_capacity(const isa::TraceInfo& trace, const ChipConfig& chip) {
  std::string problems;
  for (isa::Memory memory : kMemories) {
    const std::uint64_t bytes = needed(trace, memory);
    const std::uint64_t limit = memory == isa::Memory::Hbm    ? chip.hbm.stack_size
                                : memory == isa::Memory::Sbuf ? chip.sbuf.partition_size
                                                              : chip.psum.partition_size;
    if (bytes <= limit) continue;
    std::string largest;
    for (const TensorUse& tensor : largest_of(trace, memory)) {
      largest += fmt::format("{}{} ({}{}{})", largest.empty() ? "" : ", ", tensor.name,
                             bytes_text(static_cast<double>(tensor.bytes)),
                             tensor.source.empty() ? "" : ", ", tensor.source);
    }
    const char* where =
        memory == isa::Memory::Hbm ? "the stack that a core reaches has" : "a partition has";
    problems += fmt::format(
        "{}{}: the tensors of '{}' need {} ({} bytes), {} {} ({} bytes); the largest are {}",
        problems.empty() ? "" : "\n", name_of(memory), trace.name,
        bytes_text(static_cast<double>(bytes)), bytes, where,
        bytes_text(static_cast<double>(limit)), limit, largest);
  }
  if (!problems.empty()) throw CapacityError(problems);
}

std::string bytes_text(double bytes) {
  constexpr std::array<const char*, 6> kUnits = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  constexpr double kStep = 1024;
  std::size_t unit = 0;
  while (bytes >= kStep && unit + 1 < kUnits.size()) {
    bytes /= kStep;
    ++unit;
  }
  // Three figures, without the exponent that {:.3g} would give 1000 to 1023.
  if (bytes >= 100) return fmt::format("{:.0f} {}", bytes, kUnits[unit]);
  return fmt::format("{:.3g} {}", bytes, kUnits[unit]);
}

}  // namespace trn::sim
