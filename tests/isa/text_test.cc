#include "isa/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "isa/base/error.h"
#include "isa/trace.h"
#include "tests/isa/random_instr.h"

namespace trn::isa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

/// The only instruction of a text on one engine.
Instr parse_one(std::string_view engine, std::string_view line) {
  const Trace trace =
      parse_text(".engine " + std::string(engine) + "\n" + std::string(line) + "\n", "test.trn");
  for (const auto& stream : trace.code.at(0).streams) {
    if (!stream.empty()) return stream.front();
  }
  return {};
}

void expect_error(std::string_view text, const testing::Matcher<std::string>& matcher) {
  EXPECT_THAT([&] { parse_text(text, "test.trn"); }, ThrowsMessage<InputError>(matcher));
}

TEST(Text, ParsingUndoesPrinting) {
  for (std::uint32_t seed : test::seeds(30)) {
    SCOPED_TRACE(seed);
    const Trace trace = test::RandomInstr(seed).trace(2, 40);
    const std::string text = trace_text(trace);
    const Trace again = parse_text(text, "test.trn");
    EXPECT_EQ(again.header, trace.header);
    EXPECT_TRUE(trace_bytes(again) == trace_bytes(trace));
    EXPECT_TRUE(trace_text(again) == text);
  }
}

TEST(Text, ParsingUndoesPrintingForEveryInstruction) {
  for (std::uint32_t seed : test::seeds(10)) {
    SCOPED_TRACE(seed);
    test::RandomInstr random(seed);
    Trace trace;
    trace.header.locations.resize(test::RandomInstr::kTable);
    trace.header.labels.resize(test::RandomInstr::kTable);
    trace.code.resize(1);
    for_each_instruction([&]<class T>() { trace.code[0].streams[0].push_back(random.of<T>()); });
    const Trace again = parse_text(trace_text(trace), "test.trn");
    EXPECT_TRUE(trace_bytes(again) == trace_bytes(trace));
  }
}

TEST(Text, ReadsLikeTheProfiler) {
  const Instr instr = parse_one("Tensor",
                                "MATMUL src=bf16@sbuf:0x37600[1][512] "
                                "dst=fp32@psum[0:64]:2048[1][512] stop=false wait S[5]>=4 "
                                "update S[4]++@complete at attention.py:12 label \"scores\"");
  const auto& matmul = std::get<Matmul>(instr.op);
  EXPECT_EQ(matmul.src.dtype, Dtype::Bf16);
  EXPECT_EQ(matmul.src.offset, Affine(0x37600));
  EXPECT_EQ(matmul.src.partitions, 128);
  EXPECT_EQ(matmul.src.elements(), 512U);
  EXPECT_EQ(matmul.dst.memory, Memory::Psum);
  EXPECT_EQ(matmul.dst.partitions, 64);
  EXPECT_TRUE(matmul.start);
  EXPECT_FALSE(matmul.stop);
  EXPECT_EQ(instr.sync.wait, (Wait{5, WaitCondition::GreaterEqual, 4}));
  EXPECT_EQ(instr.sync.update, (Update{.semaphore = 4}));
  EXPECT_EQ(instr.at, (SourceRef{1, 1}));
  EXPECT_EQ(instruction_text(instr),
            "MATMUL src=bf16@sbuf:0x37600[1][512] dst=fp32@psum[0:64]:0x800[1][512] stop=false "
            "wait S[5]>=4 update S[4]++@complete");
}

