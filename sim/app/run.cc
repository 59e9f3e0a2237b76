#include "sim/app/run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <utility>

#include "isa/base/error.h"
#include "isa/import/profile.h"
#include "isa/trace.h"
#include "isa/validate.h"
#include "sim/app/machine_lookup.h"
#include "sim/app/sensitivity.h"
#include "sim/app/sha256.h"
#include "sim/machine/calibration.h"
#include "sim/machine/prices.h"
#include "sim/machine/run_core.h"
#include "sim/report/instruction_table.h"
#include "sim/report/timeline.h"
#include "trn_version.h"

namespace trn::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kPhasePath = "tensor.activity_window_phase";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::uint64_t peak_rss_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr std::uint64_t kKib = 1024;  // the unit of ru_maxrss
  return static_cast<std::uint64_t>(usage.ru_maxrss) * kKib;
}

/// Hashes a file beside the simulation, which a trace of gigabytes would hold up otherwise.
class BackgroundHash {
 public:
  explicit BackgroundHash(const fs::path& path)
      : worker_([this, path](const std::stop_token& stop) {
          try {
            text_ = sha256_of(path, stop);
          } catch (...) {
            error_ = std::current_exception();
          }
        }) {}

  std::string take() {
    worker_.join();
    if (error_) std::rethrow_exception(error_);
    return std::move(text_);
  }

 private:
  std::string text_;
  std::exception_ptr error_;
  std::jthread worker_;  // last: it uses the others
};

/// Hands every event of a run to several observers.
class Observers final : public sim::Observer {
 public:
  void add(sim::Observer* observer) {
    if (observer != nullptr) list_.push_back(observer);
  }
  /// Itself, its only member, or null when it has none.
  sim::Observer* get() {
    if (list_.empty()) return nullptr;
    return list_.size() == 1 ? list_.front() : this;
  }

  void on_instruction(const sim::InstructionRecord& record) override {
    for (sim::Observer* observer : list_) observer->on_instruction(record);
  }
  void on_packet(const sim::PacketRecord& record) override {
    for (sim::Observer* observer : list_) observer->on_packet(record);
  }
  void on_transfer(const sim::TransferRecord& record) override {
    for (sim::Observer* observer : list_) observer->on_transfer(record);
  }
  void on_clock(const sim::ClockRecord& record) override {
    for (sim::Observer* observer : list_) observer->on_clock(record);
  }

 private:
  std::vector<sim::Observer*> list_;
};

/// Tells how far a run is, a few times a second.
class ProgressObserver final : public sim::Observer {
 public:
  ProgressObserver(const std::function<void(const Progress&)>& tell, std::uint32_t run,
                   std::uint32_t runs)
      : tell_(tell), progress_{.run = run, .runs = runs} {}

  void on_instruction(const sim::InstructionRecord& record) override {
    constexpr std::uint64_t kLook = 4096;
    constexpr double kInterval = 0.2;
    progress_.simulated = std::max(progress_.simulated, record.end);
    if (++progress_.instructions % kLook != 0 || seconds_since(told_) < kInterval) return;
    told_ = Clock::now();
    tell_(progress_);
  }

 private:
  const std::function<void(const Progress&)>& tell_;
  Progress progress_;
  Clock::time_point told_ = Clock::now();
};

bool sets_phase(const std::vector<Override>& overrides) {
  return std::any_of(overrides.begin(), overrides.end(), [](const Override& set) {
    return set.path == kPhasePath || set.path == "tensor";
  });
}

/// A program to run, with what a report says of it.
struct Job {
  const isa::Code& code;
  fs::path path;  ///< of the trace or profile
  sim::Machine machine;
  bool one_phase = false;  ///< the phase is known
  sim::Observer* observer = nullptr;
};

/// One run after the other on one machine.
class Runner {
 public:
  Runner(const Job& job, const RunOptions& options) : job_(job), options_(options) {}

  sim::CoreResult nominal(std::vector<std::string>& warnings) {
    Observers observers;
    std::unique_ptr<sim::InstructionTable> table;
    if (!options_.instructions.empty()) {
      table = std::make_unique<sim::InstructionTable>(options_.instructions, job_.code.info());
      observers.add(table.get());
    }
    std::unique_ptr<sim::Timeline> timeline;
    if (!options_.timeline.empty()) {
      timeline = std::make_unique<sim::Timeline>(options_.timeline, options_.timeline_options,
                                                 job_.code.info(), job_.machine.config);
      observers.add(timeline.get());
    }
    observers.add(job_.observer);
    observers.add(&stalls_);
    sim::CoreResult result = one(job_.machine.config, *job_.machine.costs, observers);
    if (table) table->close();
    if (timeline) {
      timeline->close();
      if (timeline->dropped() > 0) {
        warnings.push_back(
            fmt::format("the timeline lacks {} of {} events: see --timeline-events and --window",
                        timeline->dropped(), timeline->kept() + timeline->dropped()));
      }
    }
    return result;
  }

