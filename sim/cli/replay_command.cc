#include <memory>

#include "isa/base/error.h"
#include "sim/cli/commands.h"

namespace trn::cli {

void add_replay(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand(
      "replay", "runs the kernel of a device profile and compares with its measured times");
  command->footer(
      "Example: predicted against measured, with every instruction in a table\n"
      "  trn-sim replay profile.json --config trn2.3xlarge --instructions rows.csv");
  const auto options = std::make_shared<MachineOptions>();
  const auto request = std::make_shared<app::ReplayRequest>();
  add_machine_options(*command, *options);
  command->add_option("profile", request->profile, "the profiler's JSON export")
      ->type_name("PROFILE.json");
  command->add_option("--subgraph", request->subgraph, "the physical core whose kernel is replayed")
      ->type_name("NAME")
      ->capture_default_str();
  command->callback([options, request, &context] {
    if (options->dump_config) {
      print_config(*options);
      return;
    }
    if (request->profile.empty())
      throw InputError("PROFILE.json", "expected the profile to replay");
    context.input = request->profile;
    request->options = run_options(*options);
    print_outcome(app::replay(*request), *options);
  });
}

}  // namespace trn::cli