TEST(Text, AddressesFollowLoopCountersAndTheRank) {
  const Instr instr = parse_one("Sync",
                                "DMA_DIRECT2D src=bf16@hbm:0x1000+4096*r3+1048576*rank{256}"
                                "[256,0][128,2] dst=bf16@sbuf:0x0-8*r3{256}[262144][128] "
                                "completion=S[24]+=16");
  const auto& dma = std::get<DmaDirect2d>(instr.op);
  ASSERT_EQ(dma.src.address.term_count, 2);
  EXPECT_EQ(dma.src.address.terms[0], (Affine::Term{3, 4096}));
  EXPECT_EQ(dma.src.address.terms[1], (Affine::Term{kRankRegister, 1048576}));
  EXPECT_EQ(dma.dst.address.terms[0], (Affine::Term{3, -8}));
  EXPECT_EQ(dma.completion, (DmaCompletion{24, 16}));
}

TEST(Text, ConstantsPointersAndIntegersAreToldApart) {
  const auto scalar = [](std::string_view value) {
    return std::get<TensorScalar>(
               parse_one("Vector", "TENSOR_SCALAR op0=ADD operand0=" + std::string(value)).op)
        .operand0;
  };
  EXPECT_EQ(scalar("-1.5").kind, ScalarOperand::Kind::Immediate);
  EXPECT_EQ(scalar("-1.5").immediate, -1.5F);
  EXPECT_EQ(scalar("i:-7").integer, -7);
  EXPECT_EQ(scalar("fp32@sbuf:0x8044").pointer.offset, Affine(0x8044));
}

TEST(Text, LoopsWithoutDistancesAreClosed) {
  const Trace trace = parse_text(
      ".engine Vector\n"
      "LOOP counter=1 count=4\n"
      "LOOP counter=r2 count=r5\n"
      "NOP\n"
      "END_LOOP\n"
      "END_LOOP ; of the outer loop\n",
      "test.trn");
  const auto& stream = trace.code[0].streams[index(Engine::Vector)];
  EXPECT_EQ(std::get<Loop>(stream[0].op).end, 4);
  EXPECT_EQ(std::get<Loop>(stream[1].op).end, 2);
  EXPECT_EQ(std::get<EndLoop>(stream[3].op).begin, -2);
  EXPECT_EQ(std::get<EndLoop>(stream[3].op).counter, 2);
  EXPECT_EQ(std::get<EndLoop>(stream[3].op).count.reg, 5);
  EXPECT_EQ(std::get<EndLoop>(stream[4].op).count.constant, 4);
}

TEST(Text, ABranchMayNameItsTarget) {
  const Trace trace = parse_text(
      ".engine Sync\n"
      "again: TENSOR_LOAD src=int32@hbm:0x10{4}\n"
      "COMPARE_BRANCH op=NE a=r0 b=0 target=again\n"
      "COMPARE_BRANCH target=out\n"
      "NOP\n"
      "out:\n"
      "DRAIN\n",
      "test.trn");
  const auto& stream = trace.code[0].streams[index(Engine::Sync)];
  EXPECT_EQ(std::get<CompareBranch>(stream[1].op).target, -1);
  EXPECT_EQ(std::get<CompareBranch>(stream[2].op).target, 2);
}

TEST(Text, ALoopThatDoesNotEndIsAnErrorOfItsLine) {
  expect_error(".engine Vector\nNOP\nLOOP counter=1 count=4\n",
               AllOf(HasSubstr("test.trn:3"), HasSubstr("do not match")));
}

TEST(Text, CommentsAndBlankLinesSayNothing) {
  const Trace trace = parse_text("; all\n\n# of it\n.name \"a;b#c\" ; name\n", "test.trn");
  EXPECT_EQ(trace.header.name, "a;b#c");
}

TEST(Text, AnUnknownInstructionNamesTheNearest) {
  expect_error(".engine Tensor\nMATMULL src=bf16@sbuf:0\n",
               AllOf(HasSubstr("test.trn:2: "), HasSubstr("column 1"),
                     HasSubstr("unknown instruction 'MATMULL'"), HasSubstr("'MATMUL'")));
}

TEST(Text, AnUnknownOperandNamesTheNearest) {
  expect_error(
      ".engine Tensor\nMATMUL srcs=bf16@sbuf:0\n",
      AllOf(HasSubstr("test.trn:2: MATMUL: column 8"), HasSubstr("'srcs'"), HasSubstr("'src'")));
}

