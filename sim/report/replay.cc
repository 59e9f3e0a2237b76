#include "sim/report/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "sim/core/time.h"
#include "sim/report/fields_json.h"

namespace trn::sim {
namespace {

constexpr std::size_t kWorst = 10;
constexpr double kNsPerSecond = 1e9;
constexpr std::int64_t kLongestNs = std::int64_t{1} << 53U;  // what a double holds exactly

struct Interval {
  double begin = 0;
  double end = 0;
};

/// Engines as the profiler's active times and our reports name them: in lower case.
std::string lower_name(isa::Engine engine) {
  std::string name(name_of(engine));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name;
}

std::optional<isa::Engine> engine_of(std::string_view name) {
  for (isa::Engine engine : isa::kAllEngines) {
    if (lower_name(engine) == name) return engine;
  }
  return std::nullopt;
}

struct Export {
  std::vector<isa::KernelRow> places;
  std::vector<MeasuredRow> rows;
  std::array<std::vector<Interval>, isa::kEngines> active;
  std::optional<double> total_ns;
};

Export read_export(std::string_view json, const std::string& file,
                   const isa::ImportOptions& options) {
  static constexpr std::array<std::string_view, 8> kInstructionKeys = {
      "subgraph", "compiler_pc", "subgroup", "pc", "opcode", "operands", "timestamp", "duration"};
  static constexpr std::array<std::string_view, 4> kActiveKeys = {"subgraph", "engine", "start_ts",
                                                                  "end_ts"};
  static constexpr std::array<std::string_view, 1> kSummaryKeys = {"total_time"};
  static constexpr std::array<isa::ProfileSection, 3> kSections = {
      isa::ProfileSection{"instruction", kInstructionKeys},
      isa::ProfileSection{"active_time", kActiveKeys},
      isa::ProfileSection{"summary", kSummaryKeys}};

  const auto time = [](const isa::ProfileRow& row, std::string_view key) {
    return static_cast<double>(row.whole(key, 0, kLongestNs));
  };
  Export result;
  isa::read_profile(json, file, kSections, [&](const isa::ProfileRow& row) {
    if (row.section() == "instruction") {
      const auto place = isa::kernel_row(row, options.subgraph);
      if (!place) return;
      result.places.push_back(*place);
      result.rows.push_back({std::string(row.text("opcode")),
                             std::string(row.text_if("operands").value_or("")),
                             {time(row, "timestamp"), time(row, "duration")}});
    } else if (row.section() == "active_time") {
      if (row.text("subgraph") != options.subgraph) return;
      const std::string_view name = row.text("engine");
      const auto engine = engine_of(name);
      if (!engine)
        row.fail("engine", fmt::format("expected an engine, got '{}'", name.substr(0, 40)));
      const Interval interval{time(row, "start_ts"), time(row, "end_ts")};
      if (interval.end < interval.begin) row.fail("end_ts", "is before start_ts");
      result.active[isa::index(*engine)].push_back(interval);
    } else if (!result.total_ns) {
      const double seconds = row.number("total_time");
      if (!(seconds >= 0)) row.fail("total_time", "expected a time of 0 s or more");
      result.total_ns = seconds * kNsPerSecond;
    }
  });
  if (!result.total_ns) {
    throw InputError({file}, "summary", "expected a row with total_time, got none");
  }
  return result;
}

double median(std::vector<double> values) { return percentile(std::move(values), 0.5); }

ErrorSummary summarize(const std::vector<double>& errors) {
  return {errors.size(), percentile(errors, 0.5), percentile(errors, 0.9),
          percentile(errors, 0.95)};
}

double signed_error_percent(double measured, double predicted) {
  return std::copysign(error_percent(measured, predicted), predicted - measured);
}

/// One space between words, cut to `width`.
std::string shortened(std::string_view text, std::size_t width) {
  std::string line;
  for (char c : text) {
    if (c != ' ' || (!line.empty() && line.back() != ' ')) line += c;
  }
  if (line.size() > width) line = line.substr(0, width - 3) + "...";
  return line;
}

/// Time with an instruction in the engine; waiting for a semaphore is none, as the profiler has it.
double active_ns(const std::vector<MeasuredRow>& rows, const std::vector<Timing>& times) {
  std::vector<Timing> active;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].opcode != isa::EventSemaphore::kName) active.push_back(times[i]);
  }
  return covered_ns(std::move(active));
}

}  // namespace

double percentile(std::vector<double> values, double share) {
  TRN_CHECK(share >= 0 && share <= 1, "share {}", share);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - static_cast<double>(below));
}

double covered_ns(std::vector<Timing> intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const Timing& a, const Timing& b) { return a.start_ns < b.start_ns; });
  double covered = 0;
  std::optional<double> reached;
  for (const Timing& interval : intervals) {
    const double end = interval.start_ns + interval.duration_ns;
    const double begin = std::max(interval.start_ns, reached.value_or(interval.start_ns));
    if (end > begin) covered += end - begin;
    reached = std::max(end, reached.value_or(end));
  }
  return covered;
}

