#pragma once

#include "sim/engine/activity_clock.h"
#include "sim/engine/engine.h"

namespace trn::sim {

/// The Tensor engine: a PE array that streams the moving tile of one MATMUL while LDWEIGHTS loads
/// the next stationary tile behind it. Source: docs/sources.md#profiles-tensor.
class TensorEngine : public Engine {
 public:
  TensorEngine(const sc_core::sc_module_name& name, const TensorEngineConfig& config,
               Time first_window_end, EngineContext& context, InstructionSource source,
               std::int64_t rank);

  /// `length` closes the account.
  [[nodiscard]] TensorStats tensor_stats(Time length);

 protected:
  [[nodiscard]] Time earliest(const Uop& uop) const override;
  Execution execute(const Uop& uop, Time start, bool waited) override;

 private:
  Execution load_weights(const Uop& uop, Time start);
  Execution matmul(const Uop& uop, Time start);

  TensorEngineConfig config_;
  ActivityClock clock_;
  Time stream_free_ = 0;   // the array takes the next moving tile
  Time stream_start_ = 0;  // of the last MATMUL, reported or effective, the later
  Time load_start_ = 0;    // of the last LDWEIGHTS
  double load_cycles_ = 0;
  bool streamed_ = false;  // a MATMUL has run
  bool loaded_ = false;    // a LDWEIGHTS came since the last MATMUL
  TensorStats stats_{};
};

}  // namespace trn::sim
