#include "sim/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>

#include "isa/base/error.h"
#include "sim/report/instruction_table.h"
#include "sim/report/json_text.h"
#include "tests/support/paths.h"
#include "tests/support/scratch.h"

namespace trn::sim {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

using Json = nlohmann::ordered_json;

MachineConfig machine() {
  MachineConfig config;
  config.lnc = 2;
  config.system.instance = "trn2.3xlarge";
  config.system.chips = 1;
  config.chip.name = "trn2";
  config.chip.cores = 8;
  config.chip.tensor.clock = 2.4e9;
  config.chip.sbuf.partitions = 128;
  config.chip.sbuf.partition_size = 1024;
  config.chip.psum.partition_size = 512;
  config.chip.hbm.stack_size = 1 << 20;
  config.chip.hbm.bandwidth_per_stack = 716e9;
  config.chip.runtime.include = true;
  config.chip.runtime.prologue = 13000;
  config.chip.runtime.epilogue = 2000;
  return config;
}

isa::TraceInfo trace() {
  isa::TraceInfo info;
  info.name = "attention";
  info.locations = {{}, {"attention.py", 12}, {"attention.py", 40}};
  info.labels = {"", "scores"};
  return info;
}

/// 10 us, of which the Tensor engine works 4 and waits 5.
CoreResult result() {
  CoreResult core;
  core.length = from_ns(10'000);
  for (EngineStats& engine : core.engines) engine.idle = core.length;
  EngineStats& tensor = core.engines[0];
  tensor.instructions = 7;
  tensor.instruction_time = from_ns(4'500);
  tensor.active = from_ns(4'000);
  tensor.idle = from_ns(1'000);
  tensor.stalled[static_cast<std::size_t>(StallReason::WaitDma)] = from_ns(3'000);
  tensor.stalled[static_cast<std::size_t>(StallReason::Launch)] = from_ns(2'000);
  core.critical_path.add(Resource::Tensor, from_ns(4'000));
  core.critical_path.add(Resource::Dma, from_ns(5'000));
  core.critical_path.add(Resource::Launch, from_ns(1'000));
  core.instructions = 7;
  return core;
}

std::vector<Stall> stalls() {
  return {{0, isa::Engine::Tensor, StallReason::WaitDma, "attention.py:12", "", from_ns(3'000)},
          {0, isa::Engine::Tensor, StallReason::Launch, "", "scores", from_ns(2'000)}};
}

struct Fixture {
  MachineConfig config = machine();
  isa::TraceInfo info = trace();
  CoreResult core = result();
  std::vector<Stall> rows = stalls();
  std::optional<TimeRange> phases{};
  std::optional<Calibration> calibration{};
  std::vector<Sensitivity> sensitivity{};
  std::optional<MachineCost> cost{};
  std::vector<std::string> warnings{};

  [[nodiscard]] Report report() const {
    return make_report({.simulator = {"0.1.0", "abc", "trn2-0"},
                        .machine = {"trn2.3xlarge", "trn2.3xlarge.yaml", std::string(64, '0'), {}},
                        .trace_file = {"a.bin", std::string(64, '1'), 7},
                        .config = config,
                        .trace = info,
                        .core = core,
                        .stalls = rows,
                        .phases = phases,
                        .calibration = calibration,
                        .sensitivity = sensitivity,
                        .cost = cost,
                        .replay = {},
                        .warnings = warnings});
  }
  [[nodiscard]] Json json() const { return to_json(report(), std::nullopt); }
  [[nodiscard]] std::string text() const { return to_text(report(), std::nullopt); }
};

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Whole femtoseconds, as the reference page says to read a time.
std::int64_t fs(const Json& ns) { return std::llround(ns.get<double>() * 1e6); }

// ---- the summary's formulas, with the figures of a published profile ----

/// attention_fused_bf16_s512: what its summary counts, and what the profiler made of it.
TEST(Summary, FormulasAreTheProfilers) {
  Fixture f;
  f.config.chip.runtime.include = false;
  f.core.length = 36'351'609'000;  // total_time 3.6351609e-05 s
  f.core.tensor.hardware_flops = 285212672;
  f.core.tensor.transpose_flops = 83886080;
  DmaStats& dma = f.core.dma;
  dma.hbm_read_bytes = 491520;
  dma.hbm_write_bytes = 131072;
  dma.active = 11'048'218'000;
  dma.modes[static_cast<std::size_t>(isa::DescriptorMode::Static)] = {17, 198672, 7'236'459'000};
  dma.modes[static_cast<std::size_t>(isa::DescriptorMode::SoftwareDge)] = {672, 524544,
                                                                           3'356'466'000};
  dma.modes[static_cast<std::size_t>(isa::DescriptorMode::HardwareDge)] = {288, 98432,
                                                                           1'241'174'000};
  isa::Tensor input;
  input.kind = isa::TensorKind::Input;
  input.bytes = 491520;
  f.info.tensors.push_back(input);
  const Summary s = summarize(f.core, f.config, f.info, f.core.length);

  EXPECT_DOUBLE_EQ(s.total_time, 3.6351609e-05);
  EXPECT_EQ(s.neuroncore_cycle_count, 43621U);
  EXPECT_DOUBLE_EQ(*s.mm_arithmetic_intensity, 323.36842105263156);
  EXPECT_DOUBLE_EQ(s.peak_flops_bandwidth_ratio, 109.83687150837989);
  EXPECT_DOUBLE_EQ(*s.mfu_max_achievable_estimated_percent, 1);
  EXPECT_DOUBLE_EQ(*s.mbu_estimated_percent, 0.023920313938272743);
  EXPECT_DOUBLE_EQ(*s.mbu_min_read_util_percent, 0.018884458372320584);
  EXPECT_EQ(s.dma_active_cycles, 13257U);
  EXPECT_DOUBLE_EQ(*s.dma_active_time_percent, 0.3039265194561264);
  EXPECT_DOUBLE_EQ(*s.static_dma_active_time_percent, 0.6549887954781486);
  EXPECT_DOUBLE_EQ(*s.static_dma_packet_percent, 0.017400204708290685);
  EXPECT_DOUBLE_EQ(*s.static_dma_size_percent, 0.24179697388662785);
  EXPECT_DOUBLE_EQ(*s.software_dynamic_dma_active_time_percent, 0.3038015723440649);
  EXPECT_DOUBLE_EQ(*s.software_dynamic_dma_packet_percent, 0.6878198567041965);
  EXPECT_DOUBLE_EQ(*s.software_dynamic_dma_size_percent, 0.6384047670048488);
  EXPECT_DOUBLE_EQ(*s.hardware_dynamic_dma_active_time_percent, 0.11234155589616353);
  EXPECT_DOUBLE_EQ(*s.dynamic_dma_active_time_percent, 0.4161431282402284);
  EXPECT_DOUBLE_EQ(*s.dynamic_dma_packet_percent, 0.9825997952917093);
  EXPECT_DOUBLE_EQ(*s.dynamic_dma_size_percent, 0.7582030261133722);
  // The profile is of two cores, one of them idle; the profiler divides by the peak of both.
  EXPECT_DOUBLE_EQ(*s.mfu_estimated_percent, 2 * 0.035211646340056094);
  EXPECT_NEAR(*s.hfu_estimated_percent, 2 * 0.04988316443056207, 1e-8);  // its own clock rounding
}

TEST(Summary, OfNothingHasNoRatios) {
  Fixture f;
  f.config.chip.runtime.include = false;
  f.core = CoreResult{};
  f.rows.clear();
  const Json json = f.json();
  EXPECT_EQ(json["device_time_ns"], 0);
  EXPECT_FALSE(json.contains("bound_by"));
  EXPECT_FALSE(json.contains("profiled_total_ns"));
  for (const auto& [name, value] : json["summary"].items()) {
    EXPECT_THAT(name, Not(AllOf(EndsWith("_percent"), Not(HasSubstr("achievable"))))) << value;
  }
  EXPECT_THAT(json_text(json), Not(HasSubstr("nan")));
}

TEST(Summary, TotalTimeIsTheProfiledOne) {
  const Json json = Fixture{}.json();
  EXPECT_EQ(json["profiled_total_ns"], 25'000);
  EXPECT_DOUBLE_EQ(json["summary"]["total_time"].get<double>(), 25e-6);
  EXPECT_DOUBLE_EQ(json["summary"]["tensor_engine_active_time_percent"].get<double>(), 4.0 / 25);
  EXPECT_EQ(json["summary"]["tensor_engine_instruction_count"], 7);
  EXPECT_EQ(json["summary"], json["cores"][0]["summary"]);
}

/// Every figure is on the reference page and in the schema, and nothing else is.
TEST(Summary, IsOnTheReferencePageAndInTheSchema) {
  const auto read = [](std::string_view name) { return test::read_text(test::source_path(name)); };
  const std::string page = read("docs/reference/report.md");
  const Json schema = Json::parse(read("docs/reference/report.schema.json"));
  std::vector<std::string> names;
  const auto look = [&](const std::string& name, std::string_view meaning) {
    EXPECT_THAT(page, HasSubstr("`" + name + "`"));
    EXPECT_THAT(page, HasSubstr(std::string(meaning))) << name;
  };
  for_each_field<Summary>([&](const auto& field) {
    look(std::string(field.name), field.meaning);
    names.emplace_back(field.name);
  });
  for_each_field<EngineSummary>([&](const auto& field) {
    look("<engine>_engine_" + std::string(field.name), field.meaning);
    for (isa::Engine engine : isa::kAllEngines)
      names.push_back(lower_name(engine) + "_engine_" + std::string(field.name));
  });
  std::vector<std::string> known;
  for (const auto& [name, value] : schema["$defs"]["summary"]["properties"].items())
    known.push_back(name);
  EXPECT_THAT(known, testing::UnorderedElementsAreArray(names));
}

// ---- sums ----

TEST(Report, BusyStalledAndIdleAddUpExactly) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Fixture f;
    f.rows.clear();
    f.core.length = std::uniform_int_distribution<Time>(1'000'000, 1'000'000'000'000'000)(random);
    for (std::size_t e = 0; e < isa::kEngines; ++e) {
      EngineStats stats;
      Time left = f.core.length;
      const auto part = [&] {
        const Time taken = std::uniform_int_distribution<Time>(0, left / 3)(random);
        left -= taken;
        return taken;
      };
      stats.active = part();
      for (StallReason reason : {StallReason::WaitDma, StallReason::Weights, StallReason::Launch}) {
        for (const char* line : {"a.py:1", "a.py:2"}) {
          const Time time = part();
          stats.stalled[static_cast<std::size_t>(reason)] += time;
          f.rows.push_back({0, isa::kAllEngines[e], reason, line, "", time});
        }
      }
      stats.idle = left;
      f.core.engines[e] = stats;
    }
    const Json json = Json::parse(json_text(f.json()));
    for (const Json& engine : json["cores"][0]["engines"]) {
      std::int64_t sum = fs(engine["busy_ns"]) + fs(engine["idle_ns"]);
      for (const Json& stall : json["stalls"])
        if (stall["engine"] == engine["engine"]) sum += fs(stall["time_ns"]);
      EXPECT_EQ(sum, f.core.length);
      sum = fs(engine["busy_ns"]) + fs(engine["idle_ns"]);
      for (const Json& time : engine["stalled_ns"]) sum += fs(time);
      EXPECT_EQ(sum, f.core.length);
    }
    EXPECT_EQ(fs(json["device_time_ns"]), f.core.length);
  }
}

TEST(Report, AnAccountThatDoesNotAddUpIsOurFault) {
  Fixture f;
  f.core.engines[0].idle += 1;
  EXPECT_ANY_THROW(static_cast<void>(f.report()));
  f = {};
  f.rows.front().time -= 1;
  EXPECT_ANY_THROW(static_cast<void>(f.report()));
}

TEST(Report, BoundByIsTheLargestPartOfTheCriticalPath) {
  const Json json = Fixture{}.json();
  EXPECT_EQ(json["bound_by"]["resource"], "dma");
  EXPECT_DOUBLE_EQ(json["bound_by"]["share"].get<double>(), 0.5);
  std::int64_t sum = 0;
  for (const Json& part : json["bound_by"]["critical_path"]) sum += fs(part["time_ns"]);
  EXPECT_EQ(sum, from_ns(10'000));
}

TEST(StallTable, AddsUpBySourceLineOrElseLabel) {
  StallTable table;
  const auto stall = [&](isa::Engine engine, StallReason reason, isa::SourceRef at, Time time) {
    const isa::Instr instr{{}, at, isa::Nop{}};
    InstructionRecord record;
    record.engine = engine;
    record.instr = &instr;
    record.reason = reason;
    record.stall = time;
    table.on_instruction(record);
  };
  stall(isa::Engine::Vector, StallReason::WaitDma, {1, 1}, 5);
  stall(isa::Engine::Vector, StallReason::WaitDma, {1, 0}, 6);
  stall(isa::Engine::Vector, StallReason::WaitDma, {0, 1}, 3);
  stall(isa::Engine::Vector, StallReason::None, {1, 1}, 0);
  stall(isa::Engine::Tensor, StallReason::Weights, {2, 0}, 3);
  const std::vector<Stall> rows = table.rows(trace(), 4);
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_EQ(rows[0].time, 11);
  EXPECT_EQ(rows[0].source, "attention.py:12");
  EXPECT_EQ(rows[0].label, "");
  EXPECT_EQ(rows[0].core, 4U);
  EXPECT_EQ(rows[1].source, "attention.py:40");  // equal times: Tensor comes before Vector
  EXPECT_EQ(rows[2].label, "scores");
}

TEST(StallTable, JoinsWhatIsBeyondItsRows) {
  StallTable table;
  const auto most = static_cast<std::uint32_t>(StallTable::kRows);
  for (std::uint32_t i = 0; i < most + 10; ++i) {
    const isa::Instr instr{{}, {0, i + 1}, isa::Nop{}};
    InstructionRecord record;
    record.instr = &instr;
    record.reason = StallReason::Weights;
    record.stall = i < most ? 100 : 2;
    table.on_instruction(record);
  }
  const std::vector<Stall> rows = table.rows({}, 0);
  ASSERT_EQ(rows.size(), StallTable::kRows + 1);
  EXPECT_EQ(rows.back().time, 20);
}

// ---- memory ----

isa::Tensor tensor(std::string name, isa::Memory memory, std::uint64_t address,
                   std::uint64_t bytes) {
  isa::Tensor t;
  t.name = std::move(name);
  t.memory = memory;
  t.address = address;
  t.bytes = bytes;
  t.location = 1;
  return t;
}

TEST(Memory, PeaksAreOfTensorsAndAccesses) {
  Fixture f;
  f.core.sbuf.peak_bytes = 300;
  f.core.psum.peak_bytes = 100;
  f.info.tensors = {tensor("x", isa::Memory::Sbuf, 0, 200), tensor("y", isa::Memory::Psum, 64, 128),
                    tensor("a", isa::Memory::Hbm, 1000, 500),
                    tensor("b", isa::Memory::Hbm, 1200, 500)};
  const Json memory = f.json()["memory"];
  EXPECT_EQ(memory["sbuf"]["partition_peak_bytes"], 300);
  EXPECT_EQ(memory["sbuf"]["peak_bytes"], 300 * 128);
  EXPECT_EQ(memory["sbuf"]["capacity_bytes"], 1024 * 128);
  EXPECT_EQ(memory["psum"]["partition_peak_bytes"], 192);
  EXPECT_EQ(memory["hbm"]["peak_bytes"], 700);  // the 300 that overlap count once
  EXPECT_FALSE(memory["hbm"].contains("partition_peak_bytes"));
  EXPECT_EQ(memory["hbm"]["largest"][0]["name"], "a");
  EXPECT_EQ(memory["hbm"]["largest"][0]["source"], "attention.py:12");
}

TEST(Memory, WhatDoesNotFitIsRefusedByName) {
  Fixture f;
  f.info.tensors = {tensor("kv", isa::Memory::Hbm, 0, (1 << 20) + 1),
                    tensor("small", isa::Memory::Hbm, 0, 10)};
  const auto check = [&] { check_capacity(f.info, f.config.chip); };
  EXPECT_THAT(check, ThrowsMessage<CapacityError>(
                         AllOf(StartsWith("hbm: "), HasSubstr("need 1 MiB (1048577 bytes)"),
                               HasSubstr("has 1 MiB (1048576 bytes)"),
                               HasSubstr("the largest are kv (1 MiB, attention.py:12), small"))));
  f.info.tensors = {tensor("kv", isa::Memory::Hbm, 1U << 30U, 1 << 20)};  // wherever it lies
  EXPECT_NO_THROW(check());
  f.info.tensors = {tensor("x", isa::Memory::Sbuf, 1000, 25)};
  EXPECT_THAT(check, ThrowsMessage<CapacityError>(HasSubstr("sbuf: ")));
  f.info.tensors = {tensor("x", isa::Memory::Hbm, ~std::uint64_t{0}, ~std::uint64_t{0})};
  EXPECT_NO_THROW(check());
}

TEST(Memory, BytesHaveThreeFigures) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text(224 * 1024 * 128), "28 MiB");
  EXPECT_EQ(bytes_text(96.0 * (1 << 30)), "96 GiB");
}

// ---- work and cost ----

TEST(Cost, FollowsThePrice) {
  Fixture f;
  f.info.work = {{32, "token"}};
  f.cost = MachineCost{.usd_per_hour = 3.6, .price = {}};
  const Json json = f.json();
  // 32 tokens in 10 us are 3.2 million a second; 3.6 USD an hour are 0.001 USD a second.
  EXPECT_DOUBLE_EQ(json["throughput"]["tokens_per_second"].get<double>(), 3.2e6);
  EXPECT_DOUBLE_EQ(json["cost"]["tokens_per_usd"].get<double>(), 3.2e9);
  EXPECT_DOUBLE_EQ(json["cost"]["usd_per_million_tokens"]["all"].get<double>(), 1 / 3200.0);
  EXPECT_FALSE(json["cost"].contains("price"));
}

TEST(Cost, KeepsTokensInAndOutApart) {
  Fixture f;
  f.info.work = {{30, "input_token"}, {10, "output_token"}};
  f.cost = MachineCost{.usd_per_hour = 3.6, .price = {}};
  const Json json = f.json();
  EXPECT_DOUBLE_EQ(json["throughput"]["tokens_per_second"].get<double>(), 4e6);
  EXPECT_DOUBLE_EQ(json["throughput"]["input_tokens_per_second"].get<double>(), 3e6);
  EXPECT_TRUE(json["cost"]["usd_per_million_tokens"].contains("input"));
  EXPECT_TRUE(json["cost"]["usd_per_million_tokens"].contains("output"));
  EXPECT_FALSE(json["cost"]["usd_per_million_tokens"].contains("all"));
}

TEST(Cost, OtherWorkHasItsPlural) {
  Fixture f;
  f.info.work = {{1, "image"}, {30, "audio_second"}};
  f.cost = MachineCost{.usd_per_hour = 3.6, .price = {}};
  const Json json = f.json();
  EXPECT_TRUE(json["throughput"].contains("images_per_second"));
  EXPECT_TRUE(json["throughput"].contains("audio_seconds_per_second"));
  EXPECT_TRUE(json["cost"].contains("images_per_usd"));
  EXPECT_TRUE(json["cost"].contains("usd_per_million_images"));
}

TEST(Cost, IsAbsentWithoutAPriceAndThroughputWithoutWork) {
  const Json json = Fixture{}.json();
  EXPECT_FALSE(json.contains("cost"));
  EXPECT_FALSE(json.contains("throughput"));
  EXPECT_FALSE(json.contains("replay"));
  EXPECT_FALSE(json.contains("host"));
  EXPECT_FALSE(json.contains("device_time_low_ns"));
  EXPECT_FALSE(json.contains("benchmark_latency_ns"));
}

TEST(Cost, ADoubtfulPriceIsAWarning) {
  Fixture f;
  Price price;
  price.instance = "trn2.3xlarge";
  price.usd_per_hour = 7;
  price.date = "2026";
  price.source = "hearsay";
  price.status = Status::Disputed;
  f.cost = MachineCost{7, price};
  const Json json = f.json();
  EXPECT_EQ(json["cost"]["price"]["status"], "disputed");
  EXPECT_THAT(json["warnings"][0].get<std::string>(),
              AllOf(HasSubstr("doubtful"), HasSubstr("hearsay"), HasSubstr("2026")));
}

TEST(Report, TheErrorBarIsThatOfBothTimes) {
  Fixture f;
  EXPECT_FALSE(f.json().contains("error_bar"));
  f.calibration = Calibration{};
  Interval interval;
  interval.name = "all";
  interval.low = 0.9;
  interval.high = 1.2;
  interval.acts_on.fill(1);
  f.calibration->unknowns = {interval};
  const Json json = f.json();
  EXPECT_EQ(fs(json["device_time_low_ns"]), from_ns(9'000));
  EXPECT_EQ(fs(json["device_time_high_ns"]), from_ns(12'000));
  EXPECT_EQ(fs(json["profiled_total_low_ns"]), from_ns(22'500));
  EXPECT_EQ(fs(json["profiled_total_high_ns"]), from_ns(30'000));
  EXPECT_EQ(json["error_bar"]["causes"][0]["cause"], "all");
  f.config.chip.runtime.include = false;
  EXPECT_FALSE(f.json().contains("profiled_total_low_ns"));
}

// ---- the text ----

/// All that a report may hold, with names longer than any line.
Fixture overfull() {
  Fixture f;
  f.info.name = std::string(300, 'n');
  f.rows.front().source = std::string(300, '/') + ":12";
  for (int i = 0; i < 40; ++i) {
    f.warnings.push_back(std::string(150, 'w'));
    f.info.tensors.push_back(tensor(std::string(200, 't'), isa::Memory::Hbm, 0, 10));
  }
  for (int i = 0; i < 3; ++i) f.info.work.push_back({1e9, std::string(30 + i, 'u')});
  Price price;
  price.region = std::string(60, 'r');
  price.source = std::string(200, 's');
  price.status = Status::Disputed;
  f.cost = MachineCost{1e9, price};
  f.phases = TimeRange{from_ns(9'000), from_ns(11'000)};
  for (std::size_t i = 0; i < isa::kEngines; ++i) {
    EngineStats& stats = f.core.engines[i];
    stats.instructions = 1'234'567'890'123;
  }
  for (int i = 0; i < 20; ++i)
    f.rows.push_back({0, isa::Engine::Vector, StallReason::ReadAfterWrite, "x.py:1", "", 0});
  return f;
}

TEST(ReportText, FitsAScreen) {
  for (const Fixture& f : {Fixture{}, overfull()}) {
    const std::string text = to_text(f.report(), HostInfo{1e6, 1e12, 1ULL << 50U});
    const std::vector<std::string> lines = lines_of(text);
    EXPECT_LE(lines.size(), kTextLines) << text;
    for (const std::string& line : lines) {
      EXPECT_LE(line.size(), kTextColumns) << line;
      EXPECT_THAT(line, Not(EndsWith(" ")));
    }
  }
}

TEST(ReportText, SaysWhatBoundsItAndWhereItWaits) {
  Fixture f;
  f.phases = TimeRange{from_ns(9'000), from_ns(11'000)};
  const std::string text = f.text();
  EXPECT_THAT(text, HasSubstr("10.000 us  (9.000 us to 11.000 us"));
  EXPECT_THAT(text, HasSubstr("dma 50 %, tensor 40 %, launch 10 %"));
  EXPECT_THAT(text, HasSubstr("attention.py:12"));
  // 40 % of 24 columns busy, 90 % busy or stalled, the rest idle.
  EXPECT_THAT(text, HasSubstr("##########------------..  wait_dma 30, launch 20\n"));
}

Calibration calibration_of_dma() {
  Interval interval;
  interval.name = "chip.dma.rate";
  interval.low = 0.9;
  interval.high = 1.1;
  interval.acts_on[static_cast<std::size_t>(Resource::Dma)] = -1;
  Calibration calibration;
  calibration.date = "2026-11-30";
  calibration.parameters = {interval};
  return calibration;
}

TEST(ReportText, GivesTheErrorBarAndItsMainCause) {
  Fixture f;
  f.calibration = calibration_of_dma();
  EXPECT_THAT(f.text(),
              HasSubstr("10.000 us  (9.500 us to 10.500 us, error bar; mostly dma.rate)"));
  f.calibration->parameters.clear();
  EXPECT_THAT(f.text(), Not(HasSubstr("error bar")));
}

TEST(ReportText, HasATableOfTheSensitivity) {
  Fixture f;
  EXPECT_THAT(f.text(), Not(HasSubstr("at low")));
  f.sensitivity = {{.parameter = "chip.dma.hardware.write.efficiency",
                    .value = "1",
                    .low = "2.3640 GHz",
                    .high = "2.4360 GHz",
                    .status = Status::Measured,
                    .at_low = from_ns(9'000),
                    .at_high = from_ns(11'500)}};
  const std::string text = f.text();
  EXPECT_THAT(text, HasSubstr("chip.dma.hardware.write.efficiency meas"));
  EXPECT_THAT(text, HasSubstr("2.3640 GHz to 2.4360 GHz   9.000 us  11.500 us -10.00 +15.00\n"));
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), kTextColumns) << line;
}

TEST(ReportText, OfAnEmptyProgramDividesByNothing) {
  Fixture f;
  f.core = CoreResult{};
  f.rows.clear();
  EXPECT_THAT(f.text(), AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

// ---- forms ----

TEST(JsonText, KeepsNumbersExactAndSmallThingsOnALine) {
  Json json;
  json["time_ns"] = 123456789.123456;
  json["list"] = {1, 2, 3};
  json["rows"] = Json::array({{{"a", 1}, {"b", "x"}}, {{"a", 2}, {"b", "y\n"}}});
  json["empty"] = Json::array();
  const std::string text = json_text(json);
  EXPECT_EQ(text,
            "{\n"
            "  \"time_ns\": 123456789.123456,\n"
            "  \"list\": [1, 2, 3],\n"
            "  \"rows\": [\n"
            "    {\"a\": 1, \"b\": \"x\"},\n"
            "    {\"a\": 2, \"b\": \"y\\n\"}\n"
            "  ],\n"
            "  \"empty\": []\n"
            "}\n");
  EXPECT_EQ(Json::parse(text), json);
  EXPECT_ANY_THROW(json_text(Json{{"x", std::nan("")}}));
}

TEST(InstructionTable, WritesOneRowAnInstruction) {
  const std::filesystem::path path = test::scratch_folder() / "instructions.csv";
  const isa::TraceInfo info = trace();
  isa::Instr instr{{}, {1, 1}, isa::Nop{}};
  instr.sync.wait = {.semaphore = 5, .condition = isa::WaitCondition::GreaterEqual, .value = 4};
  {
    InstructionTable table(path, info);
    InstructionRecord record;
    record.engine = isa::Engine::Vector;
    record.index = 3;
    record.instr = &instr;
    record.start = 1'000'000;
    record.end = 2'500'001;
    record.reason = StallReason::WaitDma;
    record.stall = 100'000;
    table.on_instruction(record);
    table.close();
  }
  EXPECT_THAT(lines_of(test::read_text(path)),
              ElementsAre("start_ts,duration_ns,end_ts,engine,opcode,operands,pc,"
                          "nki_source_location,layer,stall_reason,stall_ns",
                          "1,1.500001,2.500001,Vector,NOP,wait S[5]>=4,3,attention.py:12,scores,"
                          "wait_dma,0.1"));
}

TEST(InstructionTable, ThatCannotBeWrittenIsTheUsersError) {
  EXPECT_THAT([] { InstructionTable("/nowhere/at/all.csv", {}); },
              ThrowsMessage<InputError>(HasSubstr("/nowhere/at/all.csv")));
}

}  // namespace
}  // namespace trn::sim
