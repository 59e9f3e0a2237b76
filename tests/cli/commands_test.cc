#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/run_cli.h"
#include "tests/support/scratch.h"

namespace trn::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

using Json = nlohmann::ordered_json;

std::string program() { return source_path("tests/golden/matmul_chain/program.trn").string(); }
std::string profile() {
  return source_path("tests/data/profiles/attention_fused_bf16_s512.json").string();
}

std::string ok(const std::vector<std::string>& arguments) {
  const CliResult result = run_cli(arguments);
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());  // nothing but results when stderr is no terminal
  return result.out;
}

std::string trace() {
  const std::string path = (scratch_folder() / "trace.bin").string();
  ok({"asm", program(), "-o", path});
  return path;
}

/// One that ran on a device; the phase of the Tensor clock moves its time.
std::string kernel() {
  const std::string path = (scratch_folder() / "kernel.bin").string();
  ok({"import", profile(), "-o", path});
  return path;
}

/// The report of a run without what may differ.
Json report(std::vector<std::string> arguments) {
  arguments.insert(arguments.end(), {"--report", "json"});
  Json json = Json::parse(ok(arguments));
  EXPECT_TRUE(json.contains("host"));
  json.erase("host");
  return json;
}

TEST(Commands, EveryHelpShowsAnExample) {
  EXPECT_THAT(ok({"--help"}), AllOf(HasSubstr("Example"), HasSubstr("trn-sim --config")));
  EXPECT_EQ(ok({}), ok({"--help"}));
  for (const char* command : {"run", "import", "replay", "asm", "dump", "configs", "validate"}) {
    EXPECT_THAT(ok({command, "--help"}),
                AllOf(HasSubstr("Example"), HasSubstr(std::string("trn-sim ") + command)));
  }
}

/// The work is done by another process, in the place of this one.
TEST(Commands, ValidationKeepsItsExitCodeAndItsOutput) {
  const CliResult result = run_cli({"validate", "--subset", "no such"});
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, AllOf(StartsWith("trn-sim: --subset no such"), HasSubstr("ci")));
  EXPECT_THAT(result.out, IsEmpty());
}

TEST(Commands, VersionNamesBuildAndCalibration) {
  EXPECT_THAT(ok({"--version"}),
              AllOf(StartsWith("trn-sim "), HasSubstr("SystemC"), HasSubstr("calibration: "),
                    HasSubstr("trn2-"), Not(HasSubstr("Copyright"))));
}

TEST(Commands, ConfigsListsTheShippedMachines) {
  const std::string list = ok({"configs"});
  for (const char* name :
       {"trn1.2xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge", "trn2u.48xlarge"})
    EXPECT_THAT(list, HasSubstr(name));
}

TEST(Commands, RunIsTheMainJob) {
  const std::string file = trace();
  const Json main = report({"--config", "trn2.3xlarge.yaml", file});
  EXPECT_EQ(report({"run", "--config", "trn2.3xlarge", file}), main);
  EXPECT_EQ(report({"run", file, "--config", "trn2.3xlarge"}), main);
  EXPECT_EQ(report({file, "--config=trn2.3xlarge"}), main);
  EXPECT_EQ(main["schema"], "trn-sim-results/1");
  EXPECT_GT(main["device_time_ns"], 0);
  EXPECT_LE(main["device_time_low_ns"], main["device_time_ns"]);
  EXPECT_GE(main["device_time_high_ns"], main["device_time_ns"]);
}

TEST(Commands, NothingButTheReportIsPrinted) {
  const std::string text = ok({"--config", "trn2.3xlarge", trace()});
  EXPECT_THAT(text, AllOf(HasSubstr("device time"), HasSubstr("bound by"),
                          Not(HasSubstr("SystemC")), Not(HasSubstr("Accellera"))));
}

TEST(Commands, MachinesAreFoundFromAnyFolder) {
  const CliResult result = run_cli({"--config", "trn2.48xlarge.yaml", trace()}, "/");
  EXPECT_EQ(result.code, 0) << result.err;
}

