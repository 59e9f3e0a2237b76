#pragma once

#include <cstdint>
#include <limits>

#include "isa/base/bytes.h"
#include "isa/instructions.h"

namespace trn::isa {

/// Sizes of the tables that a SourceRef points into; a reference past them does not decode.
struct SourceTables {
  std::uint64_t locations = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t labels = std::numeric_limits<std::uint64_t>::max();
};

/// Appends one instruction. `last` is the place of the instruction before it in the same block, a
/// default SourceRef for the first; it becomes this one's. Operands that have their default value
/// take no space. The form of the bytes is docs/reference/trace-format.md.
/// What cannot be an operand at all (five dimensions, partition 200) is a fault of the caller's.
void encode(const Instr& instr, SourceRef& last, ByteWriter& out);

/// Reads one instruction; decode undoes encode. Total: any bytes give an instruction or an
/// InputError. What it gives is well formed: enumerators exist, registers, semaphores, partitions
/// and numbers are within their limits, and counts of elements stay under 2^32. Whether the
/// instruction may run is the validator's question.
void decode(ByteReader& in, SourceRef& last, const SourceTables& tables, Instr& instr);

}  // namespace trn::isa
