#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <systemc>

#include "sim/core/time.h"

namespace trn::sim {

/// A SystemC kernel of its own: fresh when made, gone when destroyed, so that any number of
/// simulations follow each other in one process. One is alive at a time; models live inside it and
/// are destroyed before it.
class Simulation {
 public:
  Simulation();
  ~Simulation();
  Simulation(const Simulation&) = delete;
  Simulation& operator=(const Simulation&) = delete;

  /// Runs until no event is left. Rethrows what a guarded process threw.
  void run();

  /// Runs a process body; an exception stops the kernel and reaches the caller of run(), because
  /// the kernel itself would turn it into a report and drop its type.
  template <class Body>
  void guard(Body&& body) {
    try {
      body();
    } catch (...) {
      fail(std::current_exception());
    }
  }

  [[nodiscard]] static Time now() { return static_cast<Time>(sc_core::sc_time_stamp().value()); }

 private:
  void fail(std::exception_ptr error);

  std::unique_ptr<sc_core::sc_simcontext> context_;
  sc_core::sc_simcontext* previous_;
  std::exception_ptr error_;
};

/// One event that wakes a block; only the earliest request counts until it fires.
class WakeUp {
 public:
  explicit WakeUp(const char* name) : event_(name) {}

  /// Asks to be woken at `when`, never in the past. Keeps an earlier request that is pending.
  void at(Time when) {
    const Time now = Simulation::now();
    if (pending_ <= when && pending_ > now) return;
    pending_ = when;
    event_.cancel();
    event_.notify(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(when - now)));
  }
  /// Asks to be woken later in this instant.
  void soon() {
    pending_ = Simulation::now();
    event_.notify(sc_core::SC_ZERO_TIME);
  }
  /// Moves the request to `when`, later or earlier.
  void move(Time when) {
    if (pending_ == when) return;
    pending_ = kNever;
    at(when);
  }
  void cancel() {
    pending_ = kNever;
    event_.cancel();
  }
  /// To be called first when woken: a request up to now has been served.
  void expire(Time now) {
    if (pending_ <= now) pending_ = kNever;
  }

  [[nodiscard]] const sc_core::sc_event& event() const { return event_; }

 private:
  sc_core::sc_event event_;
  Time pending_ = kNever;
};

}  // namespace trn::sim
