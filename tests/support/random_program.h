#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>

#include "isa/program.h"
#include "tests/support/program_builder.h"

namespace trn::test {

/// A program that uses all engines, memories and descriptor modes, and ends: each instruction waits
/// only for what comes before it in one common order. What its semaphores mean:
/// semaphore e < 5: updates of engine e; 8 + q: sixteen for each DMA of queue q.
struct RandomProgram {
  isa::Trace trace;
  std::uint64_t instructions = 0;  ///< executed, loops counted out
  std::uint64_t transfers = 0;
  std::uint64_t transfer_bytes = 0;
};

struct RandomOptions {
  std::size_t steps = 200;
  bool dma = true;
  bool one_ring = false;  ///< only Sync triggers DMAs
  bool loops = true;
  bool psum = true;  ///< engines meet in PSUM
};

class RandomProgramMaker {
 public:
  explicit RandomProgramMaker(std::uint32_t seed, RandomOptions options = {})
      : random_(seed), options_(options) {}

  RandomProgram make() {
    for (std::size_t step = 0; step < options_.steps; ++step) add_step();
    program_.trace = builder_.trace();
    return program_;
  }

 private:
  std::uint32_t number(std::uint32_t first, std::uint32_t last) {
    return first + static_cast<std::uint32_t>(random_() % (last - first + 1));
  }
  bool chance(std::uint32_t percent) { return number(0, 99) < percent; }
  template <class T, std::size_t N>
  T one_of(const std::array<T, N>& values) {
    return values[number(0, N - 1)];
  }

  void add_step() {
    const auto engine = one_of(isa::kAllEngines);
    builder_.on(engine);
    if (options_.loops && engine != isa::Engine::Sync && chance(5)) {
      add_loop(engine);
      return;
    }
    const bool transfer = options_.dma && (!options_.one_ring || engine == isa::Engine::Sync) &&
                          engine != isa::Engine::Tensor && engine != isa::Engine::Vector &&
                          (engine == isa::Engine::Sync ? chance(40) : chance(15));
    if (transfer) {
      add_dma(engine);
      return;
    }
    builder_.add(operation(engine));
    ++program_.instructions;
    add_wait();
    if (chance(40)) {
      builder_.updates(static_cast<isa::SemaphoreId>(engine));
      ++updates_[isa::index(engine)];
    }
  }

  void add_loop(isa::Engine engine) {
    const auto count = static_cast<std::int32_t>(number(0, 5));
    const std::uint32_t body = number(1, 4);
    builder_.loop(1, constant(count));
    for (std::uint32_t i = 0; i < body; ++i) builder_.add(operation(engine));
    builder_.end_loop();
    program_.instructions += static_cast<std::uint64_t>(count) * body;
  }

  void add_dma(isa::Engine engine) {
    constexpr std::array<std::uint32_t, 5> kPartitions = {1, 4, 16, 64, 128};
    constexpr std::array<std::uint32_t, 4> kBytes = {64, 512, 2048, 16'384};
    const std::uint32_t partitions = one_of(kPartitions);
    const std::uint32_t bytes = one_of(kBytes);
    const std::uint8_t queue = engine == isa::Engine::Sync     ? 0
                               : engine == isa::Engine::Scalar ? 1
                                                               : 2;
    const auto mode = engine == isa::Engine::GpSimd ? isa::DescriptorMode::SoftwareDge
                                                    : isa::DescriptorMode::HardwareDge;
    const isa::DmaCompletion completion = {static_cast<std::uint16_t>(8 + queue), 16};
    builder_.add(chance(60) ? dma_read(partitions, bytes, mode, queue, completion)
                            : dma_write(partitions, bytes, mode, queue, completion));
    add_wait();
    ++transfers_[queue];
    ++program_.instructions;
    ++program_.transfers;
    program_.transfer_bytes += std::uint64_t{partitions} * bytes;
  }

  /// Perhaps a wait of the instruction added last, for something that comes before it.
  void add_wait() {
    if (!chance(50)) return;
    const std::uint32_t source = number(0, 7);
    if (source < updates_.size()) {
      const std::uint32_t count = updates_[source];
      if (count > 0)
        builder_.waits(static_cast<isa::SemaphoreId>(source),
                       count - number(0, std::min(3U, count - 1)));
    } else {
      const std::uint32_t queue = source - static_cast<std::uint32_t>(updates_.size());
      const std::uint32_t count = transfers_[queue];
      if (count > 0)
        builder_.waits(static_cast<isa::SemaphoreId>(8 + queue),
                       16 * (count - number(0, std::min(1U, count - 1))));
    }
  }

  isa::Op operation(isa::Engine engine) {
    constexpr std::array<std::uint32_t, 5> kSizes = {1, 32, 128, 300, 512};
    const std::uint32_t elements = one_of(kSizes);
    const isa::Dtype dtype = chance(50) ? isa::Dtype::Bf16 : isa::Dtype::Fp32;
    const isa::Access result = sbuf(elements, dtype, kScratch + 4096 * number(0, 7));
    const isa::Access input = chance(20) ? sbuf(elements, dtype, kScratch + 4096 * number(0, 7))
                              : options_.psum && chance(40)
                                  ? psum(elements, dtype, bank(number(0, 7)))
                                  : sbuf(elements, dtype, 4096 * number(0, 7));
    switch (engine) {
      case isa::Engine::Tensor:
        if (chance(40)) return load_weights(number(1, 128), dtype);
        return matmul(elements, dtype);
      case isa::Engine::Vector:
        if (chance(30)) return tensor_tensor(input, sbuf(elements, dtype, 32'768), result);
        if (chance(30)) return tensor_scalar(input, result);
        return copy(input, result);
      case isa::Engine::Scalar: {
        if (chance(40)) return copy(input, result);
        constexpr std::array<isa::ActivationFunction, 4> kFunctions = {
            isa::ActivationFunction::Exp, isa::ActivationFunction::Tanh,
            isa::ActivationFunction::Relu, isa::ActivationFunction::Identity};
        isa::Activate op;
        op.src = input;
        op.dst = result;
        op.function = one_of(kFunctions);
        return op;
      }
      case isa::Engine::GpSimd:
        return copy(sbuf(elements, dtype), result);
      default:
        if (chance(20)) return isa::Drain{};
        if (chance(50)) return nop(number(0, 500));
        return isa::EventSemaphore{};
    }
  }

  std::mt19937 random_;
  RandomOptions options_;
  ProgramBuilder builder_;
  RandomProgram program_;
  std::array<std::uint32_t, isa::kEngines> updates_{};
  std::array<std::uint32_t, 3> transfers_{};
};

}  // namespace trn::test
