#include <fmt/format.h>

#include <set>
#include <systemc>

#include "sim/app/machine_lookup.h"
#include "sim/cli/commands.h"
#include "trn_version.h"

namespace trn::cli {

void add_configs(CLI::App& app, Context& /*context*/) {
  CLI::App* const command = app.add_subcommand("configs", "lists the shipped machines");
  command->footer(
      "Example: what --config knows by name\n"
      "  trn-sim configs");
  command->callback([] {
    const std::filesystem::path folder = app::config_folder();
    std::string text = fmt::format("{:<18}{:>6}{:>7}  {:<10}{}\n", "machine", "chips", "cores",
                                   "topology", "file");
    for (const std::string& name : app::shipped_machines(folder)) {
      const sim::Machine machine = app::open_machine(name);
      text += fmt::format("{:<18}{:>6}{:>7}  {:<10}{}\n", name, machine.config.system.chips,
                          machine.config.system.chips * machine.config.chip.cores,
                          name_of(machine.config.system.topology), machine.path.string());
    }
    print(text);
  });
}

std::string version_text() {
  std::set<std::string> calibrations;
  for (const std::string& name : app::shipped_machines(app::config_folder()))
    calibrations.insert(app::calibration_id(app::open_machine(name)));
  return fmt::format("trn-sim {} ({})\nbuild: {}, {}, SystemC {}\ncalibration: {}\n", kVersion,
                     kCommit, kBuildType, kCompiler, sc_core::sc_version_string,
                     fmt::join(calibrations, ", "));
}

}  // namespace trn::cli
