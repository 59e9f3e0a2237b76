#include "sim/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "isa/base/check.h"
#include "sim/report/fields_json.h"

namespace trn::sim {
namespace {

using Json = nlohmann::ordered_json;

/// A time in ns: the double next to it, which tells femtoseconds apart up to 2^53 of them (9 s).
Json ns(Time time) { return value_json(to_ns(time)); }

Json share(Time part, Time whole) {
  return value_json(static_cast<double>(part) / static_cast<double>(whole));
}

Json engine_json(const EngineAccount& account) {
  Json json;
  json["engine"] = lower_name(account.engine);
  json["instructions"] = account.instructions;
  json["busy_ns"] = ns(account.busy);
  json["idle_ns"] = ns(account.idle);
  json["stalled_ns"] = Json::object();
  for (std::size_t i = 0; i < kStallReasons; ++i) {
    if (account.stalled[i] == 0) continue;
    json["stalled_ns"][std::string(name_of(static_cast<StallReason>(i)))] = ns(account.stalled[i]);
  }
  return json;
}

Json core_json(const CoreReport& core) {
  Json json;
  json["chip"] = core.chip;
  json["core"] = core.core;
  json["device_time_ns"] = ns(core.device_time);
  json["engines"] = Json::array();
  for (const EngineAccount& account : core.engines) json["engines"].push_back(engine_json(account));
  json["summary"] = to_json(core.summary);
  return json;
}

Json bound_by_json(const CriticalPath& path, Resource most) {
  const Time total = path.total();
  Json json;
  json["resource"] = std::string(name_of(most));
  json["share"] = share(path.spent[static_cast<std::size_t>(most)], total);
  json["critical_path"] = Json::array();
  for (std::size_t i = 0; i < kResources; ++i) {
    if (path.spent[i] == 0) continue;
    json["critical_path"].push_back({{"resource", std::string(name_of(static_cast<Resource>(i)))},
                                     {"time_ns", ns(path.spent[i])},
                                     {"share", share(path.spent[i], total)}});
  }
  return json;
}

Json stall_json(const Stall& stall, Time device_time) {
  Json json;
  json["core"] = stall.core;
  json["engine"] = lower_name(stall.engine);
  json["reason"] = std::string(name_of(stall.reason));
  if (!stall.source.empty()) json["source"] = stall.source;
  if (!stall.label.empty()) json["label"] = stall.label;
  json["time_ns"] = ns(stall.time);
  json["share"] = share(stall.time, device_time);
  return json;
}

Json memory_json(const MemoryUse& use) {
  Json json;
  json["capacity_bytes"] = use.capacity_bytes;
  json["peak_bytes"] = use.peak_bytes;
  if (use.partition_capacity_bytes != 0) {
    json["partition_capacity_bytes"] = use.partition_capacity_bytes;
    json["partition_peak_bytes"] = use.partition_peak_bytes;
  }
  json["largest"] = Json::array();
  for (const TensorUse& tensor : use.largest) {
    Json row{{"name", tensor.name}, {"bytes", tensor.bytes}};
    if (!tensor.source.empty()) row["source"] = tensor.source;
    json["largest"].push_back(std::move(row));
  }
  return json;
}

std::vector<std::string> all_warnings(const ReportInput& input) {
  std::vector<std::string> warnings = input.trace.warnings;
  warnings.insert(warnings.end(), input.warnings.begin(), input.warnings.end());
  for (const std::string& row : input.core.assumed_costs)
    warnings.push_back(fmt::format("assumed cost used: {}", row));
  if (input.cost && input.cost->price) {
    const Price& price = *input.cost->price;
    if (price.status == Status::Disputed || price.status == Status::Estimated) {
      warnings.push_back(fmt::format("the price of {} is of doubtful status: {} ({}, {})",
                                     price.instance, long_name(price.status), price.source,
                                     price.date));
    }
  }
  return warnings;
}

/// The rows are the accounts' stalls, no femtosecond more or less.
void check_stalls(const std::vector<Stall>& stalls, const std::vector<EngineAccount>& accounts) {
  std::array<std::array<Time, kStallReasons>, isa::kEngines> sums{};
  for (const Stall& stall : stalls)
    sums[isa::index(stall.engine)][static_cast<std::size_t>(stall.reason)] += stall.time;
  for (const EngineAccount& account : accounts) {
    TRN_CHECK(sums[isa::index(account.engine)] == account.stalled,
              "the stalls of {} do not add up to its account", name_of(account.engine));
  }
}

/// Moving what was spilled once more, with all DMA engines at their rate.
Time spill_part(const DmaStats& dma, const DmaConfig& config) {
  const std::uint64_t bytes = dma.spill_save_bytes + dma.spill_reload_bytes;
  if (bytes == 0) return 0;
  return from_bytes(static_cast<double>(bytes), config.engines * config.bandwidth_per_engine);
}

/// The run, when its tiles fill SBUF: then it matters which places a compiler gives them. A trace
/// that declares none has those that its compiler chose. Nine tenths are a judgement
/// (docs/concepts/error-bars.md).
Time full_part(const std::vector<MemoryUse>& memory, Time device_time) {
  constexpr double kFull = 0.9;
  const auto fills = [](const MemoryUse& use) {
    return use.memory == isa::Memory::Sbuf && !use.largest.empty() &&
           static_cast<double>(use.partition_peak_bytes) >=
               kFull * static_cast<double>(use.partition_capacity_bytes);
  };
  return std::any_of(memory.begin(), memory.end(), fills) ? device_time : 0;
}

}  // namespace

std::optional<Resource> bound_by(const CriticalPath& path) {
  const auto most = std::max_element(path.spent.begin(), path.spent.end());
  if (*most <= 0) return std::nullopt;
  return static_cast<Resource>(most - path.spent.begin());
}

Time runtime_part(const RuntimeConfig& config) {
  return from_ns(config.prologue) + from_ns(config.epilogue);
}

Report make_report(ReportInput input) {
  const CoreResult& core = input.core;
  const ChipConfig& chip = input.config.chip;
  Report report;
  report.warnings = all_warnings(input);
  report.simulator = std::move(input.simulator);
  report.machine = std::move(input.machine);
  report.trace_file = std::move(input.trace_file);
  report.trace_name = input.trace.name;
  report.target = input.trace.target;
  report.device_time = core.length;
  report.memory = memory_use(input.trace, chip, core);
  const Time runtime = runtime_part(chip.runtime);
  if (input.phases || input.calibration) {
    report.error_bar = error_bar({.device_time = core.length,
                                  .runtime = runtime,
                                  .spill = spill_part(core.dma, chip.dma),
                                  .full = full_part(report.memory, core.length),
                                  .critical_path = core.critical_path,
                                  .calibration = input.calibration ? &*input.calibration : nullptr,
                                  .phases = input.phases});
  }
  if (chip.runtime.include) report.profiled_total = core.length + runtime;
  report.cores.push_back(
      {core.chip, core.core, core.length,
       summarize(core, input.config, input.trace, report.profiled_total.value_or(core.length)),
       engine_accounts(core)});
  report.critical_path = core.critical_path;
  report.sensitivity = std::move(input.sensitivity);
  report.stalls = std::move(input.stalls);
  check_stalls(report.stalls, report.cores.front().engines);
  report.throughput = work_rates(input.trace.work, core.length);
  report.cores_of_instance = chip.cores * input.config.system.chips;
  report.cost = std::move(input.cost);
  report.replay = std::move(input.replay);
  return report;
}

Json to_json(const Report& report, const std::optional<HostInfo>& host) {
  Json json;
  json["schema"] = std::string(kReportSchema);
  json["simulator"] = {{"version", report.simulator.version},
                       {"commit", report.simulator.commit},
                       {"calibration", report.simulator.calibration}};
  json["config"] = {{"name", report.machine.name},
                    {"path", report.machine.path},
                    {"sha256", report.machine.sha256},
                    {"overrides", Json::object()}};
  for (const Override& set : report.machine.overrides)
    json["config"]["overrides"][set.path] = set.value;
  json["trace"] = {{"path", report.trace_file.path},
                   {"sha256", report.trace_file.sha256},
                   {"name", report.trace_name},
                   {"target", std::string(name_of(report.target))},
                   {"instructions", report.trace_file.instructions}};
  json["device_time_ns"] = ns(report.device_time);
  const std::optional<ErrorBar>& bar = report.error_bar;
  if (bar) {
    json["device_time_low_ns"] = ns(bar->device_time.low);
    json["device_time_high_ns"] = ns(bar->device_time.high);
  }
  if (report.profiled_total) {
    json["profiled_total_ns"] = ns(*report.profiled_total);
    if (bar) {
      json["profiled_total_low_ns"] = ns(bar->profiled_total.low);
      json["profiled_total_high_ns"] = ns(bar->profiled_total.high);
    }
  }
  if (bar) json["error_bar"] = to_json(*bar);
  json["warnings"] = report.warnings;
  json["cores"] = Json::array();
  for (const CoreReport& core : report.cores) json["cores"].push_back(core_json(core));
  json["summary"] = to_json(report.summary());
  if (const auto most = bound_by(report.critical_path))
    json["bound_by"] = bound_by_json(report.critical_path, *most);
  if (!report.sensitivity.empty())
    json["sensitivity"] = to_json(report.sensitivity, report.device_time);
  json["stalls"] = Json::array();
  for (const Stall& stall : report.stalls)
    json["stalls"].push_back(stall_json(stall, report.device_time));
  for (const MemoryUse& use : report.memory)
    json["memory"][std::string(name_of(use.memory))] = memory_json(use);
  if (!report.throughput.empty()) json["throughput"] = throughput_json(report.throughput);
  if (report.cost) json["cost"] = cost_json(*report.cost, report.throughput);
  if (report.replay) json["replay"] = to_json(*report.replay);
  if (host) {
    json["host"] = {{"wall_s", host->wall_s},
                    {"instructions_per_s", host->instructions_per_s},
                    {"peak_rss_bytes", host->peak_rss_bytes}};
  }
  return json;
}

}  // namespace trn::sim
