#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "sim/report/summary.h"
#include "sim/report/timeline_detail.h"

namespace trn::sim::timeline_detail {
namespace {

/// Where a slice stands: an engine's or DMA engine's list, and the position in it.
struct SliceId {
  std::size_t track = 0;  // engines, then DMA engines
  std::size_t position = 0;
};

/// A flow at one of its slices.
struct FlowEnd {
  std::size_t position = 0;  // of the slice
  std::uint64_t flow = 0;
  bool begins = false;
};

/// Names of what is said of events.
struct Words {
  explicit Words(Writer& writer)
      : instruction(writer.category("instruction")),
        stall(writer.category("stall")),
        semaphore(writer.category("semaphore")),
        dma(writer.category("dma")),
        operands(writer.argument("operands")),
        shapes(writer.argument("shapes")),
        index(writer.argument("pc")),
        duration(writer.argument("duration_ns")),
        stall_reason(writer.argument("stall_reason")),
        stall_time(writer.argument("stall_ns")),
        before(writer.argument("before")),
        source(writer.argument("nki_source_location")),
        label(writer.argument("layer")),
        sbuf_read(writer.argument("sbuf_read_bytes")),
        sbuf_write(writer.argument("sbuf_write_bytes")),
        psum_read(writer.argument("psum_read_bytes")),
        psum_write(writer.argument("psum_write_bytes")),
        bytes(writer.argument("bytes")),
        packets(writer.argument("packets")),
        queue(writer.argument("queue_idx")),
        transfer_bytes(writer.argument("transfer_bytes")),
        trigger(writer.argument("trigger")) {
    for (std::size_t i = 0; i < kStallReasons; ++i) {
      const std::string_view reason = name_of(static_cast<StallReason>(i));
      reasons[i] = writer.name(reason);
      reason_texts[i] = writer.text(reason);
    }
  }

  Writer::Category instruction, stall, semaphore, dma;
  Writer::Argument operands, shapes, index, duration, stall_reason, stall_time, before, source,
      label, sbuf_read, sbuf_write, psum_read, psum_write, bytes, packets, queue, transfer_bytes,
      trigger;
  std::array<Writer::Name, kStallReasons> reasons{};
  std::array<Writer::Text, kStallReasons> reason_texts{};
};

class Writing {
 public:
  explicit Writing(Events& events)
      : events_(events), writer_(events.writer), words_(events.writer) {}

  void all() {
    sort();
    make_flows();
    add_tracks();
    say_about();
    for (isa::Engine engine : isa::kAllEngines) write_engine(engine);
    for (std::size_t i = 0; i < events_.dma_engines.size(); ++i) write_dma_engine(i);
    write_counters();
    writer_.close();
  }

 private:
  /// A slice on a track that has begun.
  struct Open {
    Time end = 0;
    bool is_stall = false;
    bool waits = false;
  };
  enum CounterNumber : std::uint8_t {
    DmaRate,
    HbmRate,
    HbmRead,
    HbmWrite,
    Sbuf,
    Psum,
    Pending,
    Clock
  };

  void sort() {
    for (EngineEvents& engine : events_.engines) {
      std::sort(engine.slices.begin(), engine.slices.end(), [](const Slice& a, const Slice& b) {
        return std::tuple(a.start, !a.is_stall, a.sequence) <
               std::tuple(b.start, !b.is_stall, b.sequence);
      });
    }
    std::sort(events_.transfers.begin(), events_.transfers.end(),
              [](const Transfer& a, const Transfer& b) { return a.number < b.number; });
    std::sort(events_.released.begin(), events_.released.end(),
              [](const Released& a, const Released& b) {
                return std::pair(a.engine, a.sequence) < std::pair(b.engine, b.sequence);
              });
  }

  // ---- flows ----

