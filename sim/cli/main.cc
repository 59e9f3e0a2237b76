#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/error.h"
#include "sim/cli/commands.h"
#include "sim/cli/failure.h"

// The packaged SystemC brings a main that calls sc_main. Ours is in the executable, so it wins, and
// the library only needs the symbol.
extern "C" int sc_main(int /*argc*/, char** /*argv*/) { return 1; }

namespace trn::cli {
namespace {

constexpr std::array<std::string_view, 7> kCommands = {"run",  "import",  "replay",  "asm",
                                                       "dump", "configs", "validate"};

bool is_command(std::string_view word) {
  return std::find(kCommands.begin(), kCommands.end(), word) != kCommands.end();
}

/// `trn-sim --config M TRACE` is short for `trn-sim run --config M TRACE`. A first word that is no
/// option, no command and no file is taken for a mistyped command.
std::vector<std::string> with_command(std::vector<std::string> words) {
  if (words.empty()) return {"--help"};
  const std::string& first = words.front();
  if (is_command(first) || first == "--help" || first == "-h" || first == "--version") return words;
  std::error_code code;
  const bool option = first.starts_with('-');
  if (!option && !std::filesystem::exists(first, code) &&
      first.find_first_of("./") == std::string::npos) {
    throw InputError("", fmt::format("no command '{}'{}; there are {}", first,
                                     did_you_mean(first, {kCommands.begin(), kCommands.end()}),
                                     fmt::join(kCommands, ", ")));
  }
  words.insert(words.begin(), "run");
  return words;
}

/// The options of the command that was given, for near misses.
std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      if (!option->get_group().empty() && !option->get_lnames().empty())
        names.push_back(fmt::format("--{}", option->get_lnames().front()));
    }
  }
  return names;
}

int usage_error(const CLI::App& app, const CLI::ParseError& error,
                const std::vector<std::string>& words) {
  std::string hint;
  if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr) {
    const std::vector<std::string> names = option_names(app);
    for (const std::string& word : words) {
      if (!word.starts_with("--")) continue;
      const std::string_view name = std::string_view(word).substr(0, word.find('='));
      if (std::find(names.begin(), names.end(), name) == names.end())
        hint = did_you_mean(name, {names.begin(), names.end()});
    }
  }
  const std::string command = app.get_subcommands().empty()
                                  ? std::string{}
                                  : app.get_subcommands().front()->get_name() + " ";
  fmt::print(stderr, "trn-sim: {}{}\ntrn-sim {}--help shows the usage\n", error.what(), hint,
             command);
  return kExitBadInput;
}

int parse_and_do(std::vector<std::string> words, Context& context) {
  CLI::App app{"trn-sim: how long a program takes on AWS Trainium2, and what holds it back"};
  app.name("trn-sim");
  app.require_subcommand(1);
  app.footer(
      "trn-sim --config MACHINE TRACE is short for trn-sim run --config MACHINE TRACE.\n"
      "Exit codes: 0 done, 1 a comparison failed, 2 bad input or usage, 3 the program deadlocked,\n"
      "4 it does not fit in memory, 70 a fault of trn-sim.\n\n"
      "Example: what a trace takes on a trn2.3xlarge\n"
      "  trn-sim --config trn2.3xlarge.yaml trace.bin");
  app.set_version_flag("--version", [] { return version_text(); });
  add_run(app, context);
  add_import(app, context);
  add_replay(app, context);
  add_asm(app, context);
  add_dump(app, context);
  add_configs(app, context);
  add_validate(app, context);
  const std::vector<std::string> given = words;
  try {
    std::reverse(words.begin(), words.end());  // as CLI11 takes them
    app.parse(std::move(words));
  } catch (const CLI::CallForHelp&) {
    print(app.help());
  } catch (const CLI::CallForVersion& version) {
    print(version.what());
  } catch (const CLI::ParseError& error) {
    return usage_error(app, error, given);
  }
  return kExitDone;
}

int main_of(std::vector<std::string> words) {
  Context context;
  try {
    return parse_and_do(with_command(std::move(words)), context);
  } catch (...) {
    return report_failure(std::current_exception(), context.input);
  }
}

}  // namespace
}  // namespace trn::cli

int main(int argc, char** argv) {
  return trn::cli::main_of(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
}
