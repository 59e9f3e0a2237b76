#include "sim/report/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "isa/import/profile.h"
#include "sim/app/run.h"
#include "sim/machine/machine_load.h"
#include "sim/machine/run_core.h"
#include "tests/support/paths.h"

namespace trn {
namespace {

// Real profiles of one core of a trn2.3xlarge beside what the simulator makes of the same
// instructions, with one set of parameters. tests/data/profiles has their origin and licence.
constexpr std::array kProfiles = {"attention_unfused_fp32_s512", "attention_unfused_bf16_s512",
                                  "attention_fused_fp32_s512", "attention_fused_bf16_s512",
                                  "attention_fused_fp32_s1024"};

std::string read_profile(const std::string& name) {
  return app::read_file(test::source_path("tests/data/profiles/" + name + ".json"));
}

sim::Machine machine() {
  return sim::load_machine(test::source_path("configs/systems/trn2.3xlarge.yaml"), {},
                           test::source_path("configs"));
}

struct Prediction {
  std::array<std::vector<sim::Timing>, isa::kEngines> streams;
  double total_ns = 0;
  std::optional<double> phase_ns;
};

Prediction predict(const std::string& json, const std::string& name) {
  sim::Machine trn2 = machine();
  Prediction prediction;
  prediction.phase_ns =
      isa::activity_window_phase_ns(json, name, trn2.config.chip.tensor.activity_window);
  trn2.config.tensor.activity_window_phase = prediction.phase_ns.value_or(0);
  sim::ReplayObserver observer;
  sim::CoreRunOptions options;
  options.observer = &observer;
  const isa::Trace trace = isa::import_profile(json, name);
  const sim::CoreResult result = sim::run_core(trace, trn2.config, *trn2.costs, options);
  prediction.streams = observer.streams();
  prediction.total_ns = sim::to_ns(result.length) + trn2.config.chip.runtime.prologue +
                        trn2.config.chip.runtime.epilogue;
  return prediction;
}

class ReplayOf : public testing::TestWithParam<const char*> {
 protected:
  static sim::Replay replay() {
    const std::string json = read_profile(GetParam());
    const Prediction prediction = predict(json, GetParam());
    return sim::compare(sim::measured_profile(json, GetParam()), prediction.streams,
                        prediction.total_ns, prediction.phase_ns);
  }
};

TEST_P(ReplayOf, StaysWithinItsLimits) {
  const sim::Replay result = replay();
  EXPECT_LE(std::abs(result.total_error_percent), 1.5);
  EXPECT_LE(result.duration_error_percent.p90, 10);
  EXPECT_LE(result.start_error_percent_of_kernel.median, 1);
  for (isa::Engine engine : isa::kAllEngines)
    EXPECT_LE(std::abs(result.engines[isa::index(engine)].error_percent), 5) << name_of(engine);
}

INSTANTIATE_TEST_SUITE_P(Profiles, ReplayOf, testing::ValuesIn(kProfiles),
                         [](const auto& profile) { return std::string(profile.param); });

TEST(Replay, PredictsDurationsOverAllProfiles) {
  std::vector<double> errors;
  for (const char* name : kProfiles) {
    const std::string json = read_profile(name);
    const Prediction prediction = predict(json, name);
    const sim::MeasuredProfile measured = sim::measured_profile(json, name);
    for (std::size_t engine = 0; engine < isa::kEngines; ++engine) {
      for (std::size_t i = 0; i < measured.streams[engine].size(); ++i)
        errors.push_back(sim::error_percent(measured.streams[engine][i].time.duration_ns,
                                            prediction.streams[engine][i].duration_ns));
    }
  }
  ASSERT_EQ(errors.size(), 1231U);
  EXPECT_LE(sim::percentile(errors, 0.5), 1.5);
  EXPECT_LE(sim::percentile(errors, 0.95), 10);
}

/// Sets every number under a key that names a time to zero, but the first `ham` row's timestamp.
void erase_times(nlohmann::json& profile) {
  constexpr std::array kTimes = {"timestamp", "duration", "evt_wait_time",
                                 "start_ts",  "end_ts",   "duration_ns"};
  bool first_ham = true;
  for (auto& [section, rows] : profile.items()) {
    for (auto& row : rows) {
      for (const char* key : kTimes) {
        const bool kept = section == "ham" && first_ham && std::string_view(key) == "timestamp";
        if (row.contains(key) && !kept) row[key] = 0;
      }
      if (section == "summary") row["total_time"] = 0;
      if (section == "ham") first_ham = false;
    }
  }
}

TEST(Replay, ReadsNoTimeButThePhaseOfTheClock) {
  for (const char* name : kProfiles) {
    const std::string json = read_profile(name);
    auto erased = nlohmann::json::parse(json);
    erase_times(erased);
    const std::string without_times = erased.dump();
    ASSERT_NE(without_times, json);
    const Prediction with = predict(json, name);
    const Prediction without = predict(without_times, name);
    EXPECT_EQ(with.total_ns, without.total_ns) << name;
    EXPECT_EQ(with.streams, without.streams) << name;
  }
}

// A parameter that no measurement could have told from nonsense would not be calibrated.
TEST(Replay, FailsWithAbsurdParameters) {
  const std::string json = read_profile("attention_fused_fp32_s512");
  const isa::Trace trace = isa::import_profile(json, "profile");
  const auto total = [&](const Override& override) {
    const sim::Machine odd =
        sim::load_machine(test::source_path("configs/systems/trn2.3xlarge.yaml"), {override},
                          test::source_path("configs"));
    return sim::to_ns(sim::run_core(trace, odd.config, *odd.costs).length);
  };
  const double sane = total({"chip.tensor.clock_gating", "true"});
  for (const Override& absurd :
       {Override{"chip.tensor.drain", "2 us"}, Override{"chip.vector.clock", "0.2 GHz"},
        Override{"chip.scalar.clock", "0.2 GHz"},
        Override{"chip.dma.bandwidth_per_engine", "1 GB/s"},
        Override{"chip.dma.software.latency", "20 us"},
        Override{"chip.dma.hardware.trigger_hold", "20 us"},
        Override{"chip.hbm.bandwidth_per_stack", "10 GB/s"},
        Override{"chip.semaphores.to_compute.scalar.tensor", "5 us"}})
    EXPECT_GT(total(absurd), 1.03 * sane) << absurd.path;
}

}  // namespace
}  // namespace trn
