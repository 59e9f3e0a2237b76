#include "sim/report/work_rate.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "sim/report/fields_json.h"

namespace trn::sim {
namespace {

constexpr double kSecondsPerHour = 3600;
constexpr double kMillion = 1e6;
constexpr std::string_view kToken = "token";

/// The key of a token's price: `input` of `input_token`; `all` when the trace does not tell.
std::string token_kind(std::string_view unit) {
  return unit == kToken ? "all" : std::string(unit.substr(0, unit.size() - kToken.size() - 1));
}

bool is_token(std::string_view unit) {
  return unit == kToken || unit == "input_token" || unit == "output_token";
}

}  // namespace

std::vector<WorkRate> work_rates(const std::vector<isa::Work>& work, Time per_run) {
  std::vector<WorkRate> rates;
  if (per_run <= 0) return rates;
  const double seconds = static_cast<double>(per_run) / kFsPerSecond;
  const auto add = [&](const std::string& unit, double amount) {
    const auto known = std::find_if(rates.begin(), rates.end(),
                                    [&](const WorkRate& rate) { return rate.unit == unit; });
    if (known != rates.end()) {
      known->per_second += amount / seconds;
    } else {
      rates.push_back({unit, unit + "s", amount / seconds});
    }
  };
  for (const isa::Work& item : work) {
    if (is_token(item.unit)) add(std::string(kToken), item.amount);
    if (item.unit != kToken) add(item.unit, item.amount);
  }
  return rates;
}

double per_usd(const WorkRate& rate, const MachineCost& cost) {
  return rate.per_second * kSecondsPerHour / cost.usd_per_hour;
}

nlohmann::ordered_json throughput_json(const std::vector<WorkRate>& rates) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const WorkRate& rate : rates)
    json[fmt::format("{}_per_second", rate.plural)] = value_json(rate.per_second);
  return json;
}

nlohmann::ordered_json cost_json(const MachineCost& cost, const std::vector<WorkRate>& rates) {
  nlohmann::ordered_json json;
  json["usd_per_hour"] = value_json(cost.usd_per_hour);
  if (cost.price) {
    nlohmann::ordered_json& price = json["price"];
    price["plan"] = std::string(name_of(cost.price->plan));
    price["region"] = cost.price->region;
    price["date"] = cost.price->date;
    price["source"] = cost.price->source;
    price["status"] = std::string(long_name(cost.price->status));
  }
  const bool tokens_apart = std::any_of(rates.begin(), rates.end(), [](const WorkRate& rate) {
    return is_token(rate.unit) && rate.unit != kToken;
  });
  for (const WorkRate& rate : rates) {
    const double amount = per_usd(rate, cost);
    if (!(amount > 0)) continue;
    json[fmt::format("{}_per_usd", rate.plural)] = value_json(amount);
    const double price = kMillion / amount;
    if (!is_token(rate.unit)) {
      json[fmt::format("usd_per_million_{}", rate.plural)] = value_json(price);
    } else if (rate.unit != kToken || !tokens_apart) {
      json["usd_per_million_tokens"][token_kind(rate.unit)] = value_json(price);
    }
  }
  return json;
}

}  // namespace trn::sim
