#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "isa/program.h"
#include "sim/core/observer.h"
#include "sim/core/time.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

namespace timeline_detail {
struct Events;
}

/// What a timeline shows.
struct TimelineOptions {
  static constexpr std::uint64_t kEvents = 1'000'000;
  Time from = 0;  ///< the window [from, to): what overlaps it is kept, and cut to it
  Time to = kNever;
  std::uint64_t events = kEvents;  ///< kept at most; those that come after are only counted
};

/// Writes a run as a timeline for Perfetto: a thread an engine with its instructions and stalls, a
/// thread a DMA engine with what it moved, flows along the semaphores that released something, and
/// counters. docs/how-to/timeline.md says what each means. An event is an instruction, a stall, a
/// transfer, a stretch of it on a DMA engine, or a change of the clock; each takes about 200 bytes
/// until close(), and its texts are in the file already.
class Timeline final : public Observer {
 public:
  /// info and machine outlive the timeline. Throws InputError when the file cannot be written.
  Timeline(const std::filesystem::path& path, const TimelineOptions& options,
           const isa::TraceInfo& info, const MachineConfig& machine);
  /// Writes what there is when close() was not called: of a run that failed.
  ~Timeline() override;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  void on_instruction(const InstructionRecord& record) override;
  void on_packet(const PacketRecord& record) override;
  void on_transfer(const TransferRecord& record) override;
  void on_clock(const ClockRecord& record) override;

  /// Writes the events. Throws InputError when the disk did not take it all.
  void close();

  [[nodiscard]] std::uint64_t kept() const;
  /// Events within the window that were too many.
  [[nodiscard]] std::uint64_t dropped() const;

 private:
  std::unique_ptr<timeline_detail::Events> events_;
};

}  // namespace trn::sim
