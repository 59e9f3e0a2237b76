#include "sim/report/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "isa/base/error.h"
#include "isa/text.h"
#include "sim/core/registers.h"
#include "sim/core/uop.h"
#include "sim/report/stalls.h"
#include "sim/report/timeline_detail.h"

namespace trn::sim {
namespace {

using timeline_detail::Code;
using timeline_detail::Events;
using timeline_detail::kNoCode;
using timeline_detail::Slice;
using timeline_detail::Stretch;
using timeline_detail::Trigger;

constexpr double kBinNs = 100;  // of counters, as long as the run is short

void add_shape(std::string& out, std::string_view name, const isa::Access& access) {
  if (!access.present()) return;
  out += fmt::format("{}{} {}[{}", out.empty() ? "" : ", ", name, name_of(access.dtype),
                     access.partitions);
  for (std::size_t i = access.dims; i > 0; --i) out += fmt::format(",{}", access.free[i - 1].size);
  out += ']';
}

void add_shape(std::string& out, std::string_view name, const isa::DmaSide& side) {
  if (!side.present()) return;
  out += fmt::format("{}{} {}[", out.empty() ? "" : ", ", name, name_of(side.dtype));
  for (std::size_t i = side.dims; i > 0; --i) out += fmt::format("{},", side.pattern[i - 1].size);
  out += fmt::format("{}]", side.element_bytes / isa::bytes_of(side.dtype));
}

/// `src bf16[128,512], dst fp32[128,512]`: partitions, then the free sizes, innermost last.
std::string shapes_text(const isa::Instr& instr) {
  std::string text;
  std::visit(
      [&]<class T>(const T& op) {
        isa::for_each_operand<T>([&](const auto& operand) {
          const auto& value = op.*operand.member;
          using Value = std::remove_cvref_t<decltype(value)>;
          if constexpr (std::is_same_v<Value, isa::Access> || std::is_same_v<Value, isa::DmaSide>)
            add_shape(text, operand.name, value);
        });
      },
      instr.op);
  return text;
}

std::string all_operands_text(const isa::Instr& instr) {
  std::string text = isa::operands_text(instr);
  if (const std::string sync = isa::sync_text(instr); !sync.empty()) {
    if (!text.empty()) text += ' ';
    text += sync;
  }
  return text;
}

/// The bytes of each partition of SBUF that a side touches; nothing when it is in HBM.
std::optional<LiveBytes::Range> sbuf_range(const isa::DmaSide& side, const Registers& registers) {
  if (!side.present() || side.memory != isa::Memory::Sbuf) return std::nullopt;
  constexpr std::int64_t kStride = isa::kSbufPartitionStride;
  std::int64_t partitions = 0;
  std::int64_t bytes = 0;
  for (std::size_t i = 0; i < side.dims; ++i) {
    const isa::DmaDim& dim = side.pattern[i];
    const std::int64_t reach = dim.stride_bytes * (dim.size - std::int64_t{1});
    (dim.stride_bytes >= kStride ? partitions : bytes) += std::max<std::int64_t>(0, reach);
  }
  const std::int64_t address = std::max<std::int64_t>(0, registers.evaluate(side.address));
  const std::int64_t low = address % kStride;
  return LiveBytes::Range{static_cast<std::uint32_t>(address / kStride),
                          static_cast<std::uint32_t>(partitions / kStride + 1), low,
                          low + bytes + side.element_bytes};
}

std::uint32_t code_of(Events& events, const InstructionRecord& record) {
  auto& known = events.engines[isa::index(record.engine)].codes;
  const auto [found, added] = known.try_emplace(record.index, events.codes.size());
  if (!added) return found->second;
  const isa::Instr& instr = *record.instr;
  Code code;
  code.name = events.writer.name(isa::mnemonic(instr));
  code.mnemonic = events.writer.text(isa::mnemonic(instr));
  if (const std::string text = all_operands_text(instr); !text.empty())
    code.operands = events.writer.new_text(text);
  if (const std::string text = shapes_text(instr); !text.empty())
    code.shapes = events.writer.text(text);
  if (const std::string text = source_text(events.info, instr.at.location); !text.empty()) {
    const isa::SourceLocation& at = events.info.locations[instr.at.location];
    code.source = events.writer.text(text);
    code.place = events.writer.place(at.file, at.line);
  }
  if (instr.at.label < events.info.labels.size() && !events.info.labels[instr.at.label].empty())
    code.label = events.writer.text(events.info.labels[instr.at.label]);
  code.index = record.index;
  if (record.uop != nullptr) {
    code.sbuf_read = record.uop->sbuf_read;
    code.sbuf_write = record.uop->sbuf_write;
    code.psum_read = record.uop->psum_read;
    code.psum_write = record.uop->psum_write;
  }
  code.waits = std::holds_alternative<isa::EventSemaphore>(instr.op);
  events.codes.push_back(code);
  return found->second;
}

void note_accesses(Events& events, const InstructionRecord& record) {
  const Uop& uop = *record.uop;
  for (const bool write : {false, true}) {  // an operand may be overwritten in place
    for (std::size_t i = 0; i < uop.footprint_count; ++i) {
      const Footprint& footprint = uop.footprints[i];
      if (footprint.write != write) continue;
      LiveBytes& memory = footprint.memory == isa::Memory::Psum ? events.psum : events.sbuf;
      const LiveBytes::Range range{footprint.first_partition, footprint.partitions,
                                   footprint.low + record.shift[i],
                                   footprint.high + record.shift[i]};
      write ? memory.write(range, record.start, record.end)
            : memory.read(range, record.start, record.end);
    }
  }
}

void note_trigger(Events& events, const InstructionRecord& record, std::uint32_t code) {
  std::visit(
      [&]<class T>(const T& op) {
        if constexpr (T::kCost == isa::CostClass::DmaTrigger &&
                      requires { op.src.element_bytes, op.dst.element_bytes; }) {
          events.engines[isa::index(record.engine)].triggers[record.sequence] = {
              code, sbuf_range(op.src, *record.registers), sbuf_range(op.dst, *record.registers)};
        }
      },
      record.instr->op);
}

}  // namespace

namespace timeline_detail {

Events::Events(const std::filesystem::path& path, const TimelineOptions& wanted,
               const isa::TraceInfo& trace, const MachineConfig& config)
    : info(trace),
      machine(config),
      options(wanted),
      writer(path),
      dma_engines(config.chip.dma.engines),
      open(config.chip.dma.engines),
      warm(!config.chip.tensor.clock_gating),
      dma_rate(wanted.from, wanted.to, from_ns(kBinNs)),
      hbm_rate(dma_rate),
      hbm_read_rate(dma_rate),
      hbm_write_rate(dma_rate),
      sbuf(config.chip.sbuf.partition_size, dma_rate),
      psum(config.chip.psum.partition_size, dma_rate) {}

bool Events::in_window(Time from, Time to) const {
  return from < options.to && (to > options.from || (from == to && from == options.from));
}

bool Events::keep() {
  const bool room = has_room();
  ++(room ? kept : dropped);
  return room;
}

}  // namespace timeline_detail

Timeline::Timeline(const std::filesystem::path& path, const TimelineOptions& options,
                   const isa::TraceInfo& info, const MachineConfig& machine)
    : events_(std::make_unique<Events>(path, options, info, machine)) {}

Timeline::~Timeline() {
  if (events_->closed) return;
  try {
    close();
  } catch (const InputError&) {  // the run's own failure is the one to report
  }
}

void Timeline::on_instruction(const InstructionRecord& record) {
  Events& events = *events_;
  if (record.shift != nullptr) note_accesses(events, record);
  std::vector<Slice>& slices = events.engines[isa::index(record.engine)].slices;
  const bool stalled =
      record.stall > 0 && events.in_window(record.start - record.stall, record.start);
  const bool shown = events.in_window(record.start, record.end);
  const bool trigger =
      record.registers != nullptr && isa::cost_class(*record.instr) == isa::CostClass::DmaTrigger;
  const bool said = stalled || shown || (trigger && record.start < events.options.to);
  const std::uint32_t code = said && events.has_room() ? code_of(events, record) : kNoCode;
  if (trigger) note_trigger(events, record, code);
  if (stalled && events.keep())
    slices.push_back(
        {record.start - record.stall, record.start, 0, record.sequence, code, record.reason, true});
  if (!shown || !events.keep()) return;
  slices.push_back(
      {record.start, record.end, record.stall, record.sequence, code, record.reason, false});
  if (record.release.writer != Release::Writer::None)
    events.released.push_back({record.release, record.engine, record.sequence});
}

void Timeline::on_packet(const PacketRecord& record) {
  Events& events = *events_;
  const auto add = [&](TimeBins& bins, double bytes) {
    if (record.end > record.start)
      bins.add(record.start, record.end, bytes / static_cast<double>(record.end - record.start));
  };
  add(events.dma_rate, record.bytes);
  if (record.read_hbm || record.write_hbm) {
    add(events.hbm_rate, record.hbm_read_bytes + record.hbm_write_bytes);
    add(events.hbm_read_rate, record.hbm_read_bytes);
    add(events.hbm_write_rate, record.hbm_write_bytes);
  }
  if (!events.in_window(record.start, record.end)) return;
  std::vector<Stretch>& stretches = events.dma_engines[record.dma_engine];
  timeline_detail::OpenStretch& open = events.open[record.dma_engine];
  if (!open.open || open.transfer != record.transfer || record.start > open.end) {
    open.kept = events.keep();
    if (open.kept)
      stretches.push_back(
          {.start = record.start, .transfer = record.transfer, .queue = record.queue});
  }
  open = {record.end, record.transfer, !record.semaphore, open.kept};
  if (!open.kept) return;
  Stretch& stretch = stretches.back();
  stretch.end = record.end;
  stretch.bytes += record.bytes;
  ++stretch.packets;
  stretch.read_hbm = stretch.read_hbm || record.read_hbm;
  stretch.write_hbm = stretch.write_hbm || record.write_hbm;
  if (record.semaphore) stretch.semaphore = record.end;
}

void Timeline::on_transfer(const TransferRecord& record) {
  Events& events = *events_;
  auto& triggers = events.engines[isa::index(record.engine)].triggers;
  std::uint32_t code = kNoCode;
  if (const auto found = triggers.find(record.sequence); found != triggers.end()) {
    const Trigger& trigger = found->second;
    code = trigger.code;
    if (trigger.reads) events.sbuf.read(*trigger.reads, record.first_packet, record.last_packet);
    if (trigger.writes) events.sbuf.write(*trigger.writes, record.first_packet, record.complete);
    triggers.erase(found);
  }
  if (!events.in_window(record.trigger, record.complete) || !events.keep()) return;
  events.transfers.push_back({record.transfer, record.sequence, record.bytes, record.trigger,
                              record.complete, record.complete - record.last_packet, code,
                              record.engine});
}

void Timeline::on_clock(const ClockRecord& record) {
  if (record.at <= events_->options.from) {
    events_->warm = record.warm;
  } else if (record.at < events_->options.to && events_->keep()) {
    events_->clocks.push_back(record);
  }
}

void Timeline::close() {
  if (events_->closed) return;
  events_->closed = true;
  timeline_detail::write(*events_);
}

std::uint64_t Timeline::kept() const { return events_->kept; }
std::uint64_t Timeline::dropped() const { return events_->dropped; }

}  // namespace trn::sim
