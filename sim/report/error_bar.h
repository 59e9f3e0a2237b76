#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/critical_path.h"
#include "sim/core/time.h"
#include "sim/machine/calibration.h"

namespace trn::sim {

struct TimeRange {
  Time low = 0;
  Time high = 0;
};

/// By how much the device time may be shorter or longer for one reason.
struct ErrorCause {
  std::string name;
  Time shorter = 0;
  Time longer = 0;
};

/// Between what times the machine's lies, nine times out of ten.
struct ErrorBar {
  std::string calibration_date;  ///< empty: the chip has no intervals
  TimeRange device_time{};
  TimeRange profiled_total{};        ///< of device time and runtime
  std::vector<ErrorCause> causes{};  ///< of the device time, largest first
};

/// What the bar of a run is made of.
struct ErrorBarInput {
  Time device_time = 0;
  Time runtime = 0;  ///< prologue and epilogue
  Time spill = 0;    ///< moving the spilled bytes once, with all DMA engines
  Time full = 0;     ///< the device time when the program fills SBUF, else 0
  CriticalPath critical_path{};
  const Calibration* calibration = nullptr;
  std::optional<TimeRange> phases{};  ///< device times over the phases of the Tensor clock
};

/// Each interval changes the parts of the critical path that its parameter acts on, to first order;
/// the changes and that of the Tensor clock's phase are independent, so the root of their summed
/// squares is the bar. Never under 0. See docs/concepts/error-bars.md.
ErrorBar error_bar(const ErrorBarInput& input);

/// Of `error_bar` in a report.
nlohmann::ordered_json to_json(const ErrorBar& bar);

}  // namespace trn::sim
