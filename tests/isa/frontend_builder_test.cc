// What each call of the builder makes: instructions, engines, descriptors, messages.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/error.h"
#include "isa/frontend/builder.h"
#include "isa/frontend/roll.h"
#include "tests/isa/frontend_kernel.h"

namespace trn::isa::frontend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;
using trn::test::columns;
using trn::test::Kernel;
using trn::test::rows;
using trn::test::Shape;

const Call kMatmul{.name = "nisa.nc_matmul"};
const Call kTranspose{.name = "nisa.nc_transpose", .operands = {{"src", "data"}}};
const Call kActivation{.name = "nisa.activation", .operands = {{"src", "data"}}};
const Call kCopy{.name = "nisa.dma_copy"};

class FrontendBuilder : public testing::Test {
 protected:
  /// Mnemonics of what was made since the last time.
  std::vector<std::string> made() {
    std::vector<std::string> names;
    const auto& nodes = kernel.builder().nodes();
    for (; seen < nodes.size(); ++seen) {
      names.emplace_back(std::visit([](const auto& op) { return op.kName; }, nodes[seen].op));
    }
    return names;
  }
  const Node& last() { return kernel.builder().nodes().back(); }
  template <class T>
  const T& last_op() {
    return std::get<T>(last().op);
  }
  template <class Act>
  std::string error_of(const Act& act) {
    try {
      act();
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  Builder& on(std::uint32_t line) { return kernel.line(line); }
  View sbuf(const Shape& shape, Dtype dtype = Dtype::Fp32) { return kernel.sbuf(shape, dtype); }

  Kernel kernel{};
  std::size_t seen = 0;
};

// ---- products ----

TEST_F(FrontendBuilder, AProductIsLoadAndStream) {
  const View bank = kernel.psum({128, 512});
  on(7).matmul(kMatmul, bank, sbuf({128, 128}, Dtype::Bf16), sbuf({128, 512}, Dtype::Bf16));
  EXPECT_THAT(made(), ElementsAre("LDWEIGHTS", "MATMUL"));
  EXPECT_EQ(last().engine, Engine::Tensor);
  EXPECT_TRUE(last_op<Matmul>().start);
  EXPECT_EQ(last_op<Matmul>().pass, Fp32Pass::None);
  EXPECT_TRUE(kernel.builder().nodes()[0].waits_for_next);
}

TEST_F(FrontendBuilder, AnFp32ProductTakesTwoPassesAndOneStart) {
  const View bank = kernel.psum({128, 512});
  on(7).matmul(kMatmul, bank, sbuf({128, 128}), sbuf({128, 512}));
  EXPECT_THAT(made(), ElementsAre("LDWEIGHTS", "MATMUL", "LDWEIGHTS", "MATMUL"));
  const auto& nodes = kernel.builder().nodes();
  EXPECT_EQ(std::get<LdWeights>(nodes[0].op).pass, Fp32Pass::Low);
  EXPECT_EQ(std::get<LdWeights>(nodes[2].op).pass, Fp32Pass::High);
  EXPECT_TRUE(std::get<Matmul>(nodes[1].op).start);
  EXPECT_FALSE(std::get<Matmul>(nodes[3].op).start);
}

TEST_F(FrontendBuilder, AnFp32TransposeOrOneZeroProductTakesOnePass) {
  const View bank = kernel.psum({128, 128});
  on(7).matmul(kMatmul, bank, sbuf({128, 128}), sbuf({128, 128}), {.transpose = true});
  EXPECT_THAT(made(), ElementsAre("LDWEIGHTS", "MATMUL"));
  on(8).matmul(kMatmul, bank, sbuf({128, 128}), sbuf({128, 128}), {.one_zero = true});
  EXPECT_THAT(made(), ElementsAre("LDWEIGHTS", "MATMUL"));
}

TEST_F(FrontendBuilder, ProductsAddUntilTheirSumIsRead) {
  const View bank = kernel.psum({128, 128});
  const View a = sbuf({128, 128}, Dtype::Bf16);
  const auto starts = [&](const MatmulOptions& options = {}) {
    kernel.builder().matmul(kMatmul, bank, a, a, options);
    return last_op<Matmul>().start;
  };
  EXPECT_TRUE(starts());
  EXPECT_FALSE(starts());
  kernel.copy(sbuf({128, 128}), bank);
  EXPECT_TRUE(starts());
  EXPECT_TRUE(starts({.accumulate = false}));
  EXPECT_FALSE(starts({.accumulate = true}));
}

TEST_F(FrontendBuilder, AProductThatDoesNotFitNamesOperandAndLimit) {
  const View bank = kernel.psum({128, 512});
  const View weights = sbuf({128, 128}, Dtype::Bf16);
  const View moving = sbuf({128, 512}, Dtype::Bf16);
  const auto refused = [&](const View& dst, const View& a, const View& b) {
    return error_of([&] { on(9).matmul(kMatmul, dst, a, b); });
  };
  EXPECT_THAT(refused(bank, weights, sbuf({64, 512}, Dtype::Bf16)),
              StartsWith("kernel.py:9: nisa.nc_matmul: moving: expected the 128 partitions of "
                         "stationary, got 64"));
  EXPECT_THAT(refused(bank, columns(weights, 0, 64), moving),
              HasSubstr("dst: expected as many partitions as stationary has columns, 64, got 128"));
  EXPECT_THAT(refused(bank, sbuf({128, 128}), moving), HasSubstr("fp32 does not mix, got bf16"));
  EXPECT_THAT(refused(sbuf({128, 512}), weights, moving), HasSubstr("expected in psum"));
  const View twice = kernel.psum({128, 1024});
  EXPECT_THAT(refused(columns(twice, 256, 512), weights, moving),
              HasSubstr("expected within one psum bank of 2048 bytes, got bytes 1024..3071"));
  EXPECT_THAT(refused(twice, weights, sbuf({128, 1024}, Dtype::Bf16)), HasSubstr("512"));
  EXPECT_THAT(refused(bank, kernel.psum({128, 128}, Dtype::Bf16), moving),
              HasSubstr("expected in sbuf"));
}

// ---- transposes ----

TEST_F(FrontendBuilder, ALargeTransposeIsAProductWithOneIdentity) {
  const View bank = kernel.psum({128, 128}, Dtype::Bf16);
  const View tile = sbuf({128, 128}, Dtype::Bf16);
  on(3).transpose(kTranspose, bank, tile);
  EXPECT_THAT(made(), ElementsAre("DMA_DIRECT2D", "LDWEIGHTS", "MATMUL"));
  EXPECT_TRUE(last_op<Matmul>().transpose);
  on(4).transpose(kTranspose, bank, tile);
  EXPECT_THAT(made(), ElementsAre("LDWEIGHTS", "MATMUL"));
}

TEST_F(FrontendBuilder, ASmallTransposeIsTheVectorEngines) {
  on(3).transpose(kTranspose, sbuf({32, 32}), sbuf({32, 32}));
  EXPECT_THAT(made(), ElementsAre("TRANSPOSE"));
  EXPECT_EQ(last().engine, Engine::Vector);
  EXPECT_THAT(error_of([&] {
                on(5).transpose(kTranspose, sbuf({64, 32}), sbuf({32, 64}), Engine::Vector);
              }),
              StartsWith("kernel.py:5: nisa.nc_transpose: data: the Vector engine transposes at "
                         "most 32 x 32, got 32 x 64"));
  EXPECT_THAT(
      error_of([&] {
        on(5).transpose(kTranspose, kernel.psum({128, 128}), sbuf({128, 256}), Engine::Tensor);
      }),
      HasSubstr("at most 128 x 128, got 128 x 256"));
  EXPECT_THAT(error_of([&] {
                on(5).transpose(kTranspose, sbuf({32, 32}), sbuf({32, 32}), Engine::Scalar);
              }),
              HasSubstr("engine: expected Tensor or Vector, got Scalar"));
}

// ---- the Scalar engine ----

TEST_F(FrontendBuilder, AnActivationThatReducesReadsItsAccumulators) {
  const View tile = sbuf({128, 64});
  on(3).activation(kActivation, tile, ActivationFunction::Exp, tile);
  EXPECT_THAT(made(), ElementsAre("ACTIVATE"));
  EXPECT_EQ(last_op<Activate>().accumulator_cmd, AccumulatorCommand::Idle);
  on(4).activation(kActivation, tile, ActivationFunction::Exp, tile,
                   {.reduce_result = sbuf({128, 1})});
  EXPECT_THAT(made(), ElementsAre("ACTIVATE", "ACT_READ_ACCUMULATOR"));
  EXPECT_EQ(std::get<Activate>(kernel.builder().nodes()[1].op).accumulator_cmd,
            AccumulatorCommand::ResetReduce);
}

// ---- copies and engines ----

TEST_F(FrontendBuilder, ACopyOfAnotherTypeIsACast) {
  const View tile = sbuf({128, 64});
  kernel.copy(sbuf({128, 64}), tile);
  EXPECT_THAT(made(), ElementsAre("COPY"));
  kernel.copy(sbuf({128, 64}, Dtype::Bf16), tile);
  EXPECT_THAT(made(), ElementsAre("CAST"));
}

TEST_F(FrontendBuilder, CopiesAreSpreadOverVectorAndScalar) {
  int vector = 0;
  int scalar = 0;
  for (int i = 0; i < 16; ++i) {
    kernel.copy(sbuf({128, 512}), kernel.psum({128, 512}), std::nullopt);
    vector += last().engine == Engine::Vector;
    scalar += last().engine == Engine::Scalar;
  }
  EXPECT_EQ(vector + scalar, 16);
  EXPECT_GE(std::min(vector, scalar), 6);
}

TEST_F(FrontendBuilder, TheKernelsOwnEngineCounts) {
  const View tile = sbuf({128, 64});
  for (const Engine engine : {Engine::Vector, Engine::Scalar, Engine::GpSimd}) {
    kernel.copy(tile, tile, engine);
    EXPECT_EQ(last().engine, engine);
  }
  kernel.line(12);
  EXPECT_THAT(error_of([&] { kernel.copy(tile, tile, Engine::Tensor); }),
              StartsWith("kernel.py:12: nisa.tensor_copy: engine: expected Vector or Scalar or "
                         "GpSimd, got Tensor"));
}

TEST_F(FrontendBuilder, FillingSbufIsLeftToGpSimd) {
  const auto engine_of_fill = [&](const View& tile) {
    const Call call{.name = "nisa.memset"};
    Memset op;
    op.dst = kernel.builder().access(tile, call, "dst");
    op.value.kind = ScalarOperand::Kind::Immediate;
    kernel.builder().emit(call, op);
    return last().engine;
  };
  EXPECT_EQ(engine_of_fill(sbuf({128, 64})), Engine::GpSimd);
  EXPECT_EQ(engine_of_fill(kernel.psum({128, 64})), Engine::Vector);
}

TEST_F(FrontendBuilder, WhatElseVectorAndGpSimdCanIsVectors) {
  const View tile = sbuf({128, 64});
  const Call call{.name = "nisa.tensor_tensor"};
  TensorTensor op;
  op.src0 = op.src1 = op.dst = kernel.builder().access(tile, call, "dst");
  kernel.builder().emit(call, op);
  EXPECT_EQ(last().engine, Engine::Vector);
}

TEST_F(FrontendBuilder, GpSimdDoesNotReachPsum) {
  kernel.line(12);
  const View bank = kernel.psum({128, 64});
  EXPECT_THAT(error_of([&] {
                kernel.copy(sbuf({128, 64}), bank, Engine::GpSimd);
              }),
              StartsWith("kernel.py:12: nisa.tensor_copy: src: the GpSimd engine reaches sbuf"));
}

TEST_F(FrontendBuilder, BothInputsInPsumAreRefused) {
  kernel.line(12);
  const View bank = kernel.psum({128, 64});
  EXPECT_THAT(error_of([&] {
                kernel.add(sbuf({128, 64}), bank, bank);
              }),
              HasSubstr("are both in psum, expected one in sbuf"));
}

TEST_F(FrontendBuilder, PartitionsBeginAtQuarters) {
  const View tile = sbuf({128, 64});
  kernel.line(12);
  EXPECT_THAT(error_of([&] { kernel.fill(rows(tile, 16, 16)); }),
              StartsWith("kernel.py:12: nisa.memset: dst: 16 partitions may start at 0, 32, 64 or "
                         "96, got 16"));
  EXPECT_THAT(error_of([&] { kernel.fill(rows(tile, 32, 64)); }),
              HasSubstr("64 partitions may start at 0 or 64, got 32"));
  EXPECT_THAT(error_of([&] { kernel.fill(rows(tile, 32, 96)); }),
              HasSubstr("96 partitions may start at 0, got 32"));
  kernel.fill(rows(tile, 96, 32));
  kernel.fill(rows(tile, 64, 64));
}

TEST_F(FrontendBuilder, OperandsAreTilesOfConsecutivePartitions) {
  const Call& call = kCopy;
  const View tile = sbuf({128, 64});
  EXPECT_THAT(error_of([&] {
                (void)kernel.builder().access(kernel.hbm({4, 4}), call, "src");
              }),
              HasSubstr("expected a tile in sbuf or psum"));
  EXPECT_THAT(error_of([&] { (void)kernel.builder().access(rows(tile, 0, 64, 2), call, "src"); }),
              HasSubstr("expected consecutive partitions, got every 2th"));
}

TEST_F(FrontendBuilder, FourFreeDimensionsAndNoMore) {
  const View tile = sbuf({128, 2, 4, 4, 4, 4});
  const View gaps =
      tile.sliced(2, 0, 3, 1).sliced(3, 0, 3, 1).sliced(4, 0, 3, 1).sliced(5, 0, 3, 1);
  EXPECT_THAT(error_of([&] { (void)kernel.builder().access(gaps, kCopy, "src"); }),
              HasSubstr("expected at most 4 free dimensions, got 5 in [128, 2, 3, 3, 3, 3]"));
  EXPECT_EQ(kernel.builder().access(gaps.selected(1, 1), kCopy, "src").dims, 4);
  // What follows each other is one dimension.
  EXPECT_EQ(kernel.builder().access(tile, kCopy, "src").dims, 1);
}

TEST_F(FrontendBuilder, AReleasedTileIsRefused) {
  const View tile = kernel.sbuf({128, 64}, Dtype::Fp32, "gone");
  kernel.builder().release(tile);
  EXPECT_THAT(error_of([&] { kernel.fill(tile); }),
              HasSubstr("'gone' was released before this use"));
}

TEST_F(FrontendBuilder, TensorsThatCannotBeAreRefused) {
  kernel.line(21);
  EXPECT_THAT(error_of([&] {
                sbuf({129, 4});
              }),
              StartsWith("kernel.py:21: ndarray: shape: expected at most 128 partitions, got 129"));
  EXPECT_THAT(error_of([&] { sbuf({128, 0}); }), HasSubstr("sizes of at least 1, got [128, 0]"));
  EXPECT_THAT(error_of([&] {
                kernel.psum({128, 4097});
              }),
              HasSubstr("expected at most 16384 bytes per partition of psum, got 16388"));
  EXPECT_THAT(error_of([&] {
                kernel.sbuf_at(0, {64, 4}, Dtype::Fp32, 96);
              }),
              HasSubstr("address: expected partitions 0..127, got 96..159"));
  EXPECT_THAT(error_of([&] { kernel.sbuf_at(-4, {64, 4}); }), HasSubstr("address: expected bytes"));
}

// ---- transfers ----

TEST_F(FrontendBuilder, KernelArgumentsGoThroughSoftwareDescriptors) {
  const View in = kernel.hbm({128, 64}, Dtype::Fp32, "in", TensorKind::Input);
  const View out = kernel.hbm({128, 64}, Dtype::Fp32, "out", TensorKind::Output);
  const View tile = sbuf({128, 64});
  kernel.load(tile, in);
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::SoftwareDge);
  EXPECT_EQ(last().engine, Engine::GpSimd);
  EXPECT_TRUE(last_op<DmaDirect2d>().bound_at_launch);
  kernel.load(out, tile);
  EXPECT_EQ(last().engine, Engine::GpSimd);
}

TEST_F(FrontendBuilder, OtherLoadsAreSyncsAndStoresScalars) {
  const View inside = kernel.hbm({128, 64});
  const View tile = sbuf({128, 64});
  kernel.load(tile, inside);
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::HardwareDge);
  EXPECT_EQ(last().engine, Engine::Sync);
  kernel.load(inside, tile);
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::HardwareDge);
  EXPECT_EQ(last().engine, Engine::Scalar);
  Options options;
  options.inputs_by_software = false;
  Kernel other(options);
  other.load(other.sbuf({128, 64}), other.hbm({128, 64}, Dtype::Fp32, "in", TensorKind::Input));
  EXPECT_EQ(other.builder().nodes().back().engine, Engine::Sync);
}

