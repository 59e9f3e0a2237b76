#include "sim/app/sensitivity.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/app/machine_lookup.h"

namespace trn::app {
namespace {

/// The machine with one parameter at `end`, whatever else was changed after it was loaded.
sim::Machine at_end(const sim::Machine& machine, const sim::Interval& interval, double end) {
  std::vector<Override> overrides = machine.overrides;
  for (Override& set : sim::set_to(interval, end, machine.config))
    overrides.push_back(std::move(set));
  sim::Machine changed = sim::load_machine(machine.path, overrides, config_folder());
  changed.config.tensor = machine.config.tensor;
  return changed;
}

/// An end as this machine has it.
std::string text(const sim::Machine& machine, const sim::Interval& interval, double end) {
  if (interval.factor) return sim::end_text(interval, end);
  return sim::set_to(interval, end, machine.config).front().value;
}

}  // namespace

std::vector<sim::Sensitivity> sensitivity(
    const sim::Calibration& calibration, const sim::Machine& machine, sim::Time device_time,
    const std::function<sim::Time(const sim::Machine&)>& time) {
  std::vector<sim::Sensitivity> rows;
  rows.reserve(calibration.parameters.size());
  for (const sim::Interval& interval : calibration.parameters) {
    rows.push_back({.parameter = interval.name,
                    .value = text(machine, interval, interval.value),
                    .low = text(machine, interval, interval.low),
                    .high = text(machine, interval, interval.high),
                    .status = interval.status,
                    .at_low = time(at_end(machine, interval, interval.low)),
                    .at_high = time(at_end(machine, interval, interval.high))});
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const sim::Sensitivity& a, const sim::Sensitivity& b) {
                     return a.effect(device_time) > b.effect(device_time);
                   });
  return rows;
}

}  // namespace trn::app
