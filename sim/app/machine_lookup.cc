#include "sim/app/machine_lookup.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/base/error.h"

namespace trn::app {
namespace fs = std::filesystem;

fs::path config_folder() {
  std::error_code code;
  const fs::path executable = fs::read_symlink("/proc/self/exe", code);
  fs::path folder =
      (executable.parent_path() / ".." / "share" / "trn-sim" / "configs").lexically_normal();
  if (code || !fs::is_directory(folder, code)) {
    throw InputError(Place{.file = folder.string()}, "", "the shipped machines are not there");
  }
  return folder;
}

std::vector<std::string> shipped_machines(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code code;
  for (const auto& entry : fs::directory_iterator(folder / "systems", code)) {
    if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find_machine(std::string_view name, const fs::path& folder) {
  std::error_code code;
  fs::path given(name);
  if (fs::is_regular_file(given, code)) return given;
  const std::string_view stem = name.ends_with(".yaml")
                                    ? name.substr(0, name.size() - std::string_view(".yaml").size())
                                    : name;
  const std::vector<std::string> shipped = shipped_machines(folder);
  if (std::find(shipped.begin(), shipped.end(), stem) != shipped.end()) {
    return folder / "systems" / fmt::format("{}.yaml", stem);
  }
  throw InputError(
      "--config",
      fmt::format("no file and no shipped machine '{}'{}; shipped are {}", name,
                  did_you_mean(stem, {shipped.begin(), shipped.end()}), fmt::join(shipped, ", ")));
}

sim::Machine open_machine(std::string_view name, const std::vector<Override>& overrides) {
  const fs::path folder = config_folder();
  return sim::load_machine(find_machine(name, folder), overrides, folder);
}

}  // namespace trn::app
