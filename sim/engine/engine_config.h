#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "isa/base/describe.h"
#include "isa/types.h"

namespace trn::sim {

/// What every engine and its sequencer have. Times of instructions are in the cost tables.
struct EngineConfig {
  double clock = 0;
  std::uint32_t queue_depth = 0;
  double dispatch = 0;
  double refill = 0;
  double launch_delay = 0;
  double read_after_write = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"clock", &EngineConfig::clock, "Hz", "engine clock"},
        Field{"queue_depth", &EngineConfig::queue_depth, "count",
              "instructions that the sequencer may run ahead of its engine"},
        Field{"dispatch", &EngineConfig::dispatch, "ns",
              "from one instruction handed to the engine to the next"},
        Field{"refill", &EngineConfig::refill, "ns",
              "the same behind the first instruction after an EVENT_SEMAPHORE"},
        Field{"launch_delay", &EngineConfig::launch_delay, "ns",
              "from the kernel's start to this engine's first instruction"},
        Field{"read_after_write", &EngineConfig::read_after_write, "ns",
              "from the end of an instruction to the start of one that uses its result, when no "
              "semaphore orders them"}};
  }
};

/// The Tensor engine: a PE array that streams the moving tile while the next stationary tile loads.
/// Cycles are those of the current clock, which the activity windows switch.
struct TensorEngineConfig : EngineConfig {
  double cold_clock = 0;
  double activity_window = 0;
  double activity_raise = 0;
  double activity_lower = 0;
  bool activity_by_rows = false;
  bool clock_gating = false;
  double background_load_delay = 0;
  double weights_switch_cycles = 0;
  double stream_gap_cycles = 0;
  double load_report_busy = 0;
  double load_report_busy_cycles = 0;
  double load_report_idle = 0;
  double load_report_idle_cycles = 0;
  double load_to_stream = 0;
  double load_to_stream_cycles = 0;
  double load_to_stream_share = 0;
  double load_early = 0;
  double drain = 0;
  double drain_cycles = 0;
  static constexpr auto fields() {
    return std::tuple_cat(
        EngineConfig::fields(),
        std::tuple{
            Field{"cold_clock", &TensorEngineConfig::cold_clock, "Hz", "clock when cold"},
            Field{"activity_window", &TensorEngineConfig::activity_window, "ns",
                  "the clock is decided at the end of windows of this length, which run freely"},
            Field{"activity_raise", &TensorEngineConfig::activity_raise, "",
                  "a window busy for at least this share raises the clock"},
            Field{"activity_lower", &TensorEngineConfig::activity_lower, "",
                  "a window busy for less than this share lowers it"},
            Field{"activity_by_rows", &TensorEngineConfig::activity_by_rows, "",
                  "a matmul counts as busy by the share of the array's rows that it uses"},
            Field{"clock_gating", &TensorEngineConfig::clock_gating, "", "false: always warm"},
            Field{"background_load_delay", &TensorEngineConfig::background_load_delay, "ns",
                  "from the start of a MATMUL to that of the next tile's LDWEIGHTS"},
            Field{"weights_switch_cycles", &TensorEngineConfig::weights_switch_cycles, "cycles",
                  "beyond loading, from one MATMUL to the next with other weights (warm)"},
            Field{"stream_gap_cycles", &TensorEngineConfig::stream_gap_cycles, "cycles",
                  "between the streams of two MATMULs (warm)"},
            Field{"load_report_busy", &TensorEngineConfig::load_report_busy, "ns",
                  "fixed part of a LDWEIGHTS' duration while the array streams"},
            Field{"load_report_busy_cycles", &TensorEngineConfig::load_report_busy_cycles, "cycles",
                  "beyond loading, in such a duration"},
            Field{"load_report_idle", &TensorEngineConfig::load_report_idle, "ns",
                  "fixed part of a LDWEIGHTS' duration while the array is idle"},
            Field{"load_report_idle_cycles", &TensorEngineConfig::load_report_idle_cycles, "cycles",
                  "beyond loading, in such a duration"},
            Field{"load_to_stream", &TensorEngineConfig::load_to_stream, "ns",
                  "fixed part of the time from a LDWEIGHTS' start to the first column it serves"},
            Field{"load_to_stream_cycles", &TensorEngineConfig::load_to_stream_cycles, "cycles",
                  "beyond the share of loading, in that time"},
            Field{"load_to_stream_share", &TensorEngineConfig::load_to_stream_share, "",
                  "share of loading in that time"},
            Field{"load_early", &TensorEngineConfig::load_early, "ns",
                  "how far behind its weights a MATMUL's reported start may lie"},
            Field{"drain", &TensorEngineConfig::drain, "ns",
                  "fixed part of the time from a MATMUL's last column to its result in PSUM"},
            Field{"drain_cycles", &TensorEngineConfig::drain_cycles, "cycles",
                  "clocked part of that time: the array's depth"}});
  }
};

/// The Scalar engine's function tables.
struct ScalarEngineConfig : EngineConfig {
  bool implicit_table_load = false;
  std::map<std::string, std::uint32_t> function_sets{};
  static constexpr auto fields() {
    return std::tuple_cat(
        EngineConfig::fields(),
        std::tuple{Field{"implicit_table_load", &ScalarEngineConfig::implicit_table_load, "",
                         "an ACTIVATE whose function set is not loaded pays for an ACT_TABLE_LOAD"},
                   Field{"function_sets", &ScalarEngineConfig::function_sets, "",
                         "the set of each function that needs a table, by the profiler's names"}});
  }
};

}  // namespace trn::sim