double error_percent(double measured, double predicted) {
  if (measured == predicted) return 0;
  if (measured == 0) return 100;
  return 100 * std::abs(predicted - measured) / measured;
}

MeasuredProfile measured_profile(std::string_view json, const std::string& file,
                                 const isa::ImportOptions& options) {
  Export source = read_export(json, file, options);
  const auto order = isa::program_order(source.places, file);

  MeasuredProfile result;
  result.total_ns = *source.total_ns;
  const auto end_of = [](const Timing& t) { return t.start_ns + t.duration_ns; };
  result.kernel_start_ns = source.rows.front().time.start_ns;
  double kernel_end = end_of(source.rows.front().time);
  for (const MeasuredRow& row : source.rows) {
    result.kernel_start_ns = std::min(result.kernel_start_ns, row.time.start_ns);
    kernel_end = std::max(kernel_end, end_of(row.time));
  }
  result.kernel_ns = kernel_end - result.kernel_start_ns;

  for (std::size_t engine = 0; engine < isa::kEngines; ++engine) {
    if (order[engine].empty()) continue;
    // What an engine does before and after its part of the kernel is the runtime's.
    Interval kernel{kernel_end, result.kernel_start_ns};
    for (std::size_t row : order[engine]) {
      const Timing& time = source.rows[row].time;
      kernel.begin = std::min(kernel.begin, time.start_ns);
      kernel.end = std::max(kernel.end, end_of(time));
    }
    for (const Interval& active : source.active[engine]) {
      result.active_ns[engine] +=
          std::max(0.0, std::min(active.end, kernel.end) - std::max(active.begin, kernel.begin));
    }
    for (std::size_t row : order[engine]) {
      MeasuredRow& moved = result.streams[engine].emplace_back(std::move(source.rows[row]));
      moved.time.start_ns -= result.kernel_start_ns;
    }
  }
  return result;
}

void ReplayObserver::on_instruction(const InstructionRecord& record) {
  std::vector<Timing>& stream = streams_[isa::index(record.engine)];
  if (stream.size() <= record.index) stream.resize(record.index + 1);
  stream[record.index] = {to_ns(record.start), to_ns(record.end - record.start)};
}

Replay compare(const MeasuredProfile& measured,
               const std::array<std::vector<Timing>, isa::kEngines>& predicted,
               double predicted_total_ns, std::optional<double> activity_window_phase_ns) {
  Replay result;
  result.measured_total_ns = measured.total_ns;
  result.predicted_total_ns = predicted_total_ns;
  result.total_error_percent = signed_error_percent(measured.total_ns, predicted_total_ns);
  result.measured_kernel_ns = measured.kernel_ns;
  result.activity_window_phase_ns = activity_window_phase_ns;

  std::optional<Interval> kernel;
  for (const auto& stream : predicted) {
    for (const Timing& time : stream) {
      const Interval row{time.start_ns, time.start_ns + time.duration_ns};
      if (!kernel) kernel = row;
      kernel->begin = std::min(kernel->begin, row.begin);
      kernel->end = std::max(kernel->end, row.end);
    }
  }
  const double origin = kernel ? kernel->begin : 0;
  result.predicted_kernel_ns = kernel ? kernel->end - kernel->begin : 0;

  struct OpcodeRows {
    std::vector<double> measured;
    std::vector<double> predicted;
    std::vector<double> errors;
  };
  std::map<std::string, OpcodeRows> opcodes;
  std::vector<double> duration_errors;
  std::vector<double> start_errors;
  std::vector<std::pair<double, WorstInstruction>> candidates;
  for (isa::Engine engine : isa::kAllEngines) {
    const auto& rows = measured.streams[isa::index(engine)];
    const auto& times = predicted[isa::index(engine)];
    TRN_CHECK(rows.size() == times.size(), "{} ran {} instructions, the profile has {}",
              name_of(engine), times.size(), rows.size());
    EngineComparison& active = result.engines[isa::index(engine)];
    active.measured_active_ns = measured.active_ns[isa::index(engine)];
    active.predicted_active_ns = active_ns(rows, times);
    active.error_percent =
        signed_error_percent(active.measured_active_ns, active.predicted_active_ns);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const Timing& was = rows[i].time;
      const Timing now{times[i].start_ns - origin, times[i].duration_ns};
      const double error = error_percent(was.duration_ns, now.duration_ns);
      duration_errors.push_back(error);
      start_errors.push_back(measured.kernel_ns > 0
                                 ? 100 * std::abs(now.start_ns - was.start_ns) / measured.kernel_ns
                                 : 0);
      OpcodeRows& opcode = opcodes[rows[i].opcode];
      opcode.measured.push_back(was.duration_ns);
      opcode.predicted.push_back(now.duration_ns);
      opcode.errors.push_back(error);
      candidates.emplace_back(std::abs(now.duration_ns - was.duration_ns),
                              WorstInstruction{std::string(name_of(engine)), i, rows[i].opcode,
                                               shortened(rows[i].operands, 200), was.start_ns,
                                               now.start_ns, was.duration_ns, now.duration_ns});
    }
  }
  result.duration_error_percent = summarize(duration_errors);
  result.start_error_percent_of_kernel = summarize(start_errors);
  for (const auto& [name, rows] : opcodes) {
    result.opcodes.push_back({name, rows.errors.size(), median(rows.measured),
                              median(rows.predicted), median(rows.errors),
                              percentile(rows.errors, 0.95)});
  }
  // Stable: instructions with equal errors stay in the order of engines and programs.
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [error, instruction] : candidates) {
    if (result.worst.size() == kWorst || error == 0) break;
    result.worst.push_back(std::move(instruction));
  }
  return result;
}

