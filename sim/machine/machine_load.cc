#include "sim/machine/machine_load.h"

#include <fmt/format.h>

#include <cmath>
#include <concepts>
#include <optional>

#include "isa/types.h"

namespace trn::sim {
namespace {

/// Keys that moved: old names are read, with a warning, until the release after the one named.
const std::vector<RenamedKey>& renamed_keys() {
  static const std::vector<RenamedKey> kRenamed = {};
  return kRenamed;
}

std::filesystem::path find_beside(const std::string& name, const std::filesystem::path& from,
                                  const std::filesystem::path& shipped) {
  std::filesystem::path file(name);
  if (file.is_absolute()) return file;
  const std::filesystem::path folder = from.parent_path();
  std::vector<std::filesystem::path> places = {folder / file, folder / ".." / "chips" / file};
  if (!shipped.empty()) places.push_back(shipped / "chips" / file);
  std::error_code code;
  for (const auto& place : places) {
    if (std::filesystem::exists(place, code)) return place.lexically_normal();
  }
  return places.front().lexically_normal();
}

/// Calls `visit(path, value, unit)` for every number of a described struct, in order.
template <class T, class Visit>
void for_each_number(const T& value, const std::string& path, std::string_view unit,
                     const Visit& visit) {
  if constexpr (std::same_as<T, CostTableConfig> || std::same_as<T, bool>) {
    // formulas have their own names; a switch is no number
  } else if constexpr (std::is_arithmetic_v<T>) {
    visit(path, static_cast<double>(value), unit);
  } else if constexpr (Described<T>) {
    for_each_field<T>([&](const auto& field) {
      for_each_number(value.*field.member, YamlReader::join(path, field.name), field.unit, visit);
    });
  }
}

/// Gathers what does not fit together.
class Checker {
 public:
  explicit Checker(const Provenance& provenance) : provenance_(provenance) {}

  void fail(std::string_view path, std::string_view message) {
    Place place;
    if (const auto origin = provenance_.find(path); origin != provenance_.end()) {
      place.file = origin->second.file;
      if (origin->second.line != 0) place.line = origin->second.line;
    }
    errors_.emplace_back(place, path, message);
  }
  void expect(bool holds, std::string_view path, std::string_view message) {
    if (!holds) fail(path, message);
  }
  /// expected: "at most 16", "1 or 2".
  template <class T>
  void expect_value(bool holds, std::string_view path, std::string_view expected, T got) {
    if (!holds) fail(path, fmt::format("expected {}, got {}", expected, got));
  }
  std::vector<InputError> take() { return std::move(errors_); }

