#include "isa/frontend/roll.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "isa/base/check.h"

namespace trn::isa {
namespace {

/// Numbers farther from 0 are left alone, so that no step of one overflows.
constexpr std::int64_t kFarthest = std::int64_t{1} << 60;
constexpr std::uint32_t kMostIterations = std::numeric_limits<std::int32_t>::max();

// ---- an instruction's numbers and the rest of it ----

/// Calls `visit(affine, is_wait)` for each number of an operand or wait that is present.
template <class Value, class Visit>
void for_each_affine_of(Value& value, const Visit& visit) {
  using T = std::remove_const_t<Value>;
  if constexpr (std::is_same_v<T, Access>) {
    if (value.present()) visit(value.offset, false);
  } else if constexpr (std::is_same_v<T, DmaSide>) {
    if (value.present()) visit(value.address, false);
  } else if constexpr (std::is_same_v<T, ScalarOperand>) {
    if (value.kind == ScalarOperand::Kind::Pointer) visit(value.pointer.offset, false);
  }
}
template <class Instruction, class Visit>
void for_each_affine(Instruction& instr, const Visit& visit) {
  if (instr.sync.wait.present()) visit(instr.sync.wait.value, true);
  std::visit(
      [&](auto& op) {
        for_each_operand<std::remove_cvref_t<decltype(op)>>(
            [&](const auto& operand) { for_each_affine_of(op.*operand.member, visit); });
      },
      instr.op);
}

class Hash {
 public:
  void add(std::uint64_t word) {
    value_ = (value_ ^ word) * 0x9e3779b97f4a7c15U;
    value_ ^= value_ >> 29U;
  }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0x243f6a8885a308d3U;
};

// What a hash leaves out costs a comparison when only that differs.
void add(Hash& hash, const Affine& value) {
  for (std::size_t i = 0; i < value.term_count; ++i) {
    hash.add(value.terms[i].reg);
    hash.add(static_cast<std::uint64_t>(value.terms[i].coefficient));
  }
}
void add(Hash& hash, const Access& value) {
  hash.add(static_cast<std::uint64_t>(value.memory) |
           static_cast<std::uint64_t>(value.dtype) << 8U |
           static_cast<std::uint64_t>(value.start_partition) << 16U |
           static_cast<std::uint64_t>(value.partitions) << 24U |
           static_cast<std::uint64_t>(value.dims) << 32U |
           static_cast<std::uint64_t>(value.offset.term_count) << 40U);
  add(hash, value.offset);
  for (std::size_t i = 0; i < value.dims; ++i)
    hash.add(static_cast<std::uint32_t>(value.free[i].stride) |
             static_cast<std::uint64_t>(value.free[i].size) << 32U);
}
void add(Hash& hash, const DmaSide& value) {
  hash.add(static_cast<std::uint64_t>(value.memory) |
           static_cast<std::uint64_t>(value.dtype) << 8U |
           static_cast<std::uint64_t>(value.dims) << 16U |
           static_cast<std::uint64_t>(value.address.term_count) << 24U |
           static_cast<std::uint64_t>(value.element_bytes) << 32U);
  add(hash, value.address);
  for (std::size_t i = 0; i < value.dims; ++i) {
    hash.add(static_cast<std::uint64_t>(value.pattern[i].stride_bytes));
    hash.add(value.pattern[i].size);
  }
}
void add(Hash& hash, const ScalarOperand& value) {
  hash.add(static_cast<std::uint64_t>(value.kind) |
           static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(value.immediate)) << 32U);
  hash.add(static_cast<std::uint32_t>(value.integer));
  if (value.kind == ScalarOperand::Kind::Pointer) add(hash, value.pointer);
}
void add(Hash& hash, const RegisterOperand& value) {
  hash.add(value.reg | static_cast<std::uint64_t>(static_cast<std::uint32_t>(value.constant))
                           << 8U);
}
void add(Hash& hash, const DmaCompletion& value) {
  hash.add(value.semaphore | static_cast<std::uint64_t>(value.increment) << 16U);
}
void add(Hash& hash, float value) { hash.add(std::bit_cast<std::uint32_t>(value)); }
template <class T>
  requires std::is_integral_v<T> || std::is_enum_v<T>
void add(Hash& hash, T value) {
  hash.add(static_cast<std::uint64_t>(value));
}
// The few with these differ in other operands, too.
void add(Hash& /*hash*/, const RankGroup& /*value*/) {}
void add(Hash& /*hash*/, const PeTile& /*value*/) {}
void add(Hash& /*hash*/, const ShuffleMask& /*value*/) {}
void add(Hash& /*hash*/, const IndexPattern& /*value*/) {}

std::uint64_t hash_of(const Instr& instr) {
  Hash hash;
  hash.add(instr.op.index());
  hash.add(instr.at.location | static_cast<std::uint64_t>(instr.at.label) << 32U);
  hash.add(instr.sync.wait.semaphore |
           static_cast<std::uint64_t>(instr.sync.wait.condition) << 16U |
           static_cast<std::uint64_t>(instr.sync.update.semaphore) << 32U |
           static_cast<std::uint64_t>(instr.sync.update.kind) << 48U);
  hash.add(instr.sync.update.value);
  std::visit(
      [&]<class T>(const T& op) {
        for_each_operand<T>([&](const auto& operand) { add(hash, op.*operand.member); });
      },
      instr.op);
  return hash.value();
}

bool same_rest(const Affine& a, const Affine& b) {
  return a.term_count == b.term_count && a.terms == b.terms;
}
bool same_rest(const Access& a, const Access& b) {
  return a.memory == b.memory && a.dtype == b.dtype && a.start_partition == b.start_partition &&
         a.partitions == b.partitions && a.dims == b.dims && same_rest(a.offset, b.offset) &&
         a.free == b.free && (a.present() || a.offset.base == b.offset.base);
}
bool same_rest(const DmaSide& a, const DmaSide& b) {
  return a.memory == b.memory && a.dtype == b.dtype && a.dims == b.dims &&
         a.element_bytes == b.element_bytes && same_rest(a.address, b.address) &&
         a.pattern == b.pattern && (a.present() || a.address.base == b.address.base);
}
bool same_rest(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}
bool same_rest(const ScalarOperand& a, const ScalarOperand& b) {
  if (a.kind != b.kind || !same_rest(a.immediate, b.immediate) || a.integer != b.integer)
    return false;
  return a.kind == ScalarOperand::Kind::Pointer ? same_rest(a.pointer, b.pointer)
                                                : a.pointer == b.pointer;
}
template <class T>
bool same_rest(const T& a, const T& b) {
  return a == b;
}

/// Whether two instructions are equal but for the bases of their numbers.
bool same_rest(const Instr& a, const Instr& b) {
  if (a.op.index() != b.op.index() || a.at != b.at || a.sync.update != b.sync.update ||
      a.sync.wait.semaphore != b.sync.wait.semaphore ||
      a.sync.wait.condition != b.sync.wait.condition ||
      !same_rest(a.sync.wait.value, b.sync.wait.value))
    return false;
  if (!a.sync.wait.present() && a.sync.wait.value.base != b.sync.wait.value.base) return false;
  return std::visit(
      [&]<class T>(const T& left) {
        const T& right = *std::get_if<T>(&b.op);
        bool same = true;
        for_each_operand<T>([&](const auto& operand) {
          same = same && same_rest(left.*operand.member, right.*operand.member);
        });
        return same;
      },
      a.op);
}

// ---- registers and jumps ----

void add_register(std::bitset<kRegisters>& out, std::size_t reg, std::size_t count = 1) {
  for (std::size_t i = reg; i < std::min<std::size_t>(reg + count, kRegisters); ++i) out.set(i);
}

/// Registers that an instruction reads or writes other than in addresses and values waited for.
std::bitset<kRegisters> registers_of(const Op& op) {
  std::bitset<kRegisters> out;
  std::visit(
      [&]<class T>(const T& instr) {
        for_each_operand<T>([&](const auto& operand) {
          const auto& value = instr.*operand.member;
          if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, RegisterOperand>)
            add_register(out, value.reg);
        });
        if constexpr (std::is_same_v<T, TensorLoad>) {
          add_register(out, instr.dst, instr.count);
        } else if constexpr (std::is_same_v<T, RegisterStore>) {
          add_register(out, instr.src);
        } else if constexpr (requires { instr.counter; }) {
          add_register(out, instr.counter);
        } else if constexpr (requires { Register{instr.dst}; }) {
          add_register(out, instr.dst);
        }
      },
      op);
  return out;
}

