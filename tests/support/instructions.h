#pragma once

#include <cstdint>
#include <initializer_list>

#include "isa/instructions.h"
#include "isa/types.h"

namespace trn::test {

/// `elements` elements in each partition, `stride` elements apart, from byte `offset`.
inline isa::Access tile(isa::Memory memory, std::uint32_t elements, isa::Dtype dtype,
                        std::int64_t offset, std::int32_t stride = 1) {
  isa::Access access;
  access.memory = memory;
  access.dtype = dtype;
  access.partitions = isa::kPartitions;
  access.dims = 1;
  access.offset = offset;
  access.free[0] = {stride, elements};
  return access;
}
inline isa::Access sbuf(std::uint32_t elements, isa::Dtype dtype = isa::Dtype::Fp32,
                        std::int64_t offset = 0, std::int32_t stride = 1) {
  return tile(isa::Memory::Sbuf, elements, dtype, offset, stride);
}
inline isa::Access psum(std::uint32_t elements, isa::Dtype dtype = isa::Dtype::Fp32,
                        std::int64_t offset = 0) {
  return tile(isa::Memory::Psum, elements, dtype, offset);
}

/// The same access in fewer partitions.
inline isa::Access within(isa::Access access, std::uint8_t first, std::uint8_t count) {
  access.start_partition = first;
  access.partitions = count;
  return access;
}

/// The same access, moved by registers.
inline isa::Access moved(isa::Access access, std::initializer_list<isa::Affine::Term> terms) {
  for (const isa::Affine::Term& term : terms)
    access.offset.terms[access.offset.term_count++] = term;
  return access;
}

/// PSUM's bank `number` begins at this byte of each partition (trn2: banks of 2 KiB).
constexpr std::int64_t bank(std::int64_t number) { return number * 2048; }

/// Where results go that nobody reads: behind all that the other helpers use.
inline constexpr std::int64_t kScratch = 128 * 1024;

inline isa::Matmul matmul(std::uint32_t columns, isa::Dtype dtype = isa::Dtype::Bf16,
                          isa::Fp32Pass pass = isa::Fp32Pass::None) {
  isa::Matmul op;
  op.src = sbuf(columns, dtype);
  op.dst = psum(columns);
  op.pass = pass;
  return op;
}
inline isa::LdWeights load_weights(std::uint32_t columns = 128, isa::Dtype dtype = isa::Dtype::Bf16,
                                   isa::Fp32Pass pass = isa::Fp32Pass::None) {
  isa::LdWeights op;
  op.src = sbuf(columns, dtype, kScratch / 2);
  op.pass = pass;
  return op;
}

inline isa::Copy copy(const isa::Access& src, const isa::Access& dst) { return {src, dst}; }
/// From SBUF to a place that nobody reads.
inline isa::Copy copy(std::uint32_t elements = 64) {
  return {sbuf(elements), sbuf(elements, isa::Dtype::Fp32, kScratch)};
}
/// From a bank of PSUM to a place that nobody reads.
inline isa::Copy copy_bank(std::int64_t number, std::uint32_t elements = 64) {
  return {psum(elements, isa::Dtype::Fp32, bank(number)),
          sbuf(elements, isa::Dtype::Fp32, kScratch)};
}
inline isa::TensorScalar tensor_scalar(const isa::Access& src, const isa::Access& dst) {
  isa::TensorScalar op;
  op.src = src;
  op.dst = dst;
  op.op0 = isa::AluOp::Multiply;
  op.operand0.kind = isa::ScalarOperand::Kind::Immediate;
  op.operand0.immediate = 2;
  return op;
}
inline isa::TensorTensor tensor_tensor(const isa::Access& src0, const isa::Access& src1,
                                       const isa::Access& dst) {
  isa::TensorTensor op;
  op.src0 = src0;
  op.src1 = src1;
  op.dst = dst;
  op.op = isa::AluOp::Add;
  return op;
}
inline isa::Activate activate(isa::ActivationFunction function, std::uint32_t elements = 64) {
  isa::Activate op;
  op.src = sbuf(elements);
  op.dst = sbuf(elements, isa::Dtype::Fp32, kScratch);
  op.function = function;
  return op;
}

/// `partitions` rows of SBUF, each with `bytes` bytes from byte `offset`.
inline isa::DmaSide sbuf_rows(std::uint32_t partitions, std::uint32_t bytes,
                              isa::Dtype dtype = isa::Dtype::Bf16, std::int64_t offset = 0) {
  isa::DmaSide side;
  side.memory = isa::Memory::Sbuf;
  side.dtype = dtype;
  side.element_bytes = bytes;
  side.address = offset;
  side.dims = 1;
  side.pattern[0] = {isa::kSbufPartitionStride, partitions};
  return side;
}
/// `rows` rows of HBM, one behind the other unless a stride says otherwise.
inline isa::DmaSide hbm_rows(std::uint32_t rows, std::uint32_t bytes,
                             isa::Dtype dtype = isa::Dtype::Bf16, std::int64_t stride = 0) {
  isa::DmaSide side;
  side.memory = isa::Memory::Hbm;
  side.dtype = dtype;
  side.element_bytes = bytes;
  side.dims = 1;
  side.pattern[0] = {stride == 0 ? bytes : stride, rows};
  return side;
}
inline isa::DmaDirect2d dma(const isa::DmaSide& src, const isa::DmaSide& dst,
                            isa::DescriptorMode mode = isa::DescriptorMode::HardwareDge,
                            std::uint8_t queue = 0, isa::DmaCompletion completion = {}) {
  isa::DmaDirect2d op;
  op.src = src;
  op.dst = dst;
  op.mode = mode;
  op.queue = queue;
  op.completion = completion;
  return op;
}
/// Rows of HBM into as many partitions.
inline isa::DmaDirect2d dma_read(std::uint32_t partitions, std::uint32_t bytes,
                                 isa::DescriptorMode mode = isa::DescriptorMode::HardwareDge,
                                 std::uint8_t queue = 0, isa::DmaCompletion completion = {}) {
  return dma(hbm_rows(partitions, bytes), sbuf_rows(partitions, bytes), mode, queue, completion);
}
inline isa::DmaDirect2d dma_write(std::uint32_t partitions, std::uint32_t bytes,
                                  isa::DescriptorMode mode = isa::DescriptorMode::HardwareDge,
                                  std::uint8_t queue = 0, isa::DmaCompletion completion = {}) {
  return dma(sbuf_rows(partitions, bytes), hbm_rows(partitions, bytes), mode, queue, completion);
}

inline isa::RegisterOperand constant(std::int32_t value) { return {isa::kNoRegister, value}; }
inline isa::RegisterOperand reg(isa::Register number) { return {number, 0}; }
inline isa::Nop nop(std::uint32_t cycles) { return {cycles}; }

}  // namespace trn::test
