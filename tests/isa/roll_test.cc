// Loops found in streams that arrive unrolled.
#include "isa/frontend/roll.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <initializer_list>
#include <random>
#include <string>
#include <vector>

#include "isa/codec.h"
#include "isa/program.h"
#include "isa/validate.h"
#include "tests/isa/random_instr.h"
#include "tests/support/instructions.h"

namespace trn::isa {
namespace {

using testing::ElementsAre;
using trn::test::sbuf;

/// COPY from byte `src` to byte `dst`, of this line.
Instr copy(std::int64_t src, std::int64_t dst = 0, std::uint32_t line = 1) {
  Instr instr;
  instr.at.location = line;
  instr.op = Copy{sbuf(16, Dtype::Fp32, src), sbuf(16, Dtype::Fp32, trn::test::kScratch + dst)};
  return instr;
}
Instr waits(Instr instr, SemaphoreId semaphore, std::int64_t value) {
  instr.sync.wait = {semaphore, WaitCondition::GreaterEqual, value};
  return instr;
}
Instr updates(Instr instr, SemaphoreId semaphore) {
  instr.sync.update.semaphore = semaphore;
  return instr;
}
Instr branch(std::int64_t target) {
  Instr instr;
  instr.op = CompareBranch{CompareOp::Less, {1, 0}, {kNoRegister, 10}, target};
  return instr;
}
Instr of(const Op& op) {
  Instr instr;
  instr.op = op;
  return instr;
}

using Stream = std::vector<Instr>;

/// What a trace holds of each instruction: equal bytes are equal instructions.
std::vector<std::vector<std::uint8_t>> bytes_of(const Stream& stream) {
  std::vector<std::vector<std::uint8_t>> all;
  for (const Instr& instr : stream) {
    ByteWriter out;
    SourceRef last;
    encode(instr, last, out);
    all.emplace_back(out.bytes().begin(), out.bytes().end());
  }
  return all;
}

struct Rolled {
  Stream stream;
  RollSummary summary;
};
Rolled roll(const Stream& stream, const RollOptions& options = {}) {
  Roller roller(options);
  for (const Instr& instr : stream) roller.push(instr);
  Rolled out;
  out.stream = roller.finish();
  out.summary = roller.summary();
  return out;
}

/// The rolled form of a stream that is checked to unroll to the same.
Rolled checked(const Stream& stream, const RollOptions& options = {}) {
  Rolled rolled = roll(stream, options);
  EXPECT_EQ(bytes_of(unroll(rolled.stream, options)), bytes_of(stream));
  EXPECT_EQ(rolled.summary.pushed, stream.size());
  EXPECT_EQ(rolled.summary.written, rolled.stream.size());
  return rolled;
}

std::vector<std::string_view> names(const Stream& stream) {
  std::vector<std::string_view> all;
  for (const Instr& instr : stream) all.push_back(mnemonic(instr));
  return all;
}
const Affine& src_of(const Instr& instr) { return std::get<Copy>(instr.op).src.offset; }
Affine affine(std::int64_t base, std::initializer_list<Affine::Term> terms) {
  Affine value = base;
  for (const Affine::Term& term : terms) value.terms[value.term_count++] = term;
  return value;
}

std::string faults_of(const Stream& stream) {
  Trace trace;
  trace.header.cores = {{0, 0, 0}};
  for (std::uint32_t i = 1; i < 100; ++i) trace.header.locations.push_back({"kernel.py", i});
  trace.code.resize(1);
  trace.code[0].streams[index(Engine::Vector)] = stream;
  try {
    validate(trace, {}, "rolled");
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// ---- loops that are found ----

TEST(Roll, OneLoop) {
  Stream stream;
  for (int i = 0; i < 20; ++i) stream.push_back(copy(64 * i));
  const Rolled rolled = checked(stream);
  ASSERT_THAT(names(rolled.stream), ElementsAre("LOOP", "COPY", "END_LOOP"));
  const auto& loop = std::get<Loop>(rolled.stream[0].op);
  EXPECT_EQ(loop.counter, 48);
  EXPECT_EQ(loop.count, trn::test::constant(20));
  EXPECT_EQ(loop.end, 2);
  const auto& end = std::get<EndLoop>(rolled.stream[2].op);
  EXPECT_EQ(end.counter, 48);
  EXPECT_EQ(end.count, trn::test::constant(20));
  EXPECT_EQ(end.begin, -2);
  EXPECT_EQ(src_of(rolled.stream[1]), affine(0, {{48, 64}}));
  EXPECT_EQ(std::get<Copy>(rolled.stream[1].op).dst.offset, Affine(trn::test::kScratch));
  EXPECT_THAT(rolled.summary.loops, ElementsAre(RolledLoop{1, 1, 20, 0}));
}

TEST(Roll, ThreeNestedLoops) {
  Stream stream;
  for (int i = 0; i < 5; ++i) {
    stream.push_back(copy(0, 64 * i, 2));
    for (int j = 0; j < 6; ++j) {
      for (int k = 0; k < 7; ++k) stream.push_back(copy(4096 * i + 64 * k, 128 * j, 3));
      stream.push_back(copy(8 * j, 0, 4));
    }
  }
  const Rolled rolled = checked(stream);
  ASSERT_THAT(names(rolled.stream), ElementsAre("LOOP", "COPY", "LOOP", "LOOP", "COPY", "END_LOOP",
                                                "COPY", "END_LOOP", "END_LOOP"));
  EXPECT_EQ(src_of(rolled.stream[4]), affine(0, {{48, 4096}, {50, 64}}));
  EXPECT_EQ(std::get<Copy>(rolled.stream[4].op).dst.offset,
            affine(trn::test::kScratch, {{49, 128}}));
  EXPECT_THAT(rolled.summary.loops,
              ElementsAre(RolledLoop{2, 7, 5, 0}, RolledLoop{3, 4, 6, 1}, RolledLoop{3, 1, 7, 2}));
  EXPECT_EQ(faults_of(rolled.stream), "");
}

TEST(Roll, ABodyOfManyInstructions) {
  Stream stream;
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 300; ++j) stream.push_back(copy(64 * i + 4 * ((j * j) % 89), j % 7));
  }
  EXPECT_EQ(checked(stream).stream.size(), 302);
}

TEST(Roll, ValuesWaitedForMayStepUp) {
  Stream stream;
  for (int i = 0; i < 10; ++i) stream.push_back(updates(waits(copy(64 * i), 3, 4 + 2 * i), 4));
  const Rolled rolled = checked(stream);
  ASSERT_EQ(rolled.stream.size(), 3);
  EXPECT_EQ(rolled.stream[1].sync.wait.value, affine(4, {{48, 2}}));
  EXPECT_EQ(rolled.stream[1].sync.update.semaphore, 4);
}

TEST(Roll, ValuesWaitedForNeverStepDown) {
  Stream stream;
  for (int i = 0; i < 10; ++i) stream.push_back(waits(copy(0), 3, 100 - i));
  EXPECT_EQ(checked(stream).stream.size(), 10);
}

TEST(Roll, AddressesOfDmaAndOfPointersStep) {
  Stream stream;
  for (int i = 0; i < 10; ++i) {
    DmaSide src = trn::test::hbm_rows(128, 512);
    src.address = 65536 * i;
    stream.push_back(of(trn::test::dma(src, trn::test::sbuf_rows(128, 512))));
    TensorScalar scale = trn::test::tensor_scalar(sbuf(16), sbuf(16));
    scale.operand0.kind = ScalarOperand::Kind::Pointer;
    scale.operand0.pointer = sbuf(1, Dtype::Fp32, 4 * i);
    stream.push_back(of(scale));
  }
  const Rolled rolled = checked(stream);
  ASSERT_EQ(rolled.stream.size(), 4);
  EXPECT_EQ(std::get<DmaDirect2d>(rolled.stream[1].op).src.address, affine(0, {{48, 65536}}));
  EXPECT_EQ(std::get<TensorScalar>(rolled.stream[2].op).operand0.pointer.offset,
            affine(0, {{48, 4}}));
}

TEST(Roll, WhatIsLeftOverStaysBehindTheLoop) {
  Stream stream;
  for (int i = 0; i < 23; ++i) stream.push_back(copy(64 * i, 0, 1 + i % 3));
  // Seven iterations of three; the stream ends within the eighth.
  ASSERT_THAT(names(checked(stream).stream),
              ElementsAre("LOOP", "COPY", "COPY", "COPY", "END_LOOP", "COPY", "COPY"));
}

TEST(Roll, RotatingBuffersAreAnInnerLoop) {
  Stream stream;
  for (int i = 0; i < 64; ++i) {
    stream.push_back(copy(512 * (i % 4), 64 * i, 1));
    stream.push_back(copy(64 * i, 512 * (i % 4), 2));
  }
  const Rolled rolled = checked(stream);
  ASSERT_THAT(names(rolled.stream),
              ElementsAre("LOOP", "LOOP", "COPY", "COPY", "END_LOOP", "END_LOOP"));
  EXPECT_EQ(src_of(rolled.stream[2]), affine(0, {{49, 512}}));
  EXPECT_EQ(src_of(rolled.stream[3]), affine(0, {{48, 256}, {49, 64}}));
}

TEST(Roll, RegistersOfTheKernelAndTheRankStayInAddresses) {
  Stream stream;
  for (int i = 0; i < 10; ++i) {
    stream.push_back(copy(64 * i));
    std::get<Copy>(stream.back().op).src.offset = affine(64 * i, {{kRankRegister, 8192}, {7, 4}});
  }
  const Rolled rolled = checked(stream);
  ASSERT_EQ(rolled.stream.size(), 3);
  EXPECT_EQ(src_of(rolled.stream[1]), affine(0, {{kRankRegister, 8192}, {7, 4}, {48, 64}}));
}

// ---- what makes no loop ----

TEST(Roll, AnotherSemaphoreEndsTheLoop) {
  Stream stream;
  for (int i = 0; i < 20; ++i) stream.push_back(updates(copy(64 * i), i == 10 ? 2 : 1));
  EXPECT_THAT(names(checked(stream).stream),
              ElementsAre("LOOP", "COPY", "END_LOOP", "COPY", "LOOP", "COPY", "END_LOOP"));
}

TEST(Roll, AnotherLineIsAnotherInstruction) {
  Stream stream;
  for (int i = 0; i < 20; ++i) stream.push_back(copy(64 * i, 0, 1 + static_cast<std::uint32_t>(i)));
  EXPECT_EQ(checked(stream).stream.size(), 20);
}

TEST(Roll, ALoopThatSavesLittleIsWrittenOut) {
  // LOOP, COPY and END_LOOP for seven instructions save four.
  for (const int count : {6, 7}) {
    Stream stream;
    for (int i = 0; i < count; ++i) stream.push_back(copy(64 * i));
    EXPECT_EQ(checked(stream).stream.size(), count == 6 ? 6 : 3);
  }
}

TEST(Roll, TwoIterationsAreEnoughWhenAskedFor) {
  Stream stream;
  for (int i = 0; i < 2; ++i) {
    for (std::uint32_t line = 1; line <= 10; ++line) stream.push_back(copy(64 * i, 0, line));
  }
  EXPECT_EQ(checked(stream).stream.size(), 20);
  EXPECT_EQ(checked(stream, {.min_iterations = 2}).stream.size(), 12);
}

TEST(Roll, BodiesAreNoLongerThanAsked) {
  Stream stream;
  for (int i = 0; i < 10; ++i) {
    for (std::uint32_t line = 1; line <= 10; ++line) stream.push_back(copy(64 * i, 0, line));
  }
  EXPECT_EQ(checked(stream, {.max_body_terms = 9}).stream.size(), 100);
  EXPECT_EQ(checked(stream, {.max_body_terms = 10}).stream.size(), 12);
}

TEST(Roll, AnAddressFollowsThreeCountersAtMost) {
  Stream stream;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) {
      for (int k = 0; k < 8; ++k) {
        for (int m = 0; m < 8; ++m)
          stream.push_back(copy(4 * m + 256 * k + 1024 * ((j * 3)) + 40000 * i));
      }
    }
  }
  const Rolled rolled = checked(stream);
  EXPECT_EQ(rolled.summary.loops.size(), 24);  // three loops for each of the outermost's eight
  for (const RolledLoop& loop : rolled.summary.loops) EXPECT_LT(loop.depth, 3);
}