/// How far a COMPARE_BRANCH, LOOP or END_LOOP may go.
std::int64_t* distance_of(Op& op) {
  if (auto* branch = std::get_if<CompareBranch>(&op)) return &branch->target;
  if (auto* loop = std::get_if<Loop>(&op)) return &loop->end;
  if (auto* end = std::get_if<EndLoop>(&op)) return &end->begin;
  return nullptr;
}
std::optional<std::int64_t> distance_of(const Op& op) {
  if (const auto* branch = std::get_if<CompareBranch>(&op)) return branch->target;
  if (const auto* loop = std::get_if<Loop>(&op)) return loop->end;
  if (const auto* end = std::get_if<EndLoop>(&op)) return end->begin;
  return std::nullopt;
}

RegisterOperand constant(std::uint32_t count) {
  return {kNoRegister, static_cast<std::int32_t>(count)};
}

}  // namespace

Roller::Roller(RollOptions options) : options_(options) {
  TRN_CHECK(options.min_iterations >= 2, "loops of {} iterations", options.min_iterations);
  TRN_CHECK(options.last_register < kRegisters, "register {}", options.last_register);
}

// ---- shapes ----

std::uint32_t Roller::add_shape(Shape shape) {
  const auto number = static_cast<std::uint32_t>(shapes_.size());
  const auto [known, added] = shape_of_hash_.try_emplace(shape.hash, number);
  if (!added) shape.next = std::exchange(known->second, number);
  shapes_.push_back(std::move(shape));
  return number;
}