TEST(Commands, TwoRunsAreEqual) {
  const std::string file = trace();
  EXPECT_EQ(report({"--config", "trn2.3xlarge", file}).dump(),
            report({"--config", "trn2.3xlarge", file}).dump());
}

/// Of a small program and of a real kernel.
TEST(Commands, TheOrderOfConstructionChangesNothing) {
  for (const std::string& file : {trace(), kernel()}) {
    const std::vector<std::string> run = {"--config", "trn2.3xlarge", file};
    std::vector<std::string> reversed = run;
    reversed.emplace_back("--reverse-construction");
    EXPECT_EQ(report(run).dump(), report(reversed).dump());
  }
}

TEST(Commands, SetOverridesAndIsReported) {
  const std::string file = trace();
  const Json base = report({"--config", "trn2.3xlarge", file});
  const Json slow = report({"--config", "trn2.3xlarge", file, "--set", "chip.vector.clock=0.5 GHz",
                            "--set", "chip.runtime.include=false"});
  EXPECT_GT(slow["device_time_ns"], base["device_time_ns"]);
  EXPECT_EQ(slow["config"]["overrides"]["chip.vector.clock"], "0.5 GHz");
  EXPECT_FALSE(slow.contains("profiled_total_ns"));
  EXPECT_EQ(slow["simulator"]["calibration"], base["simulator"]["calibration"]);
}

bool has_cause(const Json& json, const std::string& name) {
  for (const Json& cause : json["error_bar"]["causes"]) {
    if (cause["cause"] == name) return true;
  }
  return false;
}

TEST(Commands, AKnownPhaseIsNoCauseOfError) {
  const std::string file = kernel();
  EXPECT_TRUE(has_cause(report({"--config", "trn2.3xlarge", file}), "tensor_clock_phase"));
  const Json json =
      report({"--config", "trn2.3xlarge", file, "--set", "tensor.activity_window_phase=100 ns"});
  EXPECT_FALSE(has_cause(json, "tensor_clock_phase"));
  EXPECT_LT(json["device_time_low_ns"], json["device_time_ns"]);
  EXPECT_GT(json["device_time_high_ns"], json["device_time_ns"]);
}

TEST(Commands, AParameterThatIsGivenIsNoCauseOfError) {
  const std::string file = trace();
  EXPECT_TRUE(has_cause(report({"--config", "trn2.3xlarge", file}), "chip.tensor.clock"));
  EXPECT_FALSE(
      has_cause(report({"--config", "trn2.3xlarge", file, "--set", "chip.tensor.clock=2.4 GHz"}),
                "chip.tensor.clock"));
}

TEST(Commands, AChipWithoutACalibrationHasTheBarOfThePhases) {
  const std::string file = kernel();
  const std::vector<std::string> run = {"--config", "trn2.3xlarge", file, "--set",
                                        "chip.name=other"};
  const Json json = report(run);
  EXPECT_TRUE(has_cause(json, "tensor_clock_phase"));
  EXPECT_EQ(json["error_bar"]["causes"].size(), 1U);
  std::vector<std::string> more = run;
  more.emplace_back("--sensitivity");
  const CliResult result = run_cli(more);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("--sensitivity: no intervals are known of the parameters of "
                                    "other"));
}

TEST(Commands, SensitivityListsEveryParameterMostInfluentialFirst) {
  const std::string file = trace();
  const std::vector<std::string> run = {"--config", "trn2.3xlarge", file, "--sensitivity"};
  const Json json = report(run);
  const Json& rows = json["sensitivity"];
  EXPECT_GE(rows.size(), 20U);
  const auto effect = [&](const Json& row) {
    return std::max(std::abs(row["change_at_low_percent"].get<double>()),
                    std::abs(row["change_at_high_percent"].get<double>()));
  };
  EXPECT_GT(effect(rows[0]), 0);
  for (std::size_t i = 1; i < rows.size(); ++i) EXPECT_GE(effect(rows[i - 1]), effect(rows[i]));
  EXPECT_EQ(report(run).dump(), json.dump());
  // The same as a run with the parameter set.
  const Json set = report({"--config", "trn2.3xlarge", file, "--set",
                           fmt::format("{}={}", rows[0]["parameter"].get<std::string>(),
                                       rows[0]["low"].get<std::string>())});
  EXPECT_EQ(set["device_time_ns"], rows[0]["time_at_low_ns"]);
  EXPECT_THAT(ok(run), AllOf(HasSubstr("at low"), HasSubstr("chip.dma.software.interval")));
}