  void make_flows() {
    flows_.resize(isa::kEngines + events_.dma_engines.size());
    for (isa::Engine engine : isa::kAllEngines) {
      const std::vector<Slice>& slices = events_.engines[isa::index(engine)].slices;
      auto& positions = by_sequence_[isa::index(engine)];
      for (std::size_t i = 0; i < slices.size(); ++i)
        if (!slices[i].is_stall) positions.emplace_back(slices[i].sequence, i);
      std::sort(positions.begin(), positions.end());
    }
    for (std::size_t i = 0; i < events_.dma_engines.size(); ++i) {
      for (std::size_t k = 0; k < events_.dma_engines[i].size(); ++k)
        by_transfer_.emplace_back(events_.dma_engines[i][k].transfer,
                                  SliceId{isa::kEngines + i, k});
    }
    std::stable_sort(by_transfer_.begin(), by_transfer_.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const Transfer& transfer : events_.transfers)
      join(slice_of(transfer.engine, transfer.sequence), first_stretch(transfer.number));
    for (const Released& released : events_.released)
      join(writer_of(released.by), slice_of(released.engine, released.sequence));
    for (std::vector<FlowEnd>& flows : flows_) {
      std::sort(flows.begin(), flows.end(), [](const FlowEnd& a, const FlowEnd& b) {
        return std::pair(a.position, a.flow) < std::pair(b.position, b.flow);
      });
    }
  }

  /// Nothing when one of them is not shown.
  void join(const std::optional<SliceId>& from, const std::optional<SliceId>& to) {
    if (!from || !to) return;
    ++flow_count_;
    flows_[from->track].push_back({from->position, flow_count_, true});
    flows_[to->track].push_back({to->position, flow_count_, false});
  }

  [[nodiscard]] std::optional<SliceId> slice_of(isa::Engine engine, std::uint64_t sequence) const {
    const auto& positions = by_sequence_[isa::index(engine)];
    const auto found =
        std::lower_bound(positions.begin(), positions.end(), std::pair(sequence, std::size_t{0}));
    if (found == positions.end() || found->first != sequence) return std::nullopt;
    return SliceId{isa::index(engine), found->second};
  }

  [[nodiscard]] const Stretch& stretch(const SliceId& id) const {
    return events_.dma_engines[id.track - isa::kEngines][id.position];
  }

  template <class Visit>
  void for_each_stretch(std::uint64_t transfer, const Visit& visit) const {
    auto at = std::lower_bound(by_transfer_.begin(), by_transfer_.end(), transfer,
                               [](const auto& a, std::uint64_t b) { return a.first < b; });
    for (; at != by_transfer_.end() && at->first == transfer; ++at) visit(at->second);
  }

  [[nodiscard]] std::optional<SliceId> first_stretch(std::uint64_t transfer) const {
    std::optional<SliceId> first;
    for_each_stretch(transfer, [&](const SliceId& id) {
      if (!first || stretch(id).start < stretch(*first).start) first = id;
    });
    return first;
  }

  [[nodiscard]] const Transfer* transfer_of(std::uint64_t number) const {
    const auto found =
        std::lower_bound(events_.transfers.begin(), events_.transfers.end(), number,
                         [](const Transfer& a, std::uint64_t b) { return a.number < b; });
    return found == events_.transfers.end() || found->number != number ? nullptr : &*found;
  }

  /// The slice whose end is the write: of a transfer, on the DMA engine that made it.
  [[nodiscard]] std::optional<SliceId> writer_of(const Release& release) const {
    if (release.writer == Release::Writer::Engine) return slice_of(release.engine, release.number);
    const Transfer* transfer = transfer_of(release.number);
    if (transfer == nullptr) return std::nullopt;
    const Time semaphore =
        release.at - transfer->completion + from_ns(events_.machine.chip.dma.packet_overlap);
    std::optional<SliceId> writer;
    for_each_stretch(release.number, [&](const SliceId& id) {
      if (stretch(id).semaphore == semaphore) writer = id;
    });
    return writer;
  }

  void add_flows(std::size_t track, std::size_t position) {
    const std::vector<FlowEnd>& flows = flows_[track];
    std::size_t& next = next_flow_[track];
    while (next < flows.size() && flows[next].position < position) ++next;
    for (; next < flows.size() && flows[next].position == position; ++next) {
      if (flows[next].begins) {
        writer_.begin_flow(flows[next].flow);
      } else {
        writer_.end_flow(flows[next].flow);
      }
    }
  }

