#include "sim/core/simulation.h"

#include <utility>

#include "isa/base/check.h"

namespace trn::sim {

Simulation::Simulation() : previous_(sc_core::sc_curr_simcontext) {
  sc_core::sc_report_handler::set_actions(sc_core::SC_INFO, sc_core::SC_DO_NOTHING);
  // A program without instructions is none of the kernel's business.
  sc_core::sc_report_handler::set_actions(sc_core::SC_ID_NO_SC_START_ACTIVITY_,
                                          sc_core::SC_DO_NOTHING);
  context_ = std::make_unique<sc_core::sc_simcontext>();
  sc_core::sc_curr_simcontext = context_.get();
  sc_core::sc_default_global_context = context_.get();
  sc_core::sc_set_time_resolution(1, sc_core::SC_FS);
}

Simulation::~Simulation() {
  context_.reset();
  sc_core::sc_curr_simcontext = previous_;
  sc_core::sc_default_global_context = previous_;
}

void Simulation::run() {
  TRN_CHECK(sc_core::sc_curr_simcontext == context_.get(), "another simulation is alive");
  sc_core::sc_start();
  if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
}

void Simulation::fail(std::exception_ptr error) {
  if (!error_) error_ = std::move(error);
  sc_core::sc_stop();
}

}  // namespace trn::sim
