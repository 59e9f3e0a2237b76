#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "isa/instructions.h"
#include "isa/types.h"

namespace trn::isa {

/// One line of the user's source; index 0 of a trace's table is the unknown place.
struct SourceLocation {
  std::string file;
  std::uint32_t line = 0;
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

enum class TensorKind : std::uint8_t { Input, Output, Weight, Constant, Internal };

/// A named region: of HBM (byte address) or of SBUF or PSUM (byte offset in each partition).
struct Tensor {
  std::string name;
  TensorKind kind = TensorKind::Internal;
  Memory memory = Memory::Hbm;
  Dtype dtype = Dtype::Fp32;
  std::vector<std::uint64_t> shape;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  ///< in HBM: all; on chip: of one partition
  std::uint32_t location = 0;
  friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// What one run of the trace achieves, for example 32 of "token" or 1 of "image".
struct Work {
  double amount = 0;
  std::string unit;
  friend bool operator==(const Work&, const Work&) = default;
};

/// A core that takes part: which program it runs and the rank that its addresses are relative to.
struct CoreBinding {
  std::uint32_t core = 0;
  std::uint32_t program = 0;
  std::uint32_t rank = 0;
  friend bool operator==(const CoreBinding&, const CoreBinding&) = default;
};

/// Everything of a trace but its instructions.
struct TraceInfo {
  std::string name;
  Target target = Target::NeuronCoreV3;
  std::vector<Work> work;
  std::vector<Tensor> tensors;
  std::vector<SourceLocation> locations = {{}};
  std::vector<std::string> labels = {""};
  std::vector<CoreBinding> cores;
  std::vector<std::string> warnings;  ///< of whoever made the trace; a run's report repeats them
  friend bool operator==(const TraceInfo&, const TraceInfo&) = default;
};

/// Instructions are fetched in blocks of this many, so that memory does not follow a trace's
/// length.
inline constexpr std::uint64_t kBlockInstructions = 256;

/// Where instructions come from: a program in memory or a trace file.
class Code {
 public:
  virtual ~Code() = default;
  [[nodiscard]] virtual const TraceInfo& info() const = 0;
  [[nodiscard]] virtual std::uint32_t programs() const = 0;
  /// Instructions in the stream of one engine. program < programs().
  [[nodiscard]] virtual std::uint64_t size(std::uint32_t program, Engine engine) const = 0;
  /// Replaces `out` by instructions [block * kBlockInstructions, ...) of a stream; fewer than
  /// kBlockInstructions only in its last block. Throws InputError when the block is damaged.
  virtual void read(std::uint32_t program, Engine engine, std::uint64_t block,
                    std::vector<Instr>& out) const = 0;
};

/// The five streams of one core.
struct Program {
  std::array<std::vector<Instr>, kEngines> streams;
  friend bool operator==(const Program&, const Program&) = default;
};

/// A whole trace in memory: what assemblers, importers and tests make.
struct Trace final : Code {
  TraceInfo header;
  std::vector<Program> code;

  [[nodiscard]] const TraceInfo& info() const override { return header; }
  [[nodiscard]] std::uint32_t programs() const override {
    return static_cast<std::uint32_t>(code.size());
  }
  [[nodiscard]] std::uint64_t size(std::uint32_t program, Engine engine) const override;
  void read(std::uint32_t program, Engine engine, std::uint64_t block,
            std::vector<Instr>& out) const override;
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::TensorKind> {
  static constexpr std::array<std::string_view, 5> value = {"input", "output", "weight", "constant",
                                                            "internal"};
};
}  // namespace trn
