#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace trn::test {

/// What a run of the command left behind.
struct CliResult {
  int code = -1;  ///< exit code; -1 when a signal ended it
  std::string out;
  std::string err;
};

/// Runs `trn-sim` of this build with these arguments, from the folder `from` when given.
CliResult run_cli(const std::vector<std::string>& arguments,
                  const std::filesystem::path& from = {});

}  // namespace trn::test
