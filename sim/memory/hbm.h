#pragma once

#include <tlm_utils/multi_passthrough_target_socket.h>

#include <cstdint>
#include <systemc>
#include <tlm>

#include "sim/core/time.h"
#include "sim/memory/memory_config.h"

namespace trn::sim {

/// One stack of high-bandwidth memory: bytes at a rate, in the order in which they are asked for.
/// A TLM target, so that a finer DRAM model can stand in its place.
class HbmStack : public sc_core::sc_module {
 public:
  HbmStack(const sc_core::sc_module_name& name, const HbmConfig& config);

  /// Any number of initiators. b_transport adds to the delay what the stack's rate asks for, never
  /// waits, and looks at no data.
  tlm_utils::multi_passthrough_target_socket<HbmStack> socket{"socket"};

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  void transport(int initiator, tlm::tlm_generic_payload& payload, sc_core::sc_time& delay);

  double bandwidth_;
  std::uint64_t size_;
  Time free_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace trn::sim
