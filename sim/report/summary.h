#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "isa/base/describe.h"
#include "isa/program.h"
#include "sim/machine/core_result.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

/// What the profiler counts for one engine; in the summary each name follows `tensor_engine_`,
/// `vector_engine_` and so on.
struct EngineSummary {
  double instruction_time = 0;
  double active_time = 0;
  std::optional<double> active_time_percent;
  std::uint64_t instruction_count = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"instruction_time", &EngineSummary::instruction_time, "s",
                            "sum of durations, overlaps added"},
                      Field{"active_time", &EngineSummary::active_time, "s",
                            "time with an instruction in the engine, waits excluded"},
                      Field{"active_time_percent", &EngineSummary::active_time_percent, "share",
                            "active_time / total_time"},
                      Field{"instruction_count", &EngineSummary::instruction_count, "count",
                            "instructions executed"}};
  }
};

/// Figures under the names, units and formulas of AWS's profiler: times in seconds, `_percent` as
/// shares of 1. What a run cannot know, or what would divide by 0, is absent.
/// Source: docs/sources.md#profiler-summary.
struct Summary {
  std::string instance_type;
  bool is_simulation = true;
  double total_time = 0;
  std::uint64_t neuroncore_cycle_count = 0;
  double hardware_flops = 0;
  double transpose_flops = 0;
  double adjusted_hardware_flops = 0;
  double adjusted_transpose_flops = 0;
  std::optional<double> mm_arithmetic_intensity;
  double peak_flops_bandwidth_ratio = 0;
  std::optional<double> mfu_estimated_percent;
  std::optional<double> mfu_max_achievable_estimated_percent;
  std::optional<double> mfu_inst_estimated_percent;
  std::optional<double> mfu_inst_max_achievable_estimated_percent;
  std::optional<double> hfu_estimated_percent;
  std::optional<double> mbu_estimated_percent;
  std::optional<double> mbu_min_read_util_percent;
  std::optional<std::uint64_t> inputs_and_weights_size_bytes;
  std::optional<std::uint64_t> inputs_outputs_weights_size_bytes;
  std::optional<std::uint64_t> weight_size_bytes;
  std::uint64_t hbm_read_bytes = 0;
  std::uint64_t hbm_write_bytes = 0;
  std::uint64_t spill_save_bytes = 0;
  std::uint64_t spill_reload_bytes = 0;
  std::uint64_t sbuf_read_bytes = 0;
  std::uint64_t sbuf_write_bytes = 0;
  std::uint64_t psum_read_bytes = 0;
  std::uint64_t psum_write_bytes = 0;
  std::uint64_t psum_read_sbuf_write_count = 0;
  std::uint64_t psum_read_sbuf_write_bytes = 0;
  std::uint64_t dma_queue_count = 0;
  std::uint64_t dma_active_cycles = 0;
  double dma_active_time = 0;
  std::optional<double> dma_active_time_percent;
  double dma_packet_time = 0;
  double dma_transfer_time = 0;
  std::uint64_t dma_transfer_count = 0;
  std::uint64_t dma_transfer_total_bytes = 0;
  std::optional<double> dma_transfer_average_bytes;
  double static_dma_active_time = 0;
  std::optional<double> static_dma_active_time_percent;
  std::uint64_t static_dma_packet_count = 0;
  std::optional<double> static_dma_packet_percent;
  std::uint64_t static_dma_size = 0;
  std::optional<double> static_dma_size_percent;
  std::optional<double> dynamic_dma_active_time_percent;
  std::optional<double> dynamic_dma_packet_percent;
  std::optional<double> dynamic_dma_size_percent;
  double software_dynamic_dma_active_time = 0;
  std::optional<double> software_dynamic_dma_active_time_percent;
  std::uint64_t software_dynamic_dma_packet_count = 0;
  std::optional<double> software_dynamic_dma_packet_percent;
  std::uint64_t software_dynamic_dma_size = 0;
  std::optional<double> software_dynamic_dma_size_percent;
  double hardware_dynamic_dma_active_time = 0;
  std::optional<double> hardware_dynamic_dma_active_time_percent;
  std::uint64_t hardware_dynamic_dma_packet_count = 0;
  std::optional<double> hardware_dynamic_dma_packet_percent;
  std::uint64_t hardware_dynamic_dma_size = 0;
  std::optional<double> hardware_dynamic_dma_size_percent;
  std::uint64_t matmul_instruction_count = 0;
  double activate_instruction_time = 0;
  std::uint64_t activate_instruction_count = 0;
  std::array<EngineSummary, isa::kEngines> engines{};  ///< not in fields(): see EngineSummary

