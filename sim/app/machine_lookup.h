#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sim/machine/machine_load.h"

namespace trn::app {

/// The folder of the shipped configs: ../share/trn-sim/configs from the running executable, in the
/// build tree as after an install. Throws InputError when there is none.
std::filesystem::path config_folder();

/// The shipped machines by name, sorted: `trn2.3xlarge`. folder: as from config_folder().
std::vector<std::string> shipped_machines(const std::filesystem::path& folder);

/// The file of a machine: `name` is a path, or the name of a shipped machine with or without
/// `.yaml`, from any working folder; a file at that path comes first. Throws InputError that lists
/// near misses and the shipped machines.
std::filesystem::path find_machine(std::string_view name, const std::filesystem::path& folder);

/// find_machine and load_machine in one, with the shipped configs of this executable.
sim::Machine open_machine(std::string_view name, const std::vector<Override>& overrides = {});

}  // namespace trn::app
