#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "isa/base/describe.h"
#include "isa/instructions.h"

namespace trn::sim {

/// An enumerator, or none when the instruction has no such operand.
template <class E>
struct OrNone {
  std::uint32_t code = 0;  ///< 0: none, else 1 + value
  constexpr OrNone() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): an enumerator is a known one
  constexpr OrNone(E value) : code(static_cast<std::uint32_t>(value) + 1) {}
  friend bool operator==(const OrNone&, const OrNone&) = default;
};

/// A condition that holds or not.
enum class Flag : std::uint32_t { No, Yes };
constexpr Flag flag(bool value) { return value ? Flag::Yes : Flag::No; }

/// Which instruction it is: the opcode, named by its mnemonic.
enum class OpcodeNumber : std::uint32_t {};

/// What the cost of an instruction may depend on. Every member is 32 bits wide and the struct has
/// no gaps, so that equal features are equal bytes.
struct CostFeatures {
  std::uint32_t elements = 0;
  std::uint32_t dst_elements = 0;
  std::uint32_t partitions = 0;
  OrNone<isa::Dtype> dtype{};
  std::uint32_t dtype_bytes = 0;
  OrNone<isa::Memory> src_memory{};
  OrNone<isa::Memory> src1_memory{};
  OrNone<isa::Memory> dst_memory{};
  OrNone<isa::Dtype> src_dtype{};
  OrNone<isa::Dtype> src1_dtype{};
  OrNone<isa::Dtype> dst_dtype{};
  Flag contiguous = Flag::Yes;
  std::uint32_t stride_bytes = 0;
  Flag dynamic = Flag::No;
  std::uint32_t pointer = 0;
  Flag zero = Flag::No;
  OrNone<isa::AluOp> op{};
  OrNone<isa::AluOp> op1{};
  Flag accumulate = Flag::No;
  Flag result = Flag::No;
  OrNone<isa::ActivationFunction> function{};
  OrNone<isa::Fp32Pass> pass{};
  Flag transpose = Flag::No;
  Flag double_row = Flag::No;
  OrNone<isa::Sparsity> sparsity{};
  Flag one_zero = Flag::No;
  std::uint32_t rows = 0;
  std::uint32_t columns = 0;
  OrNone<isa::DescriptorMode> descriptors{};
  Flag bound_at_launch = Flag::No;
  Flag indirect = Flag::No;
  std::uint32_t runs = 0;
  std::uint32_t bytes = 0;
  std::uint32_t sources = 0;
  std::uint32_t count = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  Flag contended = Flag::No;
  OpcodeNumber opcode{};

  static constexpr auto fields() {
    using F = CostFeatures;
    return std::tuple{
        Field{"elements", &F::elements, "count",
              "elements per partition of the largest input; of the result when there is none"},
        Field{"dst.elements", &F::dst_elements, "count", "elements per partition of the result"},
        Field{"partitions", &F::partitions, "count", "most partitions of an operand"},
        Field{"dtype", &F::dtype, "", "type of the first input; of the result when there is none"},
        Field{"dtype_bytes", &F::dtype_bytes, "bytes", "bytes of one such element"},
        Field{"src.memory", &F::src_memory, "", "memory of the first input"},
        Field{"src1.memory", &F::src1_memory, "", "memory of the second input or the predicate"},
        Field{"dst.memory", &F::dst_memory, "", "memory of the result"},
        Field{"src.dtype", &F::src_dtype, "", "type of the first input"},
        Field{"src1.dtype", &F::src1_dtype, "", "type of the second input or the predicate"},
        Field{"dst.dtype", &F::dst_dtype, "", "type of the result"},
        Field{"contiguous", &F::contiguous, "",
              "the innermost stride of every tile is one element"},
        Field{"stride_bytes", &F::stride_bytes, "bytes", "largest innermost stride of a tile"},
        Field{"dynamic", &F::dynamic, "", "an address follows a register"},
        Field{"pointer", &F::pointer, "count", "operands read through a pointer"},
        Field{"zero", &F::zero, "", "the constant is 0"},
        Field{"op", &F::op, "", "first or only operation"},
        Field{"op1", &F::op1, "", "second operation"},
        Field{"accumulate", &F::accumulate, "", "adds to accumulators or to what PSUM holds"},
        Field{"result", &F::result, "", "also writes a reduction, one value per partition"},
        Field{"function", &F::function, "", "activation function"},
        Field{"pass", &F::pass, "", "pass of an fp32 product"},
        Field{"transpose", &F::transpose, "", "transpose mode of the PE array"},
        Field{"double_row", &F::double_row, "", "double-row fp8"},
        Field{"sparsity", &F::sparsity, "", "structured sparsity of the stationary tile"},
        Field{"one_zero", &F::one_zero, "", "an fp32 tile of ones and zeros"},
        Field{"rows", &F::rows, "count", "rows of the PE tile"},
        Field{"columns", &F::columns, "count", "columns of the PE tile"},
        Field{"descriptors", &F::descriptors, "", "who writes the descriptors of a DMA"},
        Field{"bound_at_launch", &F::bound_at_launch, "", "an address is a kernel argument's"},
        Field{"indirect", &F::indirect, "", "a DMA gathers or scatters by index"},
        Field{"runs", &F::runs, "count", "contiguous runs of the finer side of a DMA"},
        Field{"bytes", &F::bytes, "bytes", "bytes of a DMA or collective; at most 2^32 - 1"},
        Field{"sources", &F::sources, "count", "inputs that a DMA adds up"},
        Field{"count", &F::count, "count",
              "registers loaded, semaphores cleared, cycles of a NOP, indices of a gather"},
        Field{"n", &F::n, "count", "elements searched by TOPK; ranks of a collective"},
        Field{"k", &F::k, "count", "elements found by TOPK; elements per index of a gather"},
        Field{"contended", &F::contended, "", "GpSimd holds the bus that it shares with VectorE"},
        Field{"opcode", &F::opcode, "", "the instruction, by its mnemonic"}};
  }

  friend bool operator==(const CostFeatures&, const CostFeatures&) = default;
};

inline constexpr std::size_t kCostFeatures = std::tuple_size_v<decltype(CostFeatures::fields())>;
static_assert(sizeof(CostFeatures) == 4 * kCostFeatures && alignof(CostFeatures) == 4,
              "every feature is 32 bits wide and stands in the list");
static_assert(std::has_unique_object_representations_v<CostFeatures>);

using PackedFeatures = std::array<std::uint32_t, kCostFeatures>;
inline PackedFeatures pack(const CostFeatures& features) {
  return std::bit_cast<PackedFeatures>(features);
}

/// The features of an instruction, from its operands. Depends on no register and no address;
/// `contended` is left to the caller, who knows the moment.
CostFeatures features_of(const isa::Op& op);

}  // namespace trn::sim
