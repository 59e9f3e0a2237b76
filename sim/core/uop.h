#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "isa/program.h"
#include "sim/core/time.h"

namespace trn::sim {

struct DmaPlan;

enum class UopKind : std::uint8_t {
  Repeat,       ///< LOOP and END_LOOP: how a trace is written, nothing that is executed
  Control,      ///< the sequencer executes it
  Dma,          ///< the sequencer triggers it
  Compute,      ///< the engine's pipeline executes it
  LoadWeights,  ///< the Tensor engine
  Matmul,       ///< the Tensor engine
  LoadTable     ///< the Scalar engine
};
constexpr bool in_sequencer(UopKind kind) { return kind <= UopKind::Dma; }

/// The bytes of each partition that an operand may touch, as one range.
struct Footprint {
  std::int64_t low = 0;  ///< first byte, of the constant part of the address
  std::int64_t high = 0;
  const isa::Affine* address = nullptr;  ///< set when registers move it
  isa::Memory memory = isa::Memory::Sbuf;
  bool write = false;
  std::uint8_t first_partition = 0;
  std::uint8_t partitions = 0;
};

/// A mask of the PSUM banks in which bytes [low, high) of a partition lie.
constexpr std::uint8_t banks_of(std::int64_t low, std::int64_t high, std::int64_t bank_bytes,
                                std::int64_t banks) {
  std::uint8_t mask = 0;
  for (std::int64_t bank = std::max<std::int64_t>(0, low / bank_bytes);
       bank < std::min(banks, (high + bank_bytes - 1) / bank_bytes); ++bank)
    mask = static_cast<std::uint8_t>(mask | 1U << static_cast<unsigned>(bank));
  return mask;
}

/// Durations of an instruction in an engine's pipeline.
struct PipelineCost {
  Time issue = 0;      ///< from its start to the next one's
  Time occupancy = 0;  ///< the unit is held, from the effective start
  Time latency = 0;    ///< from the effective start to the result
  Time restart = 0;    ///< reported start to effective start when the unit was idle
};

/// A function that needs no table.
inline constexpr std::uint8_t kNoFunctionSet = 255;

/// An instruction made ready for execution, once however often it runs: costs looked up, patterns
/// summed up. What every execution reads stands first.
struct Uop {
  static constexpr std::size_t kMaxFootprints = 6;

  const isa::Instr* instr = nullptr;
  std::uint64_t index = 0;  ///< in its stream
  UopKind kind = UopKind::Control;
  std::uint8_t footprint_count = 0;
  std::uint8_t psum_banks = 0;                 ///< mask; of addresses that move, all
  std::uint8_t function_set = kNoFunctionSet;  ///< that an ACTIVATE needs
  bool moves = false;                          ///< an address depends on registers
  bool shared = false;     ///< it meets other engines in PSUM or on the shared bus
  bool transpose = false;  ///< counts as data movement
  bool activate = false;   ///< an ACTIVATE
  bool semaphore = false;  ///< an EVENT_SEMAPHORE: waiting only, no activity
  bool drain = false;      ///< a DRAIN
  bool descriptors =
      false;  ///< the engine itself writes descriptors, and does nothing else meanwhile
  bool wait_moves = false;  ///< the value waited for depends on registers
  isa::WaitCondition wait_condition = isa::WaitCondition::GreaterEqual;
  isa::SemaphoreId wait_semaphore = isa::kNoSemaphore;
  isa::SemaphoreId update_semaphore = isa::kNoSemaphore;
  isa::UpdateKind update_kind = isa::UpdateKind::Increment;
  bool update_at_read = false;  ///< when the operands are read, not at the end
  std::uint32_t update_value = 0;
  std::uint32_t location = 0;   ///< of the source line
  std::int64_t wait_value = 0;  ///< its constant part
  PipelineCost cost{};
  double cycles = 0;      ///< Tensor: moving cycles, or cycles to load the weights
  float array_share = 1;  ///< of the Tensor engine's rows that a matmul uses
  double flops = 0;
  double adjusted_flops = 0;
  const DmaPlan* plan = nullptr;
  std::uint32_t sbuf_read = 0;  ///< bytes, as the profiler counts them
  std::uint32_t sbuf_write = 0;
  std::uint32_t psum_read = 0;
  std::uint32_t psum_write = 0;
  std::array<Footprint, kMaxFootprints> footprints{};
  PipelineCost contended{};  ///< while GpSimd holds the bus
};

}  // namespace trn::sim