TEST_F(FrontendBuilder, WithoutDescriptorHardwareTheyAreStatic) {
  Options options;
  options.inputs_by_software = false;
  options.hardware_descriptors = false;
  Kernel other(options);
  const View inside = other.hbm({128, 64});
  const View tile = other.sbuf({128, 64});
  other.load(tile, inside);
  const Node& node = other.builder().nodes().back();
  EXPECT_EQ(std::get<DmaDirect2d>(node.op).mode, DescriptorMode::Static);
  EXPECT_EQ(node.engine, Engine::Sync);
  EXPECT_THROW(other.builder().dma_copy(kCopy, tile, inside, {.mode = DescriptorMode::HardwareDge}),
               InputError);
}

TEST_F(FrontendBuilder, CastsAndGathersNeedSoftwareDescriptors) {
  const View table = kernel.hbm({1000, 64}, Dtype::Bf16);
  kernel.load(sbuf({128, 64}), rows(table, 0, 128));
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::SoftwareDge);
  const View index = sbuf({128, 1}, Dtype::Int32);
  kernel.builder().dma_copy(kCopy, sbuf({128, 64}, Dtype::Bf16), table, {.index = index});
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::SoftwareDge);
  EXPECT_TRUE(last_op<DmaDirect2d>().index.present());
  EXPECT_EQ(last_op<DmaDirect2d>().src.bytes(), 128U * 64 * 2);
}

