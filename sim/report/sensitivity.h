#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "isa/base/yaml_load.h"
#include "sim/core/time.h"

namespace trn::sim {

/// The device time with one parameter at the ends of its interval, and all else as it is.
struct Sensitivity {
  std::string parameter;  ///< path, as for --set
  std::string value;      ///< `541 ns`; `x1` of a block, whose numbers change together
  std::string low;
  std::string high;
  Status status = Status::Estimated;
  Time at_low = 0;
  Time at_high = 0;

  /// The larger of the two changes.
  [[nodiscard]] Time effect(Time device_time) const;
};

/// Of `sensitivity` in a report.
nlohmann::ordered_json to_json(const std::vector<Sensitivity>& rows, Time device_time);

}  // namespace trn::sim
