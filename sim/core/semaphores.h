#pragma once

#include <array>
#include <boost/circular_buffer.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "isa/operand.h"
#include "sim/core/critical_path.h"
#include "sim/core/simulation.h"

namespace trn::sim {

/// Who writes a semaphore: the five engines in isa::Engine's order, then the DMA engines.
inline constexpr std::size_t kSemaphoreSources = isa::kEngines + 1;
inline constexpr std::uint8_t kDmaSource = isa::kEngines;

/// What waits decides how long a hand-over takes: an instruction in the engine, an instruction that
/// the sequencer itself executes, or the trigger of a DMA.
enum class WaiterKind : std::uint8_t { Compute, Control, Trigger };
inline constexpr std::size_t kWaiterKinds = 3;

/// From the end of the writer to the earliest start of the waiting instruction:
/// [source][waiting engine][kind].
using HandOverTable =
    std::array<std::array<std::array<Time, kWaiterKinds>, isa::kEngines>, kSemaphoreSources>;

/// A write to a semaphore that happens at `at`, which may lie ahead.
struct SemaphoreWrite {
  Time at = 0;
  std::uint64_t order = 0;  ///< position in its source's program: breaks ties within a source
  std::uint32_t value = 1;
  isa::UpdateKind kind = isa::UpdateKind::Increment;
  std::uint8_t source = 0;
  isa::Engine engine = isa::Engine::Tensor;  ///< whose stream holds the writing instruction
  std::uint64_t index = 0;                   ///< and where
  CriticalPath path{};                       ///< up to `at`
};

/// A resolved wait: the value is a number.
struct SemaphoreWait {
  isa::SemaphoreId semaphore = isa::kNoSemaphore;
  isa::WaitCondition condition = isa::WaitCondition::GreaterEqual;
  std::uint8_t engine = 0;
  WaiterKind kind = WaiterKind::Compute;
  std::int64_t value = 0;
  Time since = 0;  ///< not satisfied before this time
};

/// When a wait is satisfied and by which write.
struct Satisfied {
  Time at = kNever;                    ///< kNever: not by the writes known so far
  const SemaphoreWrite* by = nullptr;  ///< null: the condition held from before the wait
  Time met = 0;                        ///< since when it holds, as the waiter sees it
};

/// The semaphores and events of one NeuronCore. Writes carry their time, so an engine posts the end
/// of an instruction when it starts it, and no event is spent on completions. The result does not
/// depend on the order of posts: writes are ordered by (time, source, order).
class Semaphores {
 public:
  /// max_value: above it a write overflows, which is the program's fault (InputError; `describe`
  /// names the instruction at an index of an engine's stream).
  Semaphores(const HandOverTable& hand_over, std::uint32_t max_value,
             std::function<std::string(isa::Engine, std::uint64_t index)> describe);

  void post(isa::SemaphoreId id, const SemaphoreWrite& write);

  /// The earliest time >= wait.since at which the condition is seen to hold, by what is posted.
  [[nodiscard]] Satisfied evaluate(const SemaphoreWait& wait) const;

  /// Until forget(), each post to wait.semaphore moves `wake` to the time when the wait is met.
  void remember(const SemaphoreWait& wait, WakeUp& wake);
  void forget(const SemaphoreWait& wait, const WakeUp& wake);

  /// The value at the current time, all writes up to it applied.
  [[nodiscard]] std::int64_t value(isa::SemaphoreId id) const;

  /// The value when all that is posted has happened: of a program that has stopped.
  [[nodiscard]] std::int64_t last_value(isa::SemaphoreId id) const;

  /// Applies what is left, so that an overflow in the last writes is found. Call after the run.
  void finish();

 private:
  struct Waiter {
    SemaphoreWait wait;
    WakeUp* wake;
  };
  struct State {
    std::int64_t value = 0;                        // before the first write of `log`
    boost::circular_buffer<SemaphoreWrite> log{};  // ordered; the front goes when long past
    std::vector<Waiter> waiters{};
  };

  static std::int64_t applied(std::int64_t value, const SemaphoreWrite& write);
  void prune(isa::SemaphoreId id, State& state, Time before);

  HandOverTable hand_over_;
  Time horizon_ = 0;  // the longest hand-over: older writes look the same to every waiter
  std::int64_t max_value_;
  std::function<std::string(isa::Engine, std::uint64_t)> describe_;
  std::array<State, isa::kSemaphores + isa::kEvents> states_{};
};

}  // namespace trn::sim
