#pragma once

#include <filesystem>
#include <string_view>

namespace trn::test {

/// A file of the repository, named from its root: source_path("configs/trn2.3xlarge.yaml").
inline std::filesystem::path source_path(std::string_view relative) {
  return std::filesystem::path(TRN_TEST_SOURCE_DIR) / relative;
}

/// A file of the build tree, named from its root: build_path("bin/trn-sim").
inline std::filesystem::path build_path(std::string_view relative) {
  return std::filesystem::path(TRN_TEST_BINARY_DIR) / relative;
}

}  // namespace trn::test
