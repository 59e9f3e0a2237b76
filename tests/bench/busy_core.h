#pragma once

#include <cstdint>
#include <utility>

#include "isa/program.h"

namespace trn::bench {

inline isa::Access tile(isa::Memory memory, std::int64_t offset, std::uint32_t columns) {
  isa::Access access;
  access.memory = memory;
  access.dtype = memory == isa::Memory::Psum ? isa::Dtype::Fp32 : isa::Dtype::Bf16;
  access.partitions = 128;
  access.dims = 1;
  access.offset = offset;
  access.free[0] = {1, columns};
  return access;
}

/// All engines at work, each on the result of another: weights, products, a reduction of each
/// product, a copy of that, an index pattern beside it, and Sync counting along. Six instructions a
/// round; semaphores count rounds. sink(engine, instr) takes them, each engine's in order.
template <class Sink>
void busy_core(std::uint64_t rounds, Sink&& sink) {
  constexpr isa::SemaphoreId kProduct = 0;
  constexpr isa::SemaphoreId kReduced = 1;
  constexpr isa::SemaphoreId kCopied = 2;
  constexpr isa::SemaphoreId kIndexed = 3;
  const auto add = [&](isa::Engine engine, isa::Op op, isa::SemaphoreId wait, std::uint64_t value,
                       isa::SemaphoreId update) {
    isa::Instr instr;
    instr.op = std::move(op);
    instr.sync.wait.semaphore = wait;
    instr.sync.wait.value = static_cast<std::int64_t>(value);
    instr.sync.update.semaphore = update;
    sink(engine, instr);
  };
  for (std::uint64_t i = 0; i < rounds; ++i) {
    const auto bank = static_cast<std::int64_t>(i % 8 * 2048);
    isa::LdWeights weights;
    weights.src = tile(isa::Memory::Sbuf, 0, 128);
    isa::Matmul matmul;
    matmul.src = tile(isa::Memory::Sbuf, 4096, 128);
    matmul.dst = tile(isa::Memory::Psum, bank, 128);
    isa::TensorReduce reduce;
    reduce.src = tile(isa::Memory::Psum, bank, 128);
    reduce.dst = tile(isa::Memory::Sbuf, 8192, 1);
    isa::Copy copy;
    copy.src = tile(isa::Memory::Sbuf, 8192, 1);
    copy.dst = tile(isa::Memory::Sbuf, 12288, 1);
    isa::Iota iota;
    iota.dst = tile(isa::Memory::Sbuf, 16384, 16);
    iota.pattern.dims = 1;
    iota.pattern.steps[0] = {1, 16};
    const std::uint64_t behind = i < 4 ? 0 : i - 3;  // PSUM is free again
    add(isa::Engine::Tensor, weights, isa::kNoSemaphore, 0, isa::kNoSemaphore);
    add(isa::Engine::Tensor, matmul, kReduced, behind, kProduct);
    add(isa::Engine::Vector, reduce, kProduct, i + 1, kReduced);
    add(isa::Engine::Scalar, copy, kReduced, i + 1, kCopied);
    add(isa::Engine::GpSimd, iota, kCopied, i + 1, kIndexed);
    add(isa::Engine::Sync, isa::EventSemaphore{}, kIndexed, i + 1, isa::kNoSemaphore);
  }
}

}  // namespace trn::bench
