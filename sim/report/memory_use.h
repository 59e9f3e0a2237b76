#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/program.h"
#include "sim/machine/core_result.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

struct TensorUse {
  std::string name;
  std::uint64_t bytes = 0;  ///< on chip: in all partitions that it spans
  std::string source;       ///< `attention.py:12`; empty when the trace does not say
};

/// How full a memory got. Of SBUF and PSUM, which are allocated by partition, the total is that of
/// 128 partitions as full as the fullest.
struct MemoryUse {
  isa::Memory memory = isa::Memory::Sbuf;
  std::uint64_t capacity_bytes = 0;
  std::uint64_t peak_bytes = 0;
  std::uint64_t partition_capacity_bytes = 0;  ///< 0: the memory has no partitions
  std::uint64_t partition_peak_bytes = 0;
  std::vector<TensorUse> largest{};  ///< up to five, largest first
};

/// SBUF, PSUM and HBM: from the tensors that the trace declares, and what the run accessed.
std::vector<MemoryUse> memory_use(const isa::TraceInfo& trace, const ChipConfig& chip,
                                  const CoreResult& core);

/// Throws CapacityError with memory, limit and the largest tensors when the tensors of a trace do
/// not fit in the memories that one core reaches: its SBUF, its PSUM, and one stack of HBM.
void check_capacity(const isa::TraceInfo& trace, const ChipConfig& chip);

/// `24 MiB`, `1.4 GiB`: three figures, for people.
std::string bytes_text(double bytes);

}  // namespace trn::sim
