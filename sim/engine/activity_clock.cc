#include "sim/engine/activity_clock.h"

#include <algorithm>

namespace trn::sim {

ActivityClock::ActivityClock(const TensorEngineConfig& config, Time first_window_end,
                             Observer* observer)
    : gating_(config.clock_gating),
      warm_hz_(config.clock),
      cold_hz_(config.cold_clock),
      window_(from_ns(config.activity_window)),
      raise_(config.activity_raise),
      lower_(config.activity_lower),
      observer_(observer),
      window_end_(first_window_end),
      warm_(!config.clock_gating) {
  switches_.fill({0, warm_});
}

void ActivityClock::close_window() {
  const double share = static_cast<double>(busy_in_window_) / static_cast<double>(window_);
  const bool warm = warm_ ? share >= lower_ : share >= raise_;
  if (warm != warm_) {
    std::rotate(switches_.begin(), switches_.end() - 1, switches_.end());
    switches_.front() = {window_end_, warm};
    if (warm_) warm_total_ += window_end_ - warm_since_;
    warm_since_ = window_end_;
    warm_ = warm;
    if (observer_ != nullptr) observer_->on_clock({window_end_, warm});
  }
  busy_in_window_ = 0;
  window_end_ += window_;
}

void ActivityClock::roll(Time to) {
  if (!gating_) return;
  while (window_end_ <= to) {
    if (!warm_ && busy_in_window_ == 0) {  // nothing changes in idle windows: pass them at once
      window_end_ += (to - window_end_) / window_ * window_ + window_;
    } else {
      close_window();
    }
  }
}

void ActivityClock::busy(Time from, Time to, double share) {
  from = std::max(from, busy_until_);
  while (from < to) {
    roll(from);
    const Time until = gating_ ? std::min(to, window_end_) : to;
    busy_in_window_ += static_cast<Time>(static_cast<double>(until - from) * share);
    from = until;
  }
  busy_until_ = std::max(busy_until_, to);
}

Time ActivityClock::run(Time reported, Time start, double cycles, double share) {
  busy(reported, start, share);
  roll(start);
  Time now = start;
  for (;;) {
    const double hz = warm_ ? warm_hz_ : cold_hz_;
    const Time end = now + from_cycles(cycles, hz);
    if (!gating_ || end <= window_end_) {
      busy(now, end, share);
      return end;
    }
    cycles -= static_cast<double>(window_end_ - now) * hz / kFsPerSecond;
    now = window_end_;
    busy(start, now, share);
    roll(now);
  }
}

bool ActivityClock::warm_at(Time at) const {
  for (const Switch& change : switches_)
    if (change.at <= at) return change.warm;
  return switches_.back().warm;
}

Time ActivityClock::after(Time from, double cycles) const {
  for (;;) {
    const double hz = frequency_at(from);
    const Time end = from + from_cycles(cycles, hz);
    Time next = kNever;  // switch after `from`
    for (const Switch& change : switches_)
      if (change.at > from) next = change.at;
    if (end <= next) return end;
    cycles -= static_cast<double>(next - from) * hz / kFsPerSecond;
    from = next;
  }
}

Time ActivityClock::warm_until(Time end) {
  roll(end);
  return warm_total_ + (warm_ ? end - warm_since_ : 0);
}

}  // namespace trn::sim
