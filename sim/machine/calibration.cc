#include "sim/machine/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "isa/base/error.h"
#include "isa/base/units.h"
#include "sim/machine/machine_load.h"

namespace trn::sim {
namespace {

/// `acts_on` of a file.
struct ActsOn {
  std::optional<double> tensor{};
  std::optional<double> vector{};
  std::optional<double> scalar{};
  std::optional<double> gpsimd{};
  std::optional<double> sync{};
  std::optional<double> dma{};
  std::optional<double> dma_latency{};
  std::optional<double> semaphore{};
  std::optional<double> launch{};
  std::optional<double> runtime{};
  std::optional<double> spill{};
  std::optional<double> full{};
  static constexpr auto fields() {  // as Resource has them, then runtime, spill, full
    return std::tuple{
        Field{"tensor", &ActsOn::tensor, "", "Tensor engine"},
        Field{"vector", &ActsOn::vector, "", "Vector engine"},
        Field{"scalar", &ActsOn::scalar, "", "Scalar engine"},
        Field{"gpsimd", &ActsOn::gpsimd, "", "GpSimd engine"},
        Field{"sync", &ActsOn::sync, "", "Sync engine"},
        Field{"dma", &ActsOn::dma, "", "bytes that move"},
        Field{"dma_latency", &ActsOn::dma_latency, "", "before the first byte and after the last"},
        Field{"semaphore", &ActsOn::semaphore, "", "hand-over between engines"},
        Field{"launch", &ActsOn::launch, "", "before the first instruction"},
        Field{"runtime", &ActsOn::runtime, "", "prologue and epilogue"},
        Field{"spill", &ActsOn::spill, "", "moving the spilled bytes once"},
        Field{"full", &ActsOn::full, "", "all, when SBUF is full to nine tenths"}};
  }
};
static_assert(std::tuple_size_v<decltype(ActsOn::fields())> == kTimeParts);

struct ParameterEntry {
  std::string path;
  std::string value;
  std::string low;
  std::string high;
  std::optional<double> influence_percent{};
  ActsOn acts_on{};
  Status status = Status::Estimated;
  std::string source;
  static constexpr auto fields() {
    return std::tuple{
        Field{"path", &ParameterEntry::path, "", "as for --set; a block's numbers change together"},
        Field{"value", &ParameterEntry::value, "", "of the chip's file; 1 of a block"},
        Field{"low", &ParameterEntry::low, "", "lower end of the 90 % interval"},
        Field{"high", &ParameterEntry::high, "", "upper end"},
        Field{"influence_percent", &ParameterEntry::influence_percent, "%",
              "mean change of the predictions from low to high"},
        Field{"acts_on", &ParameterEntry::acts_on, "", "whose time follows, and how much of it"},
        Field{"status", &ParameterEntry::status, "", "how well it is known"},
        Field{"source", &ParameterEntry::source, "", "where it comes from"}};
  }
};

struct UnknownEntry {
  std::string name;
  double low = 1;
  double high = 1;
  ActsOn acts_on{};
  Status status = Status::Estimated;
  std::string source;
  static constexpr auto fields() {
    return std::tuple{
        Field{"name", &UnknownEntry::name, "", "what is not known"},
        Field{"low", &UnknownEntry::low, "", "what it may multiply times with, at least"},
        Field{"high", &UnknownEntry::high, "", "and at most"},
        Field{"acts_on", &UnknownEntry::acts_on, "", "whose time follows, and how much of it"},
        Field{"status", &UnknownEntry::status, "", "how well it is known"},
        Field{"source", &UnknownEntry::source, "", "where it comes from"}};
  }
};

struct CalibrationFile {
  std::string chip;
  std::string date;
  std::vector<std::string> rows{};
  std::vector<ParameterEntry> parameters{};
  std::vector<UnknownEntry> unknowns{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"chip", &CalibrationFile::chip, "", "whose parameters they are"},
        Field{"date", &CalibrationFile::date, "", "YYYY-MM-DD"},
        Field{"rows", &CalibrationFile::rows, "", "measurements that were used"},
        Field{"parameters", &CalibrationFile::parameters, "", "of the machine"},
        Field{"unknowns", &CalibrationFile::unknowns, "", "what no parameter expresses"}};
  }
};

std::array<double, kTimeParts> parts(const ActsOn& acts_on) {
  std::array<double, kTimeParts> result{};
  std::size_t i = 0;
  for_each_field<ActsOn>(
      [&](const auto& field) { result[i++] = (acts_on.*field.member).value_or(0); });
  return result;
}

bool is_below(std::string_view path, std::string_view block) {
  return path.size() > block.size() && path.starts_with(block) && path[block.size()] == '.';
}

bool is_date(std::string_view text) {
  constexpr std::string_view kShape = "dddd-dd-dd";
  return std::equal(text.begin(), text.end(), kShape.begin(), kShape.end(), [](char c, char shape) {
    return shape == 'd' ? c >= '0' && c <= '9' : c == '-';
  });
}

/// Turns the entries of a file into intervals and gathers what is wrong with them.
class Reader {
 public:
  Reader(const Provenance& provenance, const MachineConfig& config)
      : provenance_(provenance), numbers_(machine_numbers(config)) {}

  void fail(const std::string& path, std::string_view message) {
    Place place;
    if (const auto origin = provenance_.find(path); origin != provenance_.end())
      place = {.file = origin->second.file, .line = origin->second.line};
    errors_.emplace_back(place, path, message);
  }

