#pragma once

#include <optional>

#include "sim/engine/compute_engine.h"

namespace trn::sim {

/// The Scalar engine: a pipeline with a table of functions, of which one set is loaded at a time.
class ScalarEngine : public ComputeEngine {
 public:
  /// table_load: what an ACT_TABLE_LOAD costs, for programs that leave it to the compiler.
  ScalarEngine(const sc_core::sc_module_name& name, const ScalarEngineConfig& config,
               const PipelineCost& table_load, EngineContext& context, InstructionSource source,
               std::int64_t rank);

  [[nodiscard]] const ScalarStats& scalar_stats() const { return stats_; }

 protected:
  Execution execute(const Uop& uop, Time start, bool waited) override;

 private:
  bool implicit_load_;
  PipelineCost table_load_;
  std::optional<std::uint32_t> loaded_;  // function set
  ScalarStats stats_{};
};

}  // namespace trn::sim
