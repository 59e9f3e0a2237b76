#include "sim/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/report/fields_json.h"

namespace trn::sim {
namespace {

/// The clock that the profiler counts cycles in. Source: docs/sources.md#profiler-summary.
constexpr double kProfilerClockHz = 1.2e9;

double seconds(Time time) { return static_cast<double>(time) / kFsPerSecond; }

std::uint64_t cycles(Time time) {
  return static_cast<std::uint64_t>(seconds(time) * kProfilerClockHz);
}

std::optional<double> ratio(double part, double whole) {
  if (!(whole > 0)) return std::nullopt;
  return part / whole;
}

std::optional<double> ratio(std::uint64_t part, std::uint64_t whole) {
  return ratio(static_cast<double>(part), static_cast<double>(whole));
}

void add_tensor_sizes(const isa::TraceInfo& trace, Summary& s) {
  std::uint64_t inputs = 0;
  std::uint64_t weights = 0;
  std::uint64_t outputs = 0;
  bool any = false;
  for (const isa::Tensor& tensor : trace.tensors) {
    if (tensor.memory != isa::Memory::Hbm) continue;
    any = true;
    switch (tensor.kind) {
      case isa::TensorKind::Input:
        inputs += tensor.bytes;
        break;
      case isa::TensorKind::Output:
        outputs += tensor.bytes;
        break;
      case isa::TensorKind::Weight:
      case isa::TensorKind::Constant:
        weights += tensor.bytes;
        break;
      case isa::TensorKind::Internal:
        break;
    }
  }
  if (!any) return;
  s.weight_size_bytes = weights;
  s.inputs_and_weights_size_bytes = inputs + weights;
  s.inputs_outputs_weights_size_bytes = inputs + weights + outputs;
}

void add_dma(const DmaStats& dma, double total, Summary& s) {
  s.hbm_read_bytes = dma.hbm_read_bytes;
  s.hbm_write_bytes = dma.hbm_write_bytes;
  s.spill_save_bytes = dma.spill_save_bytes;
  s.spill_reload_bytes = dma.spill_reload_bytes;
  s.sbuf_read_bytes += dma.sbuf_read_bytes;
  s.sbuf_write_bytes += dma.sbuf_write_bytes;
  s.dma_queue_count = dma.queues;
  s.dma_active_time = seconds(dma.active);
  s.dma_active_cycles = cycles(dma.active);
  s.dma_active_time_percent = ratio(s.dma_active_time, total);
  s.dma_packet_time = seconds(dma.packet_time);
  s.dma_transfer_time = seconds(dma.transfer_time);
  s.dma_transfer_count = dma.transfers;
  s.dma_transfer_total_bytes = dma.transfer_bytes;
  s.dma_transfer_average_bytes = ratio(dma.transfer_bytes, dma.transfers);

  std::uint64_t packets = 0;
  std::uint64_t bytes = 0;
  for (const DmaModeStats& mode : dma.modes) {
    packets += mode.packets;
    bytes += mode.bytes;
  }
  const DmaModeStats& fixed = dma.modes[static_cast<std::size_t>(isa::DescriptorMode::Static)];
  const DmaModeStats& soft = dma.modes[static_cast<std::size_t>(isa::DescriptorMode::SoftwareDge)];
  const DmaModeStats& hard = dma.modes[static_cast<std::size_t>(isa::DescriptorMode::HardwareDge)];
  s.static_dma_active_time = seconds(fixed.active);
  s.static_dma_packet_count = fixed.packets;
  s.static_dma_size = fixed.bytes;
  s.static_dma_active_time_percent = ratio(s.static_dma_active_time, s.dma_active_time);
  s.static_dma_packet_percent = ratio(fixed.packets, packets);
  s.static_dma_size_percent = ratio(fixed.bytes, bytes);
  s.software_dynamic_dma_active_time = seconds(soft.active);
  s.software_dynamic_dma_packet_count = soft.packets;
  s.software_dynamic_dma_size = soft.bytes;
  s.software_dynamic_dma_active_time_percent =
      ratio(s.software_dynamic_dma_active_time, s.dma_active_time);
  s.software_dynamic_dma_packet_percent = ratio(soft.packets, packets);
  s.software_dynamic_dma_size_percent = ratio(soft.bytes, bytes);
  s.hardware_dynamic_dma_active_time = seconds(hard.active);
  s.hardware_dynamic_dma_packet_count = hard.packets;
  s.hardware_dynamic_dma_size = hard.bytes;
  s.hardware_dynamic_dma_active_time_percent =
      ratio(s.hardware_dynamic_dma_active_time, s.dma_active_time);
  s.hardware_dynamic_dma_packet_percent = ratio(hard.packets, packets);
  s.hardware_dynamic_dma_size_percent = ratio(hard.bytes, bytes);
  // The profiler adds the two kinds, without taking their overlap off.
  s.dynamic_dma_active_time_percent = ratio(
      s.software_dynamic_dma_active_time + s.hardware_dynamic_dma_active_time, s.dma_active_time);
  s.dynamic_dma_packet_percent = ratio(soft.packets + hard.packets, packets);
  s.dynamic_dma_size_percent = ratio(soft.bytes + hard.bytes, bytes);
}

void add_utilisation(const MachineConfig& machine, Summary& s) {
  const double peak_flops = 2.0 * isa::kPartitions * isa::kPartitions * machine.chip.tensor.clock;
  const double bandwidth = machine.chip.hbm.bandwidth_per_stack;
  const auto hbm_bytes = static_cast<double>(s.hbm_read_bytes + s.hbm_write_bytes);
  const double useful = s.hardware_flops - s.transpose_flops;
  s.peak_flops_bandwidth_ratio = peak_flops / bandwidth;
  s.mm_arithmetic_intensity = ratio(useful, hbm_bytes);
  s.mfu_inst_estimated_percent = ratio(useful, peak_flops * s.total_time);
  s.mfu_estimated_percent = s.mfu_inst_estimated_percent;
  s.hfu_estimated_percent = ratio(s.hardware_flops, peak_flops * s.total_time);
  s.mbu_estimated_percent = ratio(hbm_bytes, s.total_time * bandwidth);
  if (s.mm_arithmetic_intensity) {
    s.mfu_inst_max_achievable_estimated_percent =
        std::min(1.0, *s.mm_arithmetic_intensity / s.peak_flops_bandwidth_ratio);
    s.mfu_max_achievable_estimated_percent = s.mfu_inst_max_achievable_estimated_percent;
  }
  if (s.inputs_and_weights_size_bytes) {
    s.mbu_min_read_util_percent =
        ratio(static_cast<double>(*s.inputs_and_weights_size_bytes), s.total_time * bandwidth);
  }
}

}  // namespace

std::string lower_name(isa::Engine engine) {
  std::string name(name_of(engine));
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

Summary summarize(const CoreResult& core, const MachineConfig& machine, const isa::TraceInfo& trace,
                  Time total) {
  Summary s;
  s.instance_type = machine.system.instance;
  s.total_time = seconds(total);
  s.neuroncore_cycle_count = cycles(total);
  s.hardware_flops = core.tensor.hardware_flops;
  s.transpose_flops = core.tensor.transpose_flops;
  s.adjusted_hardware_flops = core.tensor.adjusted_hardware_flops;
  s.adjusted_transpose_flops = core.tensor.adjusted_transpose_flops;
  s.matmul_instruction_count = core.tensor.matmuls;
  s.activate_instruction_time = seconds(core.scalar.activate_time);
  s.activate_instruction_count = core.scalar.activates;
  for (isa::Engine engine : isa::kAllEngines) {
    const EngineStats& stats = core.engines[isa::index(engine)];
    EngineSummary& e = s.engines[isa::index(engine)];
    e.instruction_time = seconds(stats.instruction_time);
    e.active_time = seconds(stats.active);
    e.active_time_percent = ratio(e.active_time, s.total_time);
    e.instruction_count = stats.instructions;
    s.sbuf_read_bytes += stats.sbuf_read_bytes;
    s.sbuf_write_bytes += stats.sbuf_write_bytes;
    s.psum_read_bytes += stats.psum_read_bytes;
    s.psum_write_bytes += stats.psum_write_bytes;
    s.psum_read_sbuf_write_count += stats.psum_read_sbuf_write_count;
    s.psum_read_sbuf_write_bytes += stats.psum_read_sbuf_write_bytes;
  }
  add_tensor_sizes(trace, s);
  add_dma(core.dma, s.total_time, s);
  add_utilisation(machine, s);
  return s;
}

nlohmann::ordered_json to_json(const Summary& summary) {
  nlohmann::ordered_json json = fields_json(summary);
  for (isa::Engine engine : isa::kAllEngines) {
    const nlohmann::ordered_json fields = fields_json(summary.engines[isa::index(engine)]);
    for (const auto& [name, value] : fields.items())
      json[fmt::format("{}_engine_{}", lower_name(engine), name)] = value;
  }
  return json;
}

}  // namespace trn::sim
