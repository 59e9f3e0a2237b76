#include "sim/memory/hbm.h"

#include <algorithm>

#include "sim/core/simulation.h"

namespace trn::sim {

HbmStack::HbmStack(const sc_core::sc_module_name& name, const HbmConfig& config)
    : sc_core::sc_module(name), bandwidth_(config.bandwidth_per_stack), size_(config.stack_size) {
  socket.register_b_transport(this, &HbmStack::transport);
}

void HbmStack::transport(int /*initiator*/, tlm::tlm_generic_payload& payload,
                         sc_core::sc_time& delay) {
  if (payload.get_data_length() > size_) {
    payload.set_response_status(tlm::TLM_ADDRESS_ERROR_RESPONSE);
    return;
  }
  const Time from = Simulation::now() + static_cast<Time>(delay.value());
  free_ = std::max(free_, from) + from_bytes(payload.get_data_length(), bandwidth_);
  bytes_ += payload.get_data_length();
  delay += sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(free_ - from));
  payload.set_response_status(tlm::TLM_OK_RESPONSE);
}

}  // namespace trn::sim