TEST_F(FrontendBuilder, EachEngineAndModeHasARing) {
  const View inside = kernel.hbm({128, 64});
  const View tile = sbuf({128, 64});
  for (const Engine engine : {Engine::Sync, Engine::GpSimd, Engine::Scalar, Engine::Sync}) {
    on(31).dma_copy(kCopy, tile, inside, {.engine = engine});
  }
  std::map<Engine, std::set<std::uint8_t>> rings;
  std::set<std::uint8_t> all;
  const Finished made = kernel.finish();
  for (const Engine engine : kAllEngines) {
    for (const Instr& instr : unroll(made.trace.code[0].streams[index(engine)])) {
      const auto* copy = std::get_if<DmaDirect2d>(&instr.op);
      if (copy == nullptr) continue;
      rings[engine].insert(copy->queue);
      all.insert(copy->queue);
    }
  }
  EXPECT_EQ(all.size(), 3U);
  for (const auto& [engine, own] : rings) EXPECT_EQ(own.size(), 1U);
}

TEST_F(FrontendBuilder, TheKernelsOwnDescriptorsCountOrAreRefused) {
  const View inside = kernel.hbm({128, 64});
  const View tile = sbuf({128, 64});
  const auto copy = [&](const View& dst, const DmaOptions& options) {
    on(31).dma_copy(kCopy, dst, inside, options);
  };
  copy(tile, {.engine = Engine::Scalar});
  EXPECT_EQ(last().engine, Engine::Scalar);
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::HardwareDge);
  copy(tile, {.engine = Engine::GpSimd});
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::SoftwareDge);
  copy(tile, {.engine = Engine::Vector});
  EXPECT_EQ(last_op<DmaDirect2d>().mode, DescriptorMode::Static);
  copy(tile, {.mode = DescriptorMode::SoftwareDge});
  EXPECT_EQ(last().engine, Engine::GpSimd);
  EXPECT_THAT(error_of([&] {
                copy(tile, {.mode = DescriptorMode::HardwareDge, .engine = Engine::Vector});
              }),
              StartsWith("kernel.py:31: nisa.dma_copy: engine: hardware descriptors are triggered "
                         "by Sync or Scalar, got Vector"));
  EXPECT_THAT(
      error_of([&] { copy(tile, {.mode = DescriptorMode::SoftwareDge, .engine = Engine::Sync}); }),
      HasSubstr("software descriptors are triggered by GpSimd, got Sync"));
  EXPECT_THAT(error_of([&] {
                copy(sbuf({128, 64}, Dtype::Bf16), {.mode = DescriptorMode::HardwareDge});
              }),
              HasSubstr("hardware descriptors do not convert"));
}

