#include "isa/validate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "isa/text.h"
#include "isa/trace.h"
#include "tests/isa/random_instr.h"

namespace trn::isa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

Trace on(std::string_view engine, std::string_view lines) {
  return parse_text(".core 0 program=0 rank=0\n.program 0\n.engine " + std::string(engine) + "\n" +
                        std::string(lines) + "\n",
                    "test.trn");
}

void expect_good(std::string_view engine, std::string_view lines) {
  EXPECT_NO_THROW(validate(on(engine, lines), {}, "test.bin")) << lines;
}

void expect_bad(std::string_view engine, std::string_view lines, std::string_view message) {
  EXPECT_THAT([&] { validate(on(engine, lines), {}, "test.bin"); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("test.bin: program 0 "), HasSubstr(std::string(message)))))
      << lines;
}

constexpr std::string_view kMatmul =
    "MATMUL src=bf16@sbuf:0x0[1][512] dst=fp32@psum:0x800[1][512] at attention.py:12";

TEST(Validate, AcceptsWhatTheHardwareRuns) {
  expect_good("Tensor", kMatmul);
  expect_good("Tensor", "LDWEIGHTS src=fp32@sbuf:0x704c[-1][128] pass=HIGH");
  expect_good("Vector",
              "TENSOR_REDUCE src=fp32@psum:0x0[1,4][4,128] dst=fp32@sbuf:0x0[1][128] "
              "op=MAX negate=true");
  expect_good("Scalar",
              "ACTIVATE src=fp32@psum:0x800[1][512] dst=fp32@sbuf:0x5020[1][512] "
              "function=EXP bias=fp32@sbuf:0x4814 update S[4]++");
  expect_good("GpSimd",
              "DMA_DIRECT2D src=fp32@hbm:0x0{4096}[4096][128] "
              "dst=fp32@sbuf:0x34ff8{4096}[262144][128] mode=software "
              "completion=S[24]+=16");
}

TEST(Validate, AMessageNamesInstructionOperandLimitValueAndSourceLine) {
  expect_bad("Tensor",
             "NOP\nMATMUL src=bf16@sbuf:0x0[1][512] dst=fp32@sbuf:0x800[1][512] "
             "at attention.py:12",
             "program 0 Tensor #1 MATMUL.dst: expected in psum, found in sbuf (attention.py:12)");
}

TEST(Validate, AnInstructionRunsOnItsEnginesOnly) {
  expect_bad("Vector", kMatmul, "MATMUL: expected on Tensor, found on Vector");
}

TEST(Validate, AMissingOperandIsFound) {
  expect_bad("Vector", "RECIPROCAL dst=fp32@sbuf:0x0", "RECIPROCAL.src: the operand is missing");
}

TEST(Validate, AnAccessPastSbufOrPsumIsFound) {
  // 224 KiB less 4 bytes: one fp32 fits, two do not.
  expect_good("Vector", "RECIPROCAL src=fp32@sbuf:0x37ffc dst=fp32@psum:0x3ffc");
  expect_bad("Vector", "RECIPROCAL src=fp32@sbuf:0x37ffc[1][2] dst=fp32@psum:0x0[1][2]",
             "src: expected bytes 0..229375 of a partition of sbuf, got 229372..229379");
  expect_bad("Vector", "RECIPROCAL src=fp32@sbuf:0x0 dst=fp32@psum:0x4000",
             "dst: expected bytes 0..16383 of a partition of psum, got 16384..16387");
  expect_bad("Vector", "RECIPROCAL src=fp32@sbuf:0x4[-1][3] dst=fp32@psum:0x0[1][3]",
             "src: expected bytes 0..229375 of a partition of sbuf, got -4..7");
  expect_bad("Vector", "RECIPROCAL src=fp32@sbuf:-4 dst=fp32@psum:0x0", "got -4");
}

TEST(Validate, ADmaPastSbufIsFound) {
  const auto dma = [](std::string_view dst) {
    return "DMA_DIRECT2D src=fp32@hbm:0x0{4096}[4096][128] dst=fp32@sbuf:" + std::string(dst);
  };
  expect_good("Sync", dma("0x37000{4096}[262144][128]"));
  expect_bad("Sync", dma("0x37004{4096}[262144][128]"), "got 225284..229379");
  expect_bad("Sync", dma("0x40000{4096}[262144][128]"),
             "expected partitions within 0..127, got 1..128");
  expect_bad("Sync", dma("0x2000000{4096}[262144][128]"), "expected an address of sbuf");
}

