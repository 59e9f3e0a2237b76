#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "isa/program.h"
#include "sim/core/lowering.h"
#include "sim/core/uop.h"

namespace trn::sim {

/// A block of a stream, made ready for execution.
struct Block {
  std::uint64_t number = ~std::uint64_t{0};
  std::uint32_t pins = 0;  ///< instructions of it that wait in an engine's queue
  std::vector<isa::Instr> instrs;
  std::vector<Uop> uops;
  std::vector<std::unique_ptr<DmaPlan>> plans;
};

/// Feeds one engine with its stream, block by block. Keeps the blocks used last, so that loops are
/// lowered once and memory does not follow the stream's length.
class InstructionSource {
 public:
  InstructionSource(const isa::Code& code, std::uint32_t program, isa::Engine engine,
                    Lowering& lowering);

  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// The block that holds the instruction at `index` < size(). Valid while pinned, or until the
  /// next call. Throws InputError when the trace is damaged or the instruction breaks a limit.
  Block& block(std::uint64_t index) {
    const std::uint64_t number = index / isa::kBlockInstructions;
    if (current_ == nullptr || current_->number != number) current_ = &load(number);
    return *current_;
  }
  static const Uop& uop(const Block& block, std::uint64_t index) {
    return block.uops[index % isa::kBlockInstructions];
  }

 private:
  Block& load(std::uint64_t number);
  Block& vacant();

  const isa::Code& code_;
  std::uint32_t program_;
  isa::Engine engine_;
  Lowering& lowering_;
  std::uint64_t size_;
  Block* current_ = nullptr;
  std::list<Block> blocks_;     // most recently used first
  std::uint64_t farthest_ = 0;  // block read
  bool looping_ = false;        // it jumped back and has not passed the farthest block since
};

}  // namespace trn::sim
