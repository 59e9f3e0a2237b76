#include "sim/core/cost_features.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace trn::sim {
namespace {

using isa::Access;
using isa::DmaSide;
using isa::ScalarOperand;

enum class Role : std::uint8_t { Input, SecondInput, Output, Small };

/// What an operand is to the cost, by its name. The first input of a two-input instruction is src
/// or src0; a predicate counts as a second input; index lists and per-partition values are small.
constexpr Role role_of(std::string_view name) {
  if (name == "src" || name == "src0") return Role::Input;
  if (name == "src1" || name == "predicate") return Role::SecondInput;
  if (name == "dst") return Role::Output;
  return Role::Small;
}

constexpr std::uint32_t clamp32(std::uint64_t value) {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(value, std::numeric_limits<std::uint32_t>::max()));
}

void add_layout(const Access& access, CostFeatures& out) {
  out.partitions = std::max<std::uint32_t>(out.partitions, access.partitions);
  if (!access.offset.constant()) out.dynamic = Flag::Yes;
  if (access.dims == 0 || access.free[0].size <= 1) return;
  const std::int64_t stride = std::abs(static_cast<std::int64_t>(access.free[0].stride));
  if (access.free[0].stride != 1) out.contiguous = Flag::No;
  const auto bytes = static_cast<std::uint64_t>(stride) * isa::bytes_of(access.dtype);
  out.stride_bytes = std::max(out.stride_bytes, clamp32(bytes));
}

void add(Role role, std::string_view name, const Access& access, CostFeatures& out) {
  if (!access.present()) return;
  if (role == Role::Small) {
    if (name == "result") out.result = Flag::Yes;
    if (name == "index") out.indirect = Flag::Yes;
    if (name == "index" || name == "values") {
      out.partitions = std::max<std::uint32_t>(out.partitions, access.partitions);
    }
    return;
  }
  add_layout(access, out);
  const std::uint32_t elements = clamp32(access.elements());
  switch (role) {
    case Role::Input:
      out.elements = std::max(out.elements, elements);
      out.src_memory = access.memory;
      out.src_dtype = access.dtype;
      break;
    case Role::SecondInput:
      out.elements = std::max(out.elements, elements);
      out.src1_memory = access.memory;
      out.src1_dtype = access.dtype;
      break;
    default:
      out.dst_elements = elements;
      out.dst_memory = access.memory;
      out.dst_dtype = access.dtype;
  }
}

void add(Role role, std::string_view /*name*/, const DmaSide& side, CostFeatures& out) {
  if (!side.present()) return;
  if (!side.address.constant()) out.dynamic = Flag::Yes;
  out.runs = std::max(out.runs, clamp32(side.elements()));
  out.bytes = std::max(out.bytes, clamp32(side.bytes()));
  if (role == Role::Input) {
    out.src_memory = side.memory;
    out.src_dtype = side.dtype;
  } else if (role == Role::SecondInput) {
    out.src1_memory = side.memory;
    out.src1_dtype = side.dtype;
  } else if (role == Role::Output) {
    out.dst_memory = side.memory;
    out.dst_dtype = side.dtype;
  }
}

void add(Role /*role*/, std::string_view name, const ScalarOperand& scalar, CostFeatures& out) {
  if (scalar.kind == ScalarOperand::Kind::Pointer) ++out.pointer;
  if (name == "value" && scalar.kind == ScalarOperand::Kind::Immediate) {
    out.zero = flag(scalar.immediate == 0);
  }
}

void add(Role /*role*/, std::string_view name, isa::AluOp op, CostFeatures& out) {
  if (name == "op1" || name == "reduce_op" || name == "compare1") {
    out.op1 = op;
  } else {
    out.op = op;
  }
}

void add(Role /*role*/, std::string_view /*name*/, const isa::PeTile& tile, CostFeatures& out) {
  out.rows = tile.rows;
  out.columns = tile.columns;
}

void add(Role, std::string_view, isa::ActivationFunction function, CostFeatures& out) {
  out.function = function;
}
void add(Role, std::string_view, isa::AccumulatorCommand command, CostFeatures& out) {
  out.accumulate = flag(command != isa::AccumulatorCommand::Idle);
}
void add(Role, std::string_view, isa::Fp32Pass pass, CostFeatures& out) { out.pass = pass; }
void add(Role, std::string_view, isa::PerformanceMode mode, CostFeatures& out) {
  out.double_row = flag(mode == isa::PerformanceMode::DoubleRow);
}
void add(Role, std::string_view, isa::Sparsity sparsity, CostFeatures& out) {
  out.sparsity = sparsity;
}
void add(Role, std::string_view, isa::DescriptorMode mode, CostFeatures& out) {
  out.descriptors = mode;
}
void add(Role, std::string_view, const isa::RankGroup& group, CostFeatures& out) {
  out.n = group.size;
}

void add(Role, std::string_view name, bool value, CostFeatures& out) {
  if (name == "transpose") out.transpose = flag(value);
  if (name == "one_zero") out.one_zero = flag(value);
  if (name == "bound_at_launch") out.bound_at_launch = flag(value);
  if (name == "start") out.accumulate = flag(!value);
}

template <class T>
  requires std::is_integral_v<T> && (!std::same_as<T, bool>)
void add(Role, std::string_view name, T value, CostFeatures& out) {
  const std::uint32_t number = value < 0 ? 0 : clamp32(static_cast<std::uint64_t>(value));
  if (name == "sources") out.sources = number;
  if (name == "count" || name == "cycles" || name == "indices") out.count = number;
  if (name == "n") out.n = number;
  if (name == "k" || name == "elements_per_index") out.k = number;
}

/// Operands that no cost depends on.
template <class T>
  requires(!std::is_integral_v<T>)
void add(Role, std::string_view, const T&, CostFeatures&) {}

}  // namespace

CostFeatures features_of(const isa::Op& op) {
  return std::visit(
      []<class T>(const T& instr) {
        CostFeatures out;
        isa::for_each_operand<T>([&](const auto& operand) {
          add(role_of(operand.name), operand.name, instr.*operand.member, out);
        });
        if constexpr (std::same_as<T, isa::SemaphoreRangeClear>) {
          out.count = instr.last >= instr.first ? instr.last - instr.first + 1U : 0U;
        }
        if (out.elements == 0) out.elements = out.dst_elements;
        out.dtype = out.src_dtype.code != 0 ? out.src_dtype : out.dst_dtype;
        if (out.dtype.code != 0) {
          out.dtype_bytes = isa::bytes_of(static_cast<isa::Dtype>(out.dtype.code - 1));
        }
        out.opcode = static_cast<OpcodeNumber>(T::kOpcode);
        return out;
      },
      op);
}

}  // namespace trn::sim
