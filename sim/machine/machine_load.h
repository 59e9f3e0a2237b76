#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/yaml_load.h"
#include "sim/core/cost_table.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

/// A machine read from its files: every parameter, its cost table, and where each value came from.
struct Machine {
  std::string name;  ///< of the system file, without folder and .yaml
  std::filesystem::path path;
  MachineConfig config{};
  std::shared_ptr<const CostTable> costs{};
  Provenance provenance{};
  std::vector<Override> overrides{};
  std::vector<std::string> warnings{};  ///< keys that were renamed
};

/// Reads a system file, the chip file that it names and the cost table that this names; applies the
/// overrides; checks that nothing contradicts anything. A file that is named is looked for beside
/// the one that names it, then in ../chips, then in `shipped`/chips. Throws one InputError with all
/// that is wrong.
/// shipped: the folder of the shipped configs, as from config_folder(); may be empty.
Machine load_machine(const std::filesystem::path& path, const std::vector<Override>& overrides = {},
                     const std::filesystem::path& shipped = {});

/// The effective values as YAML that load_machine reads, with the file and line of each.
std::string dump_machine(const Machine& machine);

/// Contradictions between values, and values out of range, with their places; empty: none.
std::vector<InputError> contradictions(const MachineConfig& config, const Provenance& provenance);

/// A number of a machine, by the path that --set takes.
struct MachineNumber {
  std::string path;
  double value = 0;
  std::string_view unit;  ///< as Field::unit
};
/// All of them, those of the cost table being its constants.
std::vector<MachineNumber> machine_numbers(const MachineConfig& config);

/// Clocks and numeric parameters of a chip, for the formulas of its cost table.
CostContext cost_context(const ChipConfig& chip);

}  // namespace trn::sim
