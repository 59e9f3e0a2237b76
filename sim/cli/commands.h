#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/app/run.h"

namespace trn::cli {

/// What a command tells the outside: the file whose content a fault of ours may be due to.
struct Context {
  std::filesystem::path input{};
};

/// Each adds a subcommand, whose callback does all of its work.
void add_run(CLI::App& app, Context& context);
void add_import(CLI::App& app, Context& context);
void add_replay(CLI::App& app, Context& context);
void add_asm(CLI::App& app, Context& context);
void add_dump(CLI::App& app, Context& context);
void add_configs(CLI::App& app, Context& context);
void add_validate(CLI::App& app, Context& context);

/// What `--version` prints.
std::string version_text();

// ---- parts that commands share ----

/// Options of everything that simulates.
struct MachineOptions {
  app::RunOptions run{};
  std::vector<std::string> sets{};
  std::string window{};  ///< as given; empty: all
  bool dump_config = false;
  std::string format = "text";
  std::filesystem::path output{};
  bool quiet = false;
  bool progress = false;
};
void add_machine_options(CLI::App& command, MachineOptions& options);

/// Fills in options.run, with a progress line on stderr where one is wanted.
app::RunOptions run_options(const MachineOptions& options);

/// Prints the machine's effective values, for --dump-config.
void print_config(const MachineOptions& options);

/// Prints a report in the format asked for, to the place asked for.
void print_outcome(const app::RunOutcome& outcome, const MachineOptions& options);

/// Writes to standard output, or to a file when there is a name. Throws InputError.
void print(std::string_view text, const std::filesystem::path& file = {});

}  // namespace trn::cli