std::string to_text(const Replay& r) {
  std::string text;
  const auto line = [&]<class... Args>(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text), format, std::forward<Args>(args)...);
    text += '\n';
  };
  const std::string phase =
      r.activity_window_phase_ns
          ? fmt::format("{:.2f} ns (input, first ham row)", *r.activity_window_phase_ns)
          : std::string("unknown (no ham row)");
  line("{:<24}{:>12}{:>12}{:>9}", "replay", "measured", "predicted", "error");
  line("{:<24}{:>12.1f}{:>12.1f}{:>+8.2f}%", "profiled total, ns", r.measured_total_ns,
       r.predicted_total_ns, r.total_error_percent);
  line("{:<24}{:>12.1f}{:>12.1f}{:>+8.2f}%", "kernel, ns", r.measured_kernel_ns,
       r.predicted_kernel_ns, signed_error_percent(r.measured_kernel_ns, r.predicted_kernel_ns));
  for (isa::Engine engine : isa::kAllEngines) {
    const EngineComparison& e = r.engines[isa::index(engine)];
    line("{:<24}{:>12.1f}{:>12.1f}{:>+8.2f}%", fmt::format("  {} active, ns", name_of(engine)),
         e.measured_active_ns, e.predicted_active_ns, e.error_percent);
  }
  line("duration error of {} instructions: median {:.2f}%, p90 {:.2f}%, p95 {:.2f}%",
       r.duration_error_percent.rows, r.duration_error_percent.median, r.duration_error_percent.p90,
       r.duration_error_percent.p95);
  line("start error, of the kernel's length: median {:.2f}%, p95 {:.2f}%",
       r.start_error_percent_of_kernel.median, r.start_error_percent_of_kernel.p95);
  line("tensor.activity_window_phase: {}", phase);
  text += '\n';
  line("{:<24}{:>6}{:>12}{:>12}{:>11}{:>11}", "opcode", "count", "measured", "predicted",
       "median err", "p95 err");
  for (const OpcodeComparison& o : r.opcodes) {
    line("{:<24}{:>6}{:>12.1f}{:>12.1f}{:>10.2f}%{:>10.2f}%", shortened(o.opcode, 24), o.count,
         o.measured_median_ns, o.predicted_median_ns, o.error_percent_median, o.error_percent_p95);
  }
  if (r.worst.empty()) return text;
  text += '\n';
  line("{:<26}{:>18}{:>22}  {}", "worst durations, ns", "start (predicted)", "duration (predicted)",
       "operands");
  for (const WorstInstruction& w : r.worst) {
    line("{:<26}{:>18}{:>22}  {}",
         shortened(fmt::format("{} #{} {}", w.engine, w.index, w.opcode), 26),
         fmt::format("{:.0f} ({:.0f})", w.measured_start_ns, w.predicted_start_ns),
         fmt::format("{:.0f} ({:.0f})", w.measured_duration_ns, w.predicted_duration_ns),
         shortened(w.operands, 32));
  }
  return text;
}

nlohmann::ordered_json to_json(const Replay& r) {
  nlohmann::ordered_json json;
  json["measured_total_ns"] = value_json(r.measured_total_ns);
  json["predicted_total_ns"] = value_json(r.predicted_total_ns);
  json["total_error_percent"] = value_json(r.total_error_percent);
  json["measured_kernel_ns"] = value_json(r.measured_kernel_ns);
  json["predicted_kernel_ns"] = value_json(r.predicted_kernel_ns);
  json["duration_error_percent"] = fields_json(r.duration_error_percent);
  json["start_error_percent_of_kernel"] = fields_json(r.start_error_percent_of_kernel);
  if (r.activity_window_phase_ns) {
    json["activity_window_phase_ns"] = value_json(*r.activity_window_phase_ns);
  }
  json["engines"] = nlohmann::ordered_json::object();
  for (isa::Engine engine : isa::kAllEngines) {
    json["engines"][lower_name(engine)] = fields_json(r.engines[isa::index(engine)]);
  }
  json["opcodes"] = nlohmann::ordered_json::array();
  for (const OpcodeComparison& opcode : r.opcodes) json["opcodes"].push_back(fields_json(opcode));
  json["worst"] = nlohmann::ordered_json::array();
  for (const WorstInstruction& worst : r.worst) json["worst"].push_back(fields_json(worst));
  return json;
}

}  // namespace trn::sim