TEST(Validate, AddressesAreCheckedAtTheEndsOfTheirLoops) {
  const auto loop = [](int count) {
    return "LOOP counter=r1 count=" + std::to_string(count) +
           "\nRECIPROCAL src=fp32@sbuf:0x0+2048*r1[1][512] dst=fp32@psum:0x0[1][512]\nEND_LOOP";
  };
  expect_good("Vector", loop(112));  // 112 x 2 KiB = 224 KiB
  expect_bad("Vector", loop(113), "got 0..231423");
  // A register that is no counter of a constant loop is the run's to check.
  expect_good("Vector", "RECIPROCAL src=fp32@sbuf:0x0+2048*r1[1][512] dst=fp32@psum:0x0[1][512]");
}

TEST(Validate, AddressesAreCheckedForEveryRankOfTheProgram) {
  const auto trace = [](int rank) {
    return parse_text(".core 0 program=0 rank=0\n.core 1 program=0 rank=" + std::to_string(rank) +
                          "\n.program 0\n.engine Vector\n"
                          "RECIPROCAL src=fp32@sbuf:0x0 dst=fp32@psum:0x0+4096*rank\n",
                      "test.trn");
  };
  EXPECT_NO_THROW(validate(trace(3), {}, "test.bin"));
  EXPECT_THAT([&] { validate(trace(4), {}, "test.bin"); },
              ThrowsMessage<InputError>(HasSubstr("got 0..16387")));
}

TEST(Validate, AMatmulWritesOneBank) {
  expect_bad("Tensor", "MATMUL src=bf16@sbuf:0x0[1][512] dst=fp32@psum:0x804[1][512]",
             "dst: expected within one psum bank of 2048 bytes, got bytes 2052..4099");
}

TEST(Validate, AMatmulStreamsAtMost512Columns) {
  expect_bad("Tensor", "MATMUL src=bf16@sbuf:0x0[1][513] dst=fp32@psum:0x0[0][513]",
             "at most 512 elements");
  expect_bad("Tensor", "MATMUL src=bf16@sbuf:0x0[1][512] dst=fp32@psum:0x0[1][256]",
             "src: expected 256 elements per partition, got 512");
  expect_bad("Tensor", "LDWEIGHTS src=bf16@sbuf:0x0[1][129]", "at most 128 elements");
}

TEST(Validate, DoubleRowsAreFp8) {
  expect_good("Tensor", "LDWEIGHTS src=fp8_e4m3@sbuf:0x0[1,128][128,2] mode=DOUBLE_ROW");
  expect_bad("Tensor", "LDWEIGHTS src=bf16@sbuf:0x0[1,128][128,2] mode=DOUBLE_ROW",
             "double rows need fp8_e4m3 or fp8_e5m2, got bf16");
  expect_bad("Tensor",
             "LDWEIGHTS src=fp8_e4m3@sbuf:0x0[1,128][128,2] mode=DOUBLE_ROW transpose=true",
             "do not go with");
}

TEST(Validate, APeTileStartsAtAMultipleOfItsSize) {
  expect_good("Tensor", "LDWEIGHTS src=bf16@sbuf[32:64]:0x0[1][128] tile=32:0:32:128");
  expect_bad("Tensor", "LDWEIGHTS src=bf16@sbuf[32:64]:0x0[1][128] tile=16:0:32:128",
             "LDWEIGHTS.tile: expected 32, 64 or 128 rows");
}

TEST(Validate, PartitionsStartWhereTheirNumberAllows) {
  const auto copy = [](std::string_view partitions) {
    const std::string p(partitions);
    return "COPY src=fp32@sbuf[" + p + "]:0x0 dst=fp32@sbuf[" + p + "]:0x10";
  };
  for (std::string_view good : {"0:128", "0:65", "64:128", "0:33", "32:64", "96:128", "96:97"}) {
    expect_good("Vector", copy(good));
  }
  expect_bad("Vector", copy("32:128"), "96 partitions may start at 0, got 32");
  expect_bad("Vector", copy("32:96"), "64 partitions may start at 0 or 64, got 32");
  expect_bad("Vector", copy("16:32"), "16 partitions may start at 0, 32, 64 or 96, got 16");
}

TEST(Validate, FreeSizesAreLimitedPerMemory) {
  // Zero strides: the addresses are in range, the number of elements is not.
  expect_bad("Vector", "COPY src=fp32@psum:0x0[0][4097] dst=fp32@sbuf:0x0[1][4097]",
             "src: expected at most 4096 elements per partition in psum, got 4097");
  expect_bad("Vector", "COPY src=fp32@sbuf:0x0[0,0][256,257] dst=fp32@sbuf:0x0[0,0][256,257]",
             "at most 65536 elements per partition in sbuf, got 65792");
}

TEST(Validate, StridesAndSizesHaveSixteenBits) {
  expect_bad("Vector", "COPY src=fp32@sbuf:0x0[32768][2] dst=fp32@sbuf:0x0[1][2]",
             "expected a stride of -32768..32767 elements, got 32768");
  expect_bad("Vector", "COPY src=fp32@sbuf:0x0[1][0] dst=fp32@sbuf:0x0[1][0]",
             "expected a dimension of 1..65536, got 0");
}