TEST(Roll, LoopsNestAsDeepAsAsked) {
  Stream stream;
  const std::function<void(std::uint32_t)> nest = [&](std::uint32_t depth) {
    stream.push_back(copy(0, 0, depth));
    if (depth == 4) return;
    for (int i = 0; i < 7; ++i) nest(depth + 1);
    stream.push_back(copy(0, 64, depth));
  };
  nest(0);
  const auto deepest = [](const RollSummary& summary) {
    std::uint32_t depth = 0;
    for (const RolledLoop& loop : summary.loops) depth = std::max(depth, loop.depth + 1);
    return depth;
  };
  EXPECT_EQ(deepest(checked(stream).summary), 4);
  EXPECT_EQ(deepest(checked(stream, {.max_depth = 3}).summary), 3);
  const Rolled two = checked(stream, {.first_register = 10, .last_register = 11});
  EXPECT_EQ(deepest(two.summary), 2);
  EXPECT_EQ(faults_of(two.stream), "");
}

TEST(Roll, RegistersThatTheKernelNamesAreNoCounters) {
  Stream stream = {of(RegisterMove{48, trn::test::constant(3)})};
  for (int i = 0; i < 10; ++i) {
    stream.push_back(copy(64 * i));
    std::get<Copy>(stream.back().op).src.offset = affine(64 * i, {{50, 1}});
  }
  EXPECT_EQ(std::get<Loop>(checked(stream).stream[1].op).counter, 49);
  stream.push_back(of(TensorLoad{trn::test::hbm_rows(1, 4), 48, 4, 0}));
  EXPECT_EQ(std::get<Loop>(checked(stream).stream[1].op).counter, 52);
}

