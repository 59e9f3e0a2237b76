#include "sim/report/perfetto_writer.h"

#include <google/protobuf/io/coded_stream.h>

#include <array>

#include "isa/base/error.h"
#include "perfetto_trace.pb.h"

namespace trn::sim {
namespace {

namespace proto = perfetto::protos;

constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
constexpr int kTexts = 256;        // that may wait for a packet
constexpr char kPacketTag = 0x0a;  // field 1, with a length
constexpr std::uint32_t kSequence = 1;

/// Perfetto's resolution is a nanosecond.
std::uint64_t whole_ns(Time time) {
  constexpr Time kFs = 1'000'000;
  return static_cast<std::uint64_t>((time + kFs / 2) / kFs);
}

}  // namespace

struct PerfettoWriter::Messages {
  proto::TracePacket packet;
  proto::InternedData texts;
  int waiting = 0;  // texts
};

PerfettoWriter::PerfettoWriter(const std::filesystem::path& path)
    : path_(path),
      file_(path, std::ios::binary | std::ios::trunc),
      messages_(std::make_unique<Messages>()) {
  if (!file_) throw InputError(trn::Place{.file = path.string()}, "", "cannot be written");
}

PerfettoWriter::~PerfettoWriter() { flush(); }

void PerfettoWriter::add(const Process& process) {
  proto::TrackDescriptor& track = *messages_->packet.mutable_track_descriptor();
  track.set_uuid(process.uuid);
  track.set_child_ordering(proto::TrackDescriptor::EXPLICIT);
  track.mutable_process()->set_pid(process.pid);
  track.mutable_process()->set_process_name(process.name);
  for (const std::string& label : process.labels)
    track.mutable_process()->add_process_labels(label);
  write();
}

void PerfettoWriter::add(const Thread& thread) {
  proto::TrackDescriptor& track = *messages_->packet.mutable_track_descriptor();
  track.set_uuid(thread.uuid);
  track.set_sibling_order_rank(thread.tid);
  track.mutable_thread()->set_pid(thread.pid);
  track.mutable_thread()->set_tid(thread.tid);
  track.mutable_thread()->set_legacy_sort_index(thread.tid);
  track.mutable_thread()->set_thread_name(thread.name);
  write();
}

void PerfettoWriter::add(const Counter& counter) {
  proto::TrackDescriptor& track = *messages_->packet.mutable_track_descriptor();
  track.set_uuid(counter.uuid);
  track.set_parent_uuid(counter.process);
  track.set_sibling_order_rank(counter.rank);
  track.set_name(counter.name);
  track.mutable_counter()->set_unit_name(counter.unit);
  write();
}

PerfettoWriter::Category PerfettoWriter::category(std::string_view text) {
  const auto [found, added] = categories_.try_emplace(std::string(text), categories_.size() + 1);
  if (added) {
    proto::EventCategory& entry = *messages_->texts.add_event_categories();
    entry.set_iid(found->second);
    entry.set_name(found->first);
    ++messages_->waiting;
  }
  return Category{found->second};
}

PerfettoWriter::Name PerfettoWriter::name(std::string_view text) {
  const auto [found, added] = names_.try_emplace(std::string(text), names_.size() + 1);
  if (added) {
    proto::EventName& entry = *messages_->texts.add_event_names();
    entry.set_iid(found->second);
    entry.set_name(found->first);
    ++messages_->waiting;
  }
  return Name{found->second};
}

PerfettoWriter::Argument PerfettoWriter::argument(std::string_view text) {
  const auto [found, added] = arguments_.try_emplace(std::string(text), arguments_.size() + 1);
  if (added) {
    proto::DebugAnnotationName& entry = *messages_->texts.add_debug_annotation_names();
    entry.set_iid(found->second);
    entry.set_name(found->first);
    ++messages_->waiting;
  }
  return Argument{found->second};
}

PerfettoWriter::Text PerfettoWriter::text(std::string_view text) {
  const auto [found, added] = texts_.try_emplace(std::string(text), 0);
  if (added) found->second = static_cast<std::uint64_t>(new_text(text));
  return Text{found->second};
}

PerfettoWriter::Text PerfettoWriter::new_text(std::string_view text) {
  if (messages_->waiting >= kTexts) write_texts();
  proto::InternedString& entry = *messages_->texts.add_debug_annotation_string_values();
  entry.set_iid(++text_count_);
  entry.set_str(std::string(text));
  ++messages_->waiting;
  return Text{text_count_};
}

PerfettoWriter::Place PerfettoWriter::place(const std::string& file, std::uint32_t line) {
  const auto [found, added] = places_.try_emplace({file, line}, places_.size() + 1);
  if (added) {
    proto::SourceLocation& entry = *messages_->texts.add_source_locations();
    entry.set_iid(found->second);
    entry.set_file_name(file);
    entry.set_line_number(line);
    ++messages_->waiting;
  }
  return Place{found->second};
}

void PerfettoWriter::begin(int type, std::uint64_t track, Time at) {
  messages_->packet.set_timestamp(whole_ns(at));
  proto::TrackEvent& event = *messages_->packet.mutable_track_event();
  event.set_type(static_cast<proto::TrackEvent::Type>(type));
  event.set_track_uuid(track);
}

void PerfettoWriter::begin_slice(std::uint64_t track, Time at, Category category, Name name,
                                 Place place) {
  begin(proto::TrackEvent::TYPE_SLICE_BEGIN, track, at);
  proto::TrackEvent& event = *messages_->packet.mutable_track_event();
  event.add_category_iids(static_cast<std::uint64_t>(category));
  event.set_name_iid(static_cast<std::uint64_t>(name));
  if (place != Place{0}) event.set_source_location_iid(static_cast<std::uint64_t>(place));
}

void PerfettoWriter::instant(std::uint64_t track, Time at, Category category, Name name) {
  begin_slice(track, at, category, name);
  messages_->packet.mutable_track_event()->set_type(proto::TrackEvent::TYPE_INSTANT);
}

void PerfettoWriter::add(Argument name, std::uint64_t value) {
  proto::DebugAnnotation& entry = *messages_->packet.mutable_track_event()->add_debug_annotations();
  entry.set_name_iid(static_cast<std::uint64_t>(name));
  entry.set_uint_value(value);
}

void PerfettoWriter::add(Argument name, double value) {
  proto::DebugAnnotation& entry = *messages_->packet.mutable_track_event()->add_debug_annotations();
  entry.set_name_iid(static_cast<std::uint64_t>(name));
  entry.set_double_value(value);
}

void PerfettoWriter::add(Argument name, Text value) {
  proto::DebugAnnotation& entry = *messages_->packet.mutable_track_event()->add_debug_annotations();
  entry.set_name_iid(static_cast<std::uint64_t>(name));
  entry.set_string_value_iid(static_cast<std::uint64_t>(value));
}

void PerfettoWriter::begin_flow(std::uint64_t flow) {
  messages_->packet.mutable_track_event()->add_flow_ids(flow);
}

void PerfettoWriter::end_flow(std::uint64_t flow) {
  messages_->packet.mutable_track_event()->add_terminating_flow_ids(flow);
}

void PerfettoWriter::end_slice(std::uint64_t track, Time at) {
  begin(proto::TrackEvent::TYPE_SLICE_END, track, at);
  write();
}

void PerfettoWriter::count(std::uint64_t track, Time at, double value) {
  begin(proto::TrackEvent::TYPE_COUNTER, track, at);
  messages_->packet.mutable_track_event()->set_double_counter_value(value);
  write();
}

void PerfettoWriter::write() {
  proto::TracePacket& packet = messages_->packet;
  if (messages_->waiting > 0) {
    packet.mutable_interned_data()->Swap(&messages_->texts);
    messages_->texts.Clear();
    messages_->waiting = 0;
  }
  packet.set_trusted_packet_sequence_id(kSequence);
  std::uint32_t flags = proto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE;
  if (first_) flags |= proto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED;
  first_ = false;
  packet.set_sequence_flags(flags);

  constexpr std::size_t kLongestLength = 10;
  std::array<std::uint8_t, kLongestLength> length{};
  const auto used = google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(
                        packet.ByteSizeLong(), length.data()) -
                    length.data();
  buffer_ += kPacketTag;
  buffer_.append(length.begin(), length.begin() + used);
  packet.AppendToString(&buffer_);
  packet.Clear();
  if (buffer_.size() >= kBufferBytes) flush();
}

/// In a packet of their own. Not while an event is being made.
void PerfettoWriter::write_texts() {
  if (messages_->waiting > 0) write();
}

void PerfettoWriter::close() {
  flush();
  file_.close();
  if (!file_)
    throw InputError(trn::Place{.file = path_.string()}, "", "cannot be written to its end");
}

void PerfettoWriter::flush() {
  file_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace trn::sim
