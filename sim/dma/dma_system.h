#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <systemc>
#include <unordered_map>
#include <vector>

#include "sim/core/semaphores.h"
#include "sim/dma/dma_engine.h"
#include "sim/engine/engine.h"
#include "sim/machine/core_result.h"
#include "sim/memory/hbm.h"

namespace trn::sim {

/// Descriptor generation and the DMA engines of one core: takes triggers, makes transfers of them,
/// spreads these over the engines and raises semaphores when they are done.
class DmaSystem : public sc_core::sc_module, public DmaPort, public DmaListener {
 public:
  SC_HAS_PROCESS(DmaSystem);
  /// Each engine's socket is bound to `hbm`. observer may be null.
  DmaSystem(const sc_core::sc_module_name& name, const DmaConfig& config, Simulation& simulation,
            Semaphores& semaphores, HbmStack& hbm, Observer* observer);

  TriggerTiming trigger(const DmaTrigger& trigger) override;
  void on_ready(std::uint32_t engine) override;
  void on_packet(Transfer& transfer, const PacketRecord& packet) override;
  void on_engine_done(Transfer& transfer, Time at) override;

  /// The last completion so far, and the chain of causes up to it.
  [[nodiscard]] Time last_completion() const { return last_completion_; }
  [[nodiscard]] const CriticalPath& last_path() const { return last_path_; }
  [[nodiscard]] DmaStats stats() const;

 private:
  /// What a sequencer's descriptor generation remembers.
  struct Generator {
    Time last_end = -kNever;  // of its last hardware trigger
    std::uint64_t last_sequence = ~0ULL;
    Time prepared = -kNever;  // GpSimd began the last descriptors
    std::uint32_t in_a_row = 0;
    bool used = false;
  };
  /// A queue as one engine triggers it.
  struct Ring {
    Transfer* last = nullptr;  // while under way
    Time ended = -kNever;      // last packet of those that are over
    Time open = 0;             // the next one starts no sooner
    std::uint32_t restarts = 0;
  };
  /// Union of intervals that begin in order.
  struct Union {
    Time end = 0;
    Time total = 0;
    void add(Time from, Time to) {
      from = std::max(from, end);
      if (to <= from) return;
      total += to - from;
      end = to;
    }
  };

  void grant();  // SC_METHOD: lets the engines that are ready start, in order
  TriggerTiming hardware_timing(const HardwareDgeConfig& dge, const DmaTrigger& trigger);
  TriggerTiming software_timing(const DmaTrigger& trigger);
  [[nodiscard]] const DmaDirectionConfig& direction(const DmaPlan& plan) const;
  [[nodiscard]] Ring& ring_of(const Transfer& transfer);
  /// How a read of this kind begins anew behind another transfer of its ring; null if it does not.
  [[nodiscard]] const HardwareDgeConfig* restart_of(const DmaPlan& plan) const;
  /// Hands a transfer to the engines.
  void release(Transfer& transfer, Ring& ring);
  void finish(Transfer& transfer);

  DmaConfig config_;
  Simulation& simulation_;
  Semaphores& semaphores_;
  Observer* observer_;
  WakeUp grant_{"grant_wake"};
  std::vector<bool> ready_;  // by engine
  std::vector<std::unique_ptr<DmaEngine>> engines_;
  std::array<Generator, isa::kEngines> generators_{};
  /// By engine and queue.
  std::vector<Ring> rings_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Transfer>> transfers_;  // under way, by number
  Time last_completion_ = 0;
  CriticalPath last_path_;
  DmaStats stats_{};
  std::uint32_t queues_used_ = 0;  // mask
  Union active_{};
  std::array<Union, 3> mode_active_{};
};

}  // namespace trn::sim