TEST(Commands, ACalibrationOfOnesOwnCounts) {
  const std::string file = (scratch_folder() / "calibration.yaml").string();
  write_text(file,
             "chip: trn2\ndate: 2026-01-02\nrows: []\nparameters: []\nunknowns:\n"
             "  - {name: mine, low: 0.5, high: 3, acts_on: {tensor: 1, vector: 1}, status: est, "
             "source: me}\n");
  const std::vector<std::string> run = {"--config", "trn2.3xlarge", trace(), "--calibration", file};
  const Json json = report(run);
  EXPECT_EQ(json["error_bar"]["calibration_date"], "2026-01-02");
  EXPECT_TRUE(has_cause(json, "mine"));
  write_text(file, "chip: trn2\ncolour: red\n");
  const CliResult result = run_cli(run);
  EXPECT_EQ(result.code, 2);
  EXPECT_THAT(result.err, HasSubstr("calibration.yaml:2: colour: unknown key"));
}

TEST(Commands, DumpConfigReadsBack) {
  const std::string dumped =
      ok({"run", "--config", "trn2.3xlarge", "--dump-config", "--set", "chip.vector.clock=1 GHz"});
  EXPECT_THAT(dumped, AllOf(HasSubstr("1 GHz"), HasSubstr("trn2.yaml:")));
}

TEST(Commands, DumpAndAsmUndoEachOther) {
  const std::string file = trace();
  const std::string text = (scratch_folder() / "dumped.trn").string();
  const std::string again = (scratch_folder() / "again.bin").string();
  ok({"dump", file, "-o", text});
  EXPECT_EQ(ok({"dump", file}), read_text(text));
  ok({"asm", text, "-o", again});
  EXPECT_TRUE(read_text(again) == read_text(file));
}

TEST(Commands, OutputGoesToAFile) {
  const std::string file = (scratch_folder() / "report.json").string();
  EXPECT_THAT(ok({"--config", "trn2.3xlarge", trace(), "--report", "json", "-o", file}), IsEmpty());
  EXPECT_EQ(Json::parse(read_text(file))["schema"], "trn-sim-results/1");
}

TEST(Commands, ProgressIsOnStderrWhenAskedFor) {
  // Longer than a progress interval; the loop makes it so in a small file.
  const std::filesystem::path text = scratch_folder() / "loop.trn";
  write_text(text, R"(.name "loop"
.core 0 program=0 rank=0
.program 0
.engine Vector
LOOP counter=1 count=3000000
NOP
END_LOOP counter=1 count=3000000
)");
  const std::string file = (scratch_folder() / "loop.bin").string();
  ok({"asm", text.string(), "-o", file});
  const CliResult result = run_cli({"--config", "trn2.3xlarge", file, "--progress"});
  EXPECT_EQ(result.code, 0);
  EXPECT_THAT(result.err, HasSubstr("instructions"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("device time"), Not(HasSubstr("us simulated"))));
}

