#include "sim/machine/machine_load.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <random>
#include <set>

#include "isa/base/error.h"
#include "sim/app/machine_lookup.h"
#include "sim/machine/calibration.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace trn::sim {
namespace {

using test::source_path;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const std::filesystem::path& configs() {
  static const std::filesystem::path kConfigs = source_path("configs");
  return kConfigs;
}

std::filesystem::path system_file(std::string_view name) {
  return configs() / "systems" / (std::string(name) + ".yaml");
}

Machine with(const std::vector<std::string>& sets) {
  std::vector<Override> overrides;
  for (const std::string& set : sets) overrides.push_back(parse_override(set));
  return load_machine(system_file("trn2.3xlarge"), overrides);
}

std::string error_with(const std::vector<std::string>& sets) {
  try {
    static_cast<void>(with(sets));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

/// `name: value` of every number, choice and text of a machine, for comparison.
std::string values(const Machine& machine) { return dump_yaml(machine.config, {}); }

class ShippedMachine : public testing::TestWithParam<std::string> {};

TEST_P(ShippedMachine, LoadsWithEveryValueSourced) {
  const Machine machine = load_machine(system_file(GetParam()));
  EXPECT_EQ(machine.name, GetParam());
  EXPECT_EQ(machine.config.system.instance, GetParam());
  EXPECT_TRUE(machine.warnings.empty());
  EXPECT_GT(machine.costs->rows().size(), isa::kCostClasses);
  for (const auto& [path, origin] : machine.provenance) {
    EXPECT_NE(origin.line, 0U) << path;
    EXPECT_TRUE(origin.file.ends_with(".yaml")) << path;
  }
}

TEST_P(ShippedMachine, ADumpLoadsToTheSameValues) {
  const Machine machine =
      load_machine(system_file(GetParam()), {parse_override("chip.tensor.clock=2 GHz"),
                                             parse_override("chip.costs.constants.min_ii=70")});
  const auto file = test::write_text(test::scratch_folder() / "dump.yaml", dump_machine(machine));
  const Machine again = load_machine(file);
  EXPECT_EQ(values(again), values(machine));
  EXPECT_EQ(again.config.chip.tensor.clock, 2e9);
  EXPECT_EQ(again.config.chip.costs.constants.at("min_ii"), 70);
}

INSTANTIATE_TEST_SUITE_P(Systems, ShippedMachine,
                         testing::ValuesIn(app::shipped_machines(source_path("configs"))),
                         [](const auto& machine) {
                           std::string name = machine.param;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

TEST(ShippedMachines, AreTheInstancesOfBothGenerations) {
  EXPECT_THAT(app::shipped_machines(configs()),
              ElementsAre("trn1.2xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge",
                          "trn2u.48xlarge"));
}

TEST(Machine, PathsThatScriptsRelyOn) {
  const Machine machine = load_machine(system_file("trn2.48xlarge"));
  for (const std::string_view path :
       {"chip.tensor.clock", "chip.vector.clock", "chip.scalar.clock", "chip.gpsimd.clock",
        "chip.sbuf.partition_size", "chip.hbm.bandwidth_per_stack", "chip.hbm.stack_size",
        "chip.dma.bandwidth_per_engine", "system.chips", "system.topology", "lnc",
        "tensor.activity_window_phase"}) {
    EXPECT_TRUE(machine.provenance.contains(path)) << path;
  }
  EXPECT_EQ(machine.config.system.chips, 16U);
  EXPECT_EQ(machine.config.system.topology, Topology::Torus2d);
  EXPECT_EQ(machine.config.chip.tensor.clock, 2.4e9);
  EXPECT_EQ(machine.config.chip.hbm.stack_size, 24ULL << 30U);
  EXPECT_EQ(machine.provenance.at("chip.tensor.clock").status, Status::Documented);
}

TEST(Machine, DumpNamesFileAndLine) {
  const std::string dump = dump_machine(with({"chip.vector.clock=1 GHz"}));
  EXPECT_THAT(dump, HasSubstr("    clock: {value: 1 GHz, status: est, source: \"command line\"}  # "
                              "command line\n"));
  EXPECT_THAT(dump, testing::ContainsRegex("    clock: .value: 2.4 GHz, status: doc, source: "
                                           "\"docs/sources.md#a2-clocks\"}  # "
                                           ".*configs/chips/trn2.yaml:[0-9]+\n"));
}

TEST(Machine, OverridesReachCostConstants) {
  const Machine machine = with({"chip.costs.constants.min_ii=100"});
  CostFeatures f;
  f.elements = 1;
  f.dtype = isa::Dtype::Bf16;
  EXPECT_EQ(machine.costs->evaluate(isa::CostClass::Matmul, isa::Engine::Tensor, f).ii_cycles, 100);
}

TEST(Machine, TimesOfACostRowStayTimesWhenTheClockChanges) {
  CostFeatures f;
  f.elements = 512;
  f.src_memory = isa::Memory::Psum;
  f.dtype = f.src_dtype = f.dst_dtype = isa::Dtype::Fp32;
  f.dst_memory = isa::Memory::Sbuf;
  const Cost slow = with({}).costs->evaluate(isa::CostClass::Copy, isa::Engine::Vector, f);
  const Cost fast = with({"chip.vector.clock=1.92 GHz"})
                        .costs->evaluate(isa::CostClass::Copy, isa::Engine::Vector, f);
  EXPECT_EQ(slow.ii_cycles, 574);  // 512 + 62
  EXPECT_EQ(fast.ii_cycles, 574);
  EXPECT_NEAR(slow.latency_cycles - 574, 82 * 0.96, 1e-9);
  EXPECT_NEAR(fast.latency_cycles - 574, 82 * 1.92, 1e-9);
}

TEST(Machine, UnknownOverridesNameTheNearestPath) {
  EXPECT_EQ(error_with({"chip.tensor.clok=2 GHz"}),
            "command line: chip.tensor.clok: unknown key (did you mean 'chip.tensor.clock'?)");
  EXPECT_EQ(error_with({"system.chip=2"}),
            "command line: system.chip: unknown key (did you mean 'system.chips'?)");
  EXPECT_EQ(error_with({"chip.costs.constants.min_i=2"}),
            "command line: chip.costs.constants.min_i: unknown key (did you mean "
            "'chip.costs.constants.min_ii'?)");
}

TEST(Machine, ContradictionsAreErrors) {
  const auto message = [](const std::vector<std::string>& sets) {
    const std::string text = error_with(sets);
    const auto at = text.find(": ");
    EXPECT_EQ(text.substr(0, at), "command line") << text;
    return text.substr(at + 2);
  };
  EXPECT_EQ(message({"chip.sbuf.reserved=224 KiB"}),
            "chip.sbuf.reserved: expected less than chip.sbuf.partition_size, 229376 B, got "
            "229376 B");
  EXPECT_EQ(message({"chip.sbuf.partition_size=100000 B"}),
            "chip.sbuf.partition_size: expected a multiple of 64, got 100000");
  EXPECT_EQ(
      message({"chip.sbuf.partition_size=512 KiB"}),
      "chip.sbuf.partition_size: expected at most 256 KiB, the distance between partitions in "
      "DMA addresses, got 512 KiB");
  EXPECT_EQ(message({"chip.psum.partition_size=12 KiB"}),
            "chip.psum.partition_size: expected banks * bank_size = 8 * 2048 B, got 12288 B");
  EXPECT_EQ(message({"chip.dma.queues=17"}),
            "chip.dma.queues: expected 1 to 16, what an instruction can name, got 17");
  EXPECT_EQ(
      message({"chip.dma.partitions_per_engine=16"}),
      "chip.dma.partitions_per_engine: expected sbuf.partitions / dma.engines = 128 / 16, got "
      "16");
  EXPECT_EQ(message({"chip.tensor.cold_clock=3 GHz"}),
            "chip.tensor.cold_clock: expected at most chip.tensor.clock, 2.4 GHz, got 3 GHz");
  EXPECT_EQ(message({"chip.vector.clock=0 Hz"}),
            "chip.vector.clock: expected 1 MHz to 100 GHz, got 0 Hz");
  EXPECT_EQ(
      message({"chip.tensor.activity_lower=0.6", "chip.tensor.activity_raise=0.5"}),
      "chip.tensor.activity_lower: expected at most chip.tensor.activity_raise, 0.5, got 0.6");
  EXPECT_EQ(message({"chip.dma.software.fetch=-1 ns"}),
            "chip.dma.software.fetch: expected 0 or more, got -1");
  EXPECT_EQ(message({"lnc=3"}),
            "lnc: expected 1 or 2, got 3\ncommand line: lnc: expected a divisor "
            "of chip.cores, 8, got 3");
  EXPECT_EQ(message({"system.chips=4"}), "system.chips: expected 1 in topology single, got 4");
  EXPECT_EQ(message({"system.chips=15", "system.topology=torus_2d"}),
            "system.chips: expected a square such as 16 in topology torus_2d, got 15");
  EXPECT_EQ(message({"tensor.activity_window_phase=4 us", "chip.tensor.activity_window=3 us"}),
            "tensor.activity_window_phase: expected 0 to less than chip.tensor.activity_window, "
            "3 us, got 4 us");
  EXPECT_EQ(message({"chip.cores=6"}),
            "chip.cores: expected a multiple of chip.hbm.stacks, 4, got 6");
}

TEST(Machine, SeveralContradictionsAreReportedAtOnce) {
  const std::string text = error_with({"chip.dma.queues=0", "chip.psum.banks=9"});
  EXPECT_THAT(text, AllOf(HasSubstr("chip.dma.queues: expected 1 to 16"),
                          HasSubstr("chip.psum.banks: expected 1 to 8, got 9"),
                          HasSubstr("chip.psum.partition_size: expected banks * bank_size")));
}

TEST(Machine, LoadsInAFewMilliseconds) {
  static_cast<void>(with({}));
  const auto start = std::chrono::steady_clock::now();
  constexpr int kTimes = 5;
  for (int i = 0; i < kTimes; ++i) static_cast<void>(with({}));
  const std::chrono::duration<double, std::milli> each =
      (std::chrono::steady_clock::now() - start) / kTimes;
  EXPECT_LT(each.count(), 500) << "unoptimised and with sanitizers; a few ms otherwise";
  RecordProperty("milliseconds", std::to_string(each.count()));
}

TEST(MachineLookup, FindsShippedMachinesByNameFromAnyFolder) {
  const auto folder = configs();
  EXPECT_EQ(app::find_machine("trn2.48xlarge", folder), system_file("trn2.48xlarge"));
  EXPECT_EQ(app::find_machine("trn2.48xlarge.yaml", folder), system_file("trn2.48xlarge"));
  EXPECT_EQ(app::find_machine(system_file("trn2.3xlarge").string(), folder),
            system_file("trn2.3xlarge"));
}

TEST(MachineLookup, UnknownNamesListNearMissesAndMachines) {
  try {
    static_cast<void>(app::find_machine("trn2.46xlarge.yaml", configs()));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "--config: no file and no shipped machine 'trn2.46xlarge.yaml' (did you mean "
                 "'trn2.48xlarge'?); shipped are trn1.2xlarge, trn1.32xlarge, trn2.3xlarge, "
                 "trn2.48xlarge, trn2u.48xlarge");
  }
}

TEST(MachineLookup, TheBuildTreeHasMachinesBesideTheExecutable) {
  EXPECT_EQ(app::open_machine("trn2.3xlarge").name, "trn2.3xlarge");
}

TEST(MachineLookup, AMachineOfOnesOwnMayNameAShippedChip) {
  const auto folder = test::scratch_folder();
  std::filesystem::copy_file(system_file("trn2.3xlarge"), folder / "mine.yaml",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_THROW(static_cast<void>(load_machine(folder / "mine.yaml")), InputError);
  EXPECT_EQ(load_machine(folder / "mine.yaml", {}, configs()).config.chip.name, "trn2");
}

// ---- the shipped cost tables ----

class ShippedCosts : public testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Chips, ShippedCosts, testing::Values("trn1.2xlarge", "trn2.3xlarge"),
                         [](const auto& machine) { return machine.param.substr(0, 4); });

TEST_P(ShippedCosts, EveryInstructionHasACostOnEveryEngineThatRunsIt) {
  const Machine machine = load_machine(system_file(GetParam()));
  isa::for_each_instruction([&]<class T>() {
    for (const isa::Engine engine : isa::kAllEngines) {
      if (!T::kEngines.contains(engine)) continue;
      CostFeatures f = features_of(T{});
      f.dtype_bytes = 4;
      f.k = 1;
      const Cost cost = machine.costs->evaluate(T::kCost, engine, f);
      EXPECT_GE(cost.latency_cycles, 0) << T::kName;
      EXPECT_GT(cost.ii_cycles, 0) << T::kName << " on " << name_of(engine);
    }
  });
}

/// Shapes, dtypes and switches at random, the same ones each time.
CostFeatures random_features(std::mt19937& random) {
  const auto pick = [&](auto... values) {
    const std::array list = {values...};
    return list[random() % list.size()];
  };
  CostFeatures f;
  f.elements = 1 + static_cast<std::uint32_t>(random() % 4096);
  f.dst_elements = f.elements;
  f.partitions = 1 + static_cast<std::uint32_t>(random() % 128);
  f.src_dtype = pick(isa::Dtype::Fp32, isa::Dtype::Bf16, isa::Dtype::Fp8E4m3, isa::Dtype::Int32);
  f.src1_dtype = pick(isa::Dtype::Fp32, isa::Dtype::Bf16);
  f.dst_dtype = pick(isa::Dtype::Fp32, isa::Dtype::Bf16, isa::Dtype::Uint8);
  f.dtype = f.src_dtype;
  f.dtype_bytes = isa::bytes_of(static_cast<isa::Dtype>(f.dtype.code - 1));
  f.src_memory = pick(isa::Memory::Sbuf, isa::Memory::Psum);
  f.src1_memory = pick(isa::Memory::Sbuf, isa::Memory::Psum);
  f.dst_memory = pick(isa::Memory::Sbuf, isa::Memory::Psum);
  f.contiguous = flag(random() % 2 == 0);
  f.stride_bytes = pick(4U, 8U, 16U, 64U);
  f.pointer = static_cast<std::uint32_t>(random() % 3);
  f.zero = flag(random() % 2 == 0);
  f.op = pick(isa::AluOp::Add, isa::AluOp::Max, isa::AluOp::Rsqrt, isa::AluOp::Multiply,
              isa::AluOp::Subtract);
  f.op1 = pick(isa::AluOp::Add, isa::AluOp::Multiply);
  f.result = flag(random() % 2 == 0);
  f.pass = pick(isa::Fp32Pass::None, isa::Fp32Pass::Low, isa::Fp32Pass::LowHigh);
  f.transpose = flag(random() % 2 == 0);
  f.double_row = flag(random() % 4 == 0);
  f.sparsity = pick(isa::Sparsity::None, isa::Sparsity::S2of4);
  f.one_zero = flag(random() % 4 == 0);
  f.descriptors = pick(isa::DescriptorMode::Static, isa::DescriptorMode::SoftwareDge,
                       isa::DescriptorMode::HardwareDge);
  f.runs = 1 + static_cast<std::uint32_t>(random() % 4096);
  f.bytes = 1 + static_cast<std::uint32_t>(random() % 1000000);
  f.count = 1 + static_cast<std::uint32_t>(random() % 100);
  f.n = 8 + static_cast<std::uint32_t>(random() % 10000);
  f.k = 1 + static_cast<std::uint32_t>(random() % 32);
  f.contended = flag(random() % 2 == 0);
  constexpr std::array kOpcodes = {isa::EventSemaphore::kOpcode,
                                   isa::SetOrderingMode::kOpcode,
                                   isa::Nop::kOpcode,
                                   isa::Drain::kOpcode,
                                   isa::SemaphoreRangeClear::kOpcode,
                                   isa::TensorLoad::kOpcode,
                                   isa::CompareBranch::kOpcode,
                                   isa::Write::kOpcode,
                                   isa::Notify::kOpcode,
                                   isa::Loop::kOpcode};
  f.opcode = static_cast<OpcodeNumber>(kOpcodes[random() % kOpcodes.size()]);
  return f;
}

TEST_P(ShippedCosts, AreFiniteForEveryCase) {
  const Machine machine = load_machine(system_file(GetParam()));
  std::mt19937 random(1);
  for (int round = 0; round < 2000; ++round) {
    const CostFeatures f = random_features(random);
    for (std::size_t c = 0; c < isa::kCostClasses; ++c) {
      const auto cost_class = static_cast<isa::CostClass>(c);
      for (const isa::Engine engine : isa::kAllEngines) {
        if (!engines_of(cost_class).contains(engine)) continue;
        const Cost cost = machine.costs->evaluate(cost_class, engine, f);
        ASSERT_GT(cost.ii_cycles, 0) << name_of(cost_class);
        ASSERT_GE(cost.occupancy_cycles, cost.ii_cycles) << name_of(cost_class);
      }
    }
  }
}

TEST_P(ShippedCosts, EveryRowIsReachedAndNoneForASingleShape) {
  // A row that some case reaches must also be reached, all else equal, by some other number of
  // elements and by some other number of partitions.
  const Machine machine = load_machine(system_file(GetParam()));
  const auto rows = machine.costs->rows();
  std::set<std::size_t> reached;
  std::set<std::size_t> any_elements;
  std::set<std::size_t> any_partitions;
  std::mt19937 random(2);
  for (int round = 0; round < 3000; ++round) {
    const CostFeatures f = random_features(random);
    CostFeatures other_elements = f;
    other_elements.elements = 1 + static_cast<std::uint32_t>(random() % 4096);
    other_elements.dst_elements = other_elements.elements;
    CostFeatures other_partitions = f;
    other_partitions.partitions = 1 + static_cast<std::uint32_t>(random() % 128);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].number == 0 || round % 4 == 0 || !reached.contains(i)) {
        const auto at = [&](const CostFeatures& features) {
          return machine.costs->evaluate(rows[i].cost_class, rows[i].engine, features).row == i;
        };
        if (!at(f)) continue;
        reached.insert(i);
        if (other_elements.elements != f.elements && at(other_elements)) any_elements.insert(i);
        if (other_partitions.partitions != f.partitions && at(other_partitions)) {
          any_partitions.insert(i);
        }
      }
    }
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string row = std::string(name_of(rows[i].cost_class)) + " on " +
                            std::string(name_of(rows[i].engine)) + " #" +
                            std::to_string(rows[i].number);
    EXPECT_TRUE(reached.contains(i)) << row;
    EXPECT_TRUE(any_elements.contains(i)) << row;
    EXPECT_TRUE(any_partitions.contains(i)) << row;
  }
}

TEST_P(ShippedCosts, MoreElementsAreNeverFaster) {
  const Machine machine = load_machine(system_file(GetParam()));
  std::mt19937 random(3);
  for (int round = 0; round < 1000; ++round) {
    const CostFeatures f = random_features(random);
    CostFeatures more = f;
    more.elements += 1 + static_cast<std::uint32_t>(random() % 100);
    more.dst_elements = more.elements;
    for (std::size_t c = 0; c < isa::kCostClasses; ++c) {
      const auto cost_class = static_cast<isa::CostClass>(c);
      for (const isa::Engine engine : isa::kAllEngines) {
        if (!engines_of(cost_class).contains(engine)) continue;
        ASSERT_LE(machine.costs->evaluate(cost_class, engine, f).ii_cycles,
                  machine.costs->evaluate(cost_class, engine, more).ii_cycles)
            << name_of(cost_class) << " on " << name_of(engine);
      }
    }
  }
}

TEST(Trainium2Costs, MatchTheMeasuredIntervals) {
  // docs/sources.md#profiles-pipeline and #profiles-tensor: cycles of each engine, N = 512 or 128.
  const Machine machine = with({});
  const auto ii = [&](isa::CostClass cost_class, isa::Engine engine, const CostFeatures& f) {
    return machine.costs->evaluate(cost_class, engine, f).ii_cycles;
  };
  CostFeatures f;
  f.dtype = f.src_dtype = f.dst_dtype = isa::Dtype::Fp32;
  f.dtype_bytes = f.stride_bytes = 4;
  f.src_memory = isa::Memory::Psum;
  f.dst_memory = isa::Memory::Sbuf;
  f.elements = f.dst_elements = 512;
  using enum isa::CostClass;
  EXPECT_EQ(ii(Reduce, isa::Engine::Vector, f), 574);
  EXPECT_EQ(ii(Copy, isa::Engine::Scalar, f), 572);
  f.pointer = 1;
  EXPECT_EQ(ii(Activate, isa::Engine::Scalar, f), 684);
  f.src_memory = isa::Memory::Sbuf;
  EXPECT_EQ(ii(Activate, isa::Engine::Scalar, f), 734);
  EXPECT_EQ(ii(OneInput, isa::Engine::Vector, f), 380);
  EXPECT_EQ(ii(Reduce, isa::Engine::Vector, f), 569);
  f.elements = 4;
  EXPECT_EQ(ii(Reciprocal, isa::Engine::Vector, f), 64);
  f.elements = 128;
  f.pass = isa::Fp32Pass::Low;
  EXPECT_EQ(ii(LoadWeights, isa::Engine::Tensor, f), 256);
  f.transpose = flag(true);
  EXPECT_EQ(ii(LoadWeights, isa::Engine::Tensor, f), 128);
  EXPECT_EQ(ii(Matmul, isa::Engine::Tensor, f), 256);
  f.dtype = isa::Dtype::Bf16;
  EXPECT_EQ(ii(LoadWeights, isa::Engine::Tensor, f), 32);
  EXPECT_EQ(ii(Matmul, isa::Engine::Tensor, f), 128);
}

TEST(Trainium1Costs, HaveTheElementsOfThePublishedTable) {
  // docs/sources.md#trn1-vector and #trn1-tensor: cycles of each engine, N = 512.
  const Machine machine = load_machine(system_file("trn1.2xlarge"));
  const auto ii = [&](isa::CostClass cost_class, isa::Engine engine, const CostFeatures& f) {
    return machine.costs->evaluate(cost_class, engine, f).ii_cycles;
  };
  CostFeatures f;
  f.dtype = f.src_dtype = f.src1_dtype = f.dst_dtype = isa::Dtype::Fp32;
  f.dtype_bytes = f.stride_bytes = 4;
  f.src_memory = f.src1_memory = f.dst_memory = isa::Memory::Sbuf;
  f.elements = f.dst_elements = 512;
  f.op = isa::AluOp::Add;
  using enum isa::CostClass;
  EXPECT_EQ(ii(Copy, isa::Engine::Vector, f), 569);       // N + 57
  EXPECT_EQ(ii(OneInput, isa::Engine::Vector, f), 569);   // ditto
  EXPECT_EQ(ii(TwoInput, isa::Engine::Vector, f), 1081);  // 2N + 57
  EXPECT_EQ(ii(Scan, isa::Engine::Vector, f), 1081);
  f.src1_memory = isa::Memory::Psum;
  EXPECT_EQ(ii(TwoInput, isa::Engine::Vector, f), 574);  // N + 62
  f.src1_memory = isa::Memory::Sbuf;
  f.src_dtype = f.src1_dtype = f.dst_dtype = isa::Dtype::Bf16;
  EXPECT_EQ(ii(TwoInput, isa::Engine::Vector, f), 569);  // N + 57
  f.pass = isa::Fp32Pass::None;
  EXPECT_EQ(ii(Matmul, isa::Engine::Tensor, f), 2048);  // fp32 without a pass: 4N
  f.pass = isa::Fp32Pass::Low;
  EXPECT_EQ(ii(Matmul, isa::Engine::Tensor, f), 1024);
  f.dtype = isa::Dtype::Bf16;
  EXPECT_EQ(ii(Matmul, isa::Engine::Tensor, f), 512);
}

// ---- sources ----

/// The anchors of docs/sources.md: one heading each.
std::set<std::string> anchors(const std::filesystem::path& file) {
  std::set<std::string> found;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto text = line.find_first_not_of('#');
    if (line.starts_with("##") && text != std::string::npos) found.insert(line.substr(text + 1));
  }
  return found;
}

