#include "tests/support/paths.h"

#include <gtest/gtest.h>

namespace trn::test {
namespace {

TEST(Paths, SourcePathNamesAFileOfTheRepository) {
  EXPECT_TRUE(std::filesystem::exists(source_path("tests/support/paths.h")));
}

TEST(Paths, BuildTreeShowsMachinesWhereAnInstallWould) {
  EXPECT_TRUE(std::filesystem::is_symlink(build_path("share/trn-sim/configs")));
}

}  // namespace
}  // namespace trn::test
