#pragma once

#include "isa/operand.h"

namespace trn::isa {

/// The arithmetic of Vector, GpSimd, Scalar's TENSOR_SCALAR and reducing collectives. Logical and
/// comparing operations give 1 or 0. Source: docs/sources.md#nki-isa.
enum class AluOp : std::uint8_t {
  Bypass,
  Add,
  Subtract,
  Multiply,
  Divide,
  Max,
  Min,
  AbsMax,
  AbsMin,
  Power,
  Mod,
  Average,
  Absolute,
  Rsqrt,
  Equal,
  NotEqual,
  Greater,
  GreaterEqual,
  Less,
  LessEqual,
  LogicalAnd,
  LogicalOr,
  LogicalXor,
  LogicalNot,
  BitwiseAnd,
  BitwiseOr,
  BitwiseXor,
  BitwiseNot,
  ShiftLeft,
  ShiftRight,
  ArithmeticShiftRight
};

/// An operation on bit patterns: integers only, and only on the Vector engine.
constexpr bool is_bitwise(AluOp op) { return op >= AluOp::BitwiseAnd; }
constexpr bool is_comparison(AluOp op) { return op >= AluOp::Equal && op <= AluOp::LessEqual; }

/// What an instruction does with its engine's accumulator registers.
/// Source: docs/sources.md#nki-isa.
enum class AccumulatorCommand : std::uint8_t { Idle, Reset, Reduce, ResetReduce, LoadReduce };

/// An index computed for each element: base + channel * partition + sum(stride * position), with
/// the strides as steps of the value. Source: docs/sources.md#nki-isa.
struct IndexPattern {
  std::int32_t base = 0;
  std::int32_t channel = 0;  ///< step from one partition to the next
  std::uint8_t dims = 0;     ///< dimensions in use, 0..4, innermost first
  std::array<FreeDim, kFreeDims> steps{};

  [[nodiscard]] constexpr std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < dims; ++i) count *= steps[i].size;
    return count;
  }
  friend bool operator==(const IndexPattern&, const IndexPattern&) = default;
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::AluOp> {
  static constexpr std::array<std::string_view, 31> value = {"BYPASS",
                                                             "ADD",
                                                             "SUBTRACT",
                                                             "MULTIPLY",
                                                             "DIVIDE",
                                                             "MAX",
                                                             "MIN",
                                                             "ABS_MAX",
                                                             "ABS_MIN",
                                                             "POWER",
                                                             "MOD",
                                                             "AVERAGE",
                                                             "ABS",
                                                             "RSQRT",
                                                             "EQUAL",
                                                             "NOT_EQUAL",
                                                             "GREATER",
                                                             "GREATER_EQUAL",
                                                             "LESS",
                                                             "LESS_EQUAL",
                                                             "LOGICAL_AND",
                                                             "LOGICAL_OR",
                                                             "LOGICAL_XOR",
                                                             "LOGICAL_NOT",
                                                             "BITWISE_AND",
                                                             "BITWISE_OR",
                                                             "BITWISE_XOR",
                                                             "BITWISE_NOT",
                                                             "SHIFT_LEFT",
                                                             "SHIFT_RIGHT",
                                                             "ARITHMETIC_SHIFT_RIGHT"};
};
template <>
struct EnumNames<isa::AccumulatorCommand> {
  static constexpr std::array<std::string_view, 5> value = {"IDLE", "RESET", "REDUCE",
                                                            "RESET_REDUCE", "LOAD_REDUCE"};
};
}  // namespace trn
