#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "isa/import/profile.h"
#include "isa/text.h"
#include "isa/trace.h"
#include "isa/validate.h"
#include "tests/support/paths.h"

namespace trn::isa {
namespace {

struct Case {
  std::string_view file;
  double phase_ns;
  std::string_view opcodes;  ///< "engine opcode count" with commas, in the order of the names
};

// Counted in the exports. The phases are the first clock change modulo 4096 cycles of 1.2 GHz.
constexpr std::array kCases = {
    Case{"attention_fused_bf16_s512", 1252.33,
         "GpSimd DMA_DIRECT2D 4, GpSimd NOP 1, GpSimd SET_ORDERING_MODE 1, Scalar ACTIVATE 4, "
         "Scalar ACT_TABLE_LOAD 1, Scalar CAST 1, Scalar COPY 3, Scalar SET_ORDERING_MODE 1, "
         "Sync DMA_DIRECT2D 2, Sync SET_ORDERING_MODE 1, Tensor EVENT_SEMAPHORE 3, "
         "Tensor LDWEIGHTS 56, Tensor MATMUL 56, Tensor SET_ORDERING_MODE 1, Vector COPY 1, "
         "Vector EVENT_SEMAPHORE 1, Vector RECIPROCAL 1, Vector SET_ORDERING_MODE 1, "
         "Vector TENSOR_REDUCE 10, Vector TENSOR_SCALAR 4"},
    Case{"attention_fused_fp32_s1024", 463.67,
         "GpSimd DMA_DIRECT2D 4, GpSimd NOP 1, GpSimd SET_ORDERING_MODE 1, Scalar ACTIVATE 16, "
         "Scalar ACT_TABLE_LOAD 1, Scalar COPY 16, Scalar EVENT_SEMAPHORE 1, "
         "Scalar SET_ORDERING_MODE 1, Sync DMA_DIRECT2D 1, Sync SET_ORDERING_MODE 1, "
         "Tensor EVENT_SEMAPHORE 4, Tensor LDWEIGHTS 232, Tensor MATMUL 232, "
         "Tensor SET_ORDERING_MODE 1, Vector COPY 10, Vector EVENT_SEMAPHORE 2, "
         "Vector RECIPROCAL 2, Vector SET_ORDERING_MODE 1, Vector TENSOR_REDUCE 36, "
         "Vector TENSOR_SCALAR 8"},
    Case{"attention_fused_fp32_s512", 3342.00,
         "GpSimd DMA_DIRECT2D 4, GpSimd NOP 1, GpSimd SET_ORDERING_MODE 1, Scalar ACTIVATE 4, "
         "Scalar ACT_TABLE_LOAD 1, Scalar COPY 4, Scalar SET_ORDERING_MODE 1, "
         "Sync DMA_DIRECT2D 1, Sync SET_ORDERING_MODE 1, Tensor EVENT_SEMAPHORE 2, "
         "Tensor LDWEIGHTS 60, Tensor MATMUL 60, Tensor SET_ORDERING_MODE 1, Vector COPY 1, "
         "Vector EVENT_SEMAPHORE 1, Vector RECIPROCAL 1, Vector SET_ORDERING_MODE 1, "
         "Vector TENSOR_REDUCE 10, Vector TENSOR_SCALAR 4"},
    Case{"attention_unfused_bf16_s512", 1465.67,
         "GpSimd DMA_DIRECT2D 4, GpSimd EVENT_SEMAPHORE 1, GpSimd NOP 1, "
         "GpSimd SET_ORDERING_MODE 1, Scalar ACTIVATE 4, Scalar ACT_TABLE_LOAD 1, Scalar CAST 4, "
         "Scalar COPY 6, Scalar DMA_DIRECT2D 4, Scalar EVENT_SEMAPHORE 2, "
         "Scalar SET_ORDERING_MODE 1, Sync DMA_DIRECT2D 6, Sync SET_ORDERING_MODE 1, "
         "Tensor EVENT_SEMAPHORE 3, Tensor LDWEIGHTS 56, Tensor MATMUL 56, "
         "Tensor SET_ORDERING_MODE 1, Vector CAST 1, Vector COPY 2, Vector RECIPROCAL 1, "
         "Vector SET_ORDERING_MODE 1, Vector TENSOR_REDUCE 10, Vector TENSOR_SCALAR 4"},
    Case{"attention_unfused_fp32_s512", 2681.00,
         "GpSimd DMA_DIRECT2D 4, GpSimd EVENT_SEMAPHORE 1, GpSimd NOP 1, "
         "GpSimd SET_ORDERING_MODE 1, Scalar ACTIVATE 4, Scalar ACT_TABLE_LOAD 1, Scalar COPY 10, "
         "Scalar DMA_DIRECT2D 4, Scalar EVENT_SEMAPHORE 2, Scalar SET_ORDERING_MODE 1, "
         "Sync DMA_DIRECT2D 5, Sync SET_ORDERING_MODE 1, Tensor EVENT_SEMAPHORE 2, "
         "Tensor LDWEIGHTS 60, Tensor MATMUL 60, Tensor SET_ORDERING_MODE 1, Vector COPY 3, "
         "Vector RECIPROCAL 1, Vector SET_ORDERING_MODE 1, Vector TENSOR_REDUCE 10, "
         "Vector TENSOR_SCALAR 4"}};

constexpr double kWindowNs = 4096 / 1.2;

class ImportedProfile : public testing::TestWithParam<Case> {
 protected:
  const std::string json_ =
      load_profile(test::source_path(fmt::format("tests/data/profiles/{}.json", GetParam().file)));
};

TEST_P(ImportedProfile, HasTheInstructionsOfTheExport) {
  const Trace trace = import_profile(json_, "p.json");
  std::map<std::string, int> counts;
  for (Engine engine : kAllEngines) {
    for (const Instr& instr : trace.code.at(0).streams[index(engine)]) {
      ++counts[fmt::format("{} {}", name_of(engine), mnemonic(instr))];
    }
  }
  std::string listed;
  for (const auto& [name, count] : counts) {
    listed += fmt::format("{}{} {}", listed.empty() ? "" : ", ", name, count);
  }
  EXPECT_EQ(listed, GetParam().opcodes);
}

TEST_P(ImportedProfile, TakesThePhaseOfTheClockFromTheFirstChange) {
  const auto phase = activity_window_phase_ns(json_, "p.json", kWindowNs);
  ASSERT_TRUE(phase.has_value());
  EXPECT_NEAR(*phase, GetParam().phase_ns, 0.01);
}

/// Replaces every number that is a time.
void blot_times(nlohmann::json& profile, const nlohmann::json& with) {
  static constexpr std::array kTimes = {
      "timestamp",  "duration",          "start_ts",          "end_ts",
      "total_time", "last_hw_timestamp", "first_hw_timestamp"};
  for (auto& [section, rows] : profile.items()) {
    for (auto& row : rows) {
      for (const char* key : kTimes) {
        if (row.contains(key)) row[key] = with;
      }
    }
  }
}

TEST_P(ImportedProfile, FollowsNoMeasuredTime) {
  const auto original = trace_bytes(import_profile(json_, "p.json"));
  const auto phase = activity_window_phase_ns(json_, "p.json", kWindowNs);
  nlohmann::json profile = nlohmann::json::parse(json_);
  const nlohmann::json first = profile["ham"][0];
  blot_times(profile, 0);
  profile["ham"][0] = first;
  const std::string zeroed = profile.dump();
  ASSERT_NE(zeroed.find(R"("duration":0,)"), std::string::npos);
  EXPECT_EQ(trace_bytes(import_profile(zeroed, "p.json")), original);
  EXPECT_EQ(activity_window_phase_ns(zeroed, "p.json", kWindowNs), phase);

  blot_times(profile, "no number");  // what is not read may be anything
  EXPECT_EQ(trace_bytes(import_profile(profile.dump(), "p.json")), original);
}

TEST_P(ImportedProfile, DoesNotFollowTheOrderOfRows) {
  const auto original = trace_bytes(import_profile(json_, "p.json"));
  nlohmann::json profile = nlohmann::json::parse(json_);
  std::reverse(profile["instruction"].begin(), profile["instruction"].end());
  EXPECT_EQ(trace_bytes(import_profile(profile.dump(), "p.json")), original);
}

TEST_P(ImportedProfile, KeepsTheHardwaresLimits) {
  EXPECT_NO_THROW(validate(import_profile(json_, "p.json"), {}, "p.json"));
}

TEST_P(ImportedProfile, IsTheShippedTrace) {
  const std::string name = fmt::format("traces/{}.trn", GetParam().file);
  std::ifstream in(test::source_path(name));
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_EQ(trace_bytes(parse_text(text, name)), trace_bytes(import_profile(json_, "p.json")))
      << "scripts/import_traces.sh writes it again";
}

INSTANTIATE_TEST_SUITE_P(Attention, ImportedProfile, testing::ValuesIn(kCases),
                         [](const auto& test) { return std::string(test.param.file); });

}  // namespace
}  // namespace trn::isa