 private:
  const Provenance& provenance_;
  std::vector<InputError> errors_{};
};

void check_numbers(const MachineConfig& config, Checker& check) {
  for_each_number(config, "", "",
                  [&](const std::string& path, double value, std::string_view unit) {
                    const bool physical = unit == "ns" || unit == "Hz" || unit == "B/s";
                    if (physical && value < 0)
                      check.fail(path, fmt::format("expected 0 or more, got {}", value));
                  });
}

void check_clocks(const ChipConfig& chip, Checker& check) {
  const auto clock = [&](std::string_view path, double hz) {
    constexpr double kLowest = 1e6;
    constexpr double kHighest = 1e11;
    check.expect_value(hz >= kLowest && hz <= kHighest, path, "1 MHz to 100 GHz",
                       format_quantity(hz, "Hz"));
  };
  clock("chip.tensor.clock", chip.tensor.clock);
  clock("chip.tensor.cold_clock", chip.tensor.cold_clock);
  clock("chip.vector.clock", chip.vector.clock);
  clock("chip.scalar.clock", chip.scalar.clock);
  clock("chip.gpsimd.clock", chip.gpsimd.clock);
  clock("chip.sync.clock", chip.sync.clock);
  check.expect_value(
      chip.tensor.cold_clock <= chip.tensor.clock, "chip.tensor.cold_clock",
      fmt::format("at most chip.tensor.clock, {}", format_quantity(chip.tensor.clock, "Hz")),
      format_quantity(chip.tensor.cold_clock, "Hz"));
  const auto share = [&](std::string_view path, double value) {
    check.expect_value(value >= 0 && value <= 1, path, "0 to 1", value);
  };
  share("chip.tensor.activity_raise", chip.tensor.activity_raise);
  share("chip.tensor.activity_lower", chip.tensor.activity_lower);
  share("chip.psum.bank_conflict", chip.psum.bank_conflict);
  check.expect_value(
      chip.tensor.activity_lower <= chip.tensor.activity_raise, "chip.tensor.activity_lower",
      fmt::format("at most chip.tensor.activity_raise, {}", chip.tensor.activity_raise),
      chip.tensor.activity_lower);
  check.expect_value(chip.tensor.activity_window >= 1, "chip.tensor.activity_window",
                     "at least 1 ns", format_quantity(chip.tensor.activity_window, "ns"));
  const auto depth = [&](std::string_view path, std::uint32_t entries) {
    constexpr std::uint32_t kMost = 4096;
    check.expect_value(entries >= 1 && entries <= kMost, path, "1 to 4096", entries);
  };
  depth("chip.tensor.queue_depth", chip.tensor.queue_depth);
  depth("chip.vector.queue_depth", chip.vector.queue_depth);
  depth("chip.scalar.queue_depth", chip.scalar.queue_depth);
  depth("chip.gpsimd.queue_depth", chip.gpsimd.queue_depth);
  depth("chip.sync.queue_depth", chip.sync.queue_depth);
}

void check_memories(const ChipConfig& chip, Checker& check) {
  check.expect_value(chip.sbuf.partitions >= 1 && chip.sbuf.partitions <= isa::kPartitions,
                     "chip.sbuf.partitions", fmt::format("1 to {}", isa::kPartitions),
                     chip.sbuf.partitions);
  constexpr std::uint64_t kGranule = 64;
  check.expect_value(chip.sbuf.partition_size > 0 && chip.sbuf.partition_size % kGranule == 0,
                     "chip.sbuf.partition_size", "a multiple of 64", chip.sbuf.partition_size);
  check.expect_value(
      chip.sbuf.partition_size <= static_cast<std::uint64_t>(isa::kSbufPartitionStride),
      "chip.sbuf.partition_size",
      fmt::format("at most {}, the distance between partitions in DMA addresses",
                  format_quantity(static_cast<double>(isa::kSbufPartitionStride), "bytes")),
      format_quantity(static_cast<double>(chip.sbuf.partition_size), "bytes"));
  check.expect_value(
      chip.sbuf.reserved < chip.sbuf.partition_size, "chip.sbuf.reserved",
      fmt::format("less than chip.sbuf.partition_size, {} B", chip.sbuf.partition_size),
      fmt::format("{} B", chip.sbuf.reserved));
  constexpr std::uint32_t kMostBanks = 8;  // a bank mask has eight bits
  check.expect_value(chip.psum.banks >= 1 && chip.psum.banks <= kMostBanks, "chip.psum.banks",
                     "1 to 8", chip.psum.banks);
  check.expect(chip.psum.banks * chip.psum.bank_size == chip.psum.partition_size,
               "chip.psum.partition_size",
               fmt::format("expected banks * bank_size = {} * {} B, got {} B", chip.psum.banks,
                           chip.psum.bank_size, chip.psum.partition_size));
  check.expect_value(chip.hbm.stacks >= 1, "chip.hbm.stacks", "at least 1", chip.hbm.stacks);
  check.expect_value(chip.hbm.bandwidth_per_stack > 0, "chip.hbm.bandwidth_per_stack",
                     "more than 0", chip.hbm.bandwidth_per_stack);
  check.expect_value(chip.hbm.stack_size > 0, "chip.hbm.stack_size", "more than 0",
                     chip.hbm.stack_size);
  check.expect_value(chip.cores >= 1, "chip.cores", "at least 1", chip.cores);
  if (chip.hbm.stacks >= 1) {
    check.expect_value(chip.cores % chip.hbm.stacks == 0, "chip.cores",
                       fmt::format("a multiple of chip.hbm.stacks, {}", chip.hbm.stacks),
                       chip.cores);
  }
}

void check_dma(const ChipConfig& chip, Checker& check) {
  const DmaConfig& dma = chip.dma;
  check.expect_value(dma.engines >= 1 && dma.engines <= isa::kPartitions, "chip.dma.engines",
                     fmt::format("1 to {}", isa::kPartitions), dma.engines);
  check.expect_value(dma.queues >= 1 && dma.queues <= isa::kDmaQueues, "chip.dma.queues",
                     fmt::format("1 to {}, what an instruction can name", isa::kDmaQueues),
                     dma.queues);
  check.expect(dma.engines * dma.partitions_per_engine == chip.sbuf.partitions,
               "chip.dma.partitions_per_engine",
               fmt::format("expected sbuf.partitions / dma.engines = {} / {}, got {}",
                           chip.sbuf.partitions, dma.engines, dma.partitions_per_engine));
  check.expect_value(dma.bandwidth_per_engine > 0, "chip.dma.bandwidth_per_engine", "more than 0",
                     dma.bandwidth_per_engine);
  for_each_number(
      dma, "chip.dma", "", [&](const std::string& path, double value, std::string_view unit) {
        if (path.ends_with("efficiency") && !(value > 0)) {
          check.fail(path, fmt::format("expected more than 0, got {}", value));
        }
        if (path.ends_with("packet_size") && value < 1) {
          check.fail(path,
                     fmt::format("expected at least 1 B, got {}", format_quantity(value, unit)));
        }
      });
}

void check_system(const MachineConfig& config, Checker& check) {
  check.expect_value(config.lnc == 1 || config.lnc == 2, "lnc", "1 or 2", config.lnc);
  if (config.lnc != 0) {
    check.expect_value(config.chip.cores % config.lnc == 0, "lnc",
                       fmt::format("a divisor of chip.cores, {}", config.chip.cores), config.lnc);
  }
  const std::uint32_t chips = config.system.chips;
  const auto is_power = [&](unsigned power) {
    const auto side = static_cast<std::uint32_t>(std::lround(std::pow(chips, 1.0 / power)));
    return side >= 2 && std::pow(side, power) == chips;
  };
  switch (config.system.topology) {
    case Topology::Single:
      check.expect_value(chips == 1, "system.chips", "1 in topology single", chips);
      break;
    case Topology::Torus2d:
      check.expect_value(is_power(2), "system.chips", "a square such as 16 in topology torus_2d",
                         chips);
      break;
    case Topology::Torus3d:
      check.expect_value(is_power(3), "system.chips", "a cube such as 64 in topology torus_3d",
                         chips);
      break;
  }
  const double phase = config.tensor.activity_window_phase;
  const double window = config.chip.tensor.activity_window;
  check.expect_value(
      phase >= 0 && phase < window, "tensor.activity_window_phase",
      fmt::format("0 to less than chip.tensor.activity_window, {}", format_quantity(window, "ns")),
      format_quantity(phase, "ns"));
  check.expect_value(config.chip.semaphores.max_value >= 1, "chip.semaphores.max_value",
                     "at least 1", config.chip.semaphores.max_value);
}

}  // namespace

std::vector<InputError> contradictions(const MachineConfig& config, const Provenance& provenance) {
  Checker check(provenance);
  check_numbers(config, check);
  check_clocks(config.chip, check);
  check_memories(config.chip, check);
  check_dma(config.chip, check);
  check_system(config, check);
  return check.take();
}

std::vector<MachineNumber> machine_numbers(const MachineConfig& config) {
  std::vector<MachineNumber> numbers;
  for_each_number(config, "", "",
                  [&](const std::string& path, double value, std::string_view unit) {
                    numbers.push_back({path, value, unit});
                  });
  for (const auto& [name, value] : config.chip.costs.constants)
    numbers.push_back({YamlReader::join("chip.costs.constants", name), value, "cycles"});
  return numbers;
}

CostContext cost_context(const ChipConfig& chip) {
  CostContext context{.clock_hz = {chip.tensor.clock, chip.vector.clock, chip.scalar.clock,
                                   chip.gpsimd.clock, chip.sync.clock}};
  for_each_number(chip, "", "",
                  [&](const std::string& path, double value, std::string_view /*unit*/) {
                    context.parameters.emplace(path, value);
                  });
  return context;
}

Machine load_machine(const std::filesystem::path& path, const std::vector<Override>& overrides,
                     const std::filesystem::path& shipped) {
  auto loaded =
      load_file<MachineConfig>(path, {.need_source = true,
                                      .overrides = overrides,
                                      .renamed = renamed_keys(),
                                      .find_include = [&](std::string_view, const std::string& name,
                                                          const std::filesystem::path& from) {
                                        return find_beside(name, from, shipped);
                                      }});
  const auto wrong = contradictions(loaded.value, loaded.provenance);
  if (!wrong.empty()) throw InputError(wrong);
  Machine machine{.name = path.stem().string(), .path = path, .config = std::move(loaded.value)};
  machine.provenance = std::move(loaded.provenance);
  machine.warnings = std::move(loaded.warnings);
  machine.overrides = overrides;
  machine.costs = std::make_shared<const CostTable>(machine.config.chip.costs,
                                                    cost_context(machine.config.chip),
                                                    machine.provenance, "chip.costs");
  return machine;
}

std::string dump_machine(const Machine& machine) {
  return dump_yaml(machine.config, machine.provenance);
}

}  // namespace trn::sim
