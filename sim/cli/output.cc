#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "isa/base/error.h"
#include "isa/base/units.h"
#include "sim/app/machine_lookup.h"
#include "sim/cli/commands.h"
#include "sim/report/json_text.h"
#include "sim/report/report.h"

namespace trn::cli {
namespace {

/// One line on stderr that is written over and over, and gone in the end.
class ProgressLine {
 public:
  ProgressLine() = default;
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_) std::fputs(terminal_ ? "\r\033[K" : "", stderr);
  }

  void show(const app::Progress& progress) {
    const std::string run =
        progress.runs > 1 ? fmt::format("run {} of {}, ", progress.run, progress.runs) : "";
    fmt::print(stderr, "{}{}{} instructions, {:.1f} us simulated{}", terminal_ ? "\r\033[K" : "",
               run, progress.instructions, sim::to_ns(progress.simulated) * 1e-3,
               terminal_ ? "" : "\n");
    std::fflush(stderr);
    shown_ = true;
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO) == 1;
  bool shown_ = false;
};

/// One end of a window; without a unit it is in ns.
sim::Time window_end(std::string_view text) {
  for (const std::string_view unit : {"ns", ""}) {
    const Parsed<double> value = parse_quantity(text, unit);
    constexpr double kMost = 9e12;  // ns: 64 bits of fs hold 2.5 hours
    if (value && *value.value >= 0 && *value.value <= kMost) return sim::from_ns(*value.value);
    if (value) break;
  }
  throw InputError("--window",
                   fmt::format("expected a time from the launch such as 20us, got '{}'", text));
}

/// `10us:20us`; an end that is left out is the run's.
void set_window(std::string_view text, sim::TimelineOptions& options) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos)
    throw InputError("--window", fmt::format("expected A:B such as 10us:20us, got '{}'", text));
  if (colon > 0) options.from = window_end(text.substr(0, colon));
  if (colon + 1 < text.size()) options.to = window_end(text.substr(colon + 1));
  if (options.to <= options.from)
    throw InputError("--window", fmt::format("expected an end after the start, got '{}'", text));
}

}  // namespace

void add_machine_options(CLI::App& command, MachineOptions& options) {
  command
      .add_option("-c,--config", options.run.machine,
                  "the machine: a file, or a shipped one's name")
      ->type_name("MACHINE")
      ->required();
  command
      .add_option("--set", options.sets,
                  "overrides a key of the machine, as chip.tensor.clock=2 GHz")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
  command.add_option("--report", options.format, "text or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command.add_option("-o,--output", options.output, "where the report goes instead of stdout")
      ->type_name("FILE");
  command
      .add_option("--instructions", options.run.instructions,
                  "writes every simulated instruction, one row each")
      ->type_name("FILE.csv");
  auto* timeline = command
                       .add_option("--timeline", options.run.timeline,
                                   "writes the run as a timeline for ui.perfetto.dev")
                       ->type_name("FILE.pftrace");
  command
      .add_option("--window", options.window,
                  "the part of the run that the timeline shows, as 10us:20us; ns without a unit")
      ->type_name("A:B")
      ->needs(timeline);
  command
      .add_option("--timeline-events", options.run.timeline_options.events,
                  "how many events the timeline may have; the others are counted")
      ->type_name("N")
      ->capture_default_str()
      ->needs(timeline);
  command
      .add_option("--calibration", options.run.calibration,
                  "the intervals of the parameters that make the error bar, instead of the shipped")
      ->type_name("FILE.yaml");
  auto* price =
      command.add_option("--price", options.run.price_plan, "capacity_block, on_demand, spot ...")
          ->type_name("PLAN");
  command.add_option("--usd-per-hour", options.run.usd_per_hour, "what the instance costs")
      ->type_name("X")
      ->excludes(price);
  command.add_flag("--dump-config", options.dump_config,
                   "prints every value of the machine with its origin, and runs nothing");
  auto* quiet = command.add_flag("-q,--quiet", options.quiet, "no progress, no notes on stderr");
  command
      .add_flag("--progress", options.progress, "progress on stderr even if that is no terminal")
      ->excludes(quiet);
  // For the test that no result depends on the order in which modules are built.
  command.add_flag("--reverse-construction", options.run.reverse_construction)->group("");
}

app::RunOptions run_options(const MachineOptions& options) {
  if (!options.output.empty()) app::check_writable(options.output);
  app::RunOptions run = options.run;
  if (!options.window.empty()) set_window(options.window, run.timeline_options);
  for (const std::string& set : options.sets) run.overrides.push_back(parse_override(set));
  if (options.progress || (!options.quiet && isatty(STDERR_FILENO) == 1)) {
    run.progress = [line = std::make_shared<ProgressLine>()](const app::Progress& progress) {
      line->show(progress);
    };
  }
  return run;
}

void print_config(const MachineOptions& options) {
  const app::RunOptions run = run_options(options);
  print(sim::dump_machine(app::open_machine(run.machine, run.overrides)), options.output);
}

void print_outcome(const app::RunOutcome& outcome, const MachineOptions& options) {
  print(options.format == "json" ? sim::json_text(sim::to_json(outcome.report, outcome.host))
                                 : sim::to_text(outcome.report, outcome.host),
        options.output);
}

void print(std::string_view text, const std::filesystem::path& file) {
  if (!file.empty()) {
    app::write_file(file, text);
    return;
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (!written || std::fflush(stdout) != 0)
    throw InputError("", "standard output cannot be written");
}

}  // namespace trn::cli