  /// With the parameters at the ends of their intervals.
  std::vector<sim::Sensitivity> sensitivity(const sim::Calibration& calibration,
                                            sim::Time nominal) {
    run_ = 0;
    runs_ = 2 * static_cast<std::uint32_t>(calibration.parameters.size());
    return app::sensitivity(calibration, job_.machine, nominal, [&](const sim::Machine& machine) {
      return length_of(machine.config, *machine.costs);
    });
  }

  /// Over the phases; nothing when the program is too long for them to matter.
  std::optional<sim::TimeRange> range(const sim::CoreResult& nominal,
                                      std::vector<std::string>& warnings) {
    sim::TimeRange range{nominal.length, nominal.length};
    if (job_.one_phase) return std::nullopt;
    const sim::TensorEngineConfig& tensor = job_.machine.config.chip.tensor;
    const bool clocked = tensor.clock_gating && tensor.cold_clock != tensor.clock &&
                         nominal.engines[isa::index(isa::Engine::Tensor)].instructions != 0;
    if (!clocked) return range;
    const sim::Time window = sim::from_ns(tensor.activity_window);
    if (nominal.length / window >= kPhaseWindows) {
      warnings.push_back(fmt::format(
          "one phase of the Tensor clock was run: the others matter little over {} windows",
          nominal.length / window));
      return std::nullopt;
    }
    sim::MachineConfig config = job_.machine.config;
    runs_ = kPhases;
    for (std::uint32_t i = 0; i < kPhases; ++i) {
      const double phase = tensor.activity_window * i / kPhases;
      if (phase == job_.machine.config.tensor.activity_window_phase) continue;
      config.tensor.activity_window_phase = phase;
      const sim::Time length = length_of(config, *job_.machine.costs);
      range.low = std::min(range.low, length);
      range.high = std::max(range.high, length);
    }
    return range;
  }

  /// Of the nominal run.
  [[nodiscard]] const sim::StallTable& stalls() const { return stalls_; }
  [[nodiscard]] double seconds() const { return seconds_; }
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }

 private:
  sim::Time length_of(const sim::MachineConfig& config, const sim::CostTable& costs) {
    Observers none;
    return one(config, costs, none).length;
  }

  sim::CoreResult one(const sim::MachineConfig& config, const sim::CostTable& costs,
                      Observers& observers) {
    const Clock::time_point start = Clock::now();
    std::unique_ptr<ProgressObserver> progress;
    if (options_.progress) {
      progress = std::make_unique<ProgressObserver>(options_.progress, ++run_, runs_);
      observers.add(progress.get());
    }
    const sim::CoreRunOptions run_options{.observer = observers.get(),
                                          .reverse_construction = options_.reverse_construction};
    sim::CoreResult result = sim::run_core(job_.code, config, costs, run_options);
    seconds_ += seconds_since(start);
    instructions_ += result.instructions;
    return result;
  }

  const Job& job_;
  const RunOptions& options_;
  sim::StallTable stalls_;
  std::uint32_t run_ = 0;
  std::uint32_t runs_ = 1;
  double seconds_ = 0;
  std::uint64_t instructions_ = 0;
};

