#pragma once

#include <cstdint>

#include "isa/frontend/builder.h"

namespace trn::isa::frontend {

/// The set of functions that shares an activation table, 0: needs none. What shares is published
/// nowhere: related functions are taken to. Source: docs/sources.md#act-tables (est).
constexpr std::uint32_t table_of(ActivationFunction function) {
  switch (function) {
    using enum ActivationFunction;
    case Exp:
      return 1;
    case Log:
      return 2;
    case Sqrt:
    case Rsqrt:
    case ActivationFunction::Reciprocal:
      return 3;
    case Tanh:
    case Sigmoid:
      return 4;
    case Gelu:
    case GeluApprxTanh:
    case GeluApprxSigmoid:
    case GeluDx:
    case GeluApprxSigmoidDx:
      return 5;
    case Silu:
    case SiluDx:
      return 6;
    case Softplus:
    case Mish:
      return 7;
    case Erf:
    case ErfDx:
      return 8;
    case Sin:
    case Cos:
    case Tan:
    case Arctan:
      return 9;
    default:
      return 0;
  }
}

/// Adds an ACT_TABLE_LOAD before the Scalar engine's first instruction, and one for each change of
/// table, right behind the last activation that needed the one before.
void load_tables(Builder& builder);

}  // namespace trn::isa::frontend