  Interval parameter(const ParameterEntry& entry, const std::string& at) {
    Interval interval{.name = entry.path,
                      .influence_percent = entry.influence_percent,
                      .status = entry.status,
                      .source = entry.source,
                      .acts_on = parts(entry.acts_on)};
    const auto number = std::find_if(numbers_.begin(), numbers_.end(),
                                     [&](const auto& each) { return each.path == entry.path; });
    if (number != numbers_.end()) {
      interval.unit = number->unit;
    } else {
      interval.factor = true;
      const bool block = std::any_of(numbers_.begin(), numbers_.end(), [&](const auto& each) {
        return is_below(each.path, entry.path);
      });
      if (!block) {
        std::vector<std::string_view> paths;
        paths.reserve(numbers_.size());
        for (const MachineNumber& each : numbers_) paths.emplace_back(each.path);
        fail(at + ".path", "no number of the machine" + did_you_mean(entry.path, paths));
        return interval;
      }
    }
    const auto quantity = [&](std::string_view key, const std::string& text, double& out) {
      const Parsed<double> parsed = parse_quantity(text, interval.unit);
      if (parsed) {
        out = *parsed.value;
      } else {
        fail(fmt::format("{}.{}", at, key), parsed.problem);
      }
    };
    quantity("value", entry.value, interval.value);
    quantity("low", entry.low, interval.low);
    quantity("high", entry.high, interval.high);
    if (interval.factor && interval.value != 1)
      fail(at + ".value", fmt::format("expected 1 of a block, got {}", interval.value));
    check(interval, at, at + ".path");
    return interval;
  }

  Interval unknown(const UnknownEntry& entry, const std::string& at) {
    Interval interval{.name = entry.name,
                      .factor = true,
                      .low = entry.low,
                      .high = entry.high,
                      .status = entry.status,
                      .source = entry.source,
                      .acts_on = parts(entry.acts_on)};
    check(interval, at, at + ".name");
    return interval;
  }

  std::vector<InputError> take() { return std::move(errors_); }

 private:
  void check(const Interval& interval, const std::string& at, const std::string& name) {
    if (!names_.insert(interval.name).second)
      fail(name, fmt::format("{} stands here twice", interval.name));
    if (!(interval.value > 0))
      fail(at + ".value", fmt::format("expected more than 0, got {}", interval.value));
    if (!(interval.low >= 0 && interval.low <= interval.value))
      fail(at + ".low",
           fmt::format("expected 0 to the value, {}, got {}", end_text(interval, interval.value),
                       end_text(interval, interval.low)));
    if (!(interval.high >= interval.value))
      fail(at + ".high",
           fmt::format("expected at least the value, {}, got {}",
                       end_text(interval, interval.value), end_text(interval, interval.high)));
    if (std::all_of(interval.acts_on.begin(), interval.acts_on.end(),
                    [](double share) { return share == 0; }))
      fail(name, "expected acts_on to name a part of the time");
  }

  const Provenance& provenance_;
  std::vector<MachineNumber> numbers_;
  std::set<std::string> names_{};
  std::vector<InputError> errors_{};
};

}  // namespace

Calibration load_calibration(const std::filesystem::path& path, const MachineConfig& config) {
  auto loaded = load_file<CalibrationFile>(path);
  CalibrationFile& file = loaded.value;
  Reader reader(loaded.provenance, config);
  if (file.chip != config.chip.name)
    reader.fail("chip",
                fmt::format("expected {}, the machine's, got {}", config.chip.name, file.chip));
  if (!is_date(file.date))
    reader.fail("date", fmt::format("expected YYYY-MM-DD, got '{}'", file.date));
  Calibration calibration{
      .chip = std::move(file.chip), .date = std::move(file.date), .rows = std::move(file.rows)};
  for (std::size_t i = 0; i < file.parameters.size(); ++i) {
    calibration.parameters.push_back(
        reader.parameter(file.parameters[i], fmt::format("parameters.{}", i)));
  }
  for (std::size_t i = 0; i < file.unknowns.size(); ++i) {
    calibration.unknowns.push_back(reader.unknown(file.unknowns[i], fmt::format("unknowns.{}", i)));
  }
  const std::vector<InputError> errors = reader.take();
  if (!errors.empty()) throw InputError(errors);
  return calibration;
}

Calibration without(Calibration calibration, const std::vector<Override>& given) {
  std::erase_if(calibration.parameters, [&](const Interval& interval) {
    return std::any_of(given.begin(), given.end(), [&](const Override& set) {
      return set.path == interval.name || is_below(set.path, interval.name) ||
             is_below(interval.name, set.path);
    });
  });
  return calibration;
}

std::vector<Override> set_to(const Interval& interval, double end, const MachineConfig& config) {
  std::vector<Override> overrides;
  for (const MachineNumber& number : machine_numbers(config)) {
    if (number.path != interval.name && !is_below(number.path, interval.name)) continue;
    // A value that is the calibrated one gets the end as it stands there.
    const double value = number.value == interval.value && !interval.factor
                             ? end
                             : number.value * (end / interval.value);
    overrides.push_back({number.path, format_quantity(value, number.unit)});
  }
  return overrides;
}

std::string end_text(const Interval& interval, double end) {
  return interval.factor ? fmt::format("x{}", end) : format_quantity(end, interval.unit);
}

}  // namespace trn::sim