/// What a run needs and this machine, or this version, does not have.
void check_runnable(const isa::Code& code, const fs::path& path, const sim::Machine& machine) {
  const isa::TraceInfo& info = code.info();
  const sim::ChipConfig& chip = machine.config.chip;
  const auto fail = [&](std::string_view what, const std::string& message) {
    throw InputError(Place{.file = path.string()}, what, message);
  };
  if (info.target != chip.target) {
    fail("target", fmt::format("the trace was made for {}, {} has {}", name_of(info.target),
                               machine.name, name_of(chip.target)));
  }
  if (info.cores.size() > 1) {
    std::string cores;
    for (const isa::CoreBinding& binding : info.cores)
      cores += fmt::format("{}nc{}", cores.empty() ? "" : ", ", binding.core);
    fail("cores", fmt::format("runs use one core so far: the trace binds {} cores: {}",
                              info.cores.size(), cores));
  }
  if (code.programs() == 0) fail("programs", "the trace holds no program");
  const isa::CoreBinding binding = info.cores.empty() ? isa::CoreBinding{} : info.cores.front();
  const std::uint64_t cores = std::uint64_t{chip.cores} * machine.config.system.chips;
  if (binding.core >= cores) {
    fail("cores", fmt::format("the trace binds nc{}, {} has nc0 to nc{}", binding.core,
                              machine.name, cores - 1));
  }
  if (binding.program >= code.programs()) {
    fail("cores", fmt::format("nc{} runs program {}, the trace holds {}", binding.core,
                              binding.program, code.programs()));
  }
  sim::check_capacity(info, chip);
  const isa::ValidateLimits limits{
      .target = chip.target,
      .sbuf_partition_bytes = static_cast<std::uint32_t>(chip.sbuf.partition_size),
      .psum_partition_bytes = static_cast<std::uint32_t>(chip.psum.partition_size),
      .psum_bank_bytes = static_cast<std::uint32_t>(chip.psum.bank_size),
      .semaphore_max = chip.semaphores.max_value};
  isa::validate(code, limits, path.string());
}

std::uint64_t stored_instructions(const isa::Code& code) {
  std::uint64_t count = 0;
  for (std::uint32_t program = 0; program < code.programs(); ++program) {
    for (isa::Engine engine : isa::kAllEngines) count += code.size(program, engine);
  }
  return count;
}

std::optional<sim::MachineCost> machine_cost(const sim::Machine& machine,
                                             const RunOptions& options) {
  if (options.usd_per_hour) {
    if (!(*options.usd_per_hour > 0))
      throw InputError("--usd-per-hour",
                       fmt::format("expected more than 0, got {}", *options.usd_per_hour));
    return sim::MachineCost{.usd_per_hour = *options.usd_per_hour};
  }
  const sim::PriceList list = sim::load_prices(config_folder() / "prices.yaml");
  const std::string& instance = machine.config.system.instance;
  const auto price = sim::find_price(list, instance, options.price_plan);
  if (price) return sim::MachineCost{price->usd_per_hour, price};
  if (options.price_plan)
    throw InputError("--price",
                     fmt::format("no price of {} is known; --usd-per-hour gives one", instance));
  return std::nullopt;
}

/// The intervals of a machine's chip, without those of parameters that are given by hand. Nothing
/// when none were made for the chip.
std::optional<sim::Calibration> calibration_of(const sim::Machine& machine,
                                               const RunOptions& options) {
  fs::path path = options.calibration;
  if (path.empty()) {
    path = config_folder() / "calibration" / (machine.config.chip.name + ".yaml");
    std::error_code code;
    if (!fs::exists(path, code)) {
      if (options.sensitivity) {
        throw InputError("--sensitivity",
                         fmt::format("no intervals are known of the parameters of {}; "
                                     "--calibration gives them",
                                     machine.config.chip.name));
      }
      return std::nullopt;
    }
  }
  return sim::without(sim::load_calibration(path, machine.config), machine.overrides);
}

/// Everything but the replay's comparison, which `finish` adds. Cost and calibration are looked up
/// first, so that a mistake there does not wait for the simulation.
template <class Finish>
RunOutcome execute(const Job& job, const RunOptions& options, Clock::time_point start,
                   const Finish& finish) {
  auto cost = machine_cost(job.machine, options);
  auto calibration = calibration_of(job.machine, options);
  check_runnable(job.code, job.path, job.machine);
  BackgroundHash hash(job.path);
  Runner runner(job, options);
  std::vector<std::string> warnings = job.machine.warnings;
  const sim::CoreResult result = runner.nominal(warnings);
  sim::ReportInput input{.config = job.machine.config,
                         .trace = job.code.info(),
                         .core = result,
                         .stalls = runner.stalls().rows(job.code.info(), result.core),
                         .cost = std::move(cost),
                         .warnings = std::move(warnings)};
  input.phases = runner.range(result, input.warnings);
  if (options.sensitivity) input.sensitivity = runner.sensitivity(*calibration, result.length);
  input.calibration = std::move(calibration);
  input.replay = finish(result);
  input.simulator = {std::string(kVersion), std::string(kCommit), calibration_id(job.machine)};
  input.machine = {job.machine.name, job.machine.path.string(), sha256_of(job.machine.path),
                   job.machine.overrides};
  input.trace_file = {job.path.string(), hash.take(), stored_instructions(job.code)};
  sim::Report report = sim::make_report(std::move(input));
  const double rate =
      runner.seconds() > 0 ? static_cast<double>(runner.instructions()) / runner.seconds() : 0;
  return {std::move(report), {seconds_since(start), rate, peak_rss_bytes()}};
}

}  // namespace

