#pragma once

#include <boost/circular_buffer.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "isa/program.h"
#include "sim/core/critical_path.h"
#include "sim/core/observer.h"
#include "sim/core/registers.h"
#include "sim/core/semaphores.h"
#include "sim/core/simulation.h"
#include "sim/engine/engine_config.h"
#include "sim/engine/instruction_source.h"
#include "sim/engine/shared_resources.h"
#include "sim/machine/core_result.h"

namespace trn::sim {

/// What an engine asks of the DMA system when its sequencer meets a DMA instruction.
struct DmaTrigger {
  isa::Engine engine = isa::Engine::Sync;
  std::uint64_t index = 0;     ///< in the engine's stream
  std::uint64_t sequence = 0;  ///< how many instructions the engine executed before
  const DmaPlan* plan = nullptr;
  Time met = 0;         ///< when what it waits for was there; 0 when it waits for nothing
  Time ready = 0;       ///< wait satisfied, sequencer there
  CriticalPath path{};  ///< up to `ready`
};

/// How a trigger occupies its engine.
struct TriggerTiming {
  Time start = 0;  ///< as reported; descriptors that software writes before it come first
  Time end = 0;
  Time next_data = 0;     ///< the sequencer goes on with an instruction for the engine,
  Time next_control = 0;  ///< or with one that it executes itself
};

class DmaPort {
 public:
  virtual ~DmaPort() = default;
  virtual TriggerTiming trigger(const DmaTrigger& trigger) = 0;
};

/// What the engines of a core share.
struct EngineContext {
  Simulation& simulation;
  Semaphores& semaphores;
  SharedResources& shared;
  const isa::TraceInfo& info;
  DmaPort* dma = nullptr;        ///< set before the run
  Observer* observer = nullptr;  ///< may be null
  Time fetch = 0;                ///< sequencer time for each instruction fetched; 0: not modelled
  Time time_limit = kNever;      ///< a program that runs longer is an error
  std::uint64_t sbuf_partition_bytes = 0;
  std::uint64_t psum_partition_bytes = 0;
  std::uint64_t psum_bank_bytes = 0;
};

/// One engine with its sequencer. The sequencer takes the instructions in order: it waits for the
/// semaphore of each, executes control instructions and DMA triggers itself, and hands the others
/// to the engine's queue, up to queue_depth ahead. Source: docs/concepts/engines.md.
///
/// Events are spent only where something outside decides: a semaphore not yet written, or another
/// engine that uses the same PSUM bank. Between those, starts and ends follow from the engine's own
/// state, and ends are posted to semaphores ahead of time.
class Engine : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Engine);
  Engine(const sc_core::sc_module_name& name, isa::Engine id, const EngineConfig& config,
         EngineContext& context, InstructionSource source, std::int64_t rank);

  [[nodiscard]] bool finished() const;
  /// What the engine waits for, for the report of a deadlock. finished() is false.
  [[nodiscard]] std::string waiting_for();
  /// `nc0.vector #1841 TENSOR_REDUCE (attention.py:12)`.
  [[nodiscard]] std::string describe(std::uint64_t index);

  [[nodiscard]] isa::Engine id() const { return id_; }
  [[nodiscard]] Time last_end() const { return last_end_; }
  [[nodiscard]] const CriticalPath& last_path() const { return last_path_; }
  /// Figures so far; `length` closes the account: the engine is idle from its last end to it.
  [[nodiscard]] EngineStats stats(Time length) const;
  [[nodiscard]] std::vector<StallAt> stalls() const;
  [[nodiscard]] std::uint64_t activations() const { return activations_; }
  /// Highest byte of a partition that was accessed, plus one.
  [[nodiscard]] std::uint64_t sbuf_peak() const { return sbuf_peak_; }
  [[nodiscard]] std::uint64_t psum_peak() const { return psum_peak_; }

 protected:
  /// When an instruction starts and what it occupies.
  struct Execution {
    Time read = 0;  ///< the operands are no longer needed
    Time end = 0;   ///< the result is visible
  };
  /// The earliest start that the unit itself allows.
  [[nodiscard]] virtual Time earliest(const Uop& uop) const = 0;
  /// Executes at `start` >= earliest(uop); `waited` when the unit was free before.
  virtual Execution execute(const Uop& uop, Time start, bool waited) = 0;

  EngineContext& context() { return context_; }

 private:
  /// When and why something may start, with the chain of causes up to then.
  struct Readiness {
    Time at = kNever;
    StallReason reason = StallReason::None;
    CriticalPath path{};
    Release release{};
    Time met = 0;  ///< when the semaphore allowed it, which may be before anybody asked
  };
  static constexpr std::uint64_t kNotAnnounced = ~std::uint64_t{0};
  /// An instruction in the engine's queue.
  struct Queued {
    const Uop* uop = nullptr;
    Block* block = nullptr;
    std::uint64_t sequence = 0;
    Readiness ready{};  // its dispatch
    std::array<std::int64_t, Uop::kMaxFootprints> shift{};
    std::uint64_t announced = kNotAnnounced;  // in this delta cycle
    std::uint8_t psum_banks = 0;              // mask
  };
  /// A recent write that a reader may have to wait for.
  struct Pending {
    isa::Memory memory = isa::Memory::Sbuf;
    std::uint8_t first_partition = 0;
    std::uint8_t partitions = 0;
    std::int64_t low = 0;
    std::int64_t high = 0;
    Time end = 0;
  };

  void step();
  bool run_sequencer();
  bool find_instruction();
  bool run_engine();
  void control(const Uop& uop, const Readiness& ready);
  void dispatch(const Uop& uop, Block& block, const Readiness& ready);
  void execute_control(const isa::Instr& instr);
  [[nodiscard]] Readiness wait_for(const Uop& uop);
  [[nodiscard]] Time start_of(std::uint64_t number) const;
  [[nodiscard]] Time hazard(const Queued& queued, Time start);
  void note_accesses(const Queued& queued, Time end);
  [[nodiscard]] std::uint8_t psum_banks(const Uop& uop, const Queued& queued) const;
  void check_bounds(const Uop& uop, const Queued& queued);
  [[nodiscard]] SemaphoreWrite semaphore_write(std::uint64_t index, std::uint64_t sequence, Time at,
                                               const CriticalPath& path) const;
  void update(const Uop& uop, std::uint64_t sequence, Time at, const CriticalPath& path);
  /// What the account needs to know of an executed instruction.
  struct Executed {
    const Uop& uop;
    std::uint64_t sequence = 0;
    const Readiness& ready;
    Time start = 0;
    Time end = 0;
    StallReason reason = StallReason::None;
    const std::int64_t* shift = nullptr;  // of its footprints
  };
  void account(const Executed& done, const CriticalPath& path_to_start);
  void advance_sequencer(Time to);

  const isa::Engine id_;
  const Resource resource_;
  EngineContext& context_;
  InstructionSource source_;
  const std::uint32_t queue_depth_;
  const Time dispatch_time_;
  const Time refill_time_;
  const Time read_after_write_;
  const bool asks_;  // GpSimd announces itself and takes no account of others
  WakeUp sequencer_wake_{"sequencer_wake"};
  WakeUp engine_wake_{"engine_wake"};

  // The sequencer.
  Registers registers_;
  std::uint64_t pc_ = 0;
  std::uint64_t executed_ = 0;
  Time sequencer_time_;
  Time control_time_ = 0;  // not before this for a control instruction
  CriticalPath sequencer_path_;
  bool refilling_ = false;  // it has not handed over an instruction since a semaphore instruction
  bool waiting_ = false;
  SemaphoreWait wait_{};
  std::optional<Readiness> ready_;  // of the instruction at pc_, once its wait is over
  bool strict_ = false;

  // The engine's queue. Instruction k may be dispatched once k - queue_depth has started.
  boost::circular_buffer<Queued> queue_;
  boost::circular_buffer<Time> starts_;
  std::uint64_t dispatched_ = 0;
  std::uint64_t started_ = 0;
  CriticalPath engine_path_;  // up to the last instruction's effective start
  Time engine_path_at_ = 0;
  boost::circular_buffer<Pending> writes_;

  // The account.
  Time last_end_ = 0;
  Time data_end_ = 0;  // of what went through the queue
  CriticalPath last_path_;
  Time cursor_ = 0;  // up to here each instant is active or stalled
  bool first_ = true;
  EngineStats stats_{};
  std::unordered_map<std::uint64_t, Time> stalls_;              // by reason and source location
  std::pair<const std::uint64_t, Time>* last_stall_ = nullptr;  // the last entry used
  std::uint64_t activations_ = 0;
  std::uint64_t sbuf_peak_ = 0;
  std::uint64_t psum_peak_ = 0;
};

}  // namespace trn::sim