TEST_F(FrontendBuilder, ADmaDoesNotReachPsum) {
  on(31);
  EXPECT_THAT(error_of([&] {
                kernel.load(kernel.psum({128, 64}), kernel.hbm({128, 64}));
              }),
              StartsWith("kernel.py:31: nisa.dma_copy: dst: expected in sbuf or hbm: a DMA does "
                         "not reach psum"));
}

TEST_F(FrontendBuilder, RowsThatFollowEachOtherAreOneElement) {
  kernel.load(sbuf({128, 64}), kernel.hbm({128, 64}));
  EXPECT_EQ(last_op<DmaDirect2d>().dst.element_bytes, 256U);
  EXPECT_EQ(last_op<DmaDirect2d>().dst.dims, 1);
  kernel.load(kernel.hbm({64, 64}), kernel.hbm({64, 64}));
  EXPECT_EQ(last_op<DmaDirect2d>().dst.element_bytes, 64U * 64 * 4);
}

TEST_F(FrontendBuilder, ATransferOfTooManyDimensionsIsCut) {
  const View from = kernel.hbm({3, 4, 4, 4, 4, 4})
                        .sliced(1, 0, 3, 1)
                        .sliced(2, 0, 3, 1)
                        .sliced(3, 0, 3, 1)
                        .sliced(4, 0, 3, 1)
                        .sliced(5, 0, 3, 1);
  const View to = kernel.hbm({3, 3, 3, 3, 3, 3});
  on(5).dma_copy(kCopy, to, from);
  std::uint64_t bytes = 0;
  for (const Node& node : kernel.builder().nodes()) {
    const auto& op = std::get<DmaDirect2d>(node.op);
    bytes += op.src.bytes();
    EXPECT_EQ(op.src.bytes(), op.dst.bytes());
  }
  EXPECT_EQ(kernel.builder().nodes().size(), 3U);
  EXPECT_EQ(bytes, 729U * 4);
}

