#pragma once

#include <filesystem>
#include <fstream>
#include <string>

#include "isa/program.h"
#include "sim/core/observer.h"

namespace trn::sim {

/// Writes one CSV row an executed instruction, under the column names of AWS's profiler: start_ts,
/// duration_ns, end_ts (ns from launch, exact), engine, opcode, operands (with wait and update),
/// pc, nki_source_location, layer (the trace's label), stall_reason and stall_ns of the gap before
/// it. Rows come engine by engine in program order, not in order of time. Streams: memory holds one
/// buffer; what is written stays when the run fails.
class InstructionTable final : public Observer {
 public:
  /// info outlives the table. Throws InputError when the file cannot be written.
  InstructionTable(const std::filesystem::path& path, const isa::TraceInfo& info);
  ~InstructionTable() override;
  InstructionTable(const InstructionTable&) = delete;
  InstructionTable& operator=(const InstructionTable&) = delete;

  void on_instruction(const InstructionRecord& record) override;

  /// Writes what is left. Throws InputError when the disk did not take it all.
  void close();

 private:
  void flush();

  std::filesystem::path path_;
  const isa::TraceInfo& info_;
  std::ofstream file_;
  std::string buffer_;
};

}  // namespace trn::sim