  // ---- tracks ----

  [[nodiscard]] std::uint32_t core() const {
    return events_.info.cores.empty() ? 0 : events_.info.cores.front().core;
  }
  [[nodiscard]] std::uint64_t process() const { return (core() + std::uint64_t{1}) << 16U; }
  [[nodiscard]] std::uint64_t thread(std::size_t track) const { return process() + 1 + track; }
  [[nodiscard]] std::uint64_t counter(CounterNumber number) const {
    constexpr std::uint64_t kCounters = 0x1000;
    return process() + kCounters + number;
  }

  void add_tracks() {
    next_flow_.resize(flows_.size());
    const auto pid = static_cast<std::int32_t>(core() + 1);
    constexpr std::int32_t kThreads = 1000;  // of a process
    writer_.add(Writer::Process{
        process(),
        pid,
        fmt::format("nc{}", core()),
        {fmt::format("{} on {}", events_.info.name, events_.machine.system.instance)}});
    const auto add_thread = [&](std::size_t track, const std::string& name) {
      writer_.add(Writer::Thread{thread(track), pid,
                                 pid * kThreads + 1 + static_cast<std::int32_t>(track), name});
    };
    for (isa::Engine engine : isa::kAllEngines)
      add_thread(isa::index(engine), std::string(name_of(engine)));
    for (std::size_t i = 0; i < events_.dma_engines.size(); ++i)
      if (!events_.dma_engines[i].empty()) add_thread(isa::kEngines + i, fmt::format("DMA {}", i));
    const auto add_counter = [&](CounterNumber number, const char* name, const char* unit) {
      writer_.add(Writer::Counter{counter(number), process(), number, name, unit});
    };
    add_counter(DmaRate, "DmaUsage.current_throughput", "B/s");
    add_counter(HbmRate, "HbmUsage.current_throughput", "B/s");
    add_counter(HbmRead, "HbmUsage.read_throughput", "B/s");
    add_counter(HbmWrite, "HbmUsage.write_throughput", "B/s");
    add_counter(Sbuf, "SbufUsage.avg_util_percent", "%");
    add_counter(Psum, "PsumUsage.avg_util_percent", "%");
    add_counter(Pending, "PendingDma.value", "transfers");
    add_counter(Clock, "tensor_engine_clock_freq", "GHz");
  }

  /// What the file holds, as an event on the process.
  void say_about() {
    const Writer::Text trace = writer_.text(events_.info.name);
    const Writer::Text machine = writer_.text(events_.machine.system.instance);
    writer_.instant(process(), events_.options.from, writer_.category("about"),
                    writer_.name("timeline"));
    writer_.add(writer_.argument("trace"), trace);
    writer_.add(writer_.argument("machine"), machine);
    writer_.add(writer_.argument("events"), events_.kept);
    writer_.add(writer_.argument("dropped_events"), events_.dropped);
    writer_.add(writer_.argument("flows"), flow_count_);
    if (events_.options.from > 0 || events_.options.to != kNever)
      writer_.add(writer_.argument("window_from_ns"), to_ns(events_.options.from));
    if (events_.options.to != kNever)
      writer_.add(writer_.argument("window_to_ns"), to_ns(events_.options.to));
    writer_.write();
  }

  // ---- slices ----

  [[nodiscard]] Time within(Time at) const {
    return std::clamp(at, events_.options.from, events_.options.to);
  }

  void add_place(const Code& code) {
    if (code.source != Writer::Text{}) writer_.add(words_.source, code.source);
    if (code.label != Writer::Text{}) writer_.add(words_.label, code.label);
  }

