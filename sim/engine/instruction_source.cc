#include "sim/engine/instruction_source.h"

#include <algorithm>
#include <iterator>

namespace trn::sim {
namespace {

constexpr std::size_t kKeptBlocks = 4;  // loops of up to four thousand instructions stay lowered

}  // namespace

InstructionSource::InstructionSource(const isa::Code& code, std::uint32_t program,
                                     isa::Engine engine, Lowering& lowering)
    : code_(code),
      program_(program),
      engine_(engine),
      lowering_(lowering),
      size_(code.size(program, engine)) {}

Block& InstructionSource::load(std::uint64_t number) {
  const auto known = std::find_if(blocks_.begin(), blocks_.end(),
                                  [&](const Block& block) { return block.number == number; });
  if (known != blocks_.end()) {
    blocks_.splice(blocks_.begin(), blocks_, known);
    return blocks_.front();
  }
  const auto oldest = std::find_if(blocks_.rbegin(), blocks_.rend(),
                                   [](const Block& block) { return block.pins == 0; });
  if (blocks_.size() >= kKeptBlocks && oldest != blocks_.rend()) {
    blocks_.splice(blocks_.begin(), blocks_, std::prev(oldest.base()));  // its buffers are reused
  } else {
    blocks_.emplace_front();
  }
  Block& block = blocks_.front();
  current_ = nullptr;
  block.number = number;
  code_.read(program_, engine_, number, block.instrs);
  block.plans.clear();
  block.uops.resize(block.instrs.size());
  for (std::size_t i = 0; i < block.instrs.size(); ++i)
    lowering_.lower(block.instrs[i], engine_, number * isa::kBlockInstructions + i, block.uops[i],
                    block.plans);
  return block;
}

}  // namespace trn::sim
