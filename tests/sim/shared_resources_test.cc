#include "sim/engine/shared_resources.h"

#include <gtest/gtest.h>

#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::ns;

constexpr std::uint8_t kBank0 = 1;
constexpr std::uint8_t kBank1 = 2;

TEST(SharedResources, TheLaterOfTwoAccessesToABankIsDelayedByTheOverlap) {
  SharedResources shared(1);
  shared.announce(Engine::Vector, kBank0, ns(100), ns(200));
  shared.announce(Engine::Scalar, kBank0, ns(130), ns(230));
  EXPECT_EQ(shared.bank_delay(Engine::Vector), 0);
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), ns(70));  // 130 to 200
}

TEST(SharedResources, AnAccessThatEndsInsideTheOtherIsDelayedByItsOwnLength) {
  SharedResources shared(1);
  shared.announce(Engine::Vector, kBank0, ns(100), ns(500));
  shared.announce(Engine::Scalar, kBank0, ns(130), ns(230));
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), ns(100));
}

TEST(SharedResources, TheConfiguredShareOfTheOverlapCounts) {
  SharedResources shared(0.5);
  shared.announce(Engine::Vector, kBank0, ns(100), ns(200));
  shared.announce(Engine::Scalar, kBank0, ns(130), ns(230));
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), ns(35));
}

TEST(SharedResources, OtherBanksDoNotMatter) {
  SharedResources shared(1);
  shared.announce(Engine::Vector, kBank0, ns(100), ns(200));
  shared.announce(Engine::Scalar, kBank1, ns(130), ns(230));
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), 0);
  shared.announce(Engine::Scalar, kBank0 | kBank1, ns(130), ns(230));
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), ns(70));
}

TEST(SharedResources, AnAccessThatBeginsWhenTheOtherEndsIsFree) {
  SharedResources shared(1);
  shared.announce(Engine::Vector, kBank0, ns(100), ns(200));
  shared.announce(Engine::Scalar, kBank0, ns(200), ns(300));
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), 0);
  shared.announce(Engine::Scalar, kBank0, ns(200) - 1, ns(300));
  EXPECT_EQ(shared.bank_delay(Engine::Scalar), 1);
}

TEST(SharedResources, InATieTheLowerEngineNumberGoesFirst) {
  for (const bool vector_first : {true, false}) {
    SharedResources shared(1);
    if (vector_first) shared.announce(Engine::Vector, kBank0, ns(100), ns(200));
    shared.announce(Engine::Scalar, kBank0, ns(100), ns(200));
    if (!vector_first) shared.announce(Engine::Vector, kBank0, ns(100), ns(200));
    EXPECT_EQ(shared.bank_delay(Engine::Vector), 0);
    EXPECT_EQ(shared.bank_delay(Engine::Scalar), ns(100));
  }
}

TEST(SharedResources, GpSimdHoldsTheBusFromItsStartUntilItsEnd) {
  SharedResources shared(1);
  EXPECT_FALSE(shared.bus_taken(0));
  shared.announce(Engine::GpSimd, 0, ns(100), ns(200));
  EXPECT_FALSE(shared.bus_taken(ns(100) - 1));
  EXPECT_TRUE(shared.bus_taken(ns(100)));
  EXPECT_TRUE(shared.bus_taken(ns(200) - 1));
  EXPECT_FALSE(shared.bus_taken(ns(200)));
}

TEST(SharedResources, OthersDoNotHoldTheBus) {
  SharedResources shared(1);
  shared.announce(Engine::Scalar, kBank0, ns(100), ns(200));
  EXPECT_FALSE(shared.bus_taken(ns(150)));
}

}  // namespace
}  // namespace trn::sim