TEST(Roll, NumbersNearTheEndOfTheirRangeAreLeftAlone) {
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max();
  Stream stream;
  for (int i = 0; i < 10; ++i) stream.push_back(copy(i % 2 == 0 ? kFar : -kFar));
  EXPECT_EQ(checked(stream).stream.size(), 10);
}

// ---- branches and loops of the kernel ----

TEST(Roll, ABranchIsInNoLoop) {
  Stream stream;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 10; ++j) stream.push_back(copy(64 * j));
    stream.push_back(branch(1));
  }
  EXPECT_EQ(checked(stream).stream.size(), 5 * 4);
}

TEST(Roll, ABranchGoesWhereItWent) {
  // Backward into the middle of what is a loop by then, forward into what is not yet one.
  Stream stream;
  for (int i = 0; i < 30; ++i) stream.push_back(copy(64 * i, 0, 1 + i % 2));
  stream.push_back(branch(-13));  // to #17, the second instruction of the ninth iteration
  stream.push_back(branch(11));   // to #42
  for (int i = 0; i < 30; ++i) stream.push_back(copy(64 * i, 0, 1 + i % 2));
  const Rolled rolled = checked(stream);
  // LOOP of 8, 2 instructions, LOOP of 6, two branches, LOOP of 5, LOOP of 10.
  ASSERT_THAT(names(rolled.stream),
              ElementsAre("LOOP", "COPY", "COPY", "END_LOOP", "COPY", "COPY", "LOOP", "COPY",
                          "COPY", "END_LOOP", "COMPARE_BRANCH", "COMPARE_BRANCH", "LOOP", "COPY",
                          "COPY", "END_LOOP", "LOOP", "COPY", "COPY", "END_LOOP"));
  EXPECT_EQ(src_of(rolled.stream[5]), Affine(64 * 17));
  EXPECT_EQ(std::get<CompareBranch>(rolled.stream[10].op).target, -5);
  EXPECT_EQ(std::get<CompareBranch>(rolled.stream[11].op).target, 5);
}

