#pragma once

#include <array>
#include <bit>
#include <type_traits>
#include <variant>

#include "isa/instructions/collective.h"
#include "isa/instructions/dma.h"
#include "isa/instructions/gpsimd.h"
#include "isa/instructions/scalar.h"
#include "isa/instructions/sequencer.h"
#include "isa/instructions/tensor.h"
#include "isa/instructions/vector.h"
#include "isa/operand.h"

namespace trn::isa {

/// Every instruction; the one list that codec, text, validator, cost tables and reference walk.
using Op = std::variant<
    Nop, LdWeights, Matmul, DmaDirect2d, DmaTranspose, DmaCompute, EventSemaphore,
    SemaphoreRangeClear, RegisterMove, RegisterAlu, TensorLoad, RegisterStore, CompareBranch, Loop,
    EndLoop, Drain, Notify, Write, SetOrderingMode, ModifyPoolConfig, RankId, Copy, Cast, Memset,
    TensorCopyPredicated, Transpose, TensorTensor, TensorScalar, TensorReduce,
    TensorPartitionReduce, TensorScalarCumulative, TensorScalarReduce, ScalarTensorTensor,
    TensorTensorScan, BnStats, BnAggr, NcStreamShuffle, Reciprocal, Max8, NcFindIndex8,
    NcMatchReplace8, Dropout, RangeSelect, SelectReduce, TensorCopyDynamicSrc, TensorCopyDynamicDst,
    Rng, SetRngSeed, Activate, ActReadAccumulator, ActTableLoad, Iota, AffineSelect, LocalGather,
    NcNGather, NonzeroWithCount, SequenceBounds, TopK, RandSetState, RandGetState, BuiltinCustomOp,
    AllReduce, AllGather, AllGatherV, ReduceScatter, AllToAll, AllToAllV, CollectivePermute,
    CollectivePermuteImplicit, CollectivePermuteImplicitReduce,
    CollectivePermuteImplicitCurrentProcessingRankId, CoreBarrier, Sendrecv>;

namespace detail {
/// Calls `visit.template operator()<T>()` for each instruction T.
template <class... Ts, class Visit>
constexpr void for_each_type(const std::variant<Ts...>* /*list*/, Visit&& visit) {
  (visit.template operator()<Ts>(), ...);
}

template <class... Ts>
constexpr bool all_distinct(const std::variant<Ts...>* /*list*/) {
  constexpr std::array kOpcodes = {Ts::kOpcode...};
  constexpr std::array kNames = {Ts::kName...};
  for (std::size_t i = 0; i < sizeof...(Ts); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (kOpcodes[i] == kOpcodes[j] || kNames[i] == kNames[j]) return false;
    }
  }
  return true;
}

// Tables by the variant's index: looking up takes one load, and compiling less than a visit.
template <class List>
inline constexpr int kMnemonics = 0;
template <class... Ts>
inline constexpr std::array kMnemonics<std::variant<Ts...>> = {Ts::kName...};
template <class List>
inline constexpr int kCosts = 0;
template <class... Ts>
inline constexpr std::array kCosts<std::variant<Ts...>> = {Ts::kCost...};
}  // namespace detail

static_assert(detail::all_distinct(static_cast<const Op*>(nullptr)),
              "two instructions have the same opcode or the same name");

/// Calls `visit.template operator()<T>()` for each instruction T, in the order of the list.
template <class Visit>
constexpr void for_each_instruction(Visit&& visit) {
  detail::for_each_type(static_cast<const Op*>(nullptr), visit);
}
inline constexpr std::size_t kInstructions = std::variant_size_v<Op>;

/// The operands of T as a constant: a walk over it costs nothing at run time.
template <class T>
inline constexpr auto kOperandsOf = T::operands();

/// Calls `visit(operand)` for each operand of T, in order.
template <class T, class Visit>
constexpr void for_each_operand(Visit&& visit) {
  std::apply([&](const auto&... operand) { (visit(operand), ...); }, kOperandsOf<T>);
}

/// Whether an operand has its default value `initial`, or is absent: what the trace and its text
/// leave out. A float is compared by its bits.
template <class T>
constexpr bool is_default(const T& value, const T& initial) {
  if constexpr (std::is_same_v<T, float>) {
    return std::bit_cast<std::uint32_t>(value) == std::bit_cast<std::uint32_t>(initial);
  } else if constexpr (std::is_same_v<T, Access> || std::is_same_v<T, DmaSide>) {
    return !value.present();
  } else if constexpr (std::is_same_v<T, ScalarOperand>) {
    return value.kind == ScalarOperand::Kind::None;
  } else {
    return value == initial;
  }
}

/// One instruction of a stream. Sync and place are common to all.
struct Instr {
  Sync sync{};
  SourceRef at{};
  Op op{};
};

/// The mnemonic, as `MATMUL`.
constexpr std::string_view mnemonic(const Instr& instr) {
  return detail::kMnemonics<Op>[instr.op.index()];
}
constexpr CostClass cost_class(const Instr& instr) { return detail::kCosts<Op>[instr.op.index()]; }

}  // namespace trn::isa
