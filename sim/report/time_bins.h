#pragma once

#include <cstddef>
#include <vector>

#include "sim/core/time.h"

namespace trn::sim {

/// A rate over time, as its mean in bins of equal width. The width doubles whenever there would be
/// more than kMost bins, so memory does not follow the length of a run.
class TimeBins {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Of [from, to); what lies outside is left out. width: of a bin at first.
  TimeBins(Time from, Time to, Time width) : from_(from), to_(to), width_(width) {}

  /// The rate is higher by `rate` in [from, to).
  void add(Time from, Time to, double rate);

  [[nodiscard]] Time from() const { return from_; }
  [[nodiscard]] Time width() const { return width_; }
  /// Mean rate of each bin, up to the last one that is not 0.
  [[nodiscard]] std::vector<double> means() const;

 private:
  void grow(Time to);
  void settle();

  Time from_;
  Time to_;
  Time width_;
  std::vector<double> amounts_;  // rate x time
  std::vector<double> steps_;    // of the rate, at the start of a bin; for what fills bins entirely
};

}  // namespace trn::sim
