#include "sim/core/cost_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "isa/base/error.h"

namespace trn::sim {
namespace {

using isa::CostClass;
using isa::Engine;
using testing::HasSubstr;
using testing::Not;

CostContext context() {
  return {.clock_hz = {2.4e9, 0.96e9, 1.2e9, 1.2e9, 1.2e9}, .parameters = {{"dma.hold", 590}}};
}

/// A complete table: each class costs its number, except where a test says otherwise.
CostTableConfig complete() {
  CostTableConfig config;
  config.constants["min_ii"] = 64;
  for (std::size_t c = 0; c < isa::kCostClasses; ++c) {
    const std::string cycles = std::to_string(c + 1);
    config.rows[std::string(EnumNames<CostClass>::value[c])]
        .by_engine[CostRowsConfig::kEveryEngine] = {
        {.ii_cycles = cycles, .latency_cycles = "ii_cycles + 1", .source = "a test"}};
  }
  return config;
}

CostRowConfig row(std::optional<std::string> when, std::string ii) {
  return {.when = std::move(when),
          .ii_cycles = std::move(ii),
          .latency_cycles = "ii_cycles + ns(100)",
          .status = Status::Measured,
          .source = "a test"};
}

std::string error_of(const CostTableConfig& config) {
  try {
    const CostTable table(config, context());
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(CostTable, TheFirstRowThatHoldsCounts) {
  CostTableConfig config = complete();
  config.rows["copy"].by_engine = {
      {"vector",
       {row("src.memory == psum", "elements + 62"), row("contiguous", "max(min_ii, elements / 4)"),
        row(std::nullopt, "elements")}},
      {"scalar", {row(std::nullopt, "elements + 60")}},
      {"gpsimd", {row(std::nullopt, "elements + 150")}}};
  const CostTable table(config, context());
  CostFeatures f;
  f.elements = 512;
  f.src_memory = isa::Memory::Psum;
  EXPECT_EQ(table.evaluate(CostClass::Copy, Engine::Vector, f).ii_cycles, 574);
  EXPECT_DOUBLE_EQ(table.evaluate(CostClass::Copy, Engine::Vector, f).latency_cycles, 574 + 96);
  EXPECT_DOUBLE_EQ(table.evaluate(CostClass::Copy, Engine::Scalar, f).latency_cycles, 572 + 120);
  f.src_memory = isa::Memory::Sbuf;
  EXPECT_EQ(table.evaluate(CostClass::Copy, Engine::Vector, f).ii_cycles, 128);
  f.contiguous = Flag::No;
  const Cost cost = table.evaluate(CostClass::Copy, Engine::Vector, f);
  EXPECT_EQ(cost.ii_cycles, 512);
  EXPECT_EQ(cost.status, Status::Measured);
  EXPECT_EQ(table.rows()[cost.row].number, 2U);
  EXPECT_EQ(table.rows()[cost.row].engine, Engine::Vector);
}

TEST(CostTable, OccupancyAndRestartAreOptional) {
  CostTableConfig config = complete();
  CostRowConfig full = row(std::nullopt, "60");
  full.occupancy_cycles = "ii_cycles + 12";
  full.latency_cycles = "occupancy_cycles + 110";
  full.restart_cycles = "7";
  config.rows["matmul"].by_engine[CostRowsConfig::kEveryEngine] = {full};
  const CostTable table(config, context());
  const Cost cost = table.evaluate(CostClass::Matmul, Engine::Tensor, {});
  EXPECT_EQ(cost.occupancy_cycles, 72);
  EXPECT_EQ(cost.latency_cycles, 182);
  EXPECT_EQ(cost.restart_cycles, 7);
  const Cost plain = table.evaluate(CostClass::LoadWeights, Engine::Tensor, {});
  EXPECT_EQ(plain.occupancy_cycles, plain.ii_cycles);
  EXPECT_EQ(plain.restart_cycles, 0);
}

TEST(CostTable, FormulasUseParametersOfTheChip) {
  CostTableConfig config = complete();
  config.rows["dma_trigger"].by_engine[CostRowsConfig::kEveryEngine] = {
      row(std::nullopt, "ns(dma.hold)")};
  const CostTable table(config, context());
  EXPECT_DOUBLE_EQ(table.evaluate(CostClass::DmaTrigger, Engine::Sync, {}).ii_cycles, 708);
  EXPECT_DOUBLE_EQ(table.evaluate(CostClass::DmaTrigger, Engine::Vector, {}).ii_cycles, 566.4);
}

TEST(CostTable, AMissingRowIsAnErrorNotAZero) {
  CostTableConfig config = complete();
  config.rows.erase("matmul");
  config.rows["copy"].by_engine = {{"vector", {row(std::nullopt, "1")}},
                                   {"scalar", {row(std::nullopt, "1")}}};
  config.rows["iota"].by_engine[CostRowsConfig::kEveryEngine].clear();
  EXPECT_EQ(error_of(config),
            "rows.matmul: missing rows for the Tensor engine\n"
            "rows.copy: missing rows for the GpSimd engine\n"
            "rows.iota: missing rows for the GpSimd engine");
}

TEST(CostTable, UnknownClassesAndEnginesAreErrors) {
  CostTableConfig config = complete();
  config.rows["matmull"] = config.rows["matmul"];
  config.rows["copy"].by_engine = {{"vector", {row(std::nullopt, "1")}},
                                   {"scalar", {row(std::nullopt, "1")}},
                                   {"gpsimd", {row(std::nullopt, "1")}},
                                   {"tensor", {row(std::nullopt, "1")}}};
  EXPECT_EQ(error_of(config),
            "rows.matmull: unknown cost class (did you mean 'matmul'?)\n"
            "rows.copy.tensor: no instruction of this class runs there");
}

TEST(CostTable, EveryCaseIsCoveredOnce) {
  CostTableConfig config = complete();
  config.rows["matmul"].by_engine[CostRowsConfig::kEveryEngine] = {row(std::nullopt, "1"),
                                                                   row("dtype == fp32", "1")};
  EXPECT_EQ(error_of(config),
            "rows.matmul.0.ii_cycles: no row after this one is reached: expected a `when`\n"
            "rows.matmul.1.when: the last row must hold always: expected no `when`");
}

TEST(CostTable, ARowForOneShapeIsRefused) {
  CostTableConfig config = complete();
  config.rows["matmul"].by_engine[CostRowsConfig::kEveryEngine] = {
      row("dtype == fp32 and elements == 512", "1"), row(std::nullopt, "1")};
  EXPECT_EQ(error_of(config),
            "rows.matmul.0.when: a row for a single value of 'elements' is no rule");
}

TEST(CostTable, ErrorsOfFormulasNameRowAndColumn) {
  CostTableConfig config = complete();
  config.rows["matmul"].by_engine[CostRowsConfig::kEveryEngine] = {row(std::nullopt, "elments")};
  Provenance provenance;
  provenance["chip.costs.rows.matmul.0.ii_cycles"] = {.file = "costs.yaml", .line = 41};
  try {
    const CostTable table(config, context(), provenance, "chip.costs");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "costs.yaml:41: chip.costs.rows.matmul.0.ii_cycles: column 1: unknown name "
                 "'elments' (did you mean 'elements'?)");
  }
}

TEST(CostTable, ListsForEveryEngineReportAnErrorOnce) {
  CostTableConfig config = complete();
  config.rows["control"].by_engine[CostRowsConfig::kEveryEngine] = {row(std::nullopt, "1 +")};
  EXPECT_EQ(error_of(config), "rows.control.0.ii_cycles: column 4: the formula ends too early");
}

TEST(CostTable, ACostIsNeverNegativeOrInfinite) {
  CostTableConfig config = complete();
  config.rows["matmul"].by_engine[CostRowsConfig::kEveryEngine] = {
      row(std::nullopt, "1 / elements")};
  config.rows["load_weights"].by_engine[CostRowsConfig::kEveryEngine] = {
      row(std::nullopt, "elements - 10")};
  const CostTable table(config, context());
  CostFeatures f;
  EXPECT_THROW(static_cast<void>(table.evaluate(CostClass::Matmul, Engine::Tensor, f)), InputError);
  f.elements = 5;
  EXPECT_THROW(static_cast<void>(table.evaluate(CostClass::LoadWeights, Engine::Tensor, f)),
               InputError);
  f.elements = 11;
  EXPECT_EQ(table.evaluate(CostClass::LoadWeights, Engine::Tensor, f).ii_cycles, 1);
}

TEST(CostCache, GivesWhatTheTableGives) {
  CostTableConfig config = complete();
  config.rows["copy"].by_engine = {
      {"vector", {row("src.memory == psum", "elements + 62"), row(std::nullopt, "elements + 1")}},
      {"scalar", {row(std::nullopt, "elements + 60")}},
      {"gpsimd", {row(std::nullopt, "elements + 150")}}};
  const CostTable table(config, context());
  CostCache cache(table);
  for (int round = 0; round < 2; ++round) {
    for (std::uint32_t elements = 1; elements <= 3000; ++elements) {
      CostFeatures f;
      f.elements = elements;
      EXPECT_EQ(cache.lookup(CostClass::Copy, Engine::Vector, f).ii_cycles, elements + 1);
      f.src_memory = isa::Memory::Psum;
      EXPECT_EQ(cache.lookup(CostClass::Copy, Engine::Vector, f).ii_cycles, elements + 62);
      EXPECT_EQ(cache.lookup(CostClass::Copy, Engine::Scalar, f).ii_cycles, elements + 60);
    }
  }
  EXPECT_EQ(cache.size(), 9000U);
}

TEST(CostCache, ListsTheAssumptionsThatWereUsed) {
  CostTableConfig config = complete();
  CostRowConfig guess = row(std::nullopt, "7");
  guess.status = Status::Estimated;
  config.rows["matmul"].by_engine[CostRowsConfig::kEveryEngine] = {row("dtype == fp32", "5"),
                                                                   guess};
  const CostTable table(config, context());
  CostCache cache(table);
  CostFeatures f;
  f.dtype = isa::Dtype::Fp32;
  static_cast<void>(cache.lookup(CostClass::Matmul, Engine::Tensor, f));
  EXPECT_TRUE(cache.assumed_rows_used().empty());
  f.dtype = isa::Dtype::Bf16;
  static_cast<void>(cache.lookup(CostClass::Matmul, Engine::Tensor, f));
  ASSERT_EQ(cache.assumed_rows_used().size(), 1U);
  EXPECT_EQ(cache.assumed_rows_used()[0]->number, 1U);
}

isa::Access tile(isa::Memory memory, isa::Dtype dtype, std::uint32_t elements,
                 std::int32_t stride = 1) {
  isa::Access access{.memory = memory, .dtype = dtype, .partitions = 128, .dims = 1};
  access.free[0] = {.stride = stride, .size = elements};
  return access;
}

TEST(CostFeatures, ComeFromTheOperands) {
  isa::TensorScalar op;
  op.src = tile(isa::Memory::Psum, isa::Dtype::Fp32, 512);
  op.dst = tile(isa::Memory::Sbuf, isa::Dtype::Bf16, 512, 2);
  op.operand0.kind = isa::ScalarOperand::Kind::Pointer;
  op.operand1.kind = isa::ScalarOperand::Kind::Immediate;
  op.op0 = isa::AluOp::Multiply;
  op.op1 = isa::AluOp::Add;
  const CostFeatures f = features_of(op);
  EXPECT_EQ(f.elements, 512U);
  EXPECT_EQ(f.partitions, 128U);
  EXPECT_EQ(f.dtype, OrNone(isa::Dtype::Fp32));
  EXPECT_EQ(f.dtype_bytes, 4U);
  EXPECT_EQ(f.src_memory, OrNone(isa::Memory::Psum));
  EXPECT_EQ(f.dst_memory, OrNone(isa::Memory::Sbuf));
  EXPECT_EQ(f.dst_dtype, OrNone(isa::Dtype::Bf16));
  EXPECT_EQ(f.src1_memory.code, 0U);
  EXPECT_EQ(f.contiguous, Flag::No);
  EXPECT_EQ(f.stride_bytes, 4U);
  EXPECT_EQ(f.pointer, 1U);
  EXPECT_EQ(f.op, OrNone(isa::AluOp::Multiply));
  EXPECT_EQ(f.op1, OrNone(isa::AluOp::Add));
  EXPECT_EQ(f.opcode, static_cast<OpcodeNumber>(isa::TensorScalar::kOpcode));
}

TEST(CostFeatures, OfAMatmulNameTileAndPass) {
  isa::Matmul op;
  op.src = tile(isa::Memory::Sbuf, isa::Dtype::Fp32, 128);
  op.dst = tile(isa::Memory::Psum, isa::Dtype::Fp32, 128);
  op.pass = isa::Fp32Pass::LowHigh;
  op.start = false;
  op.tile.rows = 64;
  const CostFeatures f = features_of(op);
  EXPECT_EQ(f.pass, OrNone(isa::Fp32Pass::LowHigh));
  EXPECT_EQ(f.rows, 64U);
  EXPECT_EQ(f.columns, 128U);
  EXPECT_EQ(f.accumulate, Flag::Yes);
  EXPECT_EQ(f.contiguous, Flag::Yes);
}

TEST(CostFeatures, WithoutAnInputTheResultCounts) {
  isa::Memset op;
  op.dst = tile(isa::Memory::Sbuf, isa::Dtype::Bf16, 300);
  op.value = {.kind = isa::ScalarOperand::Kind::Immediate, .immediate = 0};
  const CostFeatures f = features_of(op);
  EXPECT_EQ(f.elements, 300U);
  EXPECT_EQ(f.dtype, OrNone(isa::Dtype::Bf16));
  EXPECT_EQ(f.zero, Flag::Yes);
}

TEST(CostFeatures, OfADmaCountRunsAndBytes) {
  isa::DmaDirect2d op;
  op.src = {.memory = isa::Memory::Hbm, .dims = 1, .element_bytes = 2048};
  op.src.pattern[0].size = 128;
  op.dst = {.memory = isa::Memory::Sbuf, .dims = 2, .element_bytes = 512};
  op.dst.pattern[0].size = 4;
  op.dst.pattern[1].size = 128;
  op.mode = isa::DescriptorMode::SoftwareDge;
  op.bound_at_launch = true;
  const CostFeatures f = features_of(op);
  EXPECT_EQ(f.runs, 512U);
  EXPECT_EQ(f.bytes, 128U * 2048U);
  EXPECT_EQ(f.descriptors, OrNone(isa::DescriptorMode::SoftwareDge));
  EXPECT_EQ(f.bound_at_launch, Flag::Yes);
}

TEST(CostFeatures, AddressesAndSemaphoresDoNotMatter) {
  isa::Copy op;
  op.src = tile(isa::Memory::Sbuf, isa::Dtype::Fp32, 64);
  op.dst = tile(isa::Memory::Sbuf, isa::Dtype::Fp32, 64);
  const CostFeatures before = features_of(op);
  op.src.offset = 4096;
  op.dst.start_partition = 32;
  EXPECT_EQ(features_of(op), before);
  op.src.offset.term_count = 1;
  EXPECT_EQ(features_of(op).dynamic, Flag::Yes);
}

}  // namespace
}  // namespace trn::sim