std::uint32_t Roller::intern(const Instr& instr, std::uint64_t hash) {
  const auto known = shape_of_hash_.find(hash);
  std::uint32_t number = known == shape_of_hash_.end() ? kNone : known->second;
  for (; number != kNone; number = shapes_[number].next) {
    const Shape& shape = shapes_[number];
    if (shape.instruction != kNone && same_rest(instructions_[shape.instruction], instr))
      return number;
  }
  Shape shape;
  shape.hash = hash;
  shape.instruction = static_cast<std::uint32_t>(instructions_.size());
  instructions_.push_back(instr);
  named_ |= registers_of(instr.op);
  for_each_affine(instr, [&](const Affine& value, bool wait) {
    shape.slots.push_back({value.term_count, wait});
    for (std::size_t i = 0; i < value.term_count; ++i) add_register(named_, value.terms[i].reg);
  });
  return add_shape(std::move(shape));
}

std::uint32_t Roller::intern(std::vector<Part> body, std::vector<std::int64_t> steps) {
  Hash hash;
  for (const Part& part : body)
    hash.add(part.shape | static_cast<std::uint64_t>(part.count) << 32U);
  for (const std::int64_t step : steps) hash.add(static_cast<std::uint64_t>(step));
  const auto known = shape_of_hash_.find(hash.value());
  std::uint32_t number = known == shape_of_hash_.end() ? kNone : known->second;
  for (; number != kNone; number = shapes_[number].next) {
    const Shape& shape = shapes_[number];
    if (shape.instruction == kNone && shape.body == body && shape.steps == steps) return number;
  }
  Shape shape;
  shape.hash = hash.value();
  shape.length = 0;
  shape.written = 0;
  shape.slots.reserve(steps.size());
  for (const Part& part : body) {
    const Shape& inner = shapes_[part.shape];
    shape.depth = std::max(shape.depth, inner.depth + 1);
    shape.length += length_of(part);
    shape.written += written_of(part);
    shape.slots.insert(shape.slots.end(), inner.slots.begin(), inner.slots.end());
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i] != 0) ++shape.slots[i].registers;
  }
  shape.body = std::move(body);
  shape.steps = std::move(steps);
  return add_shape(std::move(shape));
}

