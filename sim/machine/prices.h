#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "isa/base/describe.h"
#include "isa/base/yaml_load.h"

namespace trn::sim {

enum class PricePlan : std::uint8_t { CapacityBlock, OnDemand, Spot, Reserved3Years, Unknown };

/// What one instance costs an hour.
struct Price {
  std::string instance;
  PricePlan plan = PricePlan::Unknown;
  std::string region;
  double usd_per_hour = 0;
  std::string date;  ///< YYYY, YYYY-MM or YYYY-MM-DD; "not stated"
  std::string source;
  Status status = Status::Disputed;
  static constexpr auto fields() {
    return std::tuple{
        Field{"instance", &Price::instance, "", "EC2 instance type"},
        Field{"plan", &Price::plan, "", "how it is bought"},
        Field{"region", &Price::region, "", "AWS region or zone"},
        Field{"usd_per_hour", &Price::usd_per_hour, "USD/h", "price of the whole instance"},
        Field{"date", &Price::date, "", "of the price"},
        Field{"source", &Price::source, "", "who states it"},
        Field{"status", &Price::status, "", "how well it is known"}};
  }
};

struct PriceList {
  std::vector<Price> prices{};
  static constexpr auto fields() {
    return std::tuple{Field{"prices", &PriceList::prices, "", "in no particular order"}};
  }
};

/// Reads configs/prices.yaml or a file of that form. Throws InputError with all that is wrong.
PriceList load_prices(const std::filesystem::path& path);

/// The price of an instance: under `plan`, the newest there is; without, the newest documented one
/// of any plan. Nothing when the instance has none: no price is invented. Throws InputError when
/// `plan` is no plan, or the instance is sold but not so.
std::optional<Price> find_price(const PriceList& list, std::string_view instance,
                                std::optional<std::string_view> plan = {});

}  // namespace trn::sim

namespace trn {
template <>
struct EnumNames<sim::PricePlan> {
  static constexpr std::array<std::string_view, 5> value = {"capacity_block", "on_demand", "spot",
                                                            "reserved_3_years", "unknown"};
};
}  // namespace trn
