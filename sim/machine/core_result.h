#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "isa/base/describe.h"
#include "isa/types.h"
#include "sim/core/critical_path.h"
#include "sim/core/observer.h"
#include "sim/core/time.h"

namespace trn::sim {

/// The time of one engine, by what it did. active + stalled + idle is the kernel's length exactly.
struct EngineStats {
  std::uint64_t instructions = 0;
  std::uint64_t data_instructions = 0;  ///< without those that only steer the sequencer
  Time instruction_time = 0;            ///< sum of durations, overlaps added
  Time active = 0;                      ///< union of durations, waiting excluded
  Time idle = 0;                        ///< after the engine's last instruction
  std::array<Time, kStallReasons> stalled{};
  std::uint64_t sbuf_read_bytes = 0;
  std::uint64_t sbuf_write_bytes = 0;
  std::uint64_t psum_read_bytes = 0;
  std::uint64_t psum_write_bytes = 0;
  std::uint64_t psum_read_sbuf_write_count = 0;
  std::uint64_t psum_read_sbuf_write_bytes = 0;
};

struct TensorStats {
  std::uint64_t matmuls = 0;  ///< MATMUL instructions; an fp32 product counts twice
  double hardware_flops = 0;  ///< 2 x active rows x active columns x elements
  double transpose_flops = 0;
  double adjusted_hardware_flops = 0;  ///< in bf16 equivalents
  double adjusted_transpose_flops = 0;
  Time warm = 0;  ///< time at full clock
};

struct ScalarStats {
  std::uint64_t activates = 0;
  Time activate_time = 0;
  std::uint64_t table_loads = 0;
};

/// Per descriptor mode (isa::DescriptorMode).
struct DmaModeStats {
  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  Time active = 0;  ///< union over engines of the time with such a packet moving
};

struct DmaStats {
  std::uint64_t transfers = 0;
  std::uint64_t transfer_bytes = 0;
  std::uint64_t hbm_read_bytes = 0;
  std::uint64_t hbm_write_bytes = 0;
  std::uint64_t spill_save_bytes = 0;
  std::uint64_t spill_reload_bytes = 0;
  std::uint64_t sbuf_read_bytes = 0;
  std::uint64_t sbuf_write_bytes = 0;
  Time packet_time = 0;    ///< sum of packet durations
  Time transfer_time = 0;  ///< sum of transfer durations, first packet to completion
  Time active = 0;         ///< union of packets
  std::uint64_t queues = 0;
  std::array<DmaModeStats, 3> modes{};
};

/// Stall time of one engine at one source line for one reason.
struct StallAt {
  isa::Engine engine = isa::Engine::Tensor;
  StallReason reason = StallReason::None;
  std::uint32_t location = 0;  ///< index in TraceInfo::locations
  Time time = 0;
};

/// Highest byte that accesses reached in a memory of the core, and what the tensors there need.
struct MemoryPeak {
  std::uint64_t capacity_bytes = 0;
  std::uint64_t peak_bytes = 0;
};

/// What one run of one core says.
struct CoreResult {
  std::uint32_t chip = 0;
  std::uint32_t core = 0;
  Time length = 0;  ///< from the first instruction's start to the last completion
  std::array<EngineStats, isa::kEngines> engines{};
  TensorStats tensor{};
  ScalarStats scalar{};
  DmaStats dma{};
  CriticalPath critical_path{};
  std::vector<StallAt> stalls{};  ///< ordered by engine, reason, location
  MemoryPeak sbuf{};
  MemoryPeak psum{};
  MemoryPeak hbm{};
  std::vector<std::string> assumed_costs{};  ///< cost rows of status "est" that were used
  std::uint64_t instructions = 0;
  std::uint64_t events = 0;  ///< process activations, for performance figures
};

}  // namespace trn::sim
