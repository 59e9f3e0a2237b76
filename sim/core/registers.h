#pragma once

#include <array>
#include <cstdint>

#include "isa/operand.h"

namespace trn::sim {

/// The registers of one sequencer, and the rank that relative addresses use.
struct Registers {
  std::array<std::int32_t, isa::kRegisters> value{};
  std::int64_t rank = 0;

  [[nodiscard]] std::int64_t read(isa::Register reg) const {
    return reg == isa::kRankRegister ? rank : value[reg];
  }
  [[nodiscard]] std::int64_t read(const isa::RegisterOperand& operand) const {
    return operand.reg == isa::kNoRegister ? operand.constant : read(operand.reg);
  }
  /// The same, of a 32-bit operand.
  [[nodiscard]] std::int32_t read_word(const isa::RegisterOperand& operand) const {
    return static_cast<std::int32_t>(read(operand));
  }
  /// Wraps around at 64 bits, as no hardware address is near there.
  [[nodiscard]] std::int64_t evaluate(const isa::Affine& affine) const {
    auto sum = static_cast<std::uint64_t>(affine.base);
    for (std::size_t i = 0; i < affine.term_count; ++i)
      sum += static_cast<std::uint64_t>(affine.terms[i].coefficient) *
             static_cast<std::uint64_t>(read(affine.terms[i].reg));
    return static_cast<std::int64_t>(sum);
  }
};

}  // namespace trn::sim