void expect_anchor(const std::set<std::string>& known, const std::string& source,
                   const std::string& where) {
  constexpr std::string_view kPage = "docs/sources.md#";
  ASSERT_TRUE(source.starts_with(kPage)) << where << ": " << source;
  EXPECT_TRUE(known.contains(source.substr(kPage.size()))) << where << ": " << source;
}

TEST(Sources, EverySourceOfAConfigResolves) {
  const auto known = anchors(source_path("docs/sources.md"));
  for (const std::string& name : app::shipped_machines(configs())) {
    const Machine machine = load_machine(system_file(name));
    for (const auto& [path, origin] : machine.provenance) {
      if (origin.status) expect_anchor(known, origin.source, path);
    }
    for (const CostRowInfo& row : machine.costs->rows()) {
      expect_anchor(known, row.source, row.place);
    }
  }
}

TEST(Sources, EverySourceOfACalibrationResolves) {
  const auto known = anchors(source_path("docs/sources.md"));
  const Calibration calibration = load_calibration(
      configs() / "calibration" / "trn2.yaml", load_machine(system_file("trn2.3xlarge")).config);
  for (const auto* list : {&calibration.parameters, &calibration.unknowns}) {
    for (const Interval& interval : *list) expect_anchor(known, interval.source, interval.name);
  }
}

TEST(Sources, EverySourceOfAnInstructionResolves) {
  const auto known = anchors(source_path("docs/sources.md"));
  isa::for_each_instruction([&]<class T>() {
    if (T::kSource.starts_with("docs/adr/")) return;
    expect_anchor(known, std::string(T::kSource), std::string(T::kName));
  });
}

}  // namespace
}  // namespace trn::sim
