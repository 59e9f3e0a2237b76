#pragma once

#include <array>
#include <cstddef>

#include "sim/core/observer.h"
#include "sim/core/time.h"
#include "sim/engine/engine_config.h"

namespace trn::sim {

/// The Tensor engine's clock: cold at first; at the end of each window of fixed length it rises
/// when the array was busy enough and falls back when it was idle enough. The windows run freely.
/// Source: docs/sources.md#profiles-ham.
class ActivityClock {
 public:
  /// first_window_end: of the first window that ends after time 0, 0 < first_window_end <= window.
  ActivityClock(const TensorEngineConfig& config, Time first_window_end, Observer* observer);

  /// Decides all windows that end by `to`; nothing is busy up to there but what run() said.
  void roll(Time to);

  /// Holds the array from `start` for `cycles`; the time since `reported` counts as busy too. Calls
  /// do not go back in time. share: how much of the array is at work, 0 to 1. Returns the end.
  Time run(Time reported, Time start, double cycles, double share = 1);

  /// When `cycles` have passed since `from`. Looks back over the last switches; ahead of the last
  /// run() the clock is taken to stay.
  [[nodiscard]] Time after(Time from, double cycles) const;

  [[nodiscard]] bool warm_at(Time at) const;
  /// Cycles become time at this rate (Hz).
  [[nodiscard]] double frequency_at(Time at) const { return warm_at(at) ? warm_hz_ : cold_hz_; }

  /// Time spent warm up to `end`, which is not before the last run().
  [[nodiscard]] Time warm_until(Time end);

 private:
  static constexpr std::size_t kRemembered = 4;  // switches; looking back reaches one window
  struct Switch {
    Time at = 0;
    bool warm = false;
  };

  void close_window();
  void busy(Time from, Time to, double share);

  bool gating_;
  double warm_hz_;
  double cold_hz_;
  Time window_;
  double raise_;
  double lower_;
  Observer* observer_;
  Time window_end_;
  Time busy_in_window_ = 0;
  Time busy_until_ = 0;
  bool warm_;
  std::array<Switch, kRemembered> switches_{};  // newest first
  Time warm_total_ = 0;
  Time warm_since_ = 0;
};

}  // namespace trn::sim
