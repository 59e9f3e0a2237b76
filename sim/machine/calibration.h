#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "isa/base/yaml_load.h"
#include "sim/core/critical_path.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

/// What the time of a run consists of, as far as an interval moves it: a part for each Resource,
/// one for the runtime's prologue and epilogue, and two that are no further parts of the time: what
/// moving the spilled bytes once takes, and the whole run of a program that fills SBUF.
inline constexpr std::size_t kTimeParts = kResources + 3;
inline constexpr std::size_t kRuntimePart = kResources;
inline constexpr std::size_t kSpillPart = kResources + 1;
inline constexpr std::size_t kFullPart = kResources + 2;

/// Within what limits something lies, nine times out of ten, and whose time follows it.
struct Interval {
  std::string name;     ///< path of the parameter, as for --set; or what the unknown is called
  bool factor = false;  ///< value, low and high multiply: a block of parameters, or an unknown
  double value = 1;     ///< in `unit`; more than 0
  double low = 1;
  double high = 1;
  std::string unit{};
  std::optional<double> influence_percent{};
  Status status = Status::Estimated;
  std::string source;
  /// How much of each part of the time follows: by what share it grows when the value doubles,
  /// were that linear. -1: in inverse proportion, as with a rate.
  std::array<double, kTimeParts> acts_on{};
};

/// The intervals of a chip's parameters, and of what no parameter expresses.
struct Calibration {
  std::string chip;
  std::string date;
  std::vector<std::string> rows{};  ///< the measurements that they come from
  std::vector<Interval> parameters{};
  std::vector<Interval> unknowns{};
};

/// Reads configs/calibration/CHIP.yaml or a file of that form, for this machine. Throws InputError
/// with all that is wrong: unknown keys, paths that the machine does not have, values out of order.
Calibration load_calibration(const std::filesystem::path& path, const MachineConfig& config);

/// Without the parameters that were given by hand: those are what they are said to be.
Calibration without(Calibration calibration, const std::vector<Override>& given);

/// What sets a parameter of this machine to one end of its interval. A machine with a value of its
/// own gets an interval in proportion.
/// end: `low` or `high` of the interval.
std::vector<Override> set_to(const Interval& interval, double end, const MachineConfig& config);

/// `520 ns`; of a factor `x0.7`.
std::string end_text(const Interval& interval, double end);

}  // namespace trn::sim
