#include "sim/machine/prices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/base/error.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace trn::sim {
namespace {

PriceList shipped() { return load_prices(test::source_path("configs/prices.yaml")); }

TEST(Prices, WithoutAPlanTheNewestDocumentedOneCounts) {
  const auto price = find_price(shipped(), "trn2.48xlarge");
  ASSERT_TRUE(price);
  EXPECT_EQ(price->usd_per_hour, 35.7608);
  EXPECT_EQ(price->plan, PricePlan::CapacityBlock);
  EXPECT_EQ(price->status, Status::Documented);
  EXPECT_EQ(price->date, "2026-10");
}

TEST(Prices, UnderAPlanTheNewestCounts) {
  EXPECT_EQ(find_price(shipped(), "trn2.3xlarge", "capacity_block")->usd_per_hour, 2.24);
  EXPECT_EQ(find_price(shipped(), "trn2.48xlarge", "on_demand")->usd_per_hour, 14.5556);
  EXPECT_EQ(find_price(shipped(), "trn2.48xlarge", "on_demand")->status, Status::Disputed);
}

TEST(Prices, AnInstanceWithoutAPriceGetsNone) {
  EXPECT_FALSE(find_price(shipped(), "trn2u.48xlarge"));
  EXPECT_FALSE(find_price(shipped(), "trn9.huge"));
  EXPECT_FALSE(find_price(shipped(), "trn2u.48xlarge", "spot"));
}

TEST(Prices, PlansAreChecked) {
  const auto error = [](std::string_view instance, std::string_view plan) {
    try {
      static_cast<void>(find_price(shipped(), instance, plan));
    } catch (const InputError& caught) {
      return std::string(caught.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error("trn2.3xlarge", "spott"),
            "--price: expected capacity_block, on_demand, spot, reserved_3_years, unknown, got "
            "'spott' (did you mean 'spot'?)");
  EXPECT_EQ(error("trn2.3xlarge", "on_demand"),
            "--price: no price of trn2.3xlarge under 'on_demand'; known are capacity_block, spot, "
            "unknown");
}

TEST(Prices, AListIsChecked) {
  const auto file =
      test::write_text(test::scratch_folder() / "prices.yaml",
                       "prices:\n  - instance: a\n    plan: spot\n    region: b\n"
                       "    usd_per_hour: -1\n    date: 10/2026\n    source: c\n    status: doc\n");
  try {
    static_cast<void>(load_prices(file));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              file.string() + ":5: prices.0.usd_per_hour: expected more than 0, got -1\n" +
                  file.string() +
                  ":6: prices.0.date: expected YYYY, YYYY-MM, YYYY-MM-DD or 'not stated', got "
                  "'10/2026'");
  }
}

}  // namespace
}  // namespace trn::sim