  static constexpr auto fields() {
    using S = Summary;
    return std::tuple{
        Field{"instance_type", &S::instance_type, "", "EC2 instance type of the machine"},
        Field{"is_simulation", &S::is_simulation, "", "always true here"},
        Field{"total_time", &S::total_time, "s",
              "profiled_total_ns where there is one, else device_time_ns"},
        Field{"neuroncore_cycle_count", &S::neuroncore_cycle_count, "cycles",
              "total_time x 1.2 GHz, the profiler's base clock"},
        Field{"hardware_flops", &S::hardware_flops, "flops",
              "sum over matmuls of 2 x active rows x active columns x elements"},
        Field{"transpose_flops", &S::transpose_flops, "flops",
              "the part of hardware_flops that only moves data"},
        Field{"adjusted_hardware_flops", &S::adjusted_hardware_flops, "flops",
              "hardware_flops in bf16 equivalents: fp32 x 4, fp8 x 0.5"},
        Field{"adjusted_transpose_flops", &S::adjusted_transpose_flops, "flops",
              "transpose_flops likewise"},
        Field{"mm_arithmetic_intensity", &S::mm_arithmetic_intensity, "flops/B",
              "(hardware_flops - transpose_flops) / (hbm_read_bytes + hbm_write_bytes)"},
        Field{"peak_flops_bandwidth_ratio", &S::peak_flops_bandwidth_ratio, "flops/B",
              "2 x 128 x 128 x Tensor clock / bandwidth of one HBM stack"},
        Field{"mfu_estimated_percent", &S::mfu_estimated_percent, "share",
              "mfu_inst_estimated_percent: a trace states no model FLOPs"},
        Field{"mfu_max_achievable_estimated_percent", &S::mfu_max_achievable_estimated_percent,
              "share", "min(1, mm_arithmetic_intensity / peak_flops_bandwidth_ratio)"},
        Field{"mfu_inst_estimated_percent", &S::mfu_inst_estimated_percent, "share",
              "(hardware_flops - transpose_flops) / (2 x 128 x 128 x Tensor clock x total_time)"},
        Field{"mfu_inst_max_achievable_estimated_percent",
              &S::mfu_inst_max_achievable_estimated_percent, "share",
              "as mfu_max_achievable_estimated_percent"},
        Field{"hfu_estimated_percent", &S::hfu_estimated_percent, "share",
              "hardware_flops / (2 x 128 x 128 x Tensor clock x total_time)"},
        Field{"mbu_estimated_percent", &S::mbu_estimated_percent, "share",
              "(hbm_read_bytes + hbm_write_bytes) / total_time / bandwidth of one HBM stack"},
        Field{"mbu_min_read_util_percent", &S::mbu_min_read_util_percent, "share",
              "inputs_and_weights_size_bytes / total_time / bandwidth of one HBM stack"},
        Field{"inputs_and_weights_size_bytes", &S::inputs_and_weights_size_bytes, "bytes",
              "of the trace's input, weight and constant tensors in HBM"},
        Field{"inputs_outputs_weights_size_bytes", &S::inputs_outputs_weights_size_bytes, "bytes",
              "and of its outputs"},
        Field{"weight_size_bytes", &S::weight_size_bytes, "bytes",
              "of its weight and constant tensors"},
        Field{"hbm_read_bytes", &S::hbm_read_bytes, "bytes", "read from HBM by DMA"},
        Field{"hbm_write_bytes", &S::hbm_write_bytes, "bytes", "written to HBM by DMA"},
        Field{"spill_save_bytes", &S::spill_save_bytes, "bytes",
              "of those, tiles that had no place in SBUF"},
        Field{"spill_reload_bytes", &S::spill_reload_bytes, "bytes",
              "of such tiles, read back from HBM"},
        Field{"sbuf_read_bytes", &S::sbuf_read_bytes, "bytes",
              "read from SBUF by DMA and instructions"},
        Field{"sbuf_write_bytes", &S::sbuf_write_bytes, "bytes",
              "written to SBUF by DMA and instructions"},
        Field{"psum_read_bytes", &S::psum_read_bytes, "bytes", "read from PSUM by instructions"},
        Field{"psum_write_bytes", &S::psum_write_bytes, "bytes", "written to PSUM by instructions"},
        Field{"psum_read_sbuf_write_count", &S::psum_read_sbuf_write_count, "count",
              "instructions that move from PSUM to SBUF"},
        Field{"psum_read_sbuf_write_bytes", &S::psum_read_sbuf_write_bytes, "bytes",
              "what they read"},
        Field{"dma_queue_count", &S::dma_queue_count, "count", "DMA rings in use"},
        Field{"dma_active_cycles", &S::dma_active_cycles, "cycles", "dma_active_time x 1.2 GHz"},
        Field{"dma_active_time", &S::dma_active_time, "s",
              "time with at least one DMA packet moving"},
        Field{"dma_active_time_percent", &S::dma_active_time_percent, "share",
              "dma_active_time / total_time"},
        Field{"dma_packet_time", &S::dma_packet_time, "s", "sum of the packets' durations"},
        Field{"dma_transfer_time", &S::dma_transfer_time, "s",
              "sum of the transfers' durations, first packet to completion"},
        Field{"dma_transfer_count", &S::dma_transfer_count, "count", "DMA instructions executed"},
        Field{"dma_transfer_total_bytes", &S::dma_transfer_total_bytes, "bytes",
              "bytes of all transfers"},
        Field{"dma_transfer_average_bytes", &S::dma_transfer_average_bytes, "bytes",
              "dma_transfer_total_bytes / dma_transfer_count"},
        Field{"static_dma_active_time", &S::static_dma_active_time, "s",
              "time with a packet moving whose descriptor was written at load time"},
        Field{"static_dma_active_time_percent", &S::static_dma_active_time_percent, "share",
              "share of dma_active_time"},
        Field{"static_dma_packet_count", &S::static_dma_packet_count, "count", "such packets"},
        Field{"static_dma_packet_percent", &S::static_dma_packet_percent, "share",
              "share of all packets"},
        Field{"static_dma_size", &S::static_dma_size, "bytes", "bytes of such packets"},
        Field{"static_dma_size_percent", &S::static_dma_size_percent, "share",
              "share of the bytes of all packets"},
        Field{"dynamic_dma_active_time_percent", &S::dynamic_dma_active_time_percent, "share",
              "software_dynamic and hardware_dynamic together"},
        Field{"dynamic_dma_packet_percent", &S::dynamic_dma_packet_percent, "share", "likewise"},
        Field{"dynamic_dma_size_percent", &S::dynamic_dma_size_percent, "share", "likewise"},
        Field{"software_dynamic_dma_active_time", &S::software_dynamic_dma_active_time, "s",
              "time with a packet moving whose descriptor GpSimd wrote"},
        Field{"software_dynamic_dma_active_time_percent",
              &S::software_dynamic_dma_active_time_percent, "share", "share of dma_active_time"},
        Field{"software_dynamic_dma_packet_count", &S::software_dynamic_dma_packet_count, "count",
              "such packets"},
        Field{"software_dynamic_dma_packet_percent", &S::software_dynamic_dma_packet_percent,
              "share", "share of all packets"},
        Field{"software_dynamic_dma_size", &S::software_dynamic_dma_size, "bytes",
              "bytes of such packets"},
        Field{"software_dynamic_dma_size_percent", &S::software_dynamic_dma_size_percent, "share",
              "share of the bytes of all packets"},
        Field{"hardware_dynamic_dma_active_time", &S::hardware_dynamic_dma_active_time, "s",
              "time with a packet moving whose descriptor a hardware DGE made"},
        Field{"hardware_dynamic_dma_active_time_percent",
              &S::hardware_dynamic_dma_active_time_percent, "share", "share of dma_active_time"},
        Field{"hardware_dynamic_dma_packet_count", &S::hardware_dynamic_dma_packet_count, "count",
              "such packets"},
        Field{"hardware_dynamic_dma_packet_percent", &S::hardware_dynamic_dma_packet_percent,
              "share", "share of all packets"},
        Field{"hardware_dynamic_dma_size", &S::hardware_dynamic_dma_size, "bytes",
              "bytes of such packets"},
        Field{"hardware_dynamic_dma_size_percent", &S::hardware_dynamic_dma_size_percent, "share",
              "share of the bytes of all packets"},
        Field{"matmul_instruction_count", &S::matmul_instruction_count, "count",
              "MATMUL instructions; an fp32 product counts twice"},
        Field{"activate_instruction_time", &S::activate_instruction_time, "s",
              "sum of the durations of ACTIVATE"},
        Field{"activate_instruction_count", &S::activate_instruction_count, "count",
              "ACTIVATE instructions"}};
  }
};

/// The summary of one core. total: the time that shares refer to.
Summary summarize(const CoreResult& core, const MachineConfig& machine, const isa::TraceInfo& trace,
                  Time total);

nlohmann::ordered_json to_json(const Summary& summary);

/// `tensor`, `vector`, ... as the profiler's names and our report have them.
std::string lower_name(isa::Engine engine);

}  // namespace trn::sim
