#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "isa/base/describe.h"
#include "sim/core/time.h"

namespace trn::sim {

/// What a stretch of the critical path was spent on. The first five follow isa::Engine.
enum class Resource : std::uint8_t {
  Tensor,
  Vector,
  Scalar,
  GpSimd,
  Sync,
  Dma,         ///< bytes moving
  DmaLatency,  ///< from a trigger to the first byte, and from the last one to the semaphore
  Semaphore,   ///< hand-over between engines
  Launch       ///< before an engine's first instruction
};
inline constexpr std::size_t kResources = 9;

/// How the time up to some event splits over resources along the chain of causes that led to it.
/// Every event has one deciding cause, so the parts sum to the event's time exactly.
struct CriticalPath {
  std::array<Time, kResources> spent{};

  void add(Resource resource, Time time) { spent[static_cast<std::size_t>(resource)] += time; }
  [[nodiscard]] Time total() const {
    Time sum = 0;
    for (Time part : spent) sum += part;
    return sum;
  }
};

}  // namespace trn::sim

namespace trn {
template <>
struct EnumNames<sim::Resource> {
  static constexpr std::array<std::string_view, sim::kResources> value = {
      "tensor", "vector", "scalar", "gpsimd", "sync", "dma", "dma_latency", "semaphore", "launch"};
};
}  // namespace trn