TEST(Roll, ABranchMayGoToTheEnd) {
  Stream stream = {branch(21)};
  for (int i = 0; i < 20; ++i) stream.push_back(copy(64 * i));
  const Rolled rolled = checked(stream);
  ASSERT_EQ(rolled.stream.size(), 4);
  EXPECT_EQ(std::get<CompareBranch>(rolled.stream[0].op).target, 4);
}

TEST(Roll, LoopsOfTheKernelKeepTheirBodies) {
  Stream stream = {of(Loop{3, trn::test::reg(4), 21})};
  for (int i = 0; i < 20; ++i) stream.push_back(copy(64 * i));
  stream.push_back(of(EndLoop{3, trn::test::reg(4), -21}));
  const Rolled rolled = checked(stream);
  ASSERT_THAT(names(rolled.stream), ElementsAre("LOOP", "LOOP", "COPY", "END_LOOP", "END_LOOP"));
  EXPECT_EQ(std::get<Loop>(rolled.stream[0].op).end, 4);
  EXPECT_EQ(std::get<EndLoop>(rolled.stream[4].op).begin, -4);
  EXPECT_EQ(faults_of(rolled.stream), "");
}

// ---- the way back ----

TEST(Unroll, LeavesWhatItMustNotWriteOut) {
  const Stream streams[] = {
      {of(Loop{3, trn::test::constant(4), 2}), copy(0), of(EndLoop{3, trn::test::constant(4), -2})},
      {of(Loop{50, trn::test::reg(2), 2}), copy(0), of(EndLoop{50, trn::test::reg(2), -2})},
      {of(Loop{50, trn::test::constant(4), 2}), of(RegisterMove{1, trn::test::reg(50)}),
       of(EndLoop{50, trn::test::constant(4), -2})},
      {of(Loop{50, trn::test::constant(4), 2}), branch(-1),
       of(EndLoop{50, trn::test::constant(4), -2})},
      {of(Loop{50, trn::test::constant(4), 2}), copy(0),
       of(EndLoop{50, trn::test::constant(4), -2}), branch(-2)}};
  for (const Stream& stream : streams) EXPECT_EQ(bytes_of(unroll(stream)), bytes_of(stream));
}