  void begin_instruction(std::uint64_t track, const Slice& slice) {
    const Code& code = events_.codes[slice.code];
    writer_.begin_slice(track, within(slice.start),
                        code.waits ? words_.semaphore : words_.instruction, code.name, code.place);
    if (code.operands != Writer::Text{}) writer_.add(words_.operands, code.operands);
    if (code.shapes != Writer::Text{}) writer_.add(words_.shapes, code.shapes);
    writer_.add(words_.duration, to_ns(slice.end - slice.start));
    for (const auto& [name, bytes] : {std::pair(words_.sbuf_read, code.sbuf_read),
                                      std::pair(words_.sbuf_write, code.sbuf_write),
                                      std::pair(words_.psum_read, code.psum_read),
                                      std::pair(words_.psum_write, code.psum_write)}) {
      if (bytes != 0) writer_.add(name, std::uint64_t{bytes});
    }
    if (slice.stall > 0) {
      writer_.add(words_.stall_reason, words_.reason_texts[static_cast<std::size_t>(slice.reason)]);
      writer_.add(words_.stall_time, to_ns(slice.stall));
    }
    add_place(code);
    writer_.add(words_.index, code.index);
  }

  void begin_stall(std::uint64_t track, const Slice& slice) {
    const Code& code = events_.codes[slice.code];
    writer_.begin_slice(track, within(slice.start), words_.stall,
                        words_.reasons[static_cast<std::size_t>(slice.reason)], code.place);
    writer_.add(words_.stall_time, to_ns(slice.end - slice.start));
    writer_.add(words_.before, code.mnemonic);
    add_place(code);
    writer_.add(words_.index, code.index);
  }

  /// Slices of a thread are nested. One that starts before another has ended is inside it when it
  /// also ends before; else the other one is shown up to there. So the outer slices other than
  /// stalls and semaphores cover just the engine's active time.
  void write_engine(isa::Engine engine) {
    const std::size_t track = isa::index(engine);
    std::vector<Open> open;  // outermost first; an inner one ends no later
    const auto end_from = [&](std::size_t depth, Time at) {
      for (; open.size() > depth; open.pop_back())
        writer_.end_slice(thread(track), within(std::min(open.back().end, at)));
    };
    const auto end_until = [&](Time at) {
      while (!open.empty() && open.back().end <= at) end_from(open.size() - 1, at);
    };
    const std::vector<Slice>& slices = events_.engines[track].slices;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Slice& slice = slices[i];
      const bool waits = events_.codes[slice.code].waits && !slice.is_stall;
      end_until(slice.start);
      Time end = slice.end;
      if (slice.is_stall) {
        end_from(0, slice.start);
      } else if (waits) {
        if (!open.empty()) end = std::min(end, open.back().end);
      } else {
        for (std::size_t depth = 0; depth < open.size(); ++depth) {
          if (open[depth].is_stall) {
            end = std::min(end, open[depth].end);
          } else if (open[depth].waits || open[depth].end < end) {
            end_from(depth, slice.start);
          }
        }
      }
      slice.is_stall ? begin_stall(thread(track), slice) : begin_instruction(thread(track), slice);
      if (!slice.is_stall) add_flows(track, i);
      writer_.write();
      open.push_back({end, slice.is_stall, waits});
    }
    end_from(0, kNever);
  }

  [[nodiscard]] std::string direction(std::uint64_t transfer) const {
    bool read = false;
    bool write = false;
    for_each_stretch(transfer, [&](const SliceId& id) {
      read = read || stretch(id).read_hbm;
      write = write || stretch(id).write_hbm;
    });
    return fmt::format("{} to {}", read ? "hbm" : "sbuf", write ? "hbm" : "sbuf");
  }

