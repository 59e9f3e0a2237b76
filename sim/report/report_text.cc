#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/report/report.h"

namespace trn::sim {
namespace {

constexpr std::size_t kBarColumns = 24;
constexpr std::size_t kTopStalls = 6;
constexpr std::size_t kReasonColumns = 29;
constexpr std::size_t kWarnings = 4;
constexpr std::size_t kUnitsOfWork = 3;
constexpr std::size_t kLabelColumns = 16;

/// Lines of at most kTextColumns columns.
class Page {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    std::string text = fmt::format(format, std::forward<Args>(args)...);
    while (!text.empty() && text.back() == ' ') text.pop_back();
    if (text.size() > kTextColumns) {
      text.resize(kTextColumns - 3);
      text += "...";
    }
    text_ += text;
    text_ += '\n';
  }
  void blank() { text_ += '\n'; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

std::string thousands(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) text += ' ';
    text += digits[i];
  }
  return text;
}

std::string time_text(Time time) {
  const double value = to_ns(time);
  constexpr double kStep = 1e3;
  if (value < kStep) return fmt::format("{:.1f} ns", value);
  if (value < kStep * kStep) return fmt::format("{:.3f} us", value / kStep);
  return fmt::format("{:.4f} ms", value / (kStep * kStep));
}

double percent(Time part, Time whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

/// `1.23 k`, `45.6 M`: three figures, for a unit to follow.
std::string metric(double value) {
  constexpr std::array<std::pair<double, const char*>, 4> kPrefixes = {
      {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}};
  for (const auto& [factor, prefix] : kPrefixes) {
    if (value >= factor) return fmt::format("{:.3g} {}", value / factor, prefix);
  }
  return fmt::format("{:.3g} ", value);
}

/// `151 100`, `0.0312`: four figures, for things that take no prefix.
std::string figures(double value) {
  constexpr double kWhole = 1e4;
  constexpr double kMost = 1e15;
  if (value < kWhole || value >= kMost) return fmt::format("{:.4g}", value);
  const double unit = std::pow(10, std::floor(std::log10(value)) - 3);
  return thousands(static_cast<std::uint64_t>(std::round(value / unit) * unit));
}

/// `#` busy, `-` stalled, `.` idle; a share of no more than half a column is not drawn.
std::string bar(const EngineAccount& account, Time whole) {
  const auto columns = [&](Time part) {
    const double share = whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
    return static_cast<std::size_t>(std::lround(share * kBarColumns));
  };
  const std::size_t busy = columns(account.busy);
  const std::size_t stalled = columns(account.busy + account.stalled_total()) - busy;
  std::string text(busy, '#');
  text.append(stalled, '-');
  text.append(kBarColumns - busy - stalled, '.');
  return text;
}

/// `wait_dma 30, launch 3`: the longest stalls of an engine, in per cent, as many as fit.
std::string main_reasons(const EngineAccount& account, Time whole) {
  std::vector<std::pair<Time, std::string_view>> reasons;
  for (std::size_t i = 0; i < kStallReasons; ++i) {
    if (percent(account.stalled[i], whole) >= 1)
      reasons.emplace_back(account.stalled[i], name_of(static_cast<StallReason>(i)));
  }
  std::stable_sort(reasons.begin(), reasons.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [time, name] : reasons) {
    const std::string reason =
        fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", name, percent(time, whole));
    if (text.size() + reason.size() > kReasonColumns) break;
    text += reason;
  }
  return text;
}

/// The end of a path, which tells more than its beginning.
std::string tail(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text;
  return fmt::format("...{}", std::string_view(text).substr(text.size() - (columns - 3)));
}

/// `  (9.000 us to 11.000 us, error bar; mostly schedule)`, or nothing.
std::string bar_text(const std::optional<ErrorBar>& bar) {
  if (!bar || bar->causes.empty()) return {};
  std::string_view cause = bar->causes.front().name;
  constexpr std::string_view kChip = "chip.";
  if (cause.starts_with(kChip)) cause.remove_prefix(kChip.size());
  return fmt::format("  ({} to {}, error bar; mostly {})", time_text(bar->device_time.low),
                     time_text(bar->device_time.high), cause);
}

void print_totals(const Report& report, Page& page) {
  page.line("{:<{}}{}{}", "device time", kLabelColumns, time_text(report.device_time),
            bar_text(report.error_bar));
  if (report.profiled_total) {
    page.line("{:<{}}{}  with the runtime's prologue and epilogue", "profiled total", kLabelColumns,
              time_text(*report.profiled_total));
  }
  const auto most = bound_by(report.critical_path);
  if (!most) return;
  std::vector<std::pair<Time, std::string_view>> parts;
  for (std::size_t i = 0; i < kResources; ++i)
    parts.emplace_back(report.critical_path.spent[i], name_of(static_cast<Resource>(i)));
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  constexpr std::size_t kParts = 5;
  for (std::size_t i = 0; i < kParts; ++i) {
    const double part = percent(parts[i].first, report.critical_path.total());
    if (part < 0.5) break;
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", parts[i].second, part);
  }
  page.line("{:<{}}{}", "bound by", kLabelColumns, text);
}

void print_engines(const Report& report, Page& page) {
  page.blank();
  page.line("{:<7}{:>13}{:>8}{:>8}{:>7}  {:<{}}  {}", "engine", "instructions", "busy %", "stall %",
            "idle %", "# busy - stalled . idle", kBarColumns, "stalled by, %");
  const Time whole = report.device_time;
  for (const EngineAccount& account : report.cores.front().engines) {
    page.line("{:<7}{:>13}{:>8.1f}{:>8.1f}{:>7.1f}  {}  {}", name_of(account.engine),
              thousands(account.instructions), percent(account.busy, whole),
              percent(account.stalled_total(), whole), percent(account.idle, whole),
              bar(account, whole), main_reasons(account, whole));
  }
}

void print_stalls(const Report& report, Page& page) {
  if (report.stalls.empty()) return;
  page.blank();
  page.line("{:<8}{:<18}{:>12}{:>8}  {}", "stalled", "reason", "time", "share",
            "before source line or label");
  constexpr std::size_t kSourceColumns = 48;
  for (std::size_t i = 0; i < std::min(kTopStalls, report.stalls.size()); ++i) {
    const Stall& stall = report.stalls[i];
    page.line("{:<8}{:<16}{:>12}{:>6.1f} %  {}", name_of(stall.engine), name_of(stall.reason),
              time_text(stall.time), percent(stall.time, report.device_time),
              tail(stall.source.empty() ? stall.label : stall.source, kSourceColumns));
  }
}

void print_utilisation(const Report& report, Page& page) {
  const Summary& s = report.summary();
  const auto percentage = [](const std::optional<double>& share) {
    return share ? fmt::format("{:.1f} %", 100 * *share) : std::string("-");
  };
  page.blank();
  if (s.hardware_flops > 0) {
    page.line("{:<{}}{}FLOP in {} matmuls, {} of it for transposes; MFU {}, HFU {}", "compute",
              kLabelColumns, metric(s.hardware_flops), thousands(s.matmul_instruction_count),
              percentage(s.transpose_flops / s.hardware_flops), percentage(s.mfu_estimated_percent),
              percentage(s.hfu_estimated_percent));
  }
  const double device_s = static_cast<double>(report.device_time) / kFsPerSecond;
  const auto bytes = static_cast<double>(s.dma_transfer_total_bytes);
  page.line("{:<{}}{} in {} transfers{}; active {}", "DMA", kLabelColumns, bytes_text(bytes),
            thousands(s.dma_transfer_count),
            device_s > 0 ? fmt::format(", {}B/s", metric(bytes / device_s)) : std::string{},
            percentage(s.dma_active_time_percent));
  page.line("{:<{}}{} read, {} written; MBU {}", "HBM", kLabelColumns,
            bytes_text(static_cast<double>(s.hbm_read_bytes)),
            bytes_text(static_cast<double>(s.hbm_write_bytes)),
            percentage(s.mbu_estimated_percent));
  std::string memories;
  for (const MemoryUse& use : report.memory) {
    memories += fmt::format(
        "{}{} {} ({:.1f} %)", memories.empty() ? "" : ", ", name_of(use.memory),
        bytes_text(static_cast<double>(use.peak_bytes)),
        100 * static_cast<double>(use.peak_bytes) / static_cast<double>(use.capacity_bytes));
  }
  page.line("{:<{}}{}", "memory peaks", kLabelColumns, memories);
}

void print_work(const Report& report, Page& page) {
  const std::span units(report.throughput.data(), std::min(kUnitsOfWork, report.throughput.size()));
  for (const WorkRate& rate : units) {
    page.line("{:<{}}{} {} per second", "throughput", kLabelColumns, figures(rate.per_second),
              rate.plural);
  }
  if (!report.cost) return;
  const MachineCost& cost = *report.cost;
  std::string source = "given by the user";
  if (cost.price) {
    source = fmt::format("{}, {}, {}, {}", name_of(cost.price->plan), cost.price->region,
                         cost.price->date, long_name(cost.price->status));
  }
  page.line("{:<{}}{:.4g} USD an hour ({})", "cost", kLabelColumns, cost.usd_per_hour, source);
  for (const WorkRate& rate : units) {
    const double amount = per_usd(rate, cost);
    if (!(amount > 0)) continue;
    page.line("{:<{}}{} {} per USD, {:.4g} USD per million; {} of {} cores at work", "",
              kLabelColumns, figures(amount), rate.plural, 1e6 / amount, report.cores.size(),
              report.cores_of_instance);
  }
}

/// Each parameter's interval and what its ends make of the device time.
void print_sensitivity(const Report& report, Page& page) {
  page.blank();
  page.line("{:<35}{:<5}{:>23}{:>11}{:>11}{:>14}", "parameter", "status", "interval", "at low",
            "at high", "change, %");
  for (const Sensitivity& row : report.sensitivity) {
    page.line("{:<35}{:<5}{:>23}{:>11}{:>11}{:>+7.2f}{:>+7.2f}", row.parameter, name_of(row.status),
              fmt::format("{} to {}", row.low, row.high), time_text(row.at_low),
              time_text(row.at_high), percent(row.at_low - report.device_time, report.device_time),
              percent(row.at_high - report.device_time, report.device_time));
  }
}

void print_warnings(const Report& report, Page& page) {
  const std::size_t shown =
      report.warnings.size() > kWarnings ? kWarnings - 1 : report.warnings.size();
  for (std::size_t i = 0; i < shown; ++i)
    page.line("{:<{}}{}", "warning", kLabelColumns, report.warnings[i]);
  if (shown < report.warnings.size()) {
    page.line("{:<{}}and {} more, which --report json lists", "", kLabelColumns,
              report.warnings.size() - shown);
  }
}

}  // namespace

std::string to_text(const Report& report, const std::optional<HostInfo>& host) {
  Page page;
  page.line(
      "{} on {} ({}), {} instructions, {}",
      report.trace_name.empty() ? tail(report.trace_file.path, 40) : tail(report.trace_name, 40),
      report.machine.name, name_of(report.target), thousands(report.trace_file.instructions),
      report.simulator.calibration);
  print_totals(report, page);
  print_engines(report, page);
  print_stalls(report, page);
  print_utilisation(report, page);
  print_work(report, page);
  print_warnings(report, page);
  if (host) {
    page.line("{:<{}}{:.2f} s, {} instructions per second, {}", "simulated in", kLabelColumns,
              host->wall_s, figures(host->instructions_per_s),
              bytes_text(static_cast<double>(host->peak_rss_bytes)));
  }
  if (!report.sensitivity.empty()) print_sensitivity(report, page);
  std::string text = page.take();
  if (report.replay) {
    text += '\n';
    text += to_text(*report.replay);
  }
  return text;
}

}  // namespace trn::sim
