#include <memory>

#include "isa/base/error.h"
#include "sim/cli/commands.h"

namespace trn::cli {

void add_run(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand("run", "runs a trace and prints the report");
  command->footer(
      "Example: how long a trace takes with a slower Tensor engine, as JSON\n"
      "  trn-sim run --config trn2.3xlarge --set 'chip.tensor.clock=2 GHz' trace.bin --report "
      "json");
  const auto options = std::make_shared<MachineOptions>();
  const auto trace = std::make_shared<std::filesystem::path>();
  add_machine_options(*command, *options);
  command->add_flag("--sensitivity", options->run.sensitivity,
                    "also runs with each calibrated parameter at both ends of its interval");
  command->add_option("trace", *trace, "the trace, as `asm`, `import` or a tracer writes it")
      ->type_name("TRACE");
  command->callback([options, trace, &context] {
    if (options->dump_config) {
      print_config(*options);
      return;
    }
    if (trace->empty()) throw InputError("TRACE", "expected the trace to run");
    context.input = *trace;
    print_outcome(app::run({*trace, run_options(*options)}), *options);
  });
}

}  // namespace trn::cli