std::uint64_t Roller::length_of(Part part) const { return shapes_[part.shape].length * part.count; }

/// Whether a loop saves enough to be one.
bool Roller::kept(Part part) const {
  const std::uint64_t body = shapes_[part.shape].written;
  return body * part.count >= body + 2 + options_.min_saved;
}

std::uint64_t Roller::written_of(Part part) const {
  const Shape& shape = shapes_[part.shape];
  if (shape.instruction != kNone) return 1;
  return kept(part) ? shape.written + 2 : shape.written * part.count;
}

// ---- the stack of terms ----

void Roller::push(const Instr& instr) {
  const std::uint64_t here = summary_.pushed++;
  pushed_bases_.clear();
  bool far = false;
  for_each_affine(instr, [&](const Affine& value, bool /*wait*/) {
    far = far || value.base > kFarthest || value.base < -kFarthest;
    pushed_bases_.push_back(value.base);
  });
  const std::optional<std::int64_t> distance = distance_of(instr.op);
  if (distance) note_jump(*distance);
  const bool target = !ahead_.empty() && *ahead_.begin() == here;
  if (target) ahead_.erase(ahead_.begin());
  if (target || far) floor_ = terms_.size();
  push_term({intern(instr, hash_of(instr))}, here, pushed_bases_);
  if (distance || far) {
    floor_ = terms_.size();
    return;
  }
  while (extend_loop() || make_loop()) {
  }
}

void Roller::note_jump(std::int64_t distance) {
  const std::uint64_t here = summary_.pushed - 1;
  const std::int64_t to = static_cast<std::int64_t>(here) + distance;
  if (to < 0) return;  // nowhere: the validator says so
  const auto position = static_cast<std::uint64_t>(to);
  jumps_.push_back({here, position});
  if (position > here) {
    ahead_.insert(position);
  } else if (position < here) {
    split_at(position);
  }
}

void Roller::push_term(Part part, std::uint64_t begin, std::span<const std::int64_t> bases) {
  const auto number = static_cast<std::uint32_t>(terms_.size());
  Shape& shape = shapes_[part.shape];
  Term term;
  term.part = part;
  term.begin = begin;
  term.bases = bases_.size();
  term.previous = std::exchange(shape.last, number);
  if (shape.instruction == kNone) {
    const std::size_t due = number + 1 + shape.body.size();
    if (due_.size() <= due) due_.resize(due + 1, kNone);
    term.next_due = std::exchange(due_[due], number);
  }
  bases_.insert(bases_.end(), bases.begin(), bases.end());
  terms_.push_back(term);
  summary_.peak_terms = std::max<std::uint64_t>(summary_.peak_terms, terms_.size());
}

void Roller::pop_terms(std::size_t count) {
  for (; count > 0; --count) {
    const Term& term = terms_.back();
    Shape& shape = shapes_[term.part.shape];
    shape.last = term.previous;
    if (shape.instruction == kNone) due_[terms_.size() + shape.body.size()] = term.next_due;
    bases_.resize(term.bases);
    terms_.pop_back();
  }
}

