#include "sim/engine/scalar_engine.h"

#include <utility>

namespace trn::sim {

ScalarEngine::ScalarEngine(const sc_core::sc_module_name& name, const ScalarEngineConfig& config,
                           const PipelineCost& table_load, EngineContext& context,
                           InstructionSource source, std::int64_t rank)
    : ComputeEngine(name, isa::Engine::Scalar, config, context, std::move(source), rank),
      implicit_load_(config.implicit_table_load),
      table_load_(table_load) {}

Engine::Execution ScalarEngine::execute(const Uop& uop, Time start, bool waited) {
  if (uop.kind == UopKind::LoadTable) {
    implicit_load_ = false;  // the program looks after its tables
    ++stats_.table_loads;
  }
  Time load = 0;
  if (uop.activate && implicit_load_ && uop.function_set != kNoFunctionSet &&
      loaded_ != uop.function_set) {
    loaded_ = uop.function_set;
    ++stats_.table_loads;
    load = table_load_.latency;
  }
  Execution execution = ComputeEngine::execute(uop, start + load, waited && load == 0);
  if (uop.activate) {
    ++stats_.activates;
    stats_.activate_time += execution.end - start;
  }
  return execution;
}

}  // namespace trn::sim
