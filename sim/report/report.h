#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/yaml_load.h"
#include "isa/program.h"
#include "sim/core/time.h"
#include "sim/machine/calibration.h"
#include "sim/machine/core_result.h"
#include "sim/machine/machine_config.h"
#include "sim/report/error_bar.h"
#include "sim/report/memory_use.h"
#include "sim/report/replay.h"
#include "sim/report/sensitivity.h"
#include "sim/report/stalls.h"
#include "sim/report/summary.h"
#include "sim/report/work_rate.h"

namespace trn::sim {

inline constexpr std::string_view kReportSchema = "trn-sim-results/1";

/// Who made a report.
struct SimulatorInfo {
  std::string version;
  std::string commit;
  std::string calibration;  ///< id of the parameter set: `trn2-0123456789ab`
};

/// Which machine it is of.
struct MachineInfo {
  std::string name;
  std::string path;
  std::string sha256;  ///< of the file at `path`
  std::vector<Override> overrides{};
};

/// And which program.
struct TraceFileInfo {
  std::string path;
  std::string sha256;
  std::uint64_t instructions = 0;  ///< that the streams of its programs hold
};

/// What made the report, in this process: the only part that may differ between two runs.
struct HostInfo {
  double wall_s = 0;
  double instructions_per_s = 0;  ///< simulated instructions of all runs, by the time in them
  std::uint64_t peak_rss_bytes = 0;
};

/// Everything that a report is made of.
struct ReportInput {
  SimulatorInfo simulator{};
  MachineInfo machine{};
  TraceFileInfo trace_file{};
  const MachineConfig& config;
  const isa::TraceInfo& trace;
  const CoreResult& core;
  std::vector<Stall> stalls{};        ///< as StallTable::rows() gives them
  std::optional<TimeRange> phases{};  ///< device times over the phases of the Tensor clock
  std::optional<Calibration> calibration{};
  std::vector<Sensitivity> sensitivity{};
  std::optional<MachineCost> cost{};
  std::optional<Replay> replay{};
  std::vector<std::string> warnings{};  ///< of the run; the report adds those that results show
};

struct CoreReport {
  std::uint32_t chip = 0;
  std::uint32_t core = 0;
  Time device_time = 0;
  Summary summary{};
  std::vector<EngineAccount> engines{};
};

/// What a run says, ready to be printed. Times are exact; see docs/reference/report.md.
struct Report {
  SimulatorInfo simulator{};
  MachineInfo machine{};
  TraceFileInfo trace_file{};
  std::string trace_name;
  isa::Target target{};
  Time device_time = 0;
  std::optional<ErrorBar> error_bar{};   ///< absent when nothing is known of it
  std::optional<Time> profiled_total{};  ///< absent when the runtime's part is switched off
  std::vector<std::string> warnings{};
  std::vector<CoreReport> cores{};
  CriticalPath critical_path{};
  std::vector<Sensitivity> sensitivity{};  ///< most influential first; empty: not asked for
  std::vector<Stall> stalls{};             ///< longest first
  std::vector<MemoryUse> memory{};
  std::vector<WorkRate> throughput{};
  std::uint32_t cores_of_instance = 0;
  std::optional<MachineCost> cost{};
  std::optional<Replay> replay{};

  [[nodiscard]] const Summary& summary() const { return cores.front().summary; }
};

Report make_report(ReportInput input);

/// The resource that held the critical path longest; nothing of an empty one.
std::optional<Resource> bound_by(const CriticalPath& path);

/// Prologue and epilogue of the runtime.
Time runtime_part(const RuntimeConfig& config);

/// The contract's JSON; `host` is left out when absent.
nlohmann::ordered_json to_json(const Report& report, const std::optional<HostInfo>& host);

/// A screen: at most kTextLines lines of kTextColumns columns, without the tables of a replay and
/// of the sensitivity.
inline constexpr std::size_t kTextLines = 40;
inline constexpr std::size_t kTextColumns = 100;
std::string to_text(const Report& report, const std::optional<HostInfo>& host);

}  // namespace trn::sim
