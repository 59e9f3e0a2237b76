#pragma once

#include <bitset>
#include <cstdint>
#include <deque>
#include <set>
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

  /// The stream's next instruction.
  void push(const Instr& instr);
  /// The stream; the last call.
  std::vector<Instr> finish();
  /// After finish().
  [[nodiscard]] const RollSummary& summary() const { return summary_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  /// What is equal of two terms, one an iteration of the other: a shape and how often it repeats.
  struct Part {
    std::uint32_t shape = 0;
    std::uint32_t count = 1;  ///< iterations of a loop
    friend bool operator==(const Part&, const Part&) = default;
  };
  /// A number that steps may move. A term has its numbers in the order of its instructions.
  struct Slot {
    std::uint8_t registers = 0;  ///< that move it already
    bool wait = false;           ///< a value waited for
    friend bool operator==(const Slot&, const Slot&) = default;
  };
  /// An instruction or a loop without the bases of its numbers; each is kept once.
  struct Shape {
    std::uint64_t hash = 0;
    std::uint32_t next = kNone;         ///< another shape of this hash
    std::uint32_t last = kNone;         ///< the highest term of this shape
    std::uint32_t instruction = kNone;  ///< index into instructions_; kNone: a loop
    std::uint32_t depth = 0;            ///< loops in it, nested
    std::uint64_t length = 1;           ///< instructions of an iteration
    std::uint64_t written = 1;          ///< instructions of an iteration in the result
    std::vector<Slot> slots;
    std::vector<Part> body;           ///< of a loop
    std::vector<std::int64_t> steps;  ///< of a loop: what an iteration adds to each slot
  };
  struct Term {
    Part part{};
    std::uint64_t begin = 0;         ///< index of its first instruction among those pushed
    std::size_t bases = 0;           ///< its first number in bases_
    std::uint32_t previous = kNone;  ///< term of the same shape below
    std::uint32_t next_due = kNone;  ///< another loop whose iteration ends where this one's does
    std::uint32_t run_period = 0;    ///< the last run_length terms repeat what is
    std::uint32_t run_length = 0;    ///< run_period terms below them
  };
  /// A loop around what is being written.
  struct Level {
    Register counter = 0;
    std::uint32_t shape = 0;
    std::size_t first_slot = 0;
  };
  struct Jump {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
  };

  [[nodiscard]] std::uint32_t intern(const Instr& instr, std::uint64_t hash);
  [[nodiscard]] std::uint32_t intern(std::vector<Part> body, std::vector<std::int64_t> steps);
  std::uint32_t add_shape(Shape shape);
  void note_jump(std::int64_t distance);
  void push_term(Part part, std::uint64_t begin, std::span<const std::int64_t> bases);
  void pop_terms(std::size_t count);
  [[nodiscard]] std::uint64_t length_of(Part part) const;
  void split_at(std::uint64_t position);
  void push_split(Part part, std::uint64_t begin, std::span<const std::int64_t> bases,
                  std::uint64_t position);

  bool extend_loop();
  bool make_loop();
  [[nodiscard]] bool is_next_iteration(const Term& loop, std::size_t first) const;
  [[nodiscard]] bool repeats(std::size_t term, std::size_t period) const;
  void replace_by_loop(std::size_t period);

  [[nodiscard]] bool kept(Part part) const;
  [[nodiscard]] std::uint64_t written_of(Part part) const;
  void write(Part part, std::span<const std::int64_t> bases, std::size_t slot);
  void write_loop(Part part, std::span<const std::int64_t> bases, std::size_t slot);
  void write_body(const Shape& loop, std::span<const std::int64_t> bases, std::size_t slot);
  [[nodiscard]] SourceRef place_of(std::uint32_t shape) const;
  void aim_jumps(std::span<const std::uint64_t> written_at);

  RollOptions options_;
  RollSummary summary_;

  std::deque<Instr> instructions_;
  std::deque<Shape> shapes_;
  std::unordered_map<std::uint64_t, std::uint32_t> shape_of_hash_;
  std::bitset<kRegisters> named_;  ///< registers of the instructions' own

  std::vector<Term> terms_;          ///< a stack: all that was pushed, folded
  std::vector<std::int64_t> bases_;  ///< of terms_
  std::size_t floor_ = 0;            ///< terms below take no part in loops any more
  std::vector<std::uint32_t> due_;   ///< by number of terms: the loop that may gain an iteration
  std::vector<std::int64_t> pushed_bases_;
  std::vector<Jump> jumps_;
  std::set<std::uint64_t> ahead_;  ///< targets of jumps forward

  std::vector<Register> counters_;
  std::vector<Level> levels_;
  std::vector<Instr> out_;
};

/// Undoes Roller: writes out each loop with a constant count whose counter is within the options'
/// registers, with numbers in place of the counter in addresses and values waited for. A loop stays
/// when its body branches, is branched into, or uses the counter otherwise.
std::vector<Instr> unroll(std::span<const Instr> stream, const RollOptions& options = {});

}  // namespace trn::isa
