#pragma once

#include <functional>
#include <vector>

#include "sim/core/time.h"
#include "sim/machine/calibration.h"
#include "sim/machine/machine_load.h"
#include "sim/report/sensitivity.h"

namespace trn::app {

/// Runs a program with each parameter at the two ends of its interval, the others as `machine` has
/// them, and lists the most influential first. Two runs a parameter.
/// device_time: of the program on `machine`; time: of it on a machine.
std::vector<sim::Sensitivity> sensitivity(
    const sim::Calibration& calibration, const sim::Machine& machine, sim::Time device_time,
    const std::function<sim::Time(const sim::Machine&)>& time);

}  // namespace trn::app