TEST(Text, AWrongValueSaysWhatWasExpectedAndWhere) {
  expect_error(".engine Tensor\nMATMUL src=bf61@sbuf:0\n",
               AllOf(HasSubstr("test.trn:2: MATMUL.src: column 12"), HasSubstr("unknown dtype"),
                     HasSubstr("'bf16'")));
  expect_error(".engine Tensor\nMATMUL dst=fp32@psum:0[1,2][512]\n",
               AllOf(HasSubstr("column 32"), HasSubstr("expected ','")));
  expect_error(".engine Vector\nTENSOR_REDUCE op=ADDD\n", HasSubstr("'ADD'"));
  expect_error(".engine Vector\nTENSOR_REDUCE dims=HOLD\n", HasSubstr("expected one of X XY"));
  expect_error(".engine Sync\nRANK_ID dst=64\n", HasSubstr("expected 0..63, got 64"));
  expect_error(".engine Sync\nNOP cycles=-1\n", HasSubstr("expected a number from 0"));
  expect_error(".engine Sync\nNOP wait S[256]>=1\n", HasSubstr("under 256"));
  expect_error(".engine Sync\nNOP wait\n", HasSubstr("something after 'wait'"));
  expect_error(".engine Sync\nNOP cycles\n", HasSubstr("operand=value"));
  expect_error(".engine Sync\nNOP at %3\n", HasSubstr("the table has 1 entries"));
  expect_error(".engine Sync\nNOP wait S[1]>=1 wait S[2]>=1\n", HasSubstr("at most one wait"));
  expect_error(".engine Sync\nNOP cycles=1 cycles=2\n", HasSubstr("stands twice"));
  expect_error(".engine Vector\nCOPY src=fp32@sbuf[100:129]:0\n", HasSubstr("got 100:129"));
}

TEST(Text, AllErrorsOfAFileComeAtOnce) {
  expect_error(".engin Tensor\nNOP\n.engine Tensor\nNOP cycles=x cycles=1 foo=2\n",
               AllOf(HasSubstr("test.trn:1: "), HasSubstr("'.engine'"), HasSubstr("test.trn:2: "),
                     HasSubstr("column 12"), HasSubstr("'foo'")));
}

TEST(Text, AMissingBranchTargetIsAnErrorOfItsLine) {
  expect_error(".engine Sync\nhere: NOP\nCOMPARE_BRANCH target=hree\n",
               AllOf(HasSubstr("test.trn:3: COMPARE_BRANCH.target"), HasSubstr("'here'")));
}

TEST(Text, ACoreOfAMissingProgramIsAnErrorOfItsLine) {
  expect_error(".core 0 program=1 rank=0\n.program 0\n",
               AllOf(HasSubstr("test.trn:1"), HasSubstr("runs program 1")));
}

TEST(Text, AnotherVersionIsNamedBesideOurs) {
  expect_error(".trace 2\n", AllOf(HasSubstr("version 2"), HasSubstr("reads version 1")));
}

TEST(Text, EveryTruncatedAndEveryChangedTextParsesOrIsAnInputError) {
  const std::string right = trace_text(test::RandomInstr(21).trace(1, 4));
  const auto parses_or_throws = [](const std::string& text) {
    try {
      parse_text(text, "test.trn");
    } catch (const InputError& error) {
      EXPECT_STRNE(error.what(), "");
    }
  };
  for (std::size_t i = 0; i < right.size(); ++i) {
    parses_or_throws(right.substr(0, i));
    std::string changed = right;
    for (char c : {'"', '\\', '[', '-', '9', '\0', '\xff'}) {
      changed[i] = c;
      parses_or_throws(changed);
    }
  }
}

}  // namespace
}  // namespace trn::isa
