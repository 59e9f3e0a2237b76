#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <initializer_list>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "isa/import/profile.h"
#include "tests/support/scratch.h"

namespace trn::isa {
namespace {

using testing::HasSubstr;

std::string row(std::string_view engine, int pc, std::string_view opcode, std::string_view operands,
                std::string_view more = "") {
  return fmt::format(R"({{"subgraph":"sg00","compiler_pc":{},"subgroup":"{}","pc":{},)"
                     R"("opcode":"{}","operands":"{}"{}}})",
                     pc, engine, pc, opcode, operands, more);
}

std::string profile(const std::vector<std::string>& rows, std::string_view more = "") {
  return fmt::format(R"({{"instruction":[{}],"dma_queues_info":[)"
                     R"({{"subgraph":"sg00","q_name":"qSyncDynamicHW","q_idx":1}},)"
                     R"({{"subgraph":"sg01","q_name":"qSyncDynamicHW","q_idx":9}},)"
                     R"({{"subgraph":"sg00","q_name":"qGpSimdDynamic","q_idx":3}}]{}}})",
                     fmt::join(rows, ","), more);
}

Trace import_rows(const std::vector<std::string>& rows, std::string_view more = "") {
  return import_profile(profile(rows, more), "p.json");
}

/// Imports one row and returns its instruction.
Instr import_one(std::string_view engine, std::string_view opcode, std::string_view operands) {
  const Trace trace = import_rows({row(engine, 0, opcode, operands)});
  for (const auto& stream : trace.code.at(0).streams) {
    if (!stream.empty()) return stream.front();
  }
  throw std::logic_error("no instruction");
}
template <class T>
T import_op(std::string_view engine, std::string_view opcode, std::string_view operands) {
  return std::get<T>(import_one(engine, opcode, operands).op);
}

std::string error_of(const std::string& json) {
  try {
    (void)import_profile(json, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}
std::string error_of_row(std::string_view engine, std::string_view opcode,
                         std::string_view operands) {
  return error_of(profile({row(engine, 0, opcode, operands)}));
}

Access tile(Memory memory, Dtype dtype, std::int64_t offset, std::vector<FreeDim> dims,
            std::uint8_t partitions = 128) {
  Access access;
  access.memory = memory;
  access.dtype = dtype;
  access.partitions = partitions;
  access.offset = offset;
  access.dims = static_cast<std::uint8_t>(dims.size());
  std::copy(dims.begin(), dims.end(), access.free.begin());
  return access;
}

// ---- which rows, in which order ----

TEST(Import, TakesTheKernelsRowsOnlyInProgramOrder) {
  const Trace trace = import_rows({
      row("Vector", 8, "NOP", "cycle=8"),
      R"({"subgraph":"sg00","subgroup":"Vector","pc":6,"opcode":"BOOT","operands":""})",
      R"({"subgraph":"sg01","compiler_pc":0,"subgroup":"Vector","pc":7,"opcode":"BOOT"})",
      R"({"subgraph":"sg00","compiler_pc":null,"subgroup":"Vector","pc":5,"opcode":"BOOT"})",
      row("Vector", 7, "NOP", "cycle=7"),
      row("Sync", 3, "DRAIN", ""),
  });
  ASSERT_EQ(trace.size(0, Engine::Vector), 2U);
  const auto& vector = trace.code[0].streams[index(Engine::Vector)];
  EXPECT_EQ(std::get<Nop>(vector[0].op).cycles, 7U);
  EXPECT_EQ(std::get<Nop>(vector[1].op).cycles, 8U);
  EXPECT_EQ(trace.size(0, Engine::Sync), 1U);
  EXPECT_EQ(trace.size(0, Engine::Tensor), 0U);
}

TEST(Import, TakesTheSubgraphThatIsAskedFor) {
  const std::string json = profile(
      {row("Sync", 0, "DRAIN", ""),
       R"({"subgraph":"sg01","compiler_pc":0,"subgroup":"Sync","pc":7,"opcode":"NOTIFY"})"});
  const Trace trace = import_profile(json, "p.json", {.subgraph = "sg01", .name = "mine"});
  EXPECT_EQ(mnemonic(trace.code[0].streams[index(Engine::Sync)].at(0)), "NOTIFY");
  EXPECT_EQ(trace.header.name, "mine");
}

TEST(Import, RefusesAProgramWithHolesOrRepetitions) {
  EXPECT_EQ(error_of(profile({row("Sync", 4, "DRAIN", ""), row("Sync", 6, "DRAIN", "")})),
            "p.json: instruction[1].pc: expected 5 on the Sync engine, got 6: rows are missing");
  EXPECT_THAT(error_of(profile({row("Sync", 4, "DRAIN", ""), row("Sync", 4, "DRAIN", "")})),
              HasSubstr("instruction[1].pc: 4 is instruction[0]'s already"));
  EXPECT_THAT(error_of(profile({})), HasSubstr("expected rows of a kernel"));
  EXPECT_THAT(error_of("{}"), HasSubstr("p.json: instruction: expected rows of a kernel"));
}

TEST(Import, NamesTraceTargetAndCore) {
  const Trace trace = import_rows(
      {row("Sync", 0, "DRAIN", "")},
      R"(,"neff_header":[{"network_name":"net.neff"}],"summary":[{"instance_type":"trn2.48xlarge"}])");
  EXPECT_EQ(trace.header.name, "net.neff");
  EXPECT_EQ(trace.header.target, Target::NeuronCoreV3);
  EXPECT_EQ(trace.header.cores, std::vector<CoreBinding>{CoreBinding{}});
  EXPECT_TRUE(trace.header.work.empty());
  EXPECT_EQ(
      import_rows({row("Sync", 0, "DRAIN", "")}, R"(,"summary":[{"instance_type":"trn1.2xlarge"}])")
          .header.target,
      Target::NeuronCoreV2);
  EXPECT_THAT(error_of(profile({row("Sync", 0, "DRAIN", "")},
                               R"(,"summary":[{"instance_type":"m5.large"}])")),
              HasSubstr("summary[0].instance_type: expected trn2, trn1 or inf2, got 'm5.large'"));
}

TEST(Import, KeepsLabelsAndSourceLocations) {
  const Trace trace = import_rows({
      row("Sync", 0, "DRAIN", "", R"(,"layer":"softmax","bir_instruction_name":"I-7")"),
      row("Sync", 1, "DRAIN", "", R"(,"layer":"Unknown","bir_instruction_name":"I-8")"),
      row("Sync", 2, "DRAIN", "",
          R"(,"layer":"softmax","bir_instruction_name":"I-7","nki_source_location":"a/k.py:12")"),
      row("Sync", 3, "DRAIN", "", R"(,"nki_source_location":"somewhere")"),
  });
  const auto& sync = trace.code[0].streams[index(Engine::Sync)];
  EXPECT_EQ(trace.header.labels, (std::vector<std::string>{"", "softmax/I-7", "I-8"}));
  EXPECT_EQ(trace.header.locations,
            (std::vector<SourceLocation>{{}, {"a/k.py", 12}, {"somewhere", 0}}));
  EXPECT_EQ(sync[0].at, (SourceRef{0, 1}));
  EXPECT_EQ(sync[1].at, (SourceRef{0, 2}));
  EXPECT_EQ(sync[2].at, (SourceRef{1, 1}));
  EXPECT_EQ(sync[3].at, (SourceRef{2, 0}));
}

// ---- waits and updates ----

TEST(Import, ReadsWaitsAndUpdates) {
  const Instr both = import_one("Vector", "EVENT_SEMAPHORE",
                                "S[6] (Vector)>=12 S[4] (Scalar)++@complete setter=0   ");
  EXPECT_EQ(both.sync.wait, (Wait{6, WaitCondition::GreaterEqual, 12}));
  EXPECT_EQ(both.sync.update, (Update{4, UpdateKind::Increment, UpdateWhen::Complete, 1}));

  const auto wait = [](std::string_view text) {
    return import_one("Sync", "DRAIN", text).sync.wait;
  };
  EXPECT_EQ(wait("S[24] (qGpSimdDynamic)>=16"), (Wait{24, WaitCondition::GreaterEqual, 16}));
  EXPECT_EQ(wait("$S[2]==1"), (Wait{2, WaitCondition::Equal, 1}));
  EXPECT_EQ(wait("S[255]<=0"), (Wait{255, WaitCondition::LessEqual, 0}));

  const auto update = [](std::string_view text) {
    return import_one("Sync", "DRAIN", text).sync.update;
  };
  EXPECT_EQ(update("S[1]--@complete").kind, UpdateKind::Decrement);
  EXPECT_EQ(update("$S[2]+=3@complete"), (Update{2, UpdateKind::Add, UpdateWhen::Complete, 3}));
  EXPECT_EQ(update("$S[2]-=4@complete"),
            (Update{2, UpdateKind::Subtract, UpdateWhen::Complete, 4}));
  EXPECT_EQ(update("$S[2]=0@complete"), (Update{2, UpdateKind::Write, UpdateWhen::Complete, 0}));
}

TEST(Import, RefusesWaitsAndUpdatesThatItDoesNotKnow) {
  for (std::string_view text :
       {"S[256]>=1", "S[-1]>=1", "S[1>=1", "S[1]", "S[1] (Vector", "S[1]>1", "S[1]>=", "S[1]>=-1",
        "S[1]>=x", "S[1]>=1z", "S[1]>=99999999999", "S[1]++@read", "S[1]*=2@complete",
        "S[1]+=@complete", "S[1]+=-1@complete", "S[99999999999999999999]>=1"}) {
    EXPECT_THAT(error_of_row("Sync", "DRAIN", text),
                HasSubstr("p.json: instruction[0].operands: expected"))
        << text;
  }
  EXPECT_THAT(error_of_row("Sync", "DRAIN", "S[1]>=1 S[2]>=1"), HasSubstr("one wait at most"));
  EXPECT_THAT(error_of_row("Sync", "DRAIN", "S[1]++@complete S[2]++@complete"),
              HasSubstr("one update at most"));
  EXPECT_THAT(error_of_row("Sync", "DRAIN", "$E[4]==1-"), HasSubstr("unknown operand"));
}

// ---- access patterns ----

TEST(Import, ReadsAccessPatternsInnermostFirst) {
  const auto copy = import_op<Copy>(
      "Vector", "COPY",
      "src=fp32@0x2003000[1,2,1,1][2,4,1,1] dst=bfloat16@0x6850[1,1,1,1][8,1,1,1] channels=64");
  EXPECT_EQ(copy.src, tile(Memory::Psum, Dtype::Fp32, 0x3000, {{1, 2}, {2, 4}}, 64));
  EXPECT_EQ(copy.dst, tile(Memory::Sbuf, Dtype::Bf16, 0x6850, {{1, 8}}, 64));
}

TEST(Import, KeepsInnerUnitDimensionsAndDropsOuterOnes) {
  // A reduction along X of [4][1] gives four results: the inner dimension of one has a meaning.
  const auto reduce = import_op<TensorReduce>(
      "Vector", "TENSOR_REDUCE",
      "op=MAX dim=X negated=1 src=fp32@0x4800[1,1,1,1][1,4,1,1] dst=fp32@0x4810[1,1,1,1][4,1,1,1] "
      "channels=128 ");
  EXPECT_EQ(reduce.src, tile(Memory::Sbuf, Dtype::Fp32, 0x4800, {{1, 1}, {1, 4}}));
  EXPECT_EQ(reduce.dst, tile(Memory::Sbuf, Dtype::Fp32, 0x4810, {{1, 4}}));
  EXPECT_EQ(reduce.op, AluOp::Max);
  EXPECT_EQ(reduce.dims, ReduceDims::X);
  EXPECT_TRUE(reduce.negate);
  const auto one = import_op<TensorReduce>("Vector", "TENSOR_REDUCE",
                                           "op=ADD dim=XY src=int32@0x0[1,1,1,1][512,1,1,1] "
                                           "dst=int32@0x800[1,1,1,1][1,1,1,1] channels=1");
  EXPECT_EQ(one.dst, tile(Memory::Sbuf, Dtype::Int32, 0x800, {}, 1));
  EXPECT_EQ(one.dims, ReduceDims::Xy);
  EXPECT_FALSE(one.negate);
}

TEST(Import, EngineAddressesHaveThePartitionInTheirUpperBits) {
  const auto copy = import_op<Copy>(
      "Vector", "COPY", "src=uint8@0x800010[1][4] dst=uint8@0x1fc0000[1][4] channels=1");
  EXPECT_EQ(copy.src.start_partition, 32);
  EXPECT_EQ(copy.src.offset, Affine(0x10));
  EXPECT_EQ(copy.dst.start_partition, 127);
  EXPECT_EQ(copy.dst.offset, Affine(0));
}

TEST(Import, RefusesAccessesThatItDoesNotKnow) {
  const auto error = [](std::string_view src) {
    return error_of_row("Vector", "COPY",
                        fmt::format("src={} dst=fp32@0x0[1][1] channels=128", src));
  };
  EXPECT_THAT(error("0x0[1][1]"), HasSubstr("src: expected dtype@address[strides][sizes]"));
  EXPECT_THAT(error("bfloat61@0x0[1][1]"), HasSubstr("(did you mean 'bfloat16'?)"));
  EXPECT_THAT(error("fp32@zero[1][1]"), HasSubstr("expected a whole number"));
  EXPECT_THAT(error("fp32@-4[1][1]"), HasSubstr("expected a whole number"));
  EXPECT_THAT(error("fp32@0x2004000[1][1]"), HasSubstr("neither in SBUF"));
  EXPECT_THAT(error("fp32@0x40000[1][1]"), HasSubstr("partitions 1..128 are past the last, 127"));
  EXPECT_THAT(error("fp32@0x0[1,1][4]"), HasSubstr("2 strides, but 1 sizes"));
  EXPECT_THAT(error("fp32@0x0[1,1,1,1,1][4]"), HasSubstr("one to 4 numbers"));
  EXPECT_THAT(error("fp32@0x0[1][0]"), HasSubstr("one to 4 numbers in 1..262144"));
  EXPECT_THAT(error("fp32@0x0[1][-1]"), HasSubstr("one to 4 numbers"));
  EXPECT_THAT(error("fp32@0x0[1][1"), HasSubstr("one to 4 numbers"));
  EXPECT_THAT(error("fp32@0x0[][]"), HasSubstr("one to 4 numbers"));
  EXPECT_THAT(error("fp32@0x0[1]"), HasSubstr("one to 4 numbers"));
  EXPECT_THAT(error("fp32@0x0[1][1]!"), HasSubstr("unexpected '!'"));
  EXPECT_THAT(error("fp32@0x0[0,0][262144,262144]"), HasSubstr("more than 2^32 elements"));
  EXPECT_THAT(error_of_row("Vector", "COPY", "src=fp32@0x0[1][1] channels=129"),
              HasSubstr("channels: expected a whole number in 1..128, got '129'"));
  EXPECT_THAT(error_of_row("Vector", "COPY", "src=fp32@0x0[1][1] channels=0"),
              HasSubstr("channels: expected"));
}

// ---- the Tensor engine ----

TEST(Import, ReadsWeightsThatAreLoadedBackwards) {
  const auto plain = import_op<LdWeights>(
      "Tensor", "LDWEIGHTS",
      "fp32_mode=HIGH transpose_mode=DISABLED src=fp32@0x6a4c[-1,0,0][128,1,1] 128*128 ");
  EXPECT_EQ(plain.src, tile(Memory::Sbuf, Dtype::Fp32, 0x6850, {{1, 128}}));
  EXPECT_EQ(plain.pass, Fp32Pass::High);
  EXPECT_FALSE(plain.transpose);
  EXPECT_EQ(plain.tile, PeTile{});

  // Four groups of 32 backwards: the same 128 elements in a row, from 0x37a00.
  const auto grouped =
      import_op<LdWeights>("Tensor", "LDWEIGHTS",
                           "transpose_mode=ENABLED src=bfloat16@0x37afe[-1,0,-32][32,1,4] 128*128");
  EXPECT_EQ(grouped.src, tile(Memory::Sbuf, Dtype::Bf16, 0x37a00, {{1, 32}, {0, 1}, {32, 4}}));
  EXPECT_EQ(grouped.pass, Fp32Pass::None);
  EXPECT_TRUE(grouped.transpose);

  EXPECT_THAT(error_of_row("Tensor", "LDWEIGHTS",
                           "transpose_mode=DISABLED src=fp32@0x4[-1,0,0][128,1,1] 128*128"),
              HasSubstr("src: walks backwards past the partition's start"));
}

TEST(Import, ReadsMatmulsAndTheModeOfTheirWeights) {
  const auto product =
      import_op<Matmul>("Tensor", "MATMUL",
                        "acc_flags=1 fp32_mode=LOW_HIGH src=fp32@0x4000[1,0,0][128,1,1] "
                        "dst=0x2002000[1,0,0][128,1,1] 64*32 ");
  EXPECT_EQ(product.src, tile(Memory::Sbuf, Dtype::Fp32, 0x4000, {{1, 128}}, 64));
  EXPECT_EQ(product.dst, tile(Memory::Psum, Dtype::Fp32, 0x2000, {{1, 128}}, 32));
  EXPECT_EQ(product.pass, Fp32Pass::LowHigh);
  EXPECT_TRUE(product.start);
  EXPECT_FALSE(product.stop);
  EXPECT_EQ(product.tile, (PeTile{0, 0, 64, 32}));

  const std::string weights = "transpose_mode={} src=bfloat16@0x100[1,0,0][128,1,1] 128*128";
  const std::string matmul =
      "acc_flags=3 src=bfloat16@0x200[1,0,0][128,1,1] dst=0x2000000[1,0,0][128,1,1] 128*128";
  const Trace trace =
      import_rows({row("Tensor", 0, "LDWEIGHTS", fmt::format(fmt::runtime(weights), "ENABLED")),
                   row("Tensor", 1, "MATMUL", matmul),
                   row("Tensor", 2, "LDWEIGHTS", fmt::format(fmt::runtime(weights), "DISABLED")),
                   row("Tensor", 3, "MATMUL", matmul)});
  const auto& tensor = trace.code[0].streams[index(Engine::Tensor)];
  EXPECT_TRUE(std::get<Matmul>(tensor[1].op).transpose);
  EXPECT_EQ(std::get<Matmul>(tensor[1].op).dst.dtype, Dtype::Bf16);
  EXPECT_FALSE(std::get<Matmul>(tensor[3].op).transpose);
  EXPECT_EQ(std::get<Matmul>(tensor[3].op).dst.dtype, Dtype::Fp32);
}

TEST(Import, ReadsEachAccumulationFlag) {
  for (int flags = 0; flags < 4; ++flags) {
    const auto matmul = import_op<Matmul>(
        "Tensor", "MATMUL",
        fmt::format("acc_flags={} src=fp16@0x0[1][8] dst=0x2000000[1][8] 128*128", flags));
    EXPECT_EQ(matmul.start, flags == 1 || flags == 3);
    EXPECT_EQ(matmul.stop, flags == 2 || flags == 3);
  }
}

TEST(Import, RefusesTensorOperandsThatItDoesNotKnow) {
  const auto error = [](std::string_view operands) {
    return error_of_row("Tensor", "LDWEIGHTS", operands);
  };
  const std::string src = "src=fp32@0x0[1][128]";
  EXPECT_THAT(error("transpose_mode=MAYBE 128*128 " + src),
              HasSubstr("expected ENABLED or DISABLED"));
  EXPECT_THAT(error("transpose_mode=ENABLED " + src), HasSubstr("expected a PE tile"));
  EXPECT_THAT(error("transpose_mode=ENABLED 128 " + src), HasSubstr("expected a PE tile"));
  EXPECT_THAT(error("transpose_mode=ENABLED 96*128 " + src),
              HasSubstr("expected 32, 64 or 128, got 96"));
  EXPECT_THAT(error("transpose_mode=ENABLED 256*128 " + src), HasSubstr("expected a whole number"));
  EXPECT_THAT(error("transpose_mode=ENABLED 128*128 fp32_mode=MIDDLE " + src),
              HasSubstr("fp32_mode: unknown value 'MIDDLE'"));
  EXPECT_THAT(error("transpose_mode=ENABLED 128*128 sparsity=4:8 " + src),
              HasSubstr("sparsity: unknown operand of this instruction"));
  EXPECT_THAT(error_of_row("Tensor", "MATMUL", "acc_flags=4 128*128 dst=0x2000000[1][8] " + src),
              HasSubstr("acc_flags: expected a whole number in 0..3, got '4'"));
}

// ---- Vector and Scalar ----

TEST(Import, ReadsActivations) {
  const auto op = import_op<Activate>(
      "Scalar", "ACTIVATE",
      "EXP bias_ptr=fp32@0x4814 src=fp32@0x2000800[1,1,1][512,1,1] dst=fp32@0x5020[1,1,1][512,1,1] "
      "channels=128 scale=0.500000 imm=-1.000000 accumulator_cmd=RESET_REDUCE");
  EXPECT_EQ(op.function, ActivationFunction::Exp);
  EXPECT_EQ(op.src, tile(Memory::Psum, Dtype::Fp32, 0x800, {{1, 512}}));
  EXPECT_EQ(op.dst, tile(Memory::Sbuf, Dtype::Fp32, 0x5020, {{1, 512}}));
  EXPECT_EQ(op.bias.kind, ScalarOperand::Kind::Pointer);
  EXPECT_EQ(op.bias.pointer, tile(Memory::Sbuf, Dtype::Fp32, 0x4814, {}));
  EXPECT_EQ(op.scale.kind, ScalarOperand::Kind::Immediate);
  EXPECT_EQ(op.scale.immediate, 0.5F);
  EXPECT_EQ(op.imm, -1.0F);
  EXPECT_EQ(op.accumulator_cmd, AccumulatorCommand::ResetReduce);
  EXPECT_EQ(import_op<ActTableLoad>("Scalar", "ACT_TABLE_LOAD", " table_sel=3 ").table_sel, 3U);
}

TEST(Import, RefusesActivationsThatItDoesNotKnow) {
  const std::string rest =
      " bias_ptr=fp32@0x0 src=fp32@0x0[1][1] dst=fp32@0x0[1][1] channels=1 accumulator_cmd=IDLE "
      "imm=0 scale=";
  EXPECT_THAT(error_of_row("Scalar", "ACTIVATE", "EXPP" + rest + "1"),
              HasSubstr("function: unknown value 'EXPP' (did you mean 'EXP'?)"));
  EXPECT_THAT(error_of_row("Scalar", "ACTIVATE", rest + "1"), HasSubstr("expected a function"));
  EXPECT_THAT(error_of_row("Scalar", "ACTIVATE", "EXP EXP" + rest + "1"),
              HasSubstr("unknown operand 'EXP'"));
  for (std::string_view scale : {"", "nan", "inf", "1e39", "1.0x", "0x3f800000"}) {
    EXPECT_THAT(error_of_row("Scalar", "ACTIVATE", fmt::format("EXP{}{}", rest, scale)),
                HasSubstr("scale: expected a number"))
        << scale;
  }
}

TEST(Import, ReadsScalarOperandsByPointerAndByValue) {
  const auto pointer = import_op<TensorScalar>(
      "Vector", "TENSOR_SCALAR",
      "ops=MULTIPLY,BYPASS imm=0x6840,0 imm_src=PTR,INSTRUCTION src=fp32@0x2002000[1,1,1][128,1,1] "
      "dst=fp32@0x8850[1,1,1][128,1,1] channels=128");
  EXPECT_EQ(pointer.op0, AluOp::Multiply);
  EXPECT_EQ(pointer.op1, AluOp::Bypass);
  EXPECT_EQ(pointer.operand0.kind, ScalarOperand::Kind::Pointer);
  EXPECT_EQ(pointer.operand0.pointer, tile(Memory::Sbuf, Dtype::Fp32, 0x6840, {}));
  EXPECT_EQ(pointer.operand1.kind, ScalarOperand::Kind::None);

  const auto value = import_op<TensorScalar>(
      "Vector", "TENSOR_SCALAR",
      "ops=ADD,MAX imm=2.5,0x100 imm_src=INSTRUCTION,PTR src=fp32@0x0[1][1] dst=fp32@0x0[1][1] "
      "channels=32");
  EXPECT_EQ(value.operand0.kind, ScalarOperand::Kind::Immediate);
  EXPECT_EQ(value.operand0.immediate, 2.5F);
  EXPECT_EQ(value.operand1.pointer, tile(Memory::Sbuf, Dtype::Fp32, 0x100, {}, 32));

  const std::string rest = " src=fp32@0x0[1][1] dst=fp32@0x0[1][1] channels=32";
  EXPECT_THAT(
      error_of_row("Vector", "TENSOR_SCALAR", "ops=ADD imm=1,0 imm_src=PTR,INSTRUCTION" + rest),
      HasSubstr("ops: expected two values with a comma"));
  EXPECT_THAT(error_of_row("Vector", "TENSOR_SCALAR", "ops=ADD,ADD imm=1,0 imm_src=PTR,REG" + rest),
              HasSubstr("imm_src: expected PTR or INSTRUCTION"));
}

TEST(Import, ReadsElementwiseInstructionsOfAnyEngine) {
  const std::string operands =
      "src=fp32@0x0[1,1,1,1][8,1,1,1] dst=bfloat16@0x100[1,1,1,1][8,1,1,1] channels=128";
  const auto dst = tile(Memory::Sbuf, Dtype::Bf16, 0x100, {{1, 8}});
  EXPECT_EQ(import_op<Copy>("Scalar", "COPY", operands).dst, dst);
  EXPECT_EQ(import_op<Cast>("Vector", "CAST", operands).dst, dst);
  EXPECT_EQ(import_op<Reciprocal>("Vector", "RECIPROCAL", operands).dst, dst);
}

// ---- sequencers ----

TEST(Import, ReadsControlInstructions) {
  EXPECT_EQ(import_op<SetOrderingMode>("Sync", "SET_ORDERING_MODE", " ordering_mode=relaxed ").mode,
            OrderingMode::Relaxed);
  EXPECT_EQ(import_op<SetOrderingMode>("Sync", "SET_ORDERING_MODE", "ordering_mode=strict").mode,
            OrderingMode::Strict);
  EXPECT_EQ(import_op<Nop>("GpSimd", "NOP", "cycle=17").cycles, 17U);
  const auto clear = import_op<SemaphoreRangeClear>("Sync", "EVENT_SEMAPHORE_RANGE_CLEAR",
                                                    "mode=SEMAPHORE_ZERO first=207 last=255");
  EXPECT_EQ(clear.first, 207);
  EXPECT_EQ(clear.last, 255);
  EXPECT_EQ(mnemonic(import_one("Tensor", "DRAIN", " ")), "DRAIN");
  EXPECT_EQ(mnemonic(import_one("Sync", "NOTIFY", "hint=2 notification=EXPLICIT  trace=START ")),
            "NOTIFY");
  EXPECT_THAT(error_of_row("Sync", "EVENT_SEMAPHORE", "setter=1"),
              HasSubstr("setter: expected 0, got '1'"));
}

TEST(Import, RefusesOpcodesByName) {
  EXPECT_EQ(error_of_row("Vector", "COPYY", "x=1"),
            "p.json: instruction[0].opcode: cannot be imported: 'COPYY' (did you mean 'COPY'?), "
            "with operands 'x=1'");
  EXPECT_THAT(error_of_row("Sync", "TENSOR_LOAD", "data=$R[0]"),
              HasSubstr("cannot be imported: 'TENSOR_LOAD'"));
  EXPECT_THAT(
      error_of_row("Sync", "MATMUL", "acc_flags=3 src=fp16@0x0[1][8] dst=0x2000000[1][8] 128*128"),
      HasSubstr("instruction[0].subgroup: MATMUL does not run on the Sync engine"));
}

TEST(Import, RefusesUnknownAndRepeatedOperands) {
  EXPECT_EQ(error_of_row("GpSimd", "NOP", "cycle=1 colour=red"),
            "p.json: instruction[0].operands: colour: unknown operand of this instruction, in "
            "'cycle=1 colour=red'");
  EXPECT_THAT(error_of_row("GpSimd", "NOP", "cycle=1 cycle=1"), HasSubstr("cycle: given twice"));
  EXPECT_THAT(error_of_row("GpSimd", "NOP", ""),
              HasSubstr("cycle: expected this operand, it is missing"));
  EXPECT_THAT(error_of_row("GpSimd", "NOP", "cycle=1 loose"), HasSubstr("unknown operand 'loose'"));
}

// ---- DMA ----

constexpr std::string_view kLoad =
    "semaphore=24 sem_increment=16 src_elem_size=1024 dst_elem_size=1024 "
    "src_pattern=[1024,1][128,1] "
    "dst_pattern=[262144,1][128,1] src_table_offset_imm=0x400 src_table_index=2 src_shape_reg=0 "
    "dst_addr_imm=0x802000037200 dst_shape_reg=0 compute_op=NONE";

TEST(Import, ReadsDmaThroughTheQueueOfItsEngine) {
  const auto store = import_op<DmaDirect2d>(
      "Sync", "DMA_DIRECT2D",
      "S[4] (Scalar)>=1 semaphore=40 sem_increment=16 src_elem_size=2048 dst_elem_size=2048 "
      "src_pattern=[2048,262144][2,128] dst_pattern=[262144,2048][2,128] "
      "src_addr_imm=0x802000004000 src_shape_reg=0 dst_addr_imm=0x800001000000 dst_shape_reg=0 "
      "compute_op=NONE");
  EXPECT_EQ(store.mode, DescriptorMode::HardwareDge);
  EXPECT_EQ(store.queue, 1);
  EXPECT_FALSE(store.bound_at_launch);
  EXPECT_EQ(store.completion, (DmaCompletion{40, 16}));
  EXPECT_EQ(store.src.memory, Memory::Sbuf);
  EXPECT_EQ(store.src.address, Affine(0x4000));
  EXPECT_EQ(store.src.dims, 2);
  EXPECT_EQ(store.src.pattern[0], (DmaDim{2048, 2}));
  EXPECT_EQ(store.src.pattern[1], (DmaDim{262144, 128}));
  EXPECT_EQ(store.dst.memory, Memory::Hbm);
  EXPECT_EQ(store.dst.address, Affine(0x1000000));
  EXPECT_EQ(store.dst.bytes(), 2048U * 256U);

  const auto load = import_op<DmaDirect2d>("GpSimd", "DMA_DIRECT2D", kLoad);
  EXPECT_EQ(load.mode, DescriptorMode::SoftwareDge);
  EXPECT_EQ(load.queue, 3);
  EXPECT_TRUE(load.bound_at_launch);
  EXPECT_EQ(load.src.dims, 1);
}

TEST(Import, ReadsTheTypesOfACastingDma) {
  const std::string operands =
      "semaphore=27 sem_increment=16 src_elem_size=512 dst_elem_size=256 "
      "src_pattern=[512,262144][4,128] dst_pattern=[32768,256][4,128] src_addr_imm=0x802000008850 "
      "src_shape_reg=0 dst_table_offset_imm=0x0 dst_table_index=3 dst_shape_reg=0 compute_op=NONE";
  const auto cast = import_op<DmaDirect2d>("GpSimd", "DMA_DIRECT2D",
                                           operands + " in_dtype=fp32 out_dtype=bfloat16");
  EXPECT_EQ(cast.src.dtype, Dtype::Fp32);
  EXPECT_EQ(cast.dst.dtype, Dtype::Bf16);
  EXPECT_THAT(error_of_row("GpSimd", "DMA_DIRECT2D", operands),
              HasSubstr("262144 elements are read, but 131072 written"));
  EXPECT_THAT(error_of_row("GpSimd", "DMA_DIRECT2D", operands + " in_dtype=fp32"),
              HasSubstr("in_dtype and out_dtype together"));
}

TEST(Import, MakesTensorsOfTheMemoryThatDmaTouches) {
  const auto dma = [](std::string_view src, std::string_view dst) {
    return fmt::format(
        "semaphore=1 sem_increment=16 src_elem_size=512 dst_elem_size=512 src_pattern=[512][128] "
        "dst_pattern=[512][128] {} src_shape_reg=0 {} dst_shape_reg=0 compute_op=NONE",
        src, dst);
  };
  const std::string sbuf = "dst_addr_imm=0x802000000000";
  const Trace trace = import_rows({
      row("Sync", 0, "DMA_DIRECT2D", dma("src_addr_imm=0x800000020000", sbuf)),
      row("Sync", 1, "DMA_DIRECT2D", dma("src_addr_imm=0x800000030000", sbuf)),  // right behind
      row("Sync", 2, "DMA_DIRECT2D", dma("src_addr_imm=0x800000800000", sbuf)),
      row("Sync", 3, "DMA_DIRECT2D",
          dma("src_addr_imm=0x802000000000", "dst_addr_imm=0x800000808000")),  // overlaps
      row("GpSimd", 0, "DMA_DIRECT2D", dma("src_table_offset_imm=0 src_table_index=0", sbuf)),
      row("GpSimd", 1, "DMA_DIRECT2D", dma("src_table_offset_imm=0x10000 src_table_index=0", sbuf)),
      row("GpSimd", 2, "DMA_DIRECT2D",
          dma("src_addr_imm=0x802000000000", "dst_table_offset_imm=0 dst_table_index=4")),
  });
  const auto& tensors = trace.header.tensors;
  ASSERT_EQ(tensors.size(), 4U);
  EXPECT_EQ(tensors[0].name, "constant0");
  EXPECT_EQ(tensors[0].kind, TensorKind::Constant);
  EXPECT_EQ(tensors[0].address, 0x20000U);
  EXPECT_EQ(tensors[0].bytes, 0x20000U);
  EXPECT_EQ(tensors[0].shape, (std::vector<std::uint64_t>{256, 512}));
  EXPECT_EQ(tensors[1].name, "internal0");
  EXPECT_EQ(tensors[1].kind, TensorKind::Internal);
  EXPECT_EQ(tensors[1].address, 0x800000U);
  EXPECT_EQ(tensors[1].bytes, 0x18000U);
  EXPECT_EQ(tensors[2].name, "argument0");
  EXPECT_EQ(tensors[2].kind, TensorKind::Input);
  EXPECT_EQ(tensors[2].address, 0x40000U);  // 0x10000 bytes are free below the constant: too few
  EXPECT_EQ(tensors[2].bytes, 0x20000U);
  EXPECT_EQ(tensors[3].name, "argument4");
  EXPECT_EQ(tensors[3].kind, TensorKind::Output);
  EXPECT_EQ(tensors[3].address, 0x10000U);
  const auto& gpsimd = trace.code[0].streams[index(Engine::GpSimd)];
  EXPECT_EQ(std::get<DmaDirect2d>(gpsimd[0].op).src.address, Affine(0x40000));
  EXPECT_EQ(std::get<DmaDirect2d>(gpsimd[1].op).src.address, Affine(0x50000));
  EXPECT_EQ(std::get<DmaDirect2d>(gpsimd[2].op).dst.address, Affine(0x10000));
}

TEST(Import, RefusesDmaThatItDoesNotKnow) {
  const auto changed = [](std::string_view from, std::string_view to) {
    std::string operands(kLoad);
    const std::size_t at = operands.find(from);
    if (at == std::string::npos) throw std::logic_error("nothing to change");
    operands.replace(at, from.size(), to);
    return error_of_row("GpSimd", "DMA_DIRECT2D", operands);
  };
  EXPECT_THAT(changed("NONE", "ADD"), HasSubstr("compute_op: expected NONE, got 'ADD'"));
  EXPECT_THAT(changed("src_shape_reg=0", "src_shape_reg=3"),
              HasSubstr("src_shape_reg: expected 0"));
  EXPECT_THAT(changed("semaphore=24", "semaphore=256"), HasSubstr("semaphore: expected"));
  EXPECT_THAT(changed("0x802000037200", "0x802002000000"),
              HasSubstr("dst_addr_imm: 0x802002000000"));
  EXPECT_THAT(changed("0x802000037200", "0x7fffffffffff"), HasSubstr("neither in HBM"));
  EXPECT_THAT(changed("src_table_index=2", "src_table_index=$R[3]"), HasSubstr("src_table_index"));
  EXPECT_THAT(changed("[1024,1][128,1]", "[-1024,1][128,1]"),
              HasSubstr("reaches below the start of its memory"));
  EXPECT_THAT(changed("[1024,1][128,1]", "[1099511627776,1][128,1]"), HasSubstr("more than 1 TiB"));
  EXPECT_THAT(changed("[1024,1][128,1]", "[0,0][2147483647,4]"), HasSubstr("more than 2^32"));
  EXPECT_THAT(changed("src_elem_size=1024", "src_elem_size=0"),
              HasSubstr("src_elem_size: expected"));
  EXPECT_THAT(error_of_row("Vector", "DMA_DIRECT2D", kLoad),
              HasSubstr("neither qVectorDynamicHW nor qVectorDynamic"));
}

// ---- the file itself ----

TEST(Import, SaysAtWhichByteTheTextIsNoJson) {
  EXPECT_THAT(error_of("{\"instruction\":[}"), HasSubstr("p.json: byte 16: expected JSON"));
  EXPECT_THAT(error_of(""), HasSubstr("p.json: byte 0: expected JSON"));
  EXPECT_THAT(error_of("version https://git-lfs"), HasSubstr("p.json: byte 0: expected JSON"));
  EXPECT_THAT(error_of("{} {}"), HasSubstr("p.json: byte 3: expected JSON"));
  EXPECT_THAT(error_of("{\"a\":\"\xff\"}"), HasSubstr("p.json: byte 6: expected JSON"));
  EXPECT_THAT(error_of("{\"a\":1e999}"), HasSubstr("p.json: byte"));
  const std::string whole = profile({row("Sync", 0, "DRAIN", "")});
  EXPECT_EQ(error_of(whole), "no error");
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(error_of(whole.substr(0, size)), HasSubstr("expected JSON")) << size;
  }
}

TEST(Import, SaysWhichValueHasTheWrongForm) {
  EXPECT_EQ(error_of("[]"), "p.json: expected an object of lists, got a list");
  EXPECT_EQ(error_of("3"), "p.json: expected an object of lists, got a number");
  EXPECT_EQ(error_of(R"({"instruction":{}})"),
            "p.json: instruction: expected a list, got an object");
  EXPECT_EQ(error_of(R"({"instruction":null})"), "p.json: instruction: expected a list, got null");
  EXPECT_EQ(error_of(R"({"instruction":[3]})"),
            "p.json: instruction[0]: expected an object, got a number");
  EXPECT_EQ(error_of(R"({"instruction":[{}]})"),
            "p.json: instruction[0].subgraph: expected a text, the field is missing");
  EXPECT_EQ(error_of(R"({"instruction":[{"subgraph":[1,{"a":2}]}]})"),
            "p.json: instruction[0].subgraph: expected a text, got a list");
  EXPECT_EQ(error_of(R"({"instruction":[{"subgraph":"sg00","subgraph":"sg00"}]})"),
            "p.json: instruction[0].subgraph: this field is here twice");
  EXPECT_EQ(error_of(R"({"instruction":[],"instruction":[]})"),
            "p.json: instruction: this list is here twice");
  const auto of_pc = [](std::string_view pc, std::string_view engine = "Sync") {
    return error_of(fmt::format(
        R"({{"instruction":[{{"subgraph":"sg00","compiler_pc":0,"subgroup":"{}","pc":{}}}]}})",
        engine, pc));
  };
  EXPECT_THAT(of_pc("-1"), HasSubstr("instruction[0].pc: expected a whole number in 0.."));
  EXPECT_THAT(of_pc("1.5"), HasSubstr("got 1.5"));
  EXPECT_THAT(of_pc("99999999999999999999"), HasSubstr("got 1e+20"));
  EXPECT_THAT(of_pc("true"), HasSubstr("got true"));
  EXPECT_THAT(of_pc("\"7\""), HasSubstr("got '7'"));
  EXPECT_THAT(of_pc("7"), HasSubstr("instruction[0].opcode: expected a text"));
  EXPECT_THAT(of_pc("7", "Vectr"), HasSubstr("got 'Vectr' (did you mean 'Vector'?)"));
}

TEST(Import, BoundsDepthAndIgnoresWhatItDoesNotNeed) {
  std::string deep = R"({"other":)";
  for (int i = 0; i < 100'000; ++i) deep += '[';
  EXPECT_THAT(error_of(deep), HasSubstr("nested deeper than 64 levels"));
  const Trace trace = import_rows(
      {row("Sync", 0, "DRAIN", "", R"(,"predecessors":[{"id":1}],"timestamp":"noon","x":null)")},
      R"(,"dma":7,"semaphore_update":{"a":[1,[2]]},"glossary":"text")");
  EXPECT_EQ(trace.size(0, Engine::Sync), 1U);
}

TEST(Import, SaysWhyAFileCannotBeRead) {
  const auto error = [](const std::filesystem::path& path) -> std::string {
    try {
      (void)load_profile(path);
    } catch (const InputError& e) {
      return e.what();
    }
    return "no error";
  };
  const std::filesystem::path folder = test::scratch_folder();
  const auto write = [&](const char* name, std::string_view text) {
    return test::write_text(folder / name, text);
  };
  EXPECT_THAT(error(folder), HasSubstr("expected a profile (JSON), got a directory"));
  EXPECT_THAT(error(folder / "absent.json"), HasSubstr("absent.json: no such file"));
  EXPECT_THAT(error(write("empty.json", "")), HasSubstr("got an empty file"));
  EXPECT_THAT(error(write("lfs.json", "version https://git-lfs.github.com/spec/v1\n")),
              HasSubstr("Git LFS pointer"));
  EXPECT_EQ(load_profile(write("good.json", "{}")), "{}");
}

// ---- the clock's phase ----

TEST(ActivityWindowPhase, IsTheFirstClockRowOfTheCoreModuloTheWindow) {
  const auto phase = [](std::string_view ham) {
    return activity_window_phase_ns(fmt::format(R"({{"instruction":7,"ham":[{}]}})", ham), "p.json",
                                    3000);
  };
  EXPECT_EQ(phase(R"({"subgraph":"sg01","timestamp":5},{"subgraph":"sg00","timestamp":6500},)"
                  R"({"subgraph":"sg00","timestamp":9999})"),
            500);
  EXPECT_EQ(phase(R"({"subgraph":"sg00","timestamp":3000})"), 0);
  EXPECT_EQ(phase(""), std::nullopt);
  EXPECT_THROW(phase(R"({"subgraph":"sg00"})"), InputError);
  EXPECT_THROW(phase(R"({"subgraph":"sg00","timestamp":-1})"), InputError);
}

}  // namespace
}  // namespace trn::isa
