#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "isa/program.h"
#include "sim/report/live_bytes.h"
#include "sim/report/perfetto_writer.h"
#include "sim/report/time_bins.h"
#include "sim/report/timeline.h"

namespace trn::sim::timeline_detail {

using Writer = PerfettoWriter;
inline constexpr std::uint32_t kNoCode = ~std::uint32_t{0};

/// What is said of an instruction, once however often it runs.
struct Code {
  Writer::Name name{};
  Writer::Text mnemonic{};
  Writer::Text operands{};
  Writer::Text shapes{};
  Writer::Text source{};
  Writer::Text label{};
  Writer::Place place{};
  std::uint64_t index = 0;
  std::uint32_t sbuf_read = 0;
  std::uint32_t sbuf_write = 0;
  std::uint32_t psum_read = 0;
  std::uint32_t psum_write = 0;
  bool waits = false;  ///< an EVENT_SEMAPHORE: no activity
};

/// An instruction, or the stall before it.
struct Slice {
  Time start = 0;
  Time end = 0;
  Time stall = 0;  ///< before an instruction
  std::uint64_t sequence = 0;
  std::uint32_t code = kNoCode;
  StallReason reason = StallReason::None;
  bool is_stall = false;
};

/// Packets of one transfer that a DMA engine moved one after the other.
struct Stretch {
  Time start = 0;
  Time end = 0;
  Time semaphore = 0;  ///< end of the semaphore packet; 0: it has none
  std::uint64_t transfer = 0;
  std::uint64_t bytes = 0;
  std::uint32_t packets = 0;
  std::uint32_t queue = 0;
  bool read_hbm = false;
  bool write_hbm = false;
};

/// The stretch that a DMA engine is at; it may be one that was not kept.
struct OpenStretch {
  Time end = 0;
  std::uint64_t transfer = 0;
  bool open = false;
  bool kept = false;
};

struct Transfer {
  std::uint64_t number = 0;
  std::uint64_t sequence = 0;  ///< of its trigger
  std::uint64_t bytes = 0;
  Time trigger = 0;
  Time complete = 0;
  Time completion = 0;  ///< from the end of a semaphore packet to its increment
  std::uint32_t code = kNoCode;
  isa::Engine engine{};
};

/// An instruction that a write to a semaphore released.
struct Released {
  Release by{};
  isa::Engine engine{};
  std::uint64_t sequence = 0;
};

/// A DMA instruction whose transfer is under way.
struct Trigger {
  std::uint32_t code = kNoCode;
  std::optional<LiveBytes::Range> reads{};  ///< in SBUF
  std::optional<LiveBytes::Range> writes{};
};

struct EngineEvents {
  std::vector<Slice> slices;
  std::unordered_map<std::uint64_t, std::uint32_t> codes;  ///< by index in the stream
  std::unordered_map<std::uint64_t, Trigger> triggers;     ///< by sequence
};

/// All that a run told, as far as it is kept.
struct Events {
  Events(const std::filesystem::path& path, const TimelineOptions& wanted,
         const isa::TraceInfo& trace, const MachineConfig& config);

  [[nodiscard]] bool in_window(Time from, Time to) const;
  [[nodiscard]] bool has_room() const { return kept < options.events; }
  /// Whether one more event is kept; it is counted either way.
  bool keep();

  const isa::TraceInfo& info;
  const MachineConfig& machine;
  TimelineOptions options;
  Writer writer;
  bool closed = false;
  std::uint64_t kept = 0;
  std::uint64_t dropped = 0;

  std::vector<Code> codes;
  std::array<EngineEvents, isa::kEngines> engines;
  std::vector<std::vector<Stretch>> dma_engines;
  std::vector<OpenStretch> open;  ///< by DMA engine
  std::vector<Transfer> transfers;
  std::vector<Released> released;
  std::vector<ClockRecord> clocks;
  bool warm;  ///< when the window begins
  TimeBins dma_rate;
  TimeBins hbm_rate;
  TimeBins hbm_read_rate;
  TimeBins hbm_write_rate;
  LiveBytes sbuf;
  LiveBytes psum;
};

/// Sorts the events and writes them.
void write(Events& events);

}  // namespace trn::sim::timeline_detail