TEST_F(FrontendBuilder, ATransferOfDifferentSizesIsRefused) {
  on(5);
  EXPECT_THAT(error_of([&] {
                kernel.load(sbuf({128, 64}), kernel.hbm({128, 32}));
              }),
              StartsWith("kernel.py:5: nisa.dma_copy: dst: expected the 4096 elements of src "
                         "[128, 32], got 8192 in [128, 64]"));
}

TEST_F(FrontendBuilder, ADmaAddsOneToSixteenSources) {
  const View to = kernel.hbm({128, 64});
  EXPECT_THAT(error_of([&] { on(5).dma_compute({.name = "nisa.dma_compute"}, to, {}); }),
              StartsWith("kernel.py:5: nisa.dma_compute: srcs: expected 1..16 sources, got 0"));
  const std::vector<View> many(17, to);
  EXPECT_THAT(error_of([&] { on(5).dma_compute({.name = "nisa.dma_compute"}, to, many); }),
              HasSubstr("expected 1..16 sources, got 17"));
  on(6).dma_compute({.name = "nisa.dma_compute"}, to, std::vector<View>(3, to));
  EXPECT_THAT(made(), ElementsAre("DMA_COMPUTE"));
  EXPECT_EQ(last_op<DmaCompute>().sources, 3);
}

