#pragma once

#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <deque>
#include <systemc>
#include <tlm>
#include <vector>

#include "sim/core/critical_path.h"
#include "sim/core/observer.h"
#include "sim/core/simulation.h"
#include "sim/dma/dma_plan.h"

namespace trn::sim {

/// One DMA instruction under way.
struct Transfer {
  std::uint64_t number = 0;  ///< unlike any other's, and the same in every run
  DmaPlan plan{};
  isa::Engine engine = isa::Engine::Sync;  ///< that triggered it
  std::uint64_t index = 0;
  std::uint64_t sequence = 0;
  Time trigger = 0;
  Time nominal_start = 0;  ///< when the first engine's descriptors are due
  CriticalPath path{};     ///< up to `trigger`
  std::uint32_t engines_left = 0;
  Time first_packet = kNever;
  Time last_packet = 0;
  Time complete = 0;
  bool released = false;       ///< to the engines
  Transfer* behind = nullptr;  ///< the next of its ring, which waits to know when this one ends
};

/// What a DMA engine tells about its work. Times may lie ahead.
class DmaListener {
 public:
  virtual ~DmaListener() = default;
  /// The engine could start a packet now: start_packet() is to be called later in this instant, in
  /// the order of the engines, since all draw on the same memory.
  virtual void on_ready(std::uint32_t engine) = 0;
  virtual void on_packet(Transfer& transfer, const PacketRecord& packet) = 0;
  /// The engine's semaphore packet ends at `at`: its part of the transfer is done.
  virtual void on_engine_done(Transfer& transfer, Time at) = 0;
};

/// One DMA engine: sixteen rings served round robin, packet by packet, each ring in order.
class DmaEngine : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(DmaEngine);
  DmaEngine(const sc_core::sc_module_name& name, std::uint32_t number, const DmaConfig& config,
            Simulation& simulation, DmaListener& listener);

  /// Timing of HBM accesses; blocking transport with an added delay.
  tlm_utils::simple_initiator_socket<DmaEngine> socket{"socket"};

  /// Puts the engine's part of a transfer into its ring; its descriptors are there at `available`.
  void enqueue(Transfer& transfer, std::uint32_t elements, Time available);

  /// Starts the next packet, round robin over rings; there is one.
  void start_packet();

 private:
  struct Job {
    Transfer* transfer = nullptr;
    Time available = 0;
    std::uint32_t elements = 0;  // left
    Time extra = 0;              // of the first packet
    Time extra_each = 0;         // of every data packet
    bool semaphore_left = true;
  };
  struct Ring {
    std::deque<Job> jobs;    // arrived
    Time fetched = -kNever;  // start of the last descriptor fetch
    Time dry = -kNever;      // when the last packet ended
  };

  void step();
  void arrive(Job job, Time now);
  [[nodiscard]] Time remaining(std::uint32_t queue, Time now) const;
  [[nodiscard]] static Time job_time(const Job& job, Time overhead);
  Time access_hbm(bool write, std::uint32_t bytes, Time duration);

  std::uint32_t number_;
  const DmaConfig& config_;
  Time overhead_;
  Simulation& simulation_;
  DmaListener& listener_;
  WakeUp wake_{"wake"};
  std::vector<Job> arriving_;  // by (available, transfer), the earliest last
  std::vector<Ring> rings_;
  std::uint32_t last_ring_ = 0;  // that a packet came from
  Time busy_until_ = 0;
  tlm::tlm_generic_payload payload_;
};

}  // namespace trn::sim
