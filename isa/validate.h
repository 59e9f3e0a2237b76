#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/base/error.h"
#include "isa/program.h"

namespace trn::isa {

/// What the machine holds, as its configuration says; the defaults are Trainium2's.
struct ValidateLimits {
  Target target = Target::NeuronCoreV3;
  std::uint32_t sbuf_partition_bytes = 224 * 1024;  ///< docs/sources.md#a2-sbuf
  std::uint32_t psum_partition_bytes = 16 * 1024;   ///< docs/sources.md#a2-psum
  std::uint32_t psum_bank_bytes = 2 * 1024;         ///< ditto
  std::uint32_t semaphore_max = 0xffff;
};

/// Gathers what is wrong with a trace.
class Findings {
 public:
  /// file: what messages call the trace.
  explicit Findings(std::string_view file) : file_(file) {}

  /// path: `program 0 Tensor #12 MATMUL.dst`.
  void add(std::string_view path, std::string_view message);
  [[nodiscard]] bool full() const { return found_.size() >= kMost; }
  [[nodiscard]] bool empty() const { return found_.empty(); }
  /// Throws one InputError with all that was found, if any.
  void throw_if_any() const;

  struct Finding {
    std::string path;
    std::string message;
  };
  /// What was found first; not empty().
  [[nodiscard]] const Finding& first() const { return found_.front(); }

  static constexpr std::size_t kMost = 20;

 private:
  std::string file_;
  std::vector<Finding> found_{};
};

/// Checks the instructions of one stream as they come: the limits of each operand, the rules that
/// tie operands together, loops and branches, and addresses, which it takes at the extremes of the
/// enclosing loops whose counts are constants and of the ranks that run the program. Addresses that
/// follow other registers are checked by the run itself.
class StreamValidator {
 public:
  /// info, limits and findings outlive it. size: instructions in the stream.
  StreamValidator(const TraceInfo& info, const ValidateLimits& limits, std::uint32_t program,
                  Engine engine, std::uint64_t size, Findings& findings);

  /// Checks the instruction at `index`. Usually the next one: after a gap, nothing is known of the
  /// loops around it and only the instruction itself is checked.
  void check(std::uint64_t index, const Instr& instr);
  /// Checks that all loops have ended; after the last instruction.
  void finish();

 private:
  struct Interval {
    std::int64_t low = 0;
    std::int64_t high = 0;
  };
  struct OpenLoop {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Loop loop{};
    std::optional<Interval> counter;  ///< its values, when they are known
  };

  template <class T>
  void check_op(const T& op);
  template <class T>
  void check_rules(const T& op);
  template <class Member>
  void check_operand(std::string_view name, const Member& value, const Limits& limits);
  void check_access(std::string_view name, const Access& access, const Limits& limits);
  void check_side(std::string_view name, const DmaSide& side, const Limits& limits);
  void check_sbuf_side(std::string_view name, const DmaSide& side, std::int64_t address);
  void check_sync(const Sync& sync);

  void rule(const LdWeights& op);
  void rule(const Matmul& op);
  void rule(const Copy& op);
  void rule(const TensorReduce& op);
  void rule(const TensorScalar& op);
  void rule(const TensorPartitionReduce& op);
  void rule(const NcStreamShuffle& op);
  void rule(const DmaDirect2d& op);
  void rule(const DmaTranspose& op);
  void rule(const DmaCompute& op);
  void rule(const TensorLoad& op);
  void rule(const RegisterStore& op);
  void rule(const CompareBranch& op);
  void rule(const Loop& op);
  void rule(const EndLoop& op);
  void rule(const SemaphoreRangeClear& op);

  void array_rule(PerformanceMode mode, Sparsity sparsity, bool transpose, const Access& src,
                  std::uint32_t free_max, const PeTile& tile);
  void dma_rule(DescriptorMode mode, const Access& index);
  void bitwise_rule(std::string_view name, AluOp op, const Access& src);
  void equal_elements(std::string_view name, const Access& a, std::uint64_t expected);
  void same_shape(std::string_view name, const Access& a, const Access& reference);
  void not_both_psum(std::string_view names, const Access& a, const Access& b);
  void writes_register(Register reg, std::uint32_t count);

  /// Values that an affine number may take; none when a register of it is unknown.
  [[nodiscard]] std::optional<Interval> range(const Affine& value) const;
  [[nodiscard]] std::optional<Interval> range(Register reg) const;

  template <class... Args>
  void report(std::string_view operand, std::string_view format, const Args&... args);

  const TraceInfo& info_;
  const ValidateLimits& limits_;
  std::uint32_t program_;
  Engine engine_;
  std::uint64_t size_;
  Findings& findings_;

  std::optional<Interval> ranks_;
  std::vector<OpenLoop> loops_;
  std::uint64_t next_ = 0;
  bool loops_known_ = true;
  std::uint64_t index_ = 0;       ///< of the instruction being checked
  const Instr* instr_ = nullptr;  ///< ditto
};

/// Checks what is not instructions: cores and tensors.
void validate_info(const TraceInfo& info, const ValidateLimits& limits, Findings& findings);

/// Checks a whole trace; throws one InputError with up to Findings::kMost errors, each with engine,
/// index and mnemonic, operand, limit, the value found, and the line of the user's source.
/// file: what messages call the trace.
void validate(const Code& code, const ValidateLimits& limits, std::string_view file);

}  // namespace trn::isa
