#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "isa/base/yaml_load.h"
#include "sim/core/time.h"
#include "sim/machine/machine_load.h"
#include "sim/report/report.h"
#include "sim/report/timeline.h"

namespace trn::app {

/// How far a run is, for people who wait.
struct Progress {
  std::uint64_t instructions = 0;  ///< of this run
  sim::Time simulated = 0;
  std::uint32_t run = 0;  ///< from 1
  std::uint32_t runs = 0;
};

/// What runs of traces and replays have in common.
struct RunOptions {
  std::string machine;  ///< a path, or the name of a shipped machine
  std::vector<Override> overrides{};
  std::optional<std::string> price_plan{};
  std::optional<double> usd_per_hour{};
  std::filesystem::path instructions{};  ///< CSV of every instruction; empty: none
  std::filesystem::path timeline{};      ///< for Perfetto; empty: none
  std::filesystem::path calibration{};   ///< intervals of the parameters; empty: the shipped ones
  bool sensitivity = false;              ///< also run with each parameter at its interval's ends
  sim::TimelineOptions timeline_options{};
  bool reverse_construction = false;                ///< for the test that nothing depends on it
  std::function<void(const Progress&)> progress{};  ///< called now and then; may be empty
};

struct RunRequest {
  std::filesystem::path trace;
  RunOptions options;
};

struct ReplayRequest {
  std::filesystem::path profile;
  std::string subgraph = "sg00";  ///< the physical core whose kernel is replayed
  RunOptions options;
};

struct RunOutcome {
  sim::Report report;
  sim::HostInfo host;
};

/// The device time depends on where the windows of the Tensor clock lie at launch, which nothing in
/// a program decides: a run gives the range over this many phases.
inline constexpr std::uint32_t kPhases = 8;
/// For programs of up to this many windows. A phase shifts a change of the clock by one window at
/// most; of a longer program, that is less than 0.1 %, well inside the model's error.
inline constexpr std::uint32_t kPhaseWindows = 1000;

/// Runs a trace: loads the machine, opens and checks the trace, simulates, and makes the report.
/// When the phase of the Tensor clock is among the overrides, there is one run, and the error bar
/// is that of the parameters.
/// Throws InputError (2), DeadlockError (3), CapacityError (4).
RunOutcome run(const RunRequest& request);

/// Imports a profile, runs it with the phase that the profile shows, and compares.
RunOutcome replay(const ReplayRequest& request);

/// The parameter set of a machine: its chip's name and a hash of the files that describe the chip.
std::string calibration_id(const sim::Machine& machine);

/// The whole content of a file. Throws InputError when it cannot be read.
std::string read_file(const std::filesystem::path& path);

/// Throws InputError when write_file could not make the file, so that nobody finds out after a long
/// run.
void check_writable(const std::filesystem::path& path);

/// Writes a file at once: it has all of `content`, or is as it was. Throws InputError.
void write_file(const std::filesystem::path& path, std::string_view content);

}  // namespace trn::app