TEST(Validate, ElementwiseOperandsHaveOneShape) {
  expect_bad("Vector", "COPY src=fp32@sbuf:0x0[1][8] dst=fp32@sbuf:0x100[1][9]",
             "src: expected as many elements per partition as dst, 9, got 8");
  expect_bad("Vector", "COPY src=fp32@sbuf[0:64]:0x0 dst=fp32@sbuf[0:32]:0x100",
             "src: expected as many partitions as dst, 32, got 64");
  expect_bad("Vector", "TENSOR_REDUCE src=fp32@sbuf:0x0[1,4][4,8] dst=fp32@sbuf:0x0 op=ADD",
             "dst: expected 8 elements per partition, got 1");
}

TEST(Validate, TwoInputsAreNotBothInPsum) {
  expect_bad("Vector",
             "TENSOR_TENSOR src0=fp32@psum:0x0 src1=fp32@psum:0x800 dst=fp32@sbuf:0x0 op=ADD",
             "TENSOR_TENSOR: src0 and src1 are both in psum");
}

TEST(Validate, GpSimdReachesSbufOnly) {
  expect_bad("GpSimd", "COPY src=fp32@psum:0x0 dst=fp32@sbuf:0x0", "reaches sbuf only");
}

TEST(Validate, CopyKeepsTheType) {
  expect_bad("Vector", "COPY src=fp32@sbuf:0x0 dst=bf16@sbuf:0x100", "CAST converts");
  expect_good("Vector", "CAST src=fp32@sbuf:0x0 dst=bf16@sbuf:0x100");
}

TEST(Validate, BitPatternsAreOfIntegers) {
  expect_bad("Vector",
             "TENSOR_SCALAR src=fp32@sbuf:0x0 dst=fp32@sbuf:0x0 op0=BITWISE_AND operand0=i:1",
             "op0: expected integers for BITWISE_AND, got fp32");
}

TEST(Validate, ScalarEngineMultipliesAndAdds) {
  const std::string start = "TENSOR_SCALAR src=fp32@sbuf:0x0 dst=fp32@sbuf:0x0 ";
  expect_good("Scalar", start + "op0=MULTIPLY operand0=2 op1=ADD operand1=1");
  expect_bad("Scalar", start + "op0=MAX operand0=2", "the Scalar engine knows");
  expect_bad("GpSimd", start + "op0=ADD operand0=2", "the GpSimd engine knows RSQRT only");
}

TEST(Validate, DescriptorsAreMadeForTheirEngines) {
  const std::string dma =
      "DMA_DIRECT2D src=fp32@hbm:0x0{512}[512][128] "
      "dst=fp32@sbuf:0x0{512}[262144][128] mode=";
  expect_good("Scalar", dma + "hardware");
  expect_good("Vector", dma + "static");
  expect_bad("Vector", dma + "hardware", "made for Sync or Scalar, found on Vector");
  expect_bad("Sync", dma + "software", "made by GpSimd, found on Sync");
  expect_bad("Sync", dma + "hardware index=int32@sbuf:0x0", "only software descriptors gather");
}

TEST(Validate, ADmaMovesAsManyElementsAsItReads) {
  expect_bad("Sync",
             "DMA_DIRECT2D src=fp32@hbm:0x0{512}[512][64] "
             "dst=fp32@sbuf:0x0{512}[262144][128]",
             "dst: expected as many elements as src, 8192, got 16384");
  expect_good("Sync",
              "DMA_DIRECT2D mode=static src=fp32@hbm:0x0{512}[512][128] "
              "dst=bf16@sbuf:0x0{256}[262144][128]");
  expect_bad("Sync",
             "DMA_DIRECT2D src=fp32@hbm:0x0{512}[512][128] "
             "dst=bf16@sbuf:0x0{256}[262144][128]",
             "hardware descriptors do not convert");
}

TEST(Validate, SemaphoresHoldTheirValues) {
  expect_bad("Sync", "NOP wait S[1]>=65536", "NOP.wait: expected a value of 0..65535, got 65536");
  expect_bad("Sync", "NOP wait E[1]==2", "NOP.wait: expected a value of 0..1, got 2");
  expect_bad("Sync", "NOP update S[1]=70000", "NOP.update: expected a value of 0..65535");
}

