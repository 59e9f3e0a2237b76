#include "sim/report/sensitivity.h"

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "sim/report/fields_json.h"

namespace trn::sim {

Time Sensitivity::effect(Time device_time) const {
  return std::max(std::abs(at_low - device_time), std::abs(at_high - device_time));
}

nlohmann::ordered_json to_json(const std::vector<Sensitivity>& rows, Time device_time) {
  auto json = nlohmann::ordered_json::array();
  for (const Sensitivity& row : rows) {
    nlohmann::ordered_json entry{{"parameter", row.parameter},
                                 {"value", row.value},
                                 {"low", row.low},
                                 {"high", row.high},
                                 {"status", std::string(name_of(row.status))},
                                 {"time_at_low_ns", value_json(to_ns(row.at_low))},
                                 {"time_at_high_ns", value_json(to_ns(row.at_high))}};
    if (device_time > 0) {
      const auto percent = [&](Time time) {
        return value_json(100 * static_cast<double>(time - device_time) /
                          static_cast<double>(device_time));
      };
      entry["change_at_low_percent"] = percent(row.at_low);
      entry["change_at_high_percent"] = percent(row.at_high);
    }
    json.push_back(std::move(entry));
  }
  return json;
}

}  // namespace trn::sim
