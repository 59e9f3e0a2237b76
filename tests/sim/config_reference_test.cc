#include "sim/app/config_reference.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/support/paths.h"

namespace trn::app {
namespace {

TEST(ConfigReference, ThePageIsUpToDate) {
  const auto file = test::source_path("docs/reference/configuration.md");
  const std::string page = configuration_page();
  if (std::getenv("TRN_UPDATE_REFERENCE") != nullptr) std::ofstream(file) << page;
  std::stringstream found;
  found << std::ifstream(file).rdbuf();
  EXPECT_EQ(found.str(), page) << "stale: run this test with TRN_UPDATE_REFERENCE=1 and commit";
}

}  // namespace
}  // namespace trn::app