/// Makes a term begin at `position`, which an instruction after it jumps to.
void Roller::split_at(std::uint64_t position) {
  auto after = std::upper_bound(terms_.begin(), terms_.end(), position,
                                [](std::uint64_t at, const Term& term) { return at < term.begin; });
  const auto around = static_cast<std::size_t>(after - terms_.begin()) - 1;
  if (terms_[around].begin == position) return;
  const std::vector<Term> tail(terms_.begin() + static_cast<std::ptrdiff_t>(around), terms_.end());
  const std::vector<std::int64_t> bases(
      bases_.begin() + static_cast<std::ptrdiff_t>(tail.front().bases), bases_.end());
  pop_terms(tail.size());
  for (const Term& term : tail) {
    const std::span<const std::int64_t> own = std::span(bases).subspan(
        term.bases - tail.front().bases, shapes_[term.part.shape].slots.size());
    push_split(term.part, term.begin, own, position);
  }
}

void Roller::push_split(Part part, std::uint64_t begin, std::span<const std::int64_t> bases,
                        std::uint64_t position) {
  if (part.count == 0) return;
  if (position <= begin || position >= begin + length_of(part)) {
    push_term(part, begin, bases);
    return;
  }
  const Shape& loop = shapes_[part.shape];
  const auto moved = [&](std::uint64_t iterations) {
    std::vector<std::int64_t> out(bases.begin(), bases.end());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] += static_cast<std::int64_t>(iterations) * loop.steps[i];
    return out;
  };
  const std::uint64_t before = (position - begin) / loop.length;
  if (before > 0) push_term({part.shape, static_cast<std::uint32_t>(before)}, begin, bases);
  std::uint64_t done = before;
  if (std::uint64_t at = begin + before * loop.length; at != position) {
    const std::vector<std::int64_t> iteration = moved(done++);
    std::size_t slot = 0;
    for (const Part& inner : loop.body) {
      const std::size_t slots = shapes_[inner.shape].slots.size();
      push_split(inner, at, std::span(iteration).subspan(slot, slots), position);
      at += length_of(inner);
      slot += slots;
    }
  }
  if (done < part.count)
    push_term({part.shape, static_cast<std::uint32_t>(part.count - done)},
              begin + done * loop.length, moved(done));
}

// ---- loops ----

/// Whether the terms from `first` on are what the loop would do next.
bool Roller::is_next_iteration(const Term& loop, std::size_t first) const {
  const Shape& shape = shapes_[loop.part.shape];
  for (std::size_t i = shape.body.size(); i-- > 0;) {
    if (terms_[first + i].part != shape.body[i]) return false;
  }
  const std::size_t next = terms_[first].bases;
  for (std::size_t i = 0; i < shape.steps.size(); ++i) {
    const std::int64_t moved = shape.steps[i] * static_cast<std::int64_t>(loop.part.count);
    if (bases_[next + i] != bases_[loop.bases + i] + moved) return false;
  }
  return true;
}

/// Makes the last terms one more iteration of the loop below them, if they are.
bool Roller::extend_loop() {
  const std::size_t size = terms_.size();
  if (size >= due_.size()) return false;
  for (std::uint32_t number = due_[size]; number != kNone; number = terms_[number].next_due) {
    if (number < floor_) break;
    if (terms_[number].part.count >= kMostIterations) continue;
    if (!is_next_iteration(terms_[number], number + std::size_t{1})) continue;
    pop_terms(size - number - 1);
    Term& loop = terms_.back();
    ++loop.part.count;
    loop.run_period = loop.run_length = 0;
    return true;
  }
  return false;
}

