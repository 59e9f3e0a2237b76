#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "sim/cli/commands.h"

namespace trn::cli {
namespace {
namespace fs = std::filesystem;

constexpr const char* kPython = "/usr/bin/python3";  // which the compiled module is for

fs::path own_path() {
  std::error_code code;
  fs::path path = fs::read_symlink("/proc/self/exe", code);
  if (code) throw InputError("validate", "the path of trn-sim itself is not known");
  return path;
}

/// Where trnsim/validation is: beside the command, in the build tree as after an install.
fs::path package(const fs::path& executable) {
  fs::path folder =
      (executable.parent_path() / ".." / "share" / "trn-sim" / "python" / "trnsim" / "validation")
          .lexically_normal();
  std::error_code code;
  if (!fs::is_regular_file(folder / "__main__.py", code)) {
    throw InputError(Place{.file = folder.string()}, "",
                     "the package that validates is not there; trn-sim was built without Python");
  }
  return folder;
}

/// Becomes the Python process that does the work with these words of the command line; its exit
/// code and output are those of the command.
[[noreturn]] void become_validation(const std::vector<std::string>& words) {
  const fs::path executable = own_path();
  std::vector<std::string> command = {kPython, package(executable).string(), executable.string()};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (std::string& word : command) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execv(kPython, arguments.data());
  throw InputError(kPython, fmt::format("cannot be started: {}", std::strerror(errno)));
}

}  // namespace

void add_validate(CLI::App& app, Context& /*context*/) {
  CLI::App* const command =
      app.add_subcommand("validate", "predicts published measurements and shows the error of each");
  // Its options are known to the Python side, which also prints --help.
  command->set_help_flag();
  command->prefix_command();
  command->callback([command] { become_validation(command->remaining()); });
}

}  // namespace trn::cli
