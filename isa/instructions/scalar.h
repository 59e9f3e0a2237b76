#pragma once

#include "isa/instructions/common.h"
#include "isa/operand.h"

namespace trn::isa {

/// Functions of the Scalar engine; a table holds a set of them. Source: docs/sources.md#nki-isa.
enum class ActivationFunction : std::uint8_t {
  Copy,
  Identity,
  Exp,
  Log,
  Sqrt,
  Rsqrt,
  Square,
  Reciprocal,
  Abs,
  Sign,
  Relu,
  Tanh,
  Sigmoid,
  Gelu,
  GeluApprxTanh,
  GeluApprxSigmoid,
  GeluDx,
  GeluApprxSigmoidDx,
  Silu,
  SiluDx,
  Softplus,
  Mish,
  Erf,
  ErfDx,
  Sin,
  Cos,
  Tan,
  Arctan,
  Floor,
  Ceil,
  Trunc
};

struct Activate {
  Access src{};
  Access dst{};
  ActivationFunction function = ActivationFunction::Copy;
  ScalarOperand scale{};
  ScalarOperand bias{};
  float imm = 0;
  AccumulatorCommand accumulator_cmd = AccumulatorCommand::Idle;

  static constexpr std::uint8_t kOpcode = 0x60;
  static constexpr std::string_view kName = "ACTIVATE";
  static constexpr EngineSet kEngines = {Engine::Scalar};
  static constexpr CostClass kCost = CostClass::Activate;
  static constexpr std::string_view kDoc =
      "function(src * scale + bias); may add the results into the accumulators.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &Activate::src, Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
        Operand{"dst", &Activate::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"function", &Activate::function, Limits{}, "function"},
        Operand{"scale", &Activate::scale, Limits{.optional = true}, "factor; 1 when absent"},
        Operand{"bias", &Activate::bias, Limits{.optional = true}, "summand; 0 when absent"},
        Operand{"imm", &Activate::imm, Limits{.optional = true}, "constant of the function"},
        Operand{"accumulator_cmd", &Activate::accumulator_cmd, Limits{.optional = true},
                "what becomes of the accumulators"}};
  }
};

struct ActReadAccumulator {
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x61;
  static constexpr std::string_view kName = "ACT_READ_ACCUMULATOR";
  static constexpr EngineSet kEngines = {Engine::Scalar};
  static constexpr CostClass kCost = CostClass::ReadAccumulator;
  static constexpr std::string_view kDoc = "Writes the accumulators, one per partition.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"dst", &ActReadAccumulator::dst,
                              Limits{.free_max = 1, .partitions_max = 128, .memories = kOnChip},
                              "result"}};
  }
};

struct ActTableLoad {
  std::uint32_t table_sel = 0;

  static constexpr std::uint8_t kOpcode = 0x62;
  static constexpr std::string_view kName = "ACT_TABLE_LOAD";
  static constexpr EngineSet kEngines = {Engine::Scalar};
  static constexpr CostClass kCost = CostClass::LoadTable;
  static constexpr std::string_view kDoc = "Loads the table of a set of functions.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{Operand{"table_sel", &ActTableLoad::table_sel, Limits{.max = 255}, "table"}};
  }
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::ActivationFunction> {
  static constexpr std::array<std::string_view, 31> value = {"COPY",
                                                             "IDENTITY",
                                                             "EXP",
                                                             "LOG",
                                                             "SQRT",
                                                             "RSQRT",
                                                             "SQUARE",
                                                             "RECIPROCAL",
                                                             "ABS",
                                                             "SIGN",
                                                             "RELU",
                                                             "TANH",
                                                             "SIGMOID",
                                                             "GELU",
                                                             "GELU_APPRX_TANH",
                                                             "GELU_APPRX_SIGMOID",
                                                             "GELU_DX",
                                                             "GELU_APPRX_SIGMOID_DX",
                                                             "SILU",
                                                             "SILU_DX",
                                                             "SOFTPLUS",
                                                             "MISH",
                                                             "ERF",
                                                             "ERF_DX",
                                                             "SIN",
                                                             "COS",
                                                             "TAN",
                                                             "ARCTAN",
                                                             "FLOOR",
                                                             "CEIL",
                                                             "TRUNC"};
};
}  // namespace trn