/// Whether the term and those one, two ... periods below it are iterations of one another.
bool Roller::repeats(std::size_t term, std::size_t period) const {
  const Term& top = terms_[term];
  for (std::uint32_t i = 1; i < options_.min_iterations; ++i) {
    if (terms_[term - i * period].part != top.part) return false;
  }
  const Shape& shape = shapes_[top.part.shape];
  if (shape.depth >= options_.max_depth) return false;
  const std::vector<Slot>& slots = shape.slots;
  for (std::size_t slot = 0; slot < slots.size(); ++slot) {
    std::int64_t later = bases_[top.bases + slot];
    std::int64_t step = 0;
    for (std::uint32_t i = 1; i < options_.min_iterations; ++i) {
      const std::int64_t earlier = bases_[terms_[term - i * period].bases + slot];
      if (i > 1 && later - earlier != step) return false;
      step = later - earlier;
      later = earlier;
    }
    if (step == 0) continue;
    if (slots[slot].registers == Affine::kMaxTerms || (slots[slot].wait && step < 0)) return false;
  }
  return true;
}

/// Makes the last terms a loop, if they are its first iterations.
bool Roller::make_loop() {
  const std::size_t size = terms_.size();
  const std::size_t longest =
      std::min<std::size_t>((size - floor_) / options_.min_iterations, options_.max_body_terms);
  Term& top = terms_.back();
  const Term* below = size > 1 ? &terms_[size - 2] : nullptr;
  for (std::uint32_t same = top.previous; same != kNone; same = terms_[same].previous) {
    const std::size_t period = size - 1 - same;
    if (period > longest) break;
    if (!repeats(size - 1, period)) continue;
    std::uint32_t length = 1;
    if (below != nullptr && below->run_period == period) length += below->run_length;
    while (length < period && repeats(size - 1 - length, period)) ++length;
    if (length >= period) {
      replace_by_loop(period);
      return true;
    }
    if (length > top.run_length) {
      top.run_length = length;
      top.run_period = static_cast<std::uint32_t>(period);
    }
  }
  return false;
}

void Roller::replace_by_loop(std::size_t period) {
  const std::size_t size = terms_.size();
  const std::size_t first = size - options_.min_iterations * period;
  const std::size_t bases = terms_[first].bases;
  const std::size_t slots = terms_[first + period].bases - bases;
  std::vector<Part> body;
  body.reserve(period);
  for (std::size_t i = 0; i < period; ++i) body.push_back(terms_[first + i].part);
  std::vector<std::int64_t> steps(slots);
  for (std::size_t i = 0; i < slots; ++i) steps[i] = bases_[bases + slots + i] - bases_[bases + i];
  const std::vector<std::int64_t> start(
      bases_.begin() + static_cast<std::ptrdiff_t>(bases),
      bases_.begin() + static_cast<std::ptrdiff_t>(bases + slots));
  const std::uint64_t begin = terms_[first].begin;
  pop_terms(size - first);
  push_term({intern(std::move(body), std::move(steps)), options_.min_iterations}, begin, start);
}

// ---- the result ----

std::vector<Instr> Roller::finish() {
  for (std::size_t reg = options_.first_register; reg <= options_.last_register; ++reg) {
    if (!named_[reg]) counters_.push_back(static_cast<Register>(reg));
  }
  std::vector<std::uint64_t> written_at;
  written_at.reserve(terms_.size());
  for (const Term& term : terms_) {
    written_at.push_back(out_.size());
    write(term.part, std::span(bases_).subspan(term.bases, shapes_[term.part.shape].slots.size()),
          0);
  }
  aim_jumps(written_at);
  summary_.written = out_.size();
  return std::move(out_);
}

void Roller::write(Part part, std::span<const std::int64_t> bases, std::size_t slot) {
  const Shape& shape = shapes_[part.shape];
  if (shape.instruction == kNone) {
    write_loop(part, bases, slot);
    return;
  }
  out_.push_back(instructions_[shape.instruction]);
  std::size_t i = 0;
  for_each_affine(out_.back(), [&](Affine& value, bool /*wait*/) {
    value.base = bases[i];
    for (const Level& level : levels_) {
      const std::int64_t step = shapes_[level.shape].steps[slot + i - level.first_slot];
      if (step != 0) value.terms[value.term_count++] = {level.counter, step};
    }
    ++i;
  });
}

