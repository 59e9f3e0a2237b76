#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "isa/program.h"
#include "sim/core/time.h"
#include "sim/machine/prices.h"

namespace trn::sim {

/// Work of one unit in a second, as `tokens_per_second`.
struct WorkRate {
  std::string unit;    ///< as the trace has it: `token`, `input_token`, `audio_second`
  std::string plural;  ///< `tokens`, `audio_seconds`
  double per_second = 0;
};

/// What the trace says one run does, by the time of a run; empty when it says nothing or takes no
/// time. Tokens in and out keep apart, and follow their sum.
std::vector<WorkRate> work_rates(const std::vector<isa::Work>& work, Time per_run);

/// What the machine costs, and where that is from: a price list, or the command line.
struct MachineCost {
  double usd_per_hour = 0;
  std::optional<Price> price{};  ///< absent: given by the user
};

/// Section `throughput`: `tokens_per_second` and so on.
nlohmann::ordered_json throughput_json(const std::vector<WorkRate>& rates);

/// Section `cost`: the price, `tokens_per_usd`, `usd_per_million_tokens` and so on. The whole
/// instance is paid for, whatever part of it works.
nlohmann::ordered_json cost_json(const MachineCost& cost, const std::vector<WorkRate>& rates);

/// Units of work for a dollar.
double per_usd(const WorkRate& rate, const MachineCost& cost);

}  // namespace trn::sim
