#include "sim/machine/prices.h"

#include <fmt/format.h>

#include <algorithm>

namespace trn::sim {
namespace {

constexpr std::string_view kNotStated = "not stated";

bool is_date(std::string_view text) {
  if (text == kNotStated) return true;
  constexpr std::string_view kShape = "dddd-dd-dd";
  if (text.size() != 4 && text.size() != 7 && text.size() != kShape.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool digit = text[i] >= '0' && text[i] <= '9';
    if (kShape[i] == 'd' ? !digit : text[i] != kShape[i]) return false;
  }
  return true;
}

/// Of two dates the later one; a month counts as before its days, no date as before all others.
bool earlier(const Price& a, const Price& b) {
  const std::string_view left = a.date == kNotStated ? std::string_view{} : a.date;
  const std::string_view right = b.date == kNotStated ? std::string_view{} : b.date;
  return left < right;
}

}  // namespace

PriceList load_prices(const std::filesystem::path& path) {
  auto loaded = load_file<PriceList>(path);
  std::vector<InputError> errors;
  const auto fail = [&](std::size_t i, std::string_view key, const std::string& message) {
    const std::string full = fmt::format("prices.{}.{}", i, key);
    const Origin& origin = loaded.provenance[full];
    errors.emplace_back(Place{.file = origin.file, .line = origin.line}, full, message);
  };
  const auto& prices = loaded.value.prices;
  for (std::size_t i = 0; i < prices.size(); ++i) {
    if (!(prices[i].usd_per_hour > 0)) {
      fail(i, "usd_per_hour", fmt::format("expected more than 0, got {}", prices[i].usd_per_hour));
    }
    if (!is_date(prices[i].date)) {
      fail(i, "date",
           fmt::format("expected YYYY, YYYY-MM, YYYY-MM-DD or '{}', got '{}'", kNotStated,
                       prices[i].date));
    }
  }
  if (!errors.empty()) throw InputError(errors);
  return std::move(loaded.value);
}

std::optional<Price> find_price(const PriceList& list, std::string_view instance,
                                std::optional<std::string_view> plan) {
  const auto& names = EnumNames<PricePlan>::value;
  if (plan && std::find(names.begin(), names.end(), *plan) == names.end()) {
    throw InputError("--price",
                     fmt::format("expected {}, got '{}'{}", fmt::join(names, ", "), *plan,
                                 did_you_mean(*plan, {names.begin(), names.end()})));
  }
  const Price* best = nullptr;
  std::vector<std::string_view> plans;
  for (const Price& price : list.prices) {
    if (price.instance != instance) continue;
    const std::string_view own = name_of(price.plan);
    if (std::find(plans.begin(), plans.end(), own) == plans.end()) plans.push_back(own);
    const bool fits = plan ? own == *plan : price.status == Status::Documented;
    if (fits && (best == nullptr || earlier(*best, price))) best = &price;
  }
  if (best != nullptr) return *best;
  if (plan && !plans.empty()) {
    std::sort(plans.begin(), plans.end());
    throw InputError("--price", fmt::format("no price of {} under '{}'; known are {}", instance,
                                            *plan, fmt::join(plans, ", ")));
  }
  return std::nullopt;
}

}  // namespace trn::sim