void Roller::write_loop(Part part, std::span<const std::int64_t> bases, std::size_t slot) {
  const Shape& shape = shapes_[part.shape];
  if (!kept(part) || levels_.size() == counters_.size()) {
    std::vector<std::int64_t> iteration(bases.begin(), bases.end());
    for (std::uint32_t i = 0; i < part.count; ++i) {
      write_body(shape, iteration, slot);
      for (std::size_t j = 0; j < iteration.size(); ++j) iteration[j] += shape.steps[j];
    }
    return;
  }
  const Register counter = counters_[levels_.size()];
  const SourceRef place = place_of(part.shape);
  const std::size_t entry = summary_.loops.size();
  summary_.loops.push_back(
      {place.location, 0, part.count, static_cast<std::uint32_t>(levels_.size())});
  const std::size_t begin = out_.size();
  out_.push_back({{}, place, Loop{counter, constant(part.count), 0}});
  levels_.push_back({counter, part.shape, slot});
  write_body(shape, bases, slot);
  levels_.pop_back();
  const auto distance = static_cast<std::int64_t>(out_.size() - begin);
  std::get<Loop>(out_[begin].op).end = distance;
  out_.push_back({{}, place, EndLoop{counter, constant(part.count), -distance}});
  summary_.loops[entry].instructions = static_cast<std::uint64_t>(distance - 1);
}

void Roller::write_body(const Shape& loop, std::span<const std::int64_t> bases, std::size_t slot) {
  std::size_t first = 0;
  for (const Part& part : loop.body) {
    const std::size_t slots = shapes_[part.shape].slots.size();
    write(part, bases.subspan(first, slots), slot + first);
    first += slots;
  }
}

/// Where a loop's first instruction comes from.
SourceRef Roller::place_of(std::uint32_t shape) const {
  while (shapes_[shape].instruction == kNone) shape = shapes_[shape].body.front().shape;
  return instructions_[shapes_[shape].instruction].at;
}

/// Gives jumps the distances to where their targets are now; written_at: of each term.
void Roller::aim_jumps(std::span<const std::uint64_t> written_at) {
  const auto place = [&](std::uint64_t position) {
    if (position == summary_.pushed) return static_cast<std::int64_t>(out_.size());
    const auto term =
        std::lower_bound(terms_.begin(), terms_.end(), position,
                         [](const Term& one, std::uint64_t at) { return one.begin < at; });
    TRN_CHECK(term != terms_.end() && term->begin == position, "#{} is within a term", position);
    return static_cast<std::int64_t>(written_at[static_cast<std::size_t>(term - terms_.begin())]);
  };
  for (const Jump& jump : jumps_) {
    if (jump.to > summary_.pushed) continue;
    const std::int64_t from = place(jump.from);
    *distance_of(out_[static_cast<std::size_t>(from)].op) = place(jump.to) - from;
  }
}

// ---- the way back ----

namespace {

class Unroller {
 public:
  Unroller(std::span<const Instr> stream, const RollOptions& options)
      : stream_(stream),
        options_(options),
        written_at_(stream.size() + 1),
        entered_(stream.size() + 1) {
    for (std::size_t i = 0; i < stream.size(); ++i) {
      const auto* branch = std::get_if<CompareBranch>(&stream[i].op);
      if (branch != nullptr) entered_[target(i, branch->target)] = true;
    }
  }

  std::vector<Instr> run() {
    write(0, stream_.size());
    written_at_[stream_.size()] = out_.size();
    for (const auto& [at, from] : branches_) {
      std::int64_t& distance = std::get<CompareBranch>(out_[at].op).target;
      const std::size_t to = target(from, distance);
      if (to != from) distance = difference(written_at_[to], at);
    }
    return std::move(out_);
  }

