#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace trn::test {

/// A folder of this test's own in this process. Tests run side by side, each in a process, so a
/// file in the common folder for temporary files is anyone's: put files here.
std::filesystem::path scratch_folder();

std::string read_text(const std::filesystem::path& path);

/// Writes the file and returns its path.
std::filesystem::path write_text(const std::filesystem::path& path, std::string_view text);

}  // namespace trn::test
