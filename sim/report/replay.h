#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "isa/base/describe.h"
#include "isa/import/profile.h"
#include "isa/types.h"
#include "sim/core/observer.h"

namespace trn::sim {

/// When an instruction began and how long it lasted, in ns.
struct Timing {
  double start_ns = 0;
  double duration_ns = 0;
  friend bool operator==(const Timing&, const Timing&) = default;
};

/// An executed instruction of a profile.
struct MeasuredRow {
  std::string opcode;
  std::string operands;
  Timing time;  ///< start relative to the kernel's first instruction
};

/// The measured times of a profile's kernel; nothing of a prediction depends on them.
struct MeasuredProfile {
  /// In the order of the imported streams: row i is instruction i.
  std::array<std::vector<MeasuredRow>, isa::kEngines> streams;
  /// Of the `active_time` rows, from an engine's first kernel instruction to the end of its last.
  std::array<double, isa::kEngines> active_ns{};
  double total_ns = 0;         ///< the summary's total_time: with prologue and epilogue
  double kernel_start_ns = 0;  ///< first instruction, from the start of the profile
  double kernel_ns = 0;        ///< first instruction's start to last end
};

/// Reads the times that import_profile() leaves out. Throws InputError as it does.
MeasuredProfile measured_profile(std::string_view json, const std::string& file,
                                 const isa::ImportOptions& options = {});

/// Collects when each instruction ran. For programs without loops, as imported ones are.
class ReplayObserver final : public Observer {
 public:
  void on_instruction(const InstructionRecord& record) override;
  /// In program order; starts are relative to launch.
  [[nodiscard]] const std::array<std::vector<Timing>, isa::kEngines>& streams() const {
    return streams_;
  }

 private:
  std::array<std::vector<Timing>, isa::kEngines> streams_;
};

/// Absolute relative errors, in per cent of the measured value.
struct ErrorSummary {
  std::uint64_t rows = 0;
  double median = 0;
  double p90 = 0;
  double p95 = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"rows", &ErrorSummary::rows, "count", "values compared"},
        Field{"median", &ErrorSummary::median, "percent", "half are smaller"},
        Field{"p90", &ErrorSummary::p90, "percent", "nine in ten are smaller"},
        Field{"p95", &ErrorSummary::p95, "percent", "nineteen in twenty are smaller"}};
  }
};

struct EngineComparison {
  double measured_active_ns = 0;
  double predicted_active_ns = 0;
  double error_percent = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"measured_active_ns", &EngineComparison::measured_active_ns, "ns", "measured"},
        Field{"predicted_active_ns", &EngineComparison::predicted_active_ns, "ns", "predicted"},
        Field{"error_percent", &EngineComparison::error_percent, "percent", "signed error"}};
  }
};

struct OpcodeComparison {
  std::string opcode;
  std::uint64_t count = 0;
  double measured_median_ns = 0;
  double predicted_median_ns = 0;
  double error_percent_median = 0;  ///< absolute, as is p95
  double error_percent_p95 = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"opcode", &OpcodeComparison::opcode, "", "mnemonic"},
                      Field{"count", &OpcodeComparison::count, "count", "instructions"},
                      Field{"measured_median_ns", &OpcodeComparison::measured_median_ns, "ns",
                            "median of the measured durations"},
                      Field{"predicted_median_ns", &OpcodeComparison::predicted_median_ns, "ns",
                            "median of the predicted durations"},
                      Field{"error_percent_median", &OpcodeComparison::error_percent_median,
                            "percent", "median absolute error of a duration"},
                      Field{"error_percent_p95", &OpcodeComparison::error_percent_p95, "percent",
                            "95th percentile of the absolute errors"}};
  }
};

/// An instruction whose duration was predicted badly.
struct WorstInstruction {
  std::string engine;
  std::uint64_t index = 0;  ///< in its engine's stream
  std::string opcode;
  std::string operands;
  double measured_start_ns = 0;
  double predicted_start_ns = 0;
  double measured_duration_ns = 0;
  double predicted_duration_ns = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"engine", &WorstInstruction::engine, "", "engine"},
        Field{"index", &WorstInstruction::index, "", "position in the engine's stream"},
        Field{"opcode", &WorstInstruction::opcode, "", "mnemonic"},
        Field{"operands", &WorstInstruction::operands, "", "as in the profile"},
        Field{"measured_start_ns", &WorstInstruction::measured_start_ns, "ns",
              "from the kernel's first instruction"},
        Field{"predicted_start_ns", &WorstInstruction::predicted_start_ns, "ns",
              "from the kernel's first instruction"},
        Field{"measured_duration_ns", &WorstInstruction::measured_duration_ns, "ns", "measured"},
        Field{"predicted_duration_ns", &WorstInstruction::predicted_duration_ns, "ns",
              "predicted"}};
  }
};

/// A prediction beside the measurement that it was made for.
struct Replay {
  double measured_total_ns = 0;
  double predicted_total_ns = 0;
  double total_error_percent = 0;  ///< signed
  double measured_kernel_ns = 0;
  double predicted_kernel_ns = 0;
  ErrorSummary duration_error_percent{};
  ErrorSummary start_error_percent_of_kernel{};    ///< in per cent of the measured kernel's length
  std::optional<double> activity_window_phase_ns;  ///< an input, taken from the profile
  std::array<EngineComparison, isa::kEngines> engines{};
  std::vector<OpcodeComparison> opcodes;  ///< by name
  std::vector<WorstInstruction> worst;    ///< largest error in ns first
};

/// Compares a run of the imported trace with what was measured: a function of its arguments only.
/// predicted: as a ReplayObserver gives it, with the lengths of `measured`'s streams.
/// predicted_total_ns: with the prologue and the epilogue, to stand beside total_time.
Replay compare(const MeasuredProfile& measured,
               const std::array<std::vector<Timing>, isa::kEngines>& predicted,
               double predicted_total_ns, std::optional<double> activity_window_phase_ns);

/// A table that fits a screen.
std::string to_text(const Replay& replay);
/// The report's section `replay`.
nlohmann::ordered_json to_json(const Replay& replay);

/// The value below which a share of the values lie, interpolated between neighbours; 0 of none.
/// share: 0..1.
double percentile(std::vector<double> values, double share);
/// Length of the union of the intervals.
double covered_ns(std::vector<Timing> intervals);
/// 100 * |predicted - measured| / measured; 100 when something is predicted where nothing was.
double error_percent(double measured, double predicted);

}  // namespace trn::sim