TEST(Unroll, ALoopThatStaysIsAsLongAsItsBody) {
  const RegisterOperand four = trn::test::constant(4);
  const Stream stream = {
      of(Loop{50, four, 6}),     of(Loop{3, four, 4}),     of(Loop{51, four, 2}),    copy(0),
      of(EndLoop{51, four, -2}), of(EndLoop{3, four, -4}), of(EndLoop{50, four, -6})};
  const Stream out = unroll(stream);
  ASSERT_EQ(out.size(), 4 * 6);
  for (std::size_t i = 0; i < out.size(); i += 6) {
    EXPECT_EQ(std::get<Loop>(out[i].op).end, 5);
    EXPECT_EQ(std::get<EndLoop>(out[i + 5].op).begin, -5);
  }
}

// ---- properties ----

/// Programs of nested loops as a front end runs them, with what disturbs loops.
class RandomStream {
 public:
  explicit RandomStream(std::uint32_t seed) : random_(seed) {}

  Stream make() {
    Stream out;
    const int blocks = number(1, 4);
    for (int i = 0; i < blocks; ++i) {
      const std::vector<Node> body = nest(0);
      values_.clear();
      run(body, out);
    }
    return out;
  }

  /// Changes a few instructions: their numbers, order or number.
  void disturb(Stream& stream) {
    const int changes = number(1, 5);
    for (int i = 0; i < changes; ++i) {
      const auto at = number<std::size_t>(0, stream.size() - 1);
      const auto where = stream.begin() + static_cast<std::ptrdiff_t>(at);
      switch (number(0, 4)) {
        case 0:
          std::get<Copy>(stream[at].op).src.offset.base += 4 * number(1, 3);
          break;
        case 1:
          stream[at].sync.update.semaphore = static_cast<SemaphoreId>(number(0, 2));
          break;
        case 2:
          if (stream.size() > 1) stream.erase(where);
          break;
        case 3:
          stream.insert(where, Instr(stream[number<std::size_t>(0, stream.size() - 1)]));
          break;
        default:
          std::swap(stream[at], stream[number<std::size_t>(0, stream.size() - 1)]);
      }
    }
  }

  /// Adds branches anywhere, and loops of the kernel's around parts of the stream.
  void add_jumps(Stream& stream) {
    const auto size = static_cast<std::int64_t>(stream.size());
    const std::int64_t begin = number<std::int64_t>(0, size);
    const std::int64_t end = number<std::int64_t>(begin, size);
    const RegisterOperand count = number(0, 1) == 0 ? trn::test::reg(2) : trn::test::constant(3);
    stream.insert(stream.begin() + end, of(EndLoop{1, count, begin - end - 1}));
    stream.insert(stream.begin() + begin, of(Loop{1, count, end - begin + 1}));
    // Replaced, not inserted: so the loop's distances stay.
    const int branches = number(0, 4);
    for (int i = 0; i < branches; ++i) {
      const auto at = number<std::int64_t>(0, size + 1);
      if (std::holds_alternative<Copy>(stream[static_cast<std::size_t>(at)].op))
        stream[static_cast<std::size_t>(at)] = branch(number<std::int64_t>(-at, size + 2 - at));
    }
  }

 private:
  struct Node {
    Instr instr;                   ///< of a leaf
    std::array<int, 4> address{};  ///< steps by depth
    std::array<int, 4> wait{};
    int count = 0;  ///< of a loop
    std::vector<Node> body;
  };

  template <class T>
  T number(T low, T high) {
    return std::uniform_int_distribution<T>(low, high)(random_);
  }

