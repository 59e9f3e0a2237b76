#pragma once

#include <filesystem>
#include <string>
#include <string_view>
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

/// A folder of this test's own, empty.
std::filesystem::path scratch_folder();

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace trn::test
