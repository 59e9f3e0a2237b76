#include "sim/engine/instruction_source.h"

#include <algorithm>
#include <iterator>

namespace trn::sim {
namespace {

constexpr std::size_t kKeptBlocks = 16;  // loops of some four thousand instructions stay lowered

}  // namespace

InstructionSource::InstructionSource(const isa::Code& code, std::uint32_t program,
                                     isa::Engine engine, Lowering& lowering)
    : code_(code),
      program_(program),
      engine_(engine),
      lowering_(lowering),
      size_(code.size(program, engine)) {}

/// A buffer for a block that is read anew. Straight code takes turns between two, which stay in the
/// processor's cache; code that jumped back keeps several blocks, so that its loop is lowered once.
Block& InstructionSource::vacant() {
  const std::size_t wanted = looping_ ? kKeptBlocks : 2;
  if (blocks_.size() >= wanted) {
    const auto free = [this](const Block& block) { return block.pins == 0 && &block != current_; };
    auto victim = blocks_.end();
    if (looping_) {
      const auto oldest = std::find_if(blocks_.rbegin(), blocks_.rend(), free);
      if (oldest != blocks_.rend()) victim = std::prev(oldest.base());
    } else {
      victim = std::find_if(blocks_.begin(), blocks_.end(), free);
    }
    if (victim != blocks_.end()) {
      blocks_.splice(blocks_.begin(), blocks_, victim);
      return blocks_.front();
    }
  }
  return blocks_.emplace_front();
}

Block& InstructionSource::load(std::uint64_t number) {
  const auto known = std::find_if(blocks_.begin(), blocks_.end(),
                                  [&](const Block& block) { return block.number == number; });
  if (known != blocks_.end()) {
    blocks_.splice(blocks_.begin(), blocks_, known);
    return blocks_.front();
  }
  if (current_ != nullptr) looping_ = number < current_->number || (looping_ && number < farthest_);
  farthest_ = std::max(farthest_, number);
  Block& block = vacant();
  current_ = nullptr;
  block.number = Block{}.number;  // none, should it be damaged
  code_.read(program_, engine_, number, block.instrs);
  block.plans.clear();
  block.uops.resize(block.instrs.size());
  for (std::size_t i = 0; i < block.instrs.size(); ++i)
    lowering_.lower(block.instrs[i], engine_, number * isa::kBlockInstructions + i, block.uops[i],
                    block.plans);
  block.number = number;
  return block;
}

}  // namespace trn::sim
