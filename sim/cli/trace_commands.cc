#include <fstream>
#include <iostream>
#include <memory>

#include "isa/base/error.h"
#include "isa/import/profile.h"
#include "isa/text.h"
#include "isa/trace.h"
#include "sim/cli/commands.h"

namespace trn::cli {
namespace {

struct Paths {
  std::filesystem::path input;
  std::filesystem::path output;
};

}  // namespace

void add_import(CLI::App& app, Context& context) {
  CLI::App* const command =
      app.add_subcommand("import", "turns a device profile into a trace; its times are not read");
  command->footer(
      "Example: the kernel of a profile as a trace\n"
      "  trn-sim import profile.json -o trace.bin");
  const auto paths = std::make_shared<Paths>();
  const auto options = std::make_shared<isa::ImportOptions>();
  command->add_option("profile", paths->input, "the profiler's JSON export")
      ->type_name("PROFILE.json")
      ->required();
  command->add_option("-o,--output", paths->output, "the trace to write")
      ->type_name("TRACE")
      ->required();
  command->add_option("--subgraph", options->subgraph, "the physical core whose kernel is taken")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--name", options->name, "of the trace; by default the network's")
      ->type_name("NAME");
  command->callback([paths, options, &context] {
    context.input = paths->input;
    const isa::Trace trace =
        isa::import_profile(app::read_file(paths->input), paths->input.string(), *options);
    isa::write_trace(trace, paths->output);
  });
}

void add_asm(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand("asm", "turns a trace's text form into a trace");
  command->footer(
      "Example: the shipped text of a kernel as a trace\n"
      "  trn-sim asm attention_fused_bf16_s512.trn -o trace.bin");
  const auto paths = std::make_shared<Paths>();
  command->add_option("text", paths->input, "the text form")->type_name("FILE.trn")->required();
  command->add_option("-o,--output", paths->output, "the trace to write")
      ->type_name("TRACE")
      ->required();
  command->callback([paths, &context] {
    context.input = paths->input;
    isa::write_trace(isa::parse_text(app::read_file(paths->input), paths->input.string()),
                     paths->output);
  });
}

void add_dump(CLI::App& app, Context& context) {
  CLI::App* const command = app.add_subcommand("dump", "prints a trace as text");
  command->footer(
      "Example: a trace to read, change and assemble again\n"
      "  trn-sim dump trace.bin -o trace.trn");
  const auto paths = std::make_shared<Paths>();
  command->add_option("trace", paths->input, "the trace")->type_name("TRACE")->required();
  command->add_option("-o,--output", paths->output, "where the text goes instead of stdout")
      ->type_name("FILE.trn");
  command->callback([paths, &context] {
    context.input = paths->input;
    const isa::TraceReader trace(paths->input);
    if (paths->output.empty()) {
      isa::write_text(trace, std::cout);
      if (!std::cout.flush()) throw InputError("", "standard output cannot be written");
      return;
    }
    std::ofstream file(paths->output, std::ios::binary | std::ios::trunc);
    if (file) isa::write_text(trace, file);
    file.close();
    if (!file) throw InputError(Place{.file = paths->output.string()}, "", "cannot be written");
  });
}

}  // namespace trn::cli
