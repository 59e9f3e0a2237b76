#include "sim/core/semaphores.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn::sim {
namespace {

constexpr std::size_t kFirstCapacity = 8;

bool holds(isa::WaitCondition condition, std::int64_t value, std::int64_t expected) {
  switch (condition) {
    case isa::WaitCondition::GreaterEqual:
      return value >= expected;
    case isa::WaitCondition::Equal:
      return value == expected;
    case isa::WaitCondition::LessEqual:
      return value <= expected;
  }
  return false;
}

auto order_of(const SemaphoreWrite& write) {
  return std::tuple(write.at, write.source, write.order);
}

std::string name_of(isa::SemaphoreId id) {
  return id < isa::kFirstEvent ? fmt::format("semaphore {}", id)
                               : fmt::format("event {}", id - isa::kFirstEvent);
}

}  // namespace

Semaphores::Semaphores(const HandOverTable& hand_over, std::uint32_t max_value,
                       std::function<std::string(isa::Engine, std::uint64_t)> describe)
    : hand_over_(hand_over), max_value_(max_value), describe_(std::move(describe)) {
  for (const auto& source : hand_over_)
    for (const auto& engine : source)
      for (Time time : engine) horizon_ = std::max(horizon_, time);
}

std::int64_t Semaphores::applied(std::int64_t value, const SemaphoreWrite& write) {
  switch (write.kind) {
    case isa::UpdateKind::Increment:
      return value + 1;
    case isa::UpdateKind::Decrement:
      return value - 1;
    case isa::UpdateKind::Add:
      return value + write.value;
    case isa::UpdateKind::Subtract:
      return value - write.value;
    case isa::UpdateKind::Write:
      return write.value;
  }
  return value;
}

void Semaphores::prune(isa::SemaphoreId id, State& state, Time before) {
  const std::int64_t limit = id < isa::kFirstEvent ? max_value_ : 1;
  while (!state.log.empty() && state.log.front().at < before) {
    const SemaphoreWrite& write = state.log.front();
    state.value = applied(state.value, write);
    if (state.value < 0 || state.value > limit)
      throw InputError(
          describe_(write.engine, write.index),
          fmt::format("{} {} to {}, expected 0 to {}", name_of(id),
                      state.value < 0 ? "underflows" : "overflows", state.value, limit));
    state.log.pop_front();
  }
}

void Semaphores::post(isa::SemaphoreId id, const SemaphoreWrite& write) {
  State& state = states_[id];
  const Time now = Simulation::now();
  TRN_CHECK(write.at >= now, "semaphore {} written in the past: {} < {}", id, write.at, now);
  prune(id, state, now - horizon_);
  if (state.log.full()) state.log.set_capacity(std::max(kFirstCapacity, 2 * state.log.size()));
  auto place = state.log.end();
  while (place != state.log.begin() && order_of(write) < order_of(*std::prev(place))) --place;
  state.log.insert(place, write);
  for (const Waiter& waiter : state.waiters) {
    const Satisfied satisfied = evaluate(waiter.wait);
    if (satisfied.at == kNever) {
      waiter.wake->cancel();
    } else {
      waiter.wake->move(std::max(satisfied.at, now));
    }
  }
}

Satisfied Semaphores::evaluate(const SemaphoreWait& wait) const {
  const State& state = states_[wait.semaphore];
  std::int64_t value = state.value;
  Time seen_from = 0;  // when the waiter begins to see `value`
  const SemaphoreWrite* by = nullptr;
  Time met = 0;
  bool held = holds(wait.condition, value, wait.value);
  for (const SemaphoreWrite& write : state.log) {
    const Time seen_until = std::max(
        seen_from,
        write.at + hand_over_[write.source][wait.engine][static_cast<std::size_t>(wait.kind)]);
    if (held && seen_until > wait.since) break;
    value = applied(value, write);
    seen_from = seen_until;
    by = &write;
    const bool holds_now = holds(wait.condition, value, wait.value);
    if (holds_now && !held) met = seen_from;
    held = holds_now;
  }
  if (!held) return {};
  if (seen_from <= wait.since) return {wait.since, nullptr, met};
  return {seen_from, by, met};
}

void Semaphores::remember(const SemaphoreWait& wait, WakeUp& wake) {
  states_[wait.semaphore].waiters.push_back({wait, &wake});
}

void Semaphores::forget(const SemaphoreWait& wait, const WakeUp& wake) {
  std::erase_if(states_[wait.semaphore].waiters,
                [&](const Waiter& waiter) { return waiter.wake == &wake; });
}

std::int64_t Semaphores::value(isa::SemaphoreId id) const {
  const Time now = Simulation::now();
  std::int64_t value = states_[id].value;
  for (const SemaphoreWrite& write : states_[id].log) {
    if (write.at > now) break;
    value = applied(value, write);
  }
  return value;
}

std::int64_t Semaphores::last_value(isa::SemaphoreId id) const {
  std::int64_t value = states_[id].value;
  for (const SemaphoreWrite& write : states_[id].log) value = applied(value, write);
  return value;
}

void Semaphores::finish() {
  for (std::size_t id = 0; id < states_.size(); ++id)
    prune(static_cast<isa::SemaphoreId>(id), states_[id], kNever);
}

}  // namespace trn::sim
