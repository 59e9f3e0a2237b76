#pragma once

#include <string_view>
#include <type_traits>
#include <variant>

#include "isa/instructions.h"

namespace trn::isa::frontend {

/// Whether an operand of this name is written; all others are read.
constexpr bool is_result(std::string_view name) {
  return name == "dst" || name == "result" || name == "indices";
}

/// Calls visit(name, operand) for each operand of an instruction that lies in memory and is
/// present: Access and DmaSide, pointers of scalar operands included. op may be const.
template <class T, class Visit>
void for_each_memory_operand_of(T& op, Visit&& visit) {
  for_each_operand<std::remove_const_t<T>>([&](const auto& operand) {
    auto& member = op.*operand.member;
    using Member = std::remove_cvref_t<decltype(member)>;
    if constexpr (std::is_same_v<Member, Access> || std::is_same_v<Member, DmaSide>) {
      if (member.present()) visit(operand.name, member);
    } else if constexpr (std::is_same_v<Member, ScalarOperand>) {
      if (member.kind == ScalarOperand::Kind::Pointer) visit(operand.name, member.pointer);
    }
  });
}

template <class OpOrConstOp, class Visit>
void for_each_memory_operand(OpOrConstOp& op, Visit&& visit) {
  std::visit([&](auto& it) { for_each_memory_operand_of(it, visit); }, op);
}

/// The same for a node, whose DMA_COMPUTE may have further sources.
template <class NodeOrConstNode, class Visit>
void for_each_memory_operand_of_node(NodeOrConstNode& node, Visit&& visit) {
  for_each_memory_operand(node.op, visit);
  for (auto& source : node.more_sources) visit(std::string_view("src"), source);
}

inline Affine& address_of(Access& operand) { return operand.offset; }
inline Affine& address_of(DmaSide& operand) { return operand.address; }
inline const Affine& address_of(const Access& operand) { return operand.offset; }
inline const Affine& address_of(const DmaSide& operand) { return operand.address; }

}  // namespace trn::isa::frontend