// ---- device loops ----

TEST_F(FrontendBuilder, ADeviceLoopCountsOnEachSequencerThatTakesPart) {
  const View table = kernel.hbm({128, 64 * 10});
  const View tile = sbuf({128, 64});
  const std::int32_t loop = kernel.builder().begin_loop(0, 10, 2);
  View moved = columns(table, 0, 64);
  moved.terms.push_back({static_cast<Register>(loop), 64});
  kernel.load(tile, moved);
  kernel.add(tile, tile, tile);
  kernel.builder().end_loop();
  std::vector<std::int64_t> addresses;
  int branches = 0;
  for (const Node& node : kernel.builder().nodes()) {
    if (const auto* load = std::get_if<DmaDirect2d>(&node.op)) {
      EXPECT_TRUE(load->src.address.constant());
      addresses.push_back(bytes_in(load->src.address.base));
    }
    branches += std::holds_alternative<CompareBranch>(node.op);
  }
  EXPECT_THAT(addresses, ElementsAre(0, 512, 1024, 1536, 2048));
  EXPECT_EQ(branches, 5 * 2);  // Sync and Vector
}

TEST_F(FrontendBuilder, CallsAreCountedByName) {
  const View tile = sbuf({128, 64});
  kernel.fill(tile);
  kernel.fill(tile);
  kernel.load(tile, kernel.hbm({128, 64}));
  const auto calls = kernel.builder().calls();
  EXPECT_EQ(calls.at("nisa.memset"), 2U);
  EXPECT_EQ(calls.at("nisa.dma_copy"), 1U);
}

}  // namespace
}  // namespace trn::isa::frontend