RunOutcome run(const RunRequest& request) {
  const Clock::time_point start = Clock::now();
  const RunOptions& options = request.options;
  sim::Machine machine = open_machine(options.machine, options.overrides);
  const isa::TraceReader trace(request.trace);
  const Job job{.code = trace,
                .path = request.trace,
                .machine = std::move(machine),
                .one_phase = sets_phase(options.overrides)};
  return execute(job, options, start,
                 [](const sim::CoreResult&) -> std::optional<sim::Replay> { return {}; });
}

RunOutcome replay(const ReplayRequest& request) {
  const Clock::time_point start = Clock::now();
  const RunOptions& options = request.options;
  sim::Machine machine = open_machine(options.machine, options.overrides);
  const std::string file = request.profile.string();
  const std::string json = read_file(request.profile);
  const isa::ImportOptions import{.subgraph = request.subgraph, .name = {}};
  const isa::Trace trace = isa::import_profile(json, file, import);
  std::optional<double> phase;
  if (sets_phase(options.overrides)) {
    phase = machine.config.tensor.activity_window_phase;
  } else {
    phase = isa::activity_window_phase_ns(json, file, machine.config.chip.tensor.activity_window,
                                          import);
    if (phase) machine.config.tensor.activity_window_phase = *phase;
  }
  sim::ReplayObserver observer;
  const Job job{.code = trace,
                .path = request.profile,
                .machine = std::move(machine),
                .one_phase = phase.has_value(),
                .observer = &observer};
  return execute(job, options, start, [&](const sim::CoreResult& result) {
    const sim::Time total = result.length + sim::runtime_part(job.machine.config.chip.runtime);
    return std::optional(sim::compare(sim::measured_profile(json, file, import), observer.streams(),
                                      sim::to_ns(total), phase));
  });
}

std::string calibration_id(const sim::Machine& machine) {
  // By name, so that the folder of an install does not matter.
  std::set<std::pair<std::string, std::string>> files;
  for (const auto& [path, origin] : machine.provenance) {
    if (path.starts_with("chip.") && origin.line != 0)
      files.emplace(fs::path(origin.file).filename().string(), origin.file);
  }
  Sha256 hash;
  for (const auto& [name, file] : files) {
    const std::string content = read_file(file);
    hash.update({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
  }
  constexpr std::size_t kDigits = 12;
  return fmt::format("{}-{}", machine.config.chip.name, hash.hex().substr(0, kDigits));
}

std::string read_file(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code))
    throw InputError(Place{.file = path.string()}, "", "expected a file, got a directory");
  std::ifstream file(path, std::ios::binary);
  std::string content;
  std::vector<char> chunk(std::size_t{1} << 16U);
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    content.append(chunk.data(), static_cast<std::size_t>(file.gcount()));
  }
  if (!file.eof())
    throw InputError(Place{.file = path.string()}, "",
                     fs::exists(path, code) ? "cannot be read" : "no such file");
  return content;
}

namespace {

/// A device or a pipe is written in place; a file appears whole or not at all.
bool written_in_place(const fs::path& path) {
  std::error_code code;
  return fs::exists(path, code) && !fs::is_regular_file(path, code);
}

fs::path partial(const fs::path& path) { return path.string() + ".partial"; }

[[noreturn]] void fail_to_write(const fs::path& path) {
  throw InputError(Place{.file = path.string()}, "", "cannot be written");
}

}  // namespace

void check_writable(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) fail_to_write(path);
  if (written_in_place(path)) return;
  const bool opened = std::ofstream(partial(path), std::ios::binary | std::ios::trunc).is_open();
  if (!opened) fail_to_write(path);
  fs::remove(partial(path), code);
}

void write_file(const fs::path& path, std::string_view content) {
  const bool in_place = written_in_place(path);
  const fs::path written = in_place ? path : partial(path);
  std::ofstream file(written, std::ios::binary | std::ios::trunc);
  file.write(content.data(), static_cast<std::streamsize>(content.size()));
  file.close();
  std::error_code code;
  if (file && !in_place) fs::rename(written, path, code);
  if (file && !code) return;
  if (!in_place) fs::remove(written, code);
  fail_to_write(path);
}

}  // namespace trn::app