 private:
  /// Where a jump goes; nowhere is where it stands.
  [[nodiscard]] std::size_t target(std::size_t from, std::int64_t distance) const {
    const std::int64_t to = static_cast<std::int64_t>(from) + distance;
    if (to < 0 || to > static_cast<std::int64_t>(stream_.size())) return from;
    return static_cast<std::size_t>(to);
  }

  /// The END_LOOP of a loop that can be written out; 0: it stays.
  [[nodiscard]] std::size_t end_of(std::size_t begin) const {
    const auto* loop = std::get_if<Loop>(&stream_[begin].op);
    if (loop == nullptr || loop->count.reg != kNoRegister ||
        loop->counter < options_.first_register || loop->counter > options_.last_register)
      return 0;
    const std::size_t end = target(begin, loop->end);
    if (end <= begin || end == stream_.size()) return 0;
    const auto* last = std::get_if<EndLoop>(&stream_[end].op);
    if (last == nullptr || target(end, last->begin) != begin) return 0;
    for (std::size_t i = begin + 1; i < end; ++i) {
      const Op& op = stream_[i].op;
      if (entered_[i] || std::holds_alternative<CompareBranch>(op) ||
          registers_of(op)[loop->counter])
        return 0;
    }
    return entered_[end] ? 0 : end;
  }

  void write(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      written_at_[i] = out_.size();
      if (const std::size_t last = end_of(i); last != 0) {
        const auto& loop = std::get<Loop>(stream_[i].op);
        values_.push_back({loop.counter, 0});
        for (std::int32_t round = 0; round < loop.count.constant; ++round) {
          values_.back().second = round;
          write(i + 1, last);
        }
        values_.pop_back();
        i = last;
        continue;
      }
      out_.push_back(stream_[i]);
      if (std::holds_alternative<CompareBranch>(stream_[i].op)) {
        branches_.emplace_back(out_.size() - 1, i);
      } else if (const auto* last = std::get_if<EndLoop>(&stream_[i].op)) {
        close(i, target(i, last->begin));
      }
      for_each_affine(out_.back(), [&](Affine& value, bool /*wait*/) { value = known(value); });
    }
  }

  /// Gives a loop that stays the length that its body has now.
  void close(std::size_t end, std::size_t begin) {
    const auto* loop = std::get_if<Loop>(&stream_[begin].op);
    if (loop == nullptr || target(begin, loop->end) != end) return;
    const std::int64_t length = difference(written_at_[end], written_at_[begin]);
    std::get<Loop>(out_[written_at_[begin]].op).end = length;
    std::get<EndLoop>(out_.back().op).begin = -length;
  }
  static std::int64_t difference(std::size_t to, std::size_t from) {
    return static_cast<std::int64_t>(to) - static_cast<std::int64_t>(from);
  }

  /// The number with the values that are known in place of counters.
  [[nodiscard]] Affine known(const Affine& value) const {
    Affine out = value.base;
    for (std::size_t i = 0; i < value.term_count; ++i) {
      const Affine::Term& term = value.terms[i];
      const auto found = std::find_if(values_.rbegin(), values_.rend(),
                                      [&](const auto& one) { return one.first == term.reg; });
      if (found == values_.rend()) {
        out.terms[out.term_count++] = term;
      } else {
        out.base += term.coefficient * found->second;
      }
    }
    return out;
  }

  std::span<const Instr> stream_;
  RollOptions options_;
  std::vector<std::size_t> written_at_;
  std::vector<bool> entered_;  ///< a branch goes there
  std::vector<std::pair<Register, std::int64_t>> values_;
  std::vector<std::pair<std::size_t, std::size_t>> branches_;  ///< where it is now and was
  std::vector<Instr> out_;
};

}  // namespace

std::vector<Instr> unroll(std::span<const Instr> stream, const RollOptions& options) {
  return Unroller(stream, options).run();
}

}  // namespace trn::isa
