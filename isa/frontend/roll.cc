#include "isa/frontend/roll.h"

namespace trn::isa {

Roller::Roller(RollOptions options) : options_(options) {}

void Roller::push(const Instr& instr) { pending_.push_back(instr); }

std::vector<Instr> Roller::finish() { return std::move(pending_); }

std::vector<Instr> unroll(std::span<const Instr> stream, const RollOptions& /*options*/) {
  return {stream.begin(), stream.end()};
}

}  // namespace trn::isa
