#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "isa/program.h"

namespace trn::test {

/// A program that is made as it is read, so that it takes no memory however long it is.
class GeneratedCode final : public isa::Code {
 public:
  using Generator = std::function<isa::Instr(isa::Engine, std::uint64_t index)>;

  /// length: instructions of each engine.
  GeneratedCode(std::array<std::uint64_t, isa::kEngines> length, Generator make)
      : length_(length), make_(std::move(make)) {
    info_.name = "generated";
    info_.cores = {{0, 0, 0}};
  }

  [[nodiscard]] const isa::TraceInfo& info() const override { return info_; }
  [[nodiscard]] std::uint32_t programs() const override { return 1; }
  [[nodiscard]] std::uint64_t size(std::uint32_t /*program*/, isa::Engine engine) const override {
    return length_[isa::index(engine)];
  }
  void read(std::uint32_t /*program*/, isa::Engine engine, std::uint64_t block,
            std::vector<isa::Instr>& out) const override {
    blocks_read.push_back(block);
    const std::uint64_t first = block * isa::kBlockInstructions;
    const std::uint64_t last =
        std::min(first + isa::kBlockInstructions, length_[isa::index(engine)]);
    out.clear();
    for (std::uint64_t i = first; i < last; ++i) out.push_back(make_(engine, i));
  }

  mutable std::vector<std::uint64_t> blocks_read;  ///< in order, of all engines

 private:
  std::array<std::uint64_t, isa::kEngines> length_;
  Generator make_;
  isa::TraceInfo info_;
};

}  // namespace trn::test
