#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace trn::sim {

/// Simulated time in femtoseconds since the kernel's launch: the SystemC kernel's resolution, so a
/// value converts to sc_time without rounding. 64 bits last 2.5 hours.
using Time = std::int64_t;
inline constexpr Time kNever = std::numeric_limits<Time>::max();
inline constexpr double kFsPerNs = 1e6;
inline constexpr double kFsPerSecond = 1e15;

inline Time from_ns(double ns) { return std::llround(ns * kFsPerNs); }
constexpr double to_ns(Time time) { return static_cast<double>(time) / kFsPerNs; }

/// Duration of a number of cycles of a clock, rounded once: edges do not drift.
inline Time from_cycles(double cycles, double clock_hz) {
  return std::llround(cycles * (kFsPerSecond / clock_hz));
}

/// Time to move bytes at a rate.
inline Time from_bytes(double bytes, double bytes_per_second) {
  return std::llround(bytes * (kFsPerSecond / bytes_per_second));
}

}  // namespace trn::sim
