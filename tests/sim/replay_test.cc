#include "sim/report/replay.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "isa/import/profile.h"
#include "tests/support/paths.h"

namespace trn::sim {
namespace {

using isa::Engine;
using testing::DoubleNear;
using testing::HasSubstr;
using Streams = std::array<std::vector<Timing>, isa::kEngines>;

// ---- statistics ----

TEST(Replay, PercentilesLieBetweenNeighbours) {
  EXPECT_EQ(percentile({}, 0.5), 0);
  EXPECT_EQ(percentile({7}, 0), 7);
  EXPECT_EQ(percentile({7}, 1), 7);
  EXPECT_EQ(percentile({3, 1}, 0.5), 2);
  EXPECT_EQ(percentile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 0), 1);
  EXPECT_EQ(percentile({4, 1, 3, 2}, 1), 4);
  // 21 values 0..20: the 95th percentile is at 0.95 * 20 = 19.
  std::vector<double> values;
  for (int i = 20; i >= 0; --i) values.push_back(i);
  EXPECT_DOUBLE_EQ(percentile(values, 0.95), 19);
  EXPECT_DOUBLE_EQ(percentile(values, 0.9), 18);
  // Of 1..4 at 0.9: position 2.7 between 3 and 4.
  EXPECT_DOUBLE_EQ(percentile({1, 2, 3, 4}, 0.9), 3.7);
}

TEST(Replay, CoveredTimeCountsOverlapsOnce) {
  EXPECT_EQ(covered_ns({}), 0);
  EXPECT_EQ(covered_ns({{5, 0}}), 0);
  EXPECT_EQ(covered_ns({{10, 5}, {0, 5}}), 10);
  EXPECT_EQ(covered_ns({{0, 5}, {5, 5}}), 10);
  EXPECT_EQ(covered_ns({{0, 10}, {2, 3}, {9, 4}}), 13);
  EXPECT_EQ(covered_ns({{-5, 10}, {-7, 4}}), 12);
}

TEST(Replay, ErrorsAreRelativeToTheMeasurement) {
  EXPECT_EQ(error_percent(200, 150), 25);
  EXPECT_EQ(error_percent(200, 250), 25);
  EXPECT_EQ(error_percent(0, 0), 0);
  EXPECT_EQ(error_percent(0, 3), 100);
}

// ---- the measured side ----

std::string row(std::string_view engine, int pc, std::string_view opcode, int start, int duration) {
  return fmt::format(R"({{"subgraph":"sg00","compiler_pc":0,"subgroup":"{}","pc":{},"opcode":"{}",)"
                     R"("operands":" a  b ","timestamp":{},"duration":{}}})",
                     engine, pc, opcode, start, duration);
}

const std::string kSummary = R"("summary":[{"total_time":3.5e-06}])";

std::string error_of(const std::string& json) {
  try {
    (void)measured_profile(json, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(MeasuredProfile, HasTheRowsInTheOrderOfThePrograms) {
  const std::string json = fmt::format(
      R"({{"instruction":[{},{},{},{}],{}}})", row("Vector", 9, "COPY", 1500, 100),
      row("Vector", 8, "CAST", 1200, 150), row("Sync", 3, "NOP", 1000, 20),
      R"({"subgraph":"sg00","subgroup":"Sync","pc":2,"opcode":"DRAIN","timestamp":5,"duration":9})",
      kSummary);
  const MeasuredProfile measured = measured_profile(json, "p.json");
  EXPECT_DOUBLE_EQ(measured.total_ns, 3500);
  EXPECT_EQ(measured.kernel_start_ns, 1000);
  EXPECT_EQ(measured.kernel_ns, 600);  // 1000 to 1600
  const auto& vector = measured.streams[isa::index(Engine::Vector)];
  ASSERT_EQ(vector.size(), 2U);
  EXPECT_EQ(vector[0].opcode, "CAST");
  EXPECT_EQ(vector[0].time, (Timing{200, 150}));
  EXPECT_EQ(vector[1].time, (Timing{500, 100}));
  EXPECT_EQ(measured.streams[isa::index(Engine::Sync)].at(0).time, (Timing{0, 20}));
}

TEST(MeasuredProfile, CutsActiveTimeToTheEnginesPartOfTheKernel) {
  // The Sync engine's kernel lasts from 1000 to 1100: of [900, 1010] count 10, of [1090, 1200] 10.
  const auto active = [](std::string_view subgraph, int start, int end) {
    return fmt::format(R"({{"subgraph":"{}","engine":"sync","start_ts":{},"end_ts":{}}})", subgraph,
                       start, end);
  };
  const std::string json = fmt::format(
      R"({{"instruction":[{},{},{}],"active_time":[{},{},{},{},{}],{}}})",
      row("Sync", 3, "NOP", 1000, 10), row("Sync", 4, "NOP", 1080, 20),
      row("Vector", 1, "NOP", 1000, 900), active("sg00", 0, 50), active("sg00", 900, 1010),
      active("sg00", 1040, 1045), active("sg01", 1050, 1060), active("sg00", 1090, 1200), kSummary);
  const MeasuredProfile measured = measured_profile(json, "p.json");
  EXPECT_EQ(measured.active_ns[isa::index(Engine::Sync)], 25);
  EXPECT_EQ(measured.active_ns[isa::index(Engine::Vector)], 0);
}

TEST(MeasuredProfile, RefusesTimesThatAreNone) {
  const std::string good = row("Sync", 3, "NOP", 1, 1);
  const auto with = [&](std::string_view instruction, std::string_view rest) {
    return error_of(fmt::format(R"({{"instruction":[{}],{}}})", instruction, rest));
  };
  EXPECT_EQ(with(good, kSummary), "no error");
  EXPECT_EQ(with(good, R"("summary":[])"),
            "p.json: summary: expected a row with total_time, got none");
  EXPECT_THAT(with(good, R"("summary":[{"total_time":-1}])"),
              HasSubstr("summary[0].total_time: expected a time of 0 s or more"));
  EXPECT_THAT(with(good, R"("summary":[{"total_time":"1"}])"), HasSubstr("expected a number"));
  EXPECT_THAT(with(row("Sync", 3, "NOP", -1, 1), kSummary),
              HasSubstr("instruction[0].timestamp: expected a whole number in 0.."));
  EXPECT_THAT(with(R"({"subgraph":"sg00","compiler_pc":0,"subgroup":"Sync","pc":1,"opcode":"NOP",)"
                   R"("timestamp":1})",
                   kSummary),
              HasSubstr("instruction[0].duration: expected"));
  EXPECT_THAT(
      with(good,
           kSummary +
               R"(,"active_time":[{"subgraph":"sg00","engine":"pool","start_ts":1,"end_ts":2}])"),
      HasSubstr("active_time[0].engine: expected an engine, got 'pool'"));
  EXPECT_THAT(
      with(good,
           kSummary +
               R"(,"active_time":[{"subgraph":"sg00","engine":"sync","start_ts":3,"end_ts":2}])"),
      HasSubstr("active_time[0].end_ts: is before start_ts"));
  EXPECT_THAT(error_of("{}"), HasSubstr("summary: expected a row"));
}

// ---- the predicted side ----

TEST(ReplayObserver, KeepsStartAndDurationOfEachEngine) {
  ReplayObserver observer;
  InstructionRecord record;
  record.engine = Engine::Scalar;
  record.start = from_ns(10);
  record.end = from_ns(25.5);
  observer.on_instruction(record);
  record.index = 1;
  record.start = from_ns(20);
  observer.on_instruction(record);
  EXPECT_EQ(observer.streams()[isa::index(Engine::Scalar)],
            (std::vector<Timing>{{10, 15.5}, {20, 5.5}}));
  EXPECT_TRUE(observer.streams()[isa::index(Engine::Tensor)].empty());
}

// ---- the comparison ----

MeasuredProfile two_engines() {
  MeasuredProfile measured;
  measured.total_ns = 2000;
  measured.kernel_ns = 1000;
  measured.streams[isa::index(Engine::Tensor)] = {{"MATMUL", "first", {0, 100}},
                                                  {"MATMUL", "  second   one ", {100, 200}}};
  measured.streams[isa::index(Engine::Vector)] = {{"COPY", "third", {300, 700}}};
  measured.active_ns[isa::index(Engine::Tensor)] = 300;
  measured.active_ns[isa::index(Engine::Vector)] = 700;
  return measured;
}

Streams prediction() {
  Streams predicted;
  // The run begins at 50: starts are compared relative to its first instruction.
  predicted[isa::index(Engine::Tensor)] = {{50, 110}, {160, 160}};
  predicted[isa::index(Engine::Vector)] = {{400, 700}};
  return predicted;
}

TEST(Replay, ComparesTotalsDurationsAndStarts) {
  const Replay replay = compare(two_engines(), prediction(), 2050, 1252.5);
  EXPECT_EQ(replay.measured_total_ns, 2000);
  EXPECT_EQ(replay.predicted_total_ns, 2050);
  EXPECT_DOUBLE_EQ(replay.total_error_percent, 2.5);
  EXPECT_EQ(replay.measured_kernel_ns, 1000);
  EXPECT_EQ(replay.predicted_kernel_ns, 1050);
  // Durations: 100 -> 110 is 10 %, 200 -> 160 is 20 %, 700 -> 700 is 0.
  EXPECT_EQ(replay.duration_error_percent.rows, 3U);
  EXPECT_DOUBLE_EQ(replay.duration_error_percent.median, 10);
  EXPECT_DOUBLE_EQ(replay.duration_error_percent.p90, 18);
  EXPECT_DOUBLE_EQ(replay.duration_error_percent.p95, 19);
  // Starts: 0 -> 0, 100 -> 110, 300 -> 350 of a kernel of 1000.
  EXPECT_DOUBLE_EQ(replay.start_error_percent_of_kernel.median, 1);
  EXPECT_EQ(replay.activity_window_phase_ns, 1252.5);
}

TEST(Replay, ComparesEnginesAndOpcodes) {
  const Replay replay = compare(two_engines(), prediction(), 1900, std::nullopt);
  EXPECT_DOUBLE_EQ(replay.total_error_percent, -5);
  const EngineComparison& tensor = replay.engines[isa::index(Engine::Tensor)];
  EXPECT_EQ(tensor.measured_active_ns, 300);
  EXPECT_EQ(tensor.predicted_active_ns, 270);
  EXPECT_DOUBLE_EQ(tensor.error_percent, -10);
  EXPECT_EQ(replay.engines[isa::index(Engine::Sync)].error_percent, 0);
  ASSERT_EQ(replay.opcodes.size(), 2U);
  EXPECT_EQ(replay.opcodes[0].opcode, "COPY");
  EXPECT_EQ(replay.opcodes[0].error_percent_median, 0);
  EXPECT_EQ(replay.opcodes[1].opcode, "MATMUL");
  EXPECT_EQ(replay.opcodes[1].count, 2U);
  EXPECT_EQ(replay.opcodes[1].measured_median_ns, 150);
  EXPECT_EQ(replay.opcodes[1].predicted_median_ns, 135);
  EXPECT_DOUBLE_EQ(replay.opcodes[1].error_percent_median, 15);
  EXPECT_DOUBLE_EQ(replay.opcodes[1].error_percent_p95, 19.5);
}

TEST(Replay, ListsTheWorstByTheirErrorInTime) {
  const Replay replay = compare(two_engines(), prediction(), 2000, std::nullopt);
  ASSERT_EQ(replay.worst.size(), 2U);  // the third is exact
  EXPECT_EQ(replay.worst[0].engine, "Tensor");
  EXPECT_EQ(replay.worst[0].index, 1U);
  EXPECT_EQ(replay.worst[0].operands, "second one ");
  EXPECT_EQ(replay.worst[0].measured_duration_ns, 200);
  EXPECT_EQ(replay.worst[0].predicted_duration_ns, 160);
  EXPECT_EQ(replay.worst[0].predicted_start_ns, 110);
  EXPECT_EQ(replay.worst[1].index, 0U);
}

TEST(Replay, ListsTenWorstAtMost) {
  MeasuredProfile measured = two_engines();
  Streams predicted = prediction();
  for (int i = 0; i < 40; ++i) {
    measured.streams[isa::index(Engine::Sync)].push_back({"NOP", "", {0, 100}});
    predicted[isa::index(Engine::Sync)].push_back({50, 100.0 + 2 * i});
  }
  const Replay replay = compare(measured, predicted, 2000, std::nullopt);
  ASSERT_EQ(replay.worst.size(), 10U);
  EXPECT_EQ(replay.worst[0].index, 39U);
  EXPECT_EQ(replay.worst[9].index, 30U);
}

TEST(Replay, ComparesNothingWithNothing) {
  const Replay replay = compare(MeasuredProfile{}, Streams{}, 0, std::nullopt);
  EXPECT_EQ(replay.total_error_percent, 0);
  EXPECT_EQ(replay.duration_error_percent.rows, 0U);
  EXPECT_EQ(replay.duration_error_percent.median, 0);
  EXPECT_TRUE(replay.worst.empty());
  EXPECT_FALSE(to_text(replay).empty());
}

TEST(Replay, WritesTheContractsKeys) {
  const auto json = to_json(compare(two_engines(), prediction(), 2050, 1252.5));
  EXPECT_EQ(json["measured_total_ns"], 2000.0);
  EXPECT_EQ(json["predicted_total_ns"], 2050.0);
  EXPECT_EQ(json["total_error_percent"], 2.5);
  EXPECT_EQ(json["duration_error_percent"]["median"], 10.0);
  EXPECT_TRUE(json["duration_error_percent"].contains("p95"));
  EXPECT_TRUE(json["start_error_percent_of_kernel"].contains("median"));
  EXPECT_EQ(json["activity_window_phase_ns"], 1252.5);
  EXPECT_EQ(json["engines"]["tensor"]["measured_active_ns"], 300.0);
  EXPECT_EQ(json["engines"]["tensor"]["predicted_active_ns"], 270.0);
  EXPECT_EQ(json["opcodes"][1]["opcode"], "MATMUL");
  EXPECT_EQ(json["worst"][0]["index"], 1);
  EXPECT_FALSE(to_json(compare(two_engines(), prediction(), 2050, std::nullopt))
                   .contains("activity_window_phase_ns"));
}

// ---- the shipped profiles ----

struct Case {
  std::string_view file;
  double total_ns;
  double kernel_ns;
  std::array<double, isa::kEngines> active_ns;  ///< Tensor, Vector, Scalar, GpSimd, Sync
};
// Counted in the exports.
constexpr std::array kCases = {
    Case{"attention_fused_bf16_s512", 36351.609, 21039, {10964, 7494, 6097, 253, 1168}},
    Case{"attention_fused_fp32_s1024", 73289.052, 58237, {42139, 28980, 19423, 253, 565}},
    Case{"attention_fused_fp32_s512", 38091.607, 23196, {13178, 7769, 5778, 248, 565}},
    Case{"attention_unfused_bf16_s512", 54276.582, 39162, {10045, 8982, 10461, 253, 3495}},
    Case{"attention_unfused_fp32_s512", 58709.908, 43483, {14805, 8973, 10313, 253, 2870}}};

class ReplayedProfile : public testing::TestWithParam<Case> {};

TEST_P(ReplayedProfile, HasTheTimesOfTheImportedInstructions) {
  const std::string json = isa::load_profile(
      test::source_path(fmt::format("tests/data/profiles/{}.json", GetParam().file)));
  const MeasuredProfile measured = measured_profile(json, "p.json");
  EXPECT_THAT(measured.total_ns, DoubleNear(GetParam().total_ns, 0.001));
  EXPECT_EQ(measured.kernel_ns, GetParam().kernel_ns);
  EXPECT_EQ(measured.active_ns, GetParam().active_ns);

  const isa::Trace trace = isa::import_profile(json, "p.json");
  Streams exact;
  for (Engine engine : isa::kAllEngines) {
    const auto& rows = measured.streams[isa::index(engine)];
    const auto& stream = trace.code[0].streams[isa::index(engine)];
    ASSERT_EQ(rows.size(), stream.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].opcode, isa::mnemonic(stream[i]));
      exact[isa::index(engine)].push_back(rows[i].time);
    }
  }
  // A prediction that equals the measurement has no errors, but for how activity is counted: the
  // profiler's rows and the union of durations differ by less than 7 %.
  const Replay replay = compare(measured, exact, measured.total_ns, std::nullopt);
  EXPECT_EQ(replay.total_error_percent, 0);
  EXPECT_EQ(replay.duration_error_percent.p95, 0);
  EXPECT_EQ(replay.start_error_percent_of_kernel.p95, 0);
  EXPECT_TRUE(replay.worst.empty());
  for (const EngineComparison& engine : replay.engines)
    EXPECT_LT(std::abs(engine.error_percent), 7);
  const std::string text = to_text(replay);
  EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40);
}

INSTANTIATE_TEST_SUITE_P(Attention, ReplayedProfile, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.file); });

}  // namespace
}  // namespace trn::sim
