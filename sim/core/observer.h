#pragma once

#include <cstdint>

#include "isa/program.h"
#include "sim/core/time.h"

namespace trn::sim {

struct Registers;
struct Uop;

/// Why an engine did not start an instruction although it had none running.
enum class StallReason : std::uint8_t {
  None,
  WaitTensor,  ///< for a semaphore that the Tensor engine writes, and so on
  WaitVector,
  WaitScalar,
  WaitGpSimd,
  WaitSync,
  WaitDma,
  ReadAfterWrite,  ///< for the engine's own earlier result
  Weights,         ///< for the stationary tile
  PsumBank,        ///< another engine used the same PSUM bank
  SharedBus,       ///< VectorE and GpSimd wanted the bus that they share
  Sequencer,       ///< its sequencer had not reached the instruction
  Fetch,           ///< instruction fetch
  Launch,          ///< before the engine's first instruction
  Descriptors      ///< descriptors being written, or room for them
};
inline constexpr std::size_t kStallReasons = 15;

/// The write to a semaphore that ended an instruction's wait.
struct Release {
  enum class Writer : std::uint8_t { None, Engine, Dma };
  Writer writer = Writer::None;              ///< None: it did not have to wait
  isa::Engine engine = isa::Engine::Tensor;  ///< of the instruction that wrote, or triggered
  std::uint64_t number = 0;                  ///< its sequence there, or its transfer
  Time at = 0;                               ///< when it was written
};

/// One executed instruction.
struct InstructionRecord {
  isa::Engine engine = isa::Engine::Tensor;
  std::uint64_t index = 0;            ///< position in the engine's stream
  std::uint64_t sequence = 0;         ///< how many instructions the engine executed before
  const isa::Instr* instr = nullptr;  ///< valid during the call
  Time ready = 0;                     ///< its wait is satisfied
  Time start = 0;
  Time end = 0;                            ///< its result is visible: the profiler's duration ends
  StallReason reason = StallReason::None;  ///< of the gap before `start`
  Time stall = 0;                          ///< length of that gap
  Release release{};                       ///< of its wait
  const Uop* uop = nullptr;                ///< valid during the call, as the next two are
  const std::int64_t* shift = nullptr;     ///< by which registers move each of uop's footprints
  const Registers* registers = nullptr;    ///< of one that the sequencer executes, else null
};

/// One packet that a DMA engine moved.
struct PacketRecord {
  std::uint32_t dma_engine = 0;
  std::uint32_t queue = 0;
  std::uint64_t transfer = 0;  ///< number of its DMA instruction, in order of triggers
  std::uint32_t bytes = 0;
  bool read_hbm = false;
  bool write_hbm = false;
  bool semaphore = false;  ///< the 4-byte write at the end
  isa::DescriptorMode mode = isa::DescriptorMode::HardwareDge;
  Time start = 0;
  Time end = 0;
  double hbm_read_bytes = 0;  ///< in HBM; `bytes` are those of the wider side, if it casts
  double hbm_write_bytes = 0;
};

/// One DMA instruction from trigger to completion.
struct TransferRecord {
  std::uint64_t transfer = 0;
  isa::Engine engine = isa::Engine::Sync;  ///< that triggered it
  std::uint64_t index = 0;                 ///< of the trigger in that engine's stream
  std::uint64_t bytes = 0;
  Time trigger = 0;
  Time first_packet = 0;
  Time last_packet = 0;
  Time complete = 0;           ///< the semaphore has its full value
  std::uint64_t sequence = 0;  ///< how many instructions the engine executed before the trigger
};

/// A change of the Tensor engine's clock. Source: docs/sources.md#profiles-ham.
struct ClockRecord {
  Time at = 0;
  bool warm = false;
};

/// Listens to a run: timelines, instruction tables and comparisons are observers. Instructions come
/// roughly in order of time: one that the sequencer executes may come before earlier ones that are
/// still in the engine's queue, and engines run ahead of each other between their meetings.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void on_instruction(const InstructionRecord&) {}
  virtual void on_packet(const PacketRecord&) {}
  virtual void on_transfer(const TransferRecord&) {}
  virtual void on_clock(const ClockRecord&) {}
};

}  // namespace trn::sim

namespace trn {
template <>
struct EnumNames<sim::StallReason> {
  static constexpr std::array<std::string_view, sim::kStallReasons> value = {
      "none",     "wait_tensor",      "wait_vector", "wait_scalar", "wait_gpsimd", "wait_sync",
      "wait_dma", "read_after_write", "weights",     "psum_bank",   "shared_bus",  "sequencer",
      "fetch",    "launch",           "descriptors"};
};
}  // namespace trn
