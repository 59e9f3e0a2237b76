#include "sim/report/error_bar.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <utility>

#include "sim/report/fields_json.h"

namespace trn::sim {
namespace {

/// Sums changes that have nothing to do with one another.
class Spread {
 public:
  void add(double shorter, double longer) {
    shorter_ += shorter * shorter;
    longer_ += longer * longer;
  }
  [[nodiscard]] TimeRange around(Time time) const {
    return {std::max<Time>(0, time - std::llround(std::sqrt(shorter_))),
            time + std::llround(std::sqrt(longer_))};
  }

 private:
  double shorter_ = 0;
  double longer_ = 0;
};

/// By how much a time shrinks and grows between the two ends of an interval.
std::pair<double, double> change(const Interval& interval, double scale) {
  const double low = scale * (interval.low / interval.value - 1);
  const double high = scale * (interval.high / interval.value - 1);
  return {std::max({0.0, -low, -high}), std::max({0.0, low, high})};
}

}  // namespace

ErrorBar error_bar(const ErrorBarInput& input) {
  ErrorBar bar;
  Spread device;
  Spread total;
  const auto cause = [&](std::string_view name, double shorter, double longer) {
    device.add(shorter, longer);
    if (const ErrorCause each{std::string(name), std::llround(shorter), std::llround(longer)};
        each.shorter != 0 || each.longer != 0)
      bar.causes.push_back(each);
  };
  if (input.phases) {
    const double shorter = static_cast<double>(input.device_time - input.phases->low);
    const double longer = static_cast<double>(input.phases->high - input.device_time);
    total.add(shorter, longer);
    cause("tensor_clock_phase", shorter, longer);
  }
  const auto add = [&](const Interval& interval) {
    double scale = interval.acts_on[kSpillPart] * static_cast<double>(input.spill) +
                   interval.acts_on[kFullPart] * static_cast<double>(input.full);
    for (std::size_t i = 0; i < kResources; ++i)
      scale += interval.acts_on[i] * static_cast<double>(input.critical_path.spent[i]);
    const auto [shorter, longer] = change(interval, scale);
    cause(interval.name, shorter, longer);
    const auto [total_shorter, total_longer] = change(
        interval, scale + interval.acts_on[kRuntimePart] * static_cast<double>(input.runtime));
    total.add(total_shorter, total_longer);
  };
  if (input.calibration != nullptr) {
    bar.calibration_date = input.calibration->date;
    for (const Interval& interval : input.calibration->parameters) add(interval);
    for (const Interval& interval : input.calibration->unknowns) add(interval);
  }
  std::stable_sort(bar.causes.begin(), bar.causes.end(),
                   [](const ErrorCause& a, const ErrorCause& b) {
                     return std::max(a.shorter, a.longer) > std::max(b.shorter, b.longer);
                   });
  bar.device_time = device.around(input.device_time);
  bar.profiled_total = total.around(input.device_time + input.runtime);
  return bar;
}

nlohmann::ordered_json to_json(const ErrorBar& bar) {
  nlohmann::ordered_json json;
  if (!bar.calibration_date.empty()) json["calibration_date"] = bar.calibration_date;
  json["causes"] = nlohmann::ordered_json::array();
  for (const ErrorCause& cause : bar.causes) {
    json["causes"].push_back({{"cause", cause.name},
                              {"shorter_ns", value_json(to_ns(cause.shorter))},
                              {"longer_ns", value_json(to_ns(cause.longer))}});
  }
  return json;
}

}  // namespace trn::sim
