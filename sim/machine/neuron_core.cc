#include "sim/machine/neuron_core.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/base/error.h"

namespace trn::sim {
namespace {

/// When the first window of the Tensor clock ends, from the kernel's start: 0 < t <= window. The
/// phase is counted from the start of the runtime's prologue.
Time first_window_end(const MachineConfig& config) {
  const Time window = from_ns(config.chip.tensor.activity_window);
  const Time phase =
      from_ns(config.tensor.activity_window_phase) - from_ns(config.chip.runtime.prologue);
  const Time offset = (phase % window + window) % window;
  return offset == 0 ? window : offset;
}

constexpr std::array<const char*, isa::kEngines> kModuleNames = {"tensor", "vector", "scalar",
                                                                 "gpsimd", "sync"};

}  // namespace

NeuronCore::NeuronCore(const sc_core::sc_module_name& name, const MachineConfig& config,
                       const CoreSetup& setup, Simulation& simulation, HbmStack& hbm)
    : sc_core::sc_module(name),
      config_(config),
      binding_(setup.binding),
      lowering_(config.chip, setup.costs),
      semaphores_(
          hand_over_table(config.chip.semaphores), config.chip.semaphores.max_value,
          [this](isa::Engine engine, std::uint64_t index) { return describe(engine, index); }),
      shared_(config.chip.psum.bank_conflict) {
  const ChipConfig& chip = config.chip;
  const auto make_dma = [&] {
    dma_ =
        std::make_unique<DmaSystem>("dma", chip.dma, simulation, semaphores_, hbm, setup.observer);
  };
  if (!setup.reverse_construction) make_dma();
  // The engines refer to the DMA system through the context, which is filled when both exist.
  context_ = std::make_unique<EngineContext>(EngineContext{
      simulation, semaphores_, shared_, setup.code.info(), dma_.get(), setup.observer, 0,
      setup.time_limit, chip.sbuf.partition_size, chip.psum.partition_size, chip.psum.bank_size});
  if (chip.fetch.model)
    context_->fetch = from_bytes(chip.fetch.instruction_bytes, chip.fetch.bandwidth);
  for (std::size_t i = 0; i < isa::kEngines; ++i) {
    const std::size_t number = setup.reverse_construction ? isa::kEngines - 1 - i : i;
    engines_[number] = make_engine(isa::kAllEngines[number], setup);
  }
  if (setup.reverse_construction) make_dma();
  context_->dma = dma_.get();
}

std::unique_ptr<Engine> NeuronCore::make_engine(isa::Engine id, const CoreSetup& setup) {
  const ChipConfig& chip = config_.chip;
  InstructionSource source(setup.code, binding_.program, id, lowering_);
  const char* name = kModuleNames[isa::index(id)];
  switch (id) {
    case isa::Engine::Tensor: {
      auto engine = std::make_unique<TensorEngine>(name, chip.tensor, first_window_end(config_),
                                                   *context_, std::move(source), binding_.rank);
      tensor_ = engine.get();
      return engine;
    }
    case isa::Engine::Scalar: {
      auto engine = std::make_unique<ScalarEngine>(name, chip.scalar, lowering_.table_load(),
                                                   *context_, std::move(source), binding_.rank);
      scalar_ = engine.get();
      return engine;
    }
    default: {
      const EngineConfig& config = id == isa::Engine::Vector   ? chip.vector
                                   : id == isa::Engine::GpSimd ? chip.gpsimd
                                                               : chip.sync;
      return std::make_unique<ComputeEngine>(name, id, config, *context_, std::move(source),
                                             binding_.rank);
    }
  }
}

std::string NeuronCore::describe(isa::Engine engine, std::uint64_t index) {
  return engines_[isa::index(engine)]->describe(index);
}

CoreResult NeuronCore::result() {
  std::string stuck;
  Time stopped = std::max(Simulation::now(), dma_->last_completion());
  for (const auto& engine : engines_) {
    stopped = std::max(stopped, engine->last_end());
    if (engine->finished()) continue;
    stuck += fmt::format("{}{}", stuck.empty() ? "" : "\n  ", engine->waiting_for());
  }
  if (!stuck.empty())
    throw DeadlockError(fmt::format("the program stopped at {:.3f} us; who waits for what:\n  {}",
                                    to_ns(stopped) * 1e-3, stuck));
  semaphores_.finish();

  CoreResult result;
  result.core = binding_.core;
  result.chip = binding_.core / config_.chip.cores;
  result.length = dma_->last_completion();
  result.critical_path = dma_->last_path();
  for (const auto& engine : engines_) {
    if (engine->last_end() > result.length) {
      result.length = engine->last_end();
      result.critical_path = engine->last_path();
    }
  }
  for (const auto& engine : engines_) {
    EngineStats& stats = result.engines[isa::index(engine->id())];
    stats = engine->stats(result.length);
    result.instructions += stats.instructions;
    result.events += engine->activations();
    for (const StallAt& stall : engine->stalls()) result.stalls.push_back(stall);
    result.sbuf.peak_bytes = std::max(result.sbuf.peak_bytes, engine->sbuf_peak());
    result.psum.peak_bytes = std::max(result.psum.peak_bytes, engine->psum_peak());
  }
  result.sbuf.capacity_bytes = config_.chip.sbuf.partition_size;
  result.psum.capacity_bytes = config_.chip.psum.partition_size;
  result.tensor = tensor_->tensor_stats(result.length);
  result.scalar = scalar_->scalar_stats();
  result.dma = dma_->stats();
  result.assumed_costs = lowering_.assumed_costs();
  return result;
}

}  // namespace trn::sim
