#include "sim/report/instruction_table.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>

#include "isa/base/error.h"
#include "isa/text.h"
#include "sim/report/stalls.h"

namespace trn::sim {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
constexpr std::string_view kHeader =
    "start_ts,duration_ns,end_ts,engine,opcode,operands,pc,nki_source_location,layer,stall_reason,"
    "stall_ns\n";

/// Exact: no digit of a femtosecond is lost, and no zero is written that says nothing.
void append_ns(std::string& out, Time time) {
  constexpr Time kFs = 1'000'000;
  fmt::format_to(std::back_inserter(out), "{}", time / kFs);
  if (time % kFs == 0) return;
  fmt::format_to(std::back_inserter(out), ".{:06}", time % kFs);
  while (out.back() == '0') out.pop_back();
}

/// As RFC 4180 has it.
void append_text(std::string& out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) {
    out += text;
    return;
  }
  out += '"';
  for (char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

}  // namespace

InstructionTable::InstructionTable(const std::filesystem::path& path, const isa::TraceInfo& info)
    : path_(path), info_(info), file_(path, std::ios::binary | std::ios::trunc), buffer_(kHeader) {
  if (!file_) throw InputError(Place{.file = path.string()}, "", "cannot be written");
  flush();
}

InstructionTable::~InstructionTable() { flush(); }

void InstructionTable::on_instruction(const InstructionRecord& record) {
  const isa::Instr& instr = *record.instr;
  append_ns(buffer_, record.start);
  buffer_ += ',';
  append_ns(buffer_, record.end - record.start);
  buffer_ += ',';
  append_ns(buffer_, record.end);
  buffer_ += ',';
  buffer_ += name_of(record.engine);
  buffer_ += ',';
  buffer_ += isa::mnemonic(instr);
  buffer_ += ',';
  std::string operands = isa::operands_text(instr);
  if (const std::string sync = isa::sync_text(instr); !sync.empty()) {
    if (!operands.empty()) operands += ' ';
    operands += sync;
  }
  append_text(buffer_, operands);
  fmt::format_to(std::back_inserter(buffer_), ",{},", record.index);
  append_text(buffer_, source_text(info_, instr.at.location));
  buffer_ += ',';
  if (instr.at.label < info_.labels.size()) append_text(buffer_, info_.labels[instr.at.label]);
  buffer_ += ',';
  if (record.stall > 0) buffer_ += name_of(record.reason);
  buffer_ += ',';
  append_ns(buffer_, record.stall);
  buffer_ += '\n';
  if (buffer_.size() >= kBufferBytes) flush();
}

void InstructionTable::close() {
  flush();
  file_.close();
  if (!file_) throw InputError(Place{.file = path_.string()}, "", "cannot be written to its end");
}

void InstructionTable::flush() {
  file_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace trn::sim