  void write_dma_engine(std::size_t number) {
    const std::size_t track = isa::kEngines + number;
    const std::vector<Stretch>& stretches = events_.dma_engines[number];
    for (std::size_t i = 0; i < stretches.size(); ++i) {
      const Stretch& stretch = stretches[i];
      const Transfer* transfer = transfer_of(stretch.transfer);
      const Code* code = transfer == nullptr || transfer->code == kNoCode
                             ? nullptr
                             : &events_.codes[transfer->code];
      const Writer::Name name =
          writer_.name(fmt::format("{}, queue {}", direction(stretch.transfer), stretch.queue));
      Writer::Text trigger{};
      if (code != nullptr)
        trigger = writer_.text(fmt::format("{} #{}", name_of(transfer->engine), code->index));
      writer_.begin_slice(thread(track), within(stretch.start), words_.dma, name,
                          code == nullptr ? Writer::Place{} : code->place);
      writer_.add(words_.bytes, stretch.bytes);
      writer_.add(words_.packets, std::uint64_t{stretch.packets});
      writer_.add(words_.queue, std::uint64_t{stretch.queue});
      if (transfer != nullptr) writer_.add(words_.transfer_bytes, transfer->bytes);
      if (code != nullptr) {
        writer_.add(words_.trigger, trigger);
        if (code->operands != Writer::Text{}) writer_.add(words_.operands, code->operands);
        if (code->shapes != Writer::Text{}) writer_.add(words_.shapes, code->shapes);
        add_place(*code);
      }
      add_flows(track, i);
      writer_.write();
      // A packet's end and the next one's start overlap.
      const Time end =
          i + 1 < stretches.size() ? std::min(stretch.end, stretches[i + 1].start) : stretch.end;
      writer_.end_slice(thread(track), within(end));
    }
  }

  // ---- counters ----

  void write_bins(CounterNumber number, const TimeBins& bins, const std::vector<double>& values,
                  double unit) {
    double last = -1;
    const auto put = [&](std::size_t bin, double value) {
      if (value == last) return;
      writer_.count(counter(number), bins.from() + static_cast<Time>(bin) * bins.width(), value);
      last = value;
    };
    // Sums and differences of rates leave dust where there was nothing.
    constexpr double kDust = 1e-9;
    const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
    for (std::size_t i = 0; i < values.size(); ++i)
      put(i, values[i] <= most * kDust ? 0 : values[i] * unit);
    put(values.size(), 0);
  }

  void write_counters() {
    write_bins(DmaRate, events_.dma_rate, events_.dma_rate.means(), kFsPerSecond);
    write_bins(HbmRate, events_.hbm_rate, events_.hbm_rate.means(), kFsPerSecond);
    write_bins(HbmRead, events_.hbm_read_rate, events_.hbm_read_rate.means(), kFsPerSecond);
    write_bins(HbmWrite, events_.hbm_write_rate, events_.hbm_write_rate.means(), kFsPerSecond);
    write_bins(Sbuf, events_.sbuf.bins(), events_.sbuf.percent(), 1);
    write_bins(Psum, events_.psum.bins(), events_.psum.percent(), 1);

    std::vector<std::pair<Time, int>> changes;
    for (const Transfer& transfer : events_.transfers) {
      changes.emplace_back(within(transfer.trigger), 1);
      if (transfer.complete < events_.options.to) changes.emplace_back(transfer.complete, -1);
    }
    std::sort(changes.begin(), changes.end());
    int pending = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) {
      pending += changes[i].second;
      if (i + 1 == changes.size() || changes[i + 1].first != changes[i].first)
        writer_.count(counter(Pending), changes[i].first, pending);
    }

    const TensorEngineConfig& tensor = events_.machine.chip.tensor;
    constexpr double kGiga = 1e9;
    const auto clock = [&](Time at, bool warm) {
      writer_.count(counter(Clock), at, (warm ? tensor.clock : tensor.cold_clock) / kGiga);
    };
    clock(events_.options.from, events_.warm);
    for (const ClockRecord& record : events_.clocks) clock(record.at, record.warm);
  }

  Events& events_;
  Writer& writer_;
  Words words_;
  std::array<std::vector<std::pair<std::uint64_t, std::size_t>>, isa::kEngines> by_sequence_;
  std::vector<std::pair<std::uint64_t, SliceId>> by_transfer_;
  std::vector<std::vector<FlowEnd>> flows_;  // by track
  std::vector<std::size_t> next_flow_;       // likewise
  std::uint64_t flow_count_ = 0;
};

}  // namespace

void write(Events& events) { Writing(events).all(); }

}  // namespace trn::sim::timeline_detail
