#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "isa/base/yaml_load.h"
#include "isa/text.h"
#include "isa/trace.h"
#include "sim/app/run.h"
#include "sim/report/json_text.h"
#include "tests/support/paths.h"
#include "tests/support/run_cli.h"
#include "tests/support/scratch.h"

namespace trn::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// run.yaml of a case.
struct Case {
  std::string config;
  std::optional<std::vector<std::string>> set{};
  static constexpr auto fields() {
    return std::tuple{Field{"config", &Case::config, "", "the machine"},
                      Field{"set", &Case::set, "", "what it overrides"}};
  }
};

/// scripts/update_golden.sh sets it: the results become what is expected.
bool updating() { return std::getenv("TRN_UPDATE_GOLDEN") != nullptr; }

void compare(const fs::path& file, const std::string& text) {
  if (updating()) {
    write_text(file, text);
    return;
  }
  EXPECT_EQ(text, read_text(file)) << "if this is meant: scripts/update_golden.sh";
}

sim::Report run_text(const fs::path& text, const Case& how) {
  const fs::path trace = scratch_folder() / "trace.bin";
  isa::write_trace(isa::parse_text(app::read_file(text), text.string()), trace);
  app::RunRequest request{.trace = trace, .options = {.machine = how.config}};
  for (const std::string& set : how.set.value_or(std::vector<std::string>{}))
    request.options.overrides.push_back(parse_override(set));
  return app::run(request).report;
}

class Golden : public testing::TestWithParam<std::string> {};

/// The whole report, without who made it and where, and without the list of what its error bar
/// holds, which is as long as the calibration's.
TEST_P(Golden, ReportIsAsExpected) {
  const fs::path folder = source_path("tests/golden") / GetParam();
  const Case how = load_file<Case>(folder / "run.yaml").value;
  Json json = sim::to_json(run_text(folder / "program.trn", how), std::nullopt);
  json.erase("simulator");
  json.erase("error_bar");
  json["config"].erase("path");
  json["config"].erase("sha256");
  json["trace"].erase("path");
  compare(folder / "expected.json", sim::json_text(json));
}

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(source_path("tests/golden"))) {
    if (fs::exists(entry.path() / "run.yaml")) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

INSTANTIATE_TEST_SUITE_P(Cases, Golden, testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param; });

/// The predicted times of the shipped traces, which are kernels that ran on a device.
TEST(GoldenTraces, TimesAreAsExpected) {
  std::vector<fs::path> traces;
  for (const auto& entry : fs::directory_iterator(source_path("traces"))) {
    if (entry.path().extension() == ".trn") traces.push_back(entry.path());
  }
  std::sort(traces.begin(), traces.end());
  EXPECT_GE(traces.size(), 5U);
  Json expected = Json::object();
  for (const fs::path& trace : traces) {
    const Json json = sim::to_json(run_text(trace, {.config = "trn2.3xlarge"}), std::nullopt);
    Json& row = expected[trace.stem().string()];
    for (const char* key :
         {"device_time_ns", "device_time_low_ns", "device_time_high_ns", "profiled_total_ns"})
      row[key] = json.at(key);
    row["bound_by"] = json["bound_by"]["resource"];
    row["instructions"] = json["trace"]["instructions"];
  }
  compare(source_path("tests/golden/traces.json"), sim::json_text(expected));
}

}  // namespace
}  // namespace trn::test