  std::vector<Node> nest(std::size_t depth) {
    std::vector<Node> body;
    const int nodes = number(1, 4);
    for (int i = 0; i < nodes; ++i) {
      Node node;
      if (depth < 4 && number(0, 2) != 0) {
        node.count = number(1, 5);
        node.body = nest(depth + 1);
      } else {
        node.instr = copy(8192, 0, static_cast<std::uint32_t>(number(1, 3)));
        if (number(0, 2) == 0) node.instr = waits(node.instr, 1, number(0, 3));
        for (std::size_t level = 0; level < depth; ++level) {
          node.address[level] = 64 * number(-3, 3) * number(0, 1);
          node.wait[level] = number(0, 2);
        }
      }
      body.push_back(node);
    }
    return body;
  }

  void run(const std::vector<Node>& body, Stream& out) {
    for (const Node& node : body) {
      if (node.count == 0) {
        Instr instr = node.instr;
        for (std::size_t level = 0; level < values_.size(); ++level) {
          std::get<Copy>(instr.op).src.offset.base += node.address[level] * values_[level];
          if (instr.sync.wait.present())
            instr.sync.wait.value.base += node.wait[level] * values_[level];
        }
        out.push_back(instr);
        continue;
      }
      values_.push_back(0);
      for (int i = 0; i < node.count; ++i) {
        values_.back() = i;
        run(node.body, out);
      }
      values_.pop_back();
    }
  }

  std::mt19937 random_;
  std::vector<int> values_;
};

constexpr std::uint32_t kSeeds = 150;

RollOptions options_of(std::uint32_t seed) {
  RollOptions options;
  options.min_iterations = 2 + seed % 3;
  options.min_saved = seed % 5;
  options.max_body_terms = seed % 7 == 0 ? 4 : 1024;
  if (seed % 11 == 0) options.last_register = 49;
  return options;
}

TEST(RollProperty, UnrollUndoesRoll) {
  for (const std::uint32_t seed : test::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    const Stream stream = RandomStream(seed).make();
    EXPECT_EQ(faults_of(checked(stream, options_of(seed)).stream), "");
  }
}

TEST(RollProperty, UnrollUndoesRollOfDisturbedLoops) {
  for (const std::uint32_t seed : test::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    RandomStream random(seed);
    Stream stream = random.make();
    random.disturb(stream);
    EXPECT_EQ(faults_of(checked(stream, options_of(seed)).stream), "");
  }
}

TEST(RollProperty, UnrollUndoesRollAroundBranches) {
  for (const std::uint32_t seed : test::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    RandomStream random(seed);
    Stream stream = random.make();
    random.add_jumps(stream);
    EXPECT_EQ(faults_of(checked(stream, options_of(seed)).stream), "");
  }
}

TEST(RollProperty, UnrollUndoesRollOfAnyInstructions) {
  for (const std::uint32_t seed : test::seeds(kSeeds)) {
    SCOPED_TRACE(seed);
    test::RandomInstr random(seed);
    std::mt19937 choice(seed);
    Stream few;
    for (int i = 0; i < 3; ++i) few.push_back(random.any());
    Stream stream;
    for (int i = 0; i < 60; ++i) stream.push_back(few[choice() % few.size()]);
    EXPECT_EQ(bytes_of(unroll(roll(stream).stream)), bytes_of(unroll(stream)));
  }
}

// ---- size ----

TEST(Roll, KeepsTheResultAndNotTheStream) {
  Roller roller;
  for (int a = 0; a < 25; ++a) {
    for (int b = 0; b < 8; ++b) {
      for (int c = 0; c < 32; ++c) {
        for (int d = 0; d < 16; ++d) {
          roller.push(copy(64 * d, 4096 * (a % 2), 1));
          roller.push(waits(copy(128 * c + 64 * d, 8 * b, 2), 1, 1 + 16 * c + d));
          roller.push(copy(16 * a + 4 * d, 64 * c, 3));
          roller.push(updates(copy(4 * a, 64 * b, 4), 2));
        }
      }
    }
  }
  const Stream rolled = roller.finish();
  EXPECT_EQ(roller.summary().pushed, 25U * 8 * 32 * 16 * 4);
  EXPECT_LT(rolled.size(), 100);
  EXPECT_LT(roller.summary().peak_terms, 5000);
  EXPECT_EQ(unroll(rolled).size(), roller.summary().pushed);
}

}  // namespace
}  // namespace trn::isa
