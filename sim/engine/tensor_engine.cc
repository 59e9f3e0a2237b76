#include "sim/engine/tensor_engine.h"

#include <algorithm>
#include <utility>

namespace trn::sim {

TensorEngine::TensorEngine(const sc_core::sc_module_name& name, const TensorEngineConfig& config,
                           Time first_window_end, EngineContext& context, InstructionSource source,
                           std::int64_t rank)
    : Engine(name, isa::Engine::Tensor, config, context, std::move(source), rank),
      config_(config),
      clock_(config, first_window_end, context.observer) {}

Time TensorEngine::earliest(const Uop& uop) const {
  const Time delay = from_ns(config_.background_load_delay);
  if (uop.kind == UopKind::LoadWeights) return streamed_ ? stream_start_ + delay : 0;
  return loaded_ ? std::max(stream_free_, load_start_ + delay) : stream_free_;
}

Engine::Execution TensorEngine::execute(const Uop& uop, Time start, bool) {
  clock_.roll(start);
  return uop.kind == UopKind::LoadWeights ? load_weights(uop, start) : matmul(uop, start);
}

Engine::Execution TensorEngine::load_weights(const Uop& uop, Time start) {
  const bool streaming = start < stream_free_;
  load_start_ = start;
  load_cycles_ = uop.cycles;
  loaded_ = true;
  const double cycles = load_cycles_ + (streaming ? config_.load_report_busy_cycles
                                                  : config_.load_report_idle_cycles);
  const double fixed_ns = streaming ? config_.load_report_busy : config_.load_report_idle;
  const Time end = clock_.after(start, cycles) + from_ns(fixed_ns);
  return {end, end};
}

Engine::Execution TensorEngine::matmul(const Uop& uop, Time start) {
  Time effective = std::max(stream_free_, start - from_ns(config_.load_early));
  if (loaded_) {
    const double cycles =
        config_.load_to_stream_share * load_cycles_ + config_.load_to_stream_cycles;
    const Time loading =
        from_ns(config_.load_to_stream) + from_cycles(cycles, clock_.frequency_at(start));
    effective = std::max(effective, load_start_ + loading);
  } else {
    effective = std::max(effective, start);
  }
  const bool warm = clock_.warm_at(effective);
  double interval = uop.cycles + (warm ? config_.stream_gap_cycles : 0);
  if (loaded_)
    interval = std::max(interval, load_cycles_ + (warm ? config_.weights_switch_cycles : 0));
  stream_free_ =
      clock_.run(start, effective, interval, config_.activity_by_rows ? uop.array_share : 1);
  stream_start_ = std::max(start, effective);
  streamed_ = true;
  loaded_ = false;

  ++stats_.matmuls;
  stats_.hardware_flops += uop.flops;
  stats_.adjusted_hardware_flops += uop.adjusted_flops;
  if (uop.transpose) {
    stats_.transpose_flops += uop.flops;
    stats_.adjusted_transpose_flops += uop.adjusted_flops;
  }
  return {stream_free_,
          clock_.after(effective + from_ns(config_.drain), uop.cycles + config_.drain_cycles)};
}

TensorStats TensorEngine::tensor_stats(Time length) {
  TensorStats stats = stats_;
  stats.warm = clock_.warm_until(length);
  return stats;
}

}  // namespace trn::sim
