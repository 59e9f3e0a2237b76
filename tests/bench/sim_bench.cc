#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "isa/trace.h"
#include "sim/app/machine_lookup.h"
#include "sim/core/simulation.h"
#include "sim/machine/run_core.h"
#include "tests/bench/busy_core.h"

namespace trn {
namespace {

/// The yardstick: methods that do nothing but wake again, each with a period of its own.
class Ticker : public sc_core::sc_module {
 public:
  SC_HAS_PROCESS(Ticker);
  Ticker(const sc_core::sc_module_name& name, sim::Time period, std::uint64_t ticks)
      : sc_core::sc_module(name),
        period_(sc_core::sc_time::from_value(static_cast<sc_dt::uint64>(period))),
        left_(ticks) {
    SC_METHOD(tick);
  }

 private:
  void tick() {
    if (--left_ > 0) next_trigger(period_);
  }
  sc_core::sc_time period_;
  std::uint64_t left_;
};

constexpr int kTickers = 32;

void activate(std::uint64_t ticks_each) {
  sim::Simulation simulation;
  std::vector<std::unique_ptr<Ticker>> tickers;
  tickers.reserve(kTickers);
  for (int i = 0; i < kTickers; ++i)
    tickers.push_back(
        std::make_unique<Ticker>(fmt::format("t{}", i).c_str(), 1000 + 7 * i, ticks_each));
  simulation.run();
}

isa::Trace busy_trace(std::uint64_t rounds) {
  isa::Trace trace;
  trace.header.name = "busy core";
  trace.header.cores = {{0, 0, 0}};
  trace.code.resize(1);
  bench::busy_core(rounds, [&](isa::Engine engine, const isa::Instr& instr) {
    trace.code[0].streams[isa::index(engine)].push_back(instr);
  });
  return trace;
}

sim::Machine bench_machine() {
  return app::open_machine("trn2.3xlarge", {{"chip.semaphores.max_value", "2000000000"}});
}

/// User time of the process, which other processes disturb least.
double user_seconds(const std::function<void()>& work) {
  const auto now = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec) +
           1e-6 * static_cast<double>(usage.ru_utime.tv_usec);
  };
  const double start = now();
  work();
  return now() - start;
}

void kernel_activations(benchmark::State& state) {
  constexpr std::uint64_t kTicks = 50'000;
  for (auto _ : state) activate(kTicks);
  state.SetItemsProcessed(state.iterations() * kTickers * static_cast<std::int64_t>(kTicks));
}
BENCHMARK(kernel_activations)->Unit(benchmark::kMillisecond);

/// Decoding, lowering and running, from the bytes of a trace.
void run_busy_core(benchmark::State& state) {
  const auto rounds = static_cast<std::uint64_t>(state.range(0));
  const sim::Machine machine = bench_machine();
  const isa::TraceReader trace(isa::trace_bytes(busy_trace(rounds)), "bench");
  std::uint64_t instructions = 0;
  std::uint64_t events = 0;
  for (auto _ : state) {
    const sim::CoreResult result = sim::run_core(trace, machine.config, *machine.costs);
    instructions = result.instructions;
    events = result.events;
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(instructions));
  state.counters["activations_per_instruction"] =
      static_cast<double>(events) / static_cast<double>(instructions);
  state.counters["ns_per_instruction"] = benchmark::Counter(
      static_cast<double>(instructions) * 1e-9,
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(run_busy_core)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

/// Instructions simulated for each activation of the bare kernel, measured in turns.
void instructions_per_activation(benchmark::State& state) {
  constexpr std::uint64_t kRounds = 50'000;
  constexpr std::uint64_t kTicks = 30'000;
  const sim::Machine machine = bench_machine();
  const isa::TraceReader trace(isa::trace_bytes(busy_trace(kRounds)), "bench");
  double kernel = 0;
  double core = 0;
  std::uint64_t instructions = 0;
  for (auto _ : state) {
    kernel += user_seconds([] { activate(kTicks); });
    core += user_seconds(
        [&] { instructions = sim::run_core(trace, machine.config, *machine.costs).instructions; });
  }
  const auto runs = static_cast<double>(state.iterations());
  const double instruction_rate = static_cast<double>(instructions) * runs / core;
  const double activation_rate = static_cast<double>(kTicks) * kTickers * runs / kernel;
  state.counters["instructions_per_s"] = instruction_rate;
  state.counters["activations_per_s"] = activation_rate;
  state.counters["ratio"] = instruction_rate / activation_rate;
}
BENCHMARK(instructions_per_activation)->Unit(benchmark::kMillisecond)->Iterations(5);

/// How much longer ten times the instructions take: least user time of five runs each.
void ten_times_the_instructions(benchmark::State& state) {
  constexpr int kRuns = 5;
  constexpr std::uint64_t kRounds = 20'000;
  const sim::Machine machine = bench_machine();
  const isa::TraceReader one(isa::trace_bytes(busy_trace(kRounds)), "one");
  const isa::TraceReader ten(isa::trace_bytes(busy_trace(10 * kRounds)), "ten");
  const auto least = [&](const isa::TraceReader& trace) {
    double best = std::numeric_limits<double>::max();
    for (int i = 0; i < kRuns; ++i)
      best = std::min(best,
                      user_seconds([&] { sim::run_core(trace, machine.config, *machine.costs); }));
    return best;
  };
  for (auto _ : state) state.counters["times"] = least(ten) / least(one);
}
BENCHMARK(ten_times_the_instructions)->Unit(benchmark::kMillisecond)->Iterations(1);

}  // namespace
}  // namespace trn