TEST(Commands, InstructionsAreOneRowEach) {
  const std::string rows = (scratch_folder() / "rows.csv").string();
  const Json json = report({"--config", "trn2.3xlarge", trace(), "--instructions", rows});
  const std::string text = read_text(rows);
  std::uint64_t executed = 0;
  for (const Json& engine : json["cores"][0]["engines"])
    executed += engine["instructions"].get<std::uint64_t>();
  EXPECT_EQ(static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')), executed + 1);
  EXPECT_THAT(text, AllOf(StartsWith("start_ts,duration_ns,end_ts,engine,opcode,operands,"),
                          HasSubstr("MATMUL")));
}

TEST(Commands, PricesAreOfTheListOrTheUser) {
  const std::string file = trace();
  const Json listed = report({"--config", "trn2.3xlarge", file});
  EXPECT_GT(listed["cost"]["usd_per_hour"], 0);
  for (const char* key : {"plan", "region", "date", "source", "status"})
    EXPECT_TRUE(listed["cost"]["price"].contains(key)) << key;
  EXPECT_GT(listed["cost"]["images_per_usd"], 0);
  const Json spot = report({"--config", "trn2.3xlarge", file, "--price", "spot"});
  EXPECT_EQ(spot["cost"]["price"]["plan"], "spot");
  const Json given = report({"--config", "trn2.3xlarge", file, "--usd-per-hour", "2.5"});
  EXPECT_EQ(given["cost"]["usd_per_hour"], 2.5);
  EXPECT_FALSE(given["cost"].contains("price"));
}

TEST(Commands, AMachineWithoutAPriceGetsNone) {
  const Json json =
      report({"--config", "trn2.3xlarge", trace(), "--set", "system.instance=trn2.none"});
  EXPECT_FALSE(json.contains("cost"));
  EXPECT_TRUE(json.contains("throughput"));
}

TEST(Commands, ReplayComparesWithTheMeasurement) {
  const Json json = report({"replay", profile(), "--config", "trn2.3xlarge"});
  const Json& replay = json["replay"];
  EXPECT_GT(replay["measured_total_ns"], 0);
  EXPECT_TRUE(replay.contains("activity_window_phase_ns"));
  EXPECT_LE(replay["worst"].size(), 10U);
  EXPECT_EQ(replay["predicted_total_ns"], json["profiled_total_ns"]);
  EXPECT_LT(json["device_time_low_ns"], json["device_time_ns"]);
  const std::string text = ok({"replay", profile(), "--config", "trn2.3xlarge"});
  EXPECT_THAT(text, AllOf(HasSubstr("measured"), HasSubstr("tensor.activity_window_phase"),
                          HasSubstr("device time")));
}

/// What the trace holds is what is executed and moved: nothing is lost, nothing done twice.
TEST(Commands, InstructionsAndTransfersAreConserved) {
  const std::string file = (scratch_folder() / "kernel.bin").string();
  ok({"import", profile(), "-o", file});
  const std::string text = ok({"dump", file});
  const auto count = [&](const std::string& start) {
    std::uint64_t lines = 0;
    for (std::size_t at = text.find("\n" + start); at != std::string::npos;
         at = text.find("\n" + start, at + 1))
      ++lines;
    return lines;
  };
  const Json json = report({"--config", "trn2.3xlarge", file});
  std::uint64_t executed = 0;
  for (const Json& engine : json["cores"][0]["engines"])
    executed += engine["instructions"].get<std::uint64_t>();
  EXPECT_EQ(executed, json["trace"]["instructions"]);
  const Json& summary = json["summary"];
  EXPECT_EQ(summary["matmul_instruction_count"], count("MATMUL"));
  EXPECT_EQ(summary["activate_instruction_count"], count("ACTIVATE"));
  EXPECT_EQ(summary["dma_transfer_count"], count("DMA_DIRECT2D"));
  // Each byte is read at one place and written at another.
  EXPECT_EQ(summary["hbm_read_bytes"].get<std::uint64_t>() +
                summary["hbm_write_bytes"].get<std::uint64_t>(),
            491520U + 131072U);  // as the profile counts them
}

TEST(Commands, ReplayIsImportAndRunWithTheProfilesPhase) {
  const Json replay = report({"replay", profile(), "--config", "trn2.3xlarge"});
  const std::string file = (scratch_folder() / "kernel.bin").string();
  ok({"import", profile(), "-o", file});
  const double phase = replay["replay"]["activity_window_phase_ns"];
  const Json run = report({"--config", "trn2.3xlarge", file, "--set",
                           "tensor.activity_window_phase=" + Json(phase).dump() + " ns"});
  EXPECT_EQ(run["device_time_ns"], replay["device_time_ns"]);
}

}  // namespace
}  // namespace trn::test