TEST(Validate, LoopsNest) {
  expect_good("Vector", "LOOP counter=1 count=2\nLOOP counter=2 count=2\nEND_LOOP\nEND_LOOP");
  expect_bad("Vector", "LOOP counter=1 count=2 end=5\nNOP", "LOOP.end: expected 1..1");
  expect_bad("Vector", "NOP\nEND_LOOP counter=1 count=2 begin=-1", "no LOOP is open here");
  expect_bad("Vector", "LOOP counter=1 count=2 end=1\nEND_LOOP counter=2 count=2 begin=-1",
             "counter and count of the LOOP at #0");
  expect_bad("Vector",
             "LOOP counter=1 count=2 end=2\nLOOP counter=2 count=2 end=2\n"
             "END_LOOP counter=1 count=2 begin=-2\nEND_LOOP counter=2 count=2 begin=-2",
             "past the end of the loop around it");
  expect_bad("Vector", "LOOP counter=1 count=2 end=1\nNOP", "the stream ends before the loop does");
}

TEST(Validate, BranchesStayInTheirStream) {
  expect_good("Sync", "NOP\nCOMPARE_BRANCH target=-1");
  expect_good("Sync", "COMPARE_BRANCH target=1");
  expect_bad("Sync", "NOP\nCOMPARE_BRANCH target=-2", "expected -1..1 instructions from here");
  expect_bad("Sync", "COMPARE_BRANCH target=2", "got 2");
}

TEST(Validate, ATraceForAnotherProcessorIsRefused) {
  Trace trace = on("Sync", "NOP");
  trace.header.target = Target::NeuronCoreV2;
  EXPECT_THAT([&] { validate(trace, {}, "test.bin"); },
              ThrowsMessage<InputError>(
                  HasSubstr("expected a trace for NeuronCore-v3, got one for NeuronCore-v2")));
}

TEST(Validate, CoresAreBoundOnce) {
  EXPECT_THAT(
      [&] {
        validate(
            parse_text(".core 2 program=0 rank=0\n.core 2 program=0 rank=1\n.program 0\n", "t"), {},
            "test.bin");
      },
      ThrowsMessage<InputError>(HasSubstr("core 2: the core is bound twice")));
  EXPECT_THAT([&] { validate(parse_text(".program 0\n", "t"), {}, "test.bin"); },
              ThrowsMessage<InputError>(HasSubstr("at least one core")));
}

TEST(Validate, ATensorPastItsMemoryIsFound) {
  EXPECT_THAT(
      [&] {
        validate(parse_text(".core 0 program=0 rank=0\n.program 0\n"
                            ".tensor x internal sbuf fp32 [128,4] address=0x37ff8 bytes=16\n",
                            "t"),
                 {}, "test.bin");
      },
      ThrowsMessage<InputError>(HasSubstr("tensor 'x': expected within the 229376 bytes")));
}

TEST(Validate, OtherMachinesHaveOtherSizes) {
  const Trace trace = on("Vector", "COPY src=fp32@sbuf:0x30000 dst=fp32@sbuf:0x0");
  EXPECT_NO_THROW(validate(trace, {}, "test.bin"));
  EXPECT_THROW(validate(trace, {.sbuf_partition_bytes = 192 * 1024}, "test.bin"), InputError);
}

TEST(Validate, TheFirstErrorsComeAtOnce) {
  std::string lines;
  for (int i = 0; i < 50; ++i) lines += "MATMUL src=bf16@psum:0x0 dst=fp32@psum:0x0\n";
  EXPECT_THAT([&] { validate(on("Tensor", lines), {}, "test.bin"); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr("#0 "), HasSubstr("#19 "), Not(HasSubstr("#20 ")))));
}

TEST(Validate, AfterAGapInstructionsAreCheckedByThemselves) {
  const Trace trace = on("Vector", "LOOP counter=1 count=2\nNOP\nEND_LOOP\nMAX8");
  Findings findings("test.bin");
  const ValidateLimits limits;
  StreamValidator stream(trace.header, limits, 0, Engine::Vector, 4, findings);
  const auto& code = trace.code[0].streams[index(Engine::Vector)];
  stream.check(2, code[2]);
  EXPECT_TRUE(findings.empty());
  stream.check(3, code[3]);
  EXPECT_FALSE(findings.empty());
}

TEST(Validate, AnyInstructionIsGoodOrAnInputError) {
  for (std::uint32_t seed : test::seeds(50)) {
    SCOPED_TRACE(seed);
    const Trace trace = test::RandomInstr(seed).trace(2, 60);
    EXPECT_THROW(validate(trace, {}, "test.bin"), InputError);
    for (std::uint32_t program = 0; program < 2; ++program) {
      for (Engine engine : kAllEngines) {
        for (const Instr& instr : trace.code[program].streams[index(engine)]) {
          Findings findings("test.bin");
          const ValidateLimits limits;
          StreamValidator(trace.header, limits, program, engine, 60, findings).check(7, instr);
        }
      }
    }
  }
}

}  // namespace
}  // namespace trn::isa
