#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <deque>
#include <span>
#include <unordered_map>
#include <vector>

#include "isa/instructions.h"
#include "isa/types.h"

namespace trn::isa {

struct RollOptions {
  /// Longest body, in terms: an instruction or a whole inner loop is one.
  std::uint32_t max_body_terms = 1024;
  /// Iterations that are seen before a loop is made of them, 2 or more. Any two alike instructions
  /// are two iterations of something, so 2 finds more loops, and more that are none.
  std::uint32_t min_iterations = 3;
  /// A loop that saves fewer instructions is written out.
  std::uint32_t min_saved = 4;
  std::uint32_t max_depth = 16;
  /// Counters are taken from here, the outermost loop's first, but for those that an instruction
  /// names. When they run out, the innermost loops are written out.
  Register first_register = 48;
  Register last_register = 63;
};

/// One LOOP of the result, in the order of the stream.
struct RolledLoop {
  std::uint32_t location = 0;      ///< SourceRef::location of the body's first instruction
  std::uint64_t instructions = 0;  ///< between LOOP and END_LOOP as written
  std::uint64_t iterations = 0;
  std::uint32_t depth = 0;  ///< loops around it
  friend bool operator==(const RolledLoop&, const RolledLoop&) = default;
};

struct RollSummary {
  std::vector<RolledLoop> loops;
  std::uint64_t pushed = 0;      ///< instructions given
  std::uint64_t written = 0;     ///< instructions of the result, LOOP and END_LOOP included
  std::uint64_t peak_terms = 0;  ///< most terms held at a time
};

/// Finds the loops of one stream whose instructions come one after the other, as from a kernel
/// that is traced, and writes them as LOOP and END_LOOP. Nested loops are found from inside out as
/// they come: memory follows the result, not the stream.
///
/// Iterations are equal but for constant steps of addresses, offsets and values waited for; the
/// latter never step down. COMPARE_BRANCH, LOOP and END_LOOP of the stream stay where they are,
/// stand in no loop that is made here, and get the distances that their targets have in the result.
/// Source: A. Ketterlin, P. Clauss, "Prediction and trace compression of data access addresses
/// through nested loop recognition", CGO 2008.
class Roller {
 public:
  explicit Roller(RollOptions options = {});

  void push(const Instr& instr);
  void push(Instr&& instr) { push(instr); }
  /// The stream; the last call.
  std::vector<Instr> finish();
  /// After finish().
  [[nodiscard]] const RollSummary& summary() const { return summary_; }

 private:
  RollOptions options_;
  RollSummary summary_;
  std::vector<Instr> pending_;
};

/// Undoes Roller: writes out each loop with a constant count whose counter is within the options'
/// registers, with numbers in place of the counter in addresses and values waited for. A loop stays
/// when its body branches, is branched into, or uses the counter otherwise.
std::vector<Instr> unroll(std::span<const Instr> stream, const RollOptions& options = {});

}  // namespace trn::isa
