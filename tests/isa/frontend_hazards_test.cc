// What has to wait for what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "isa/frontend/hazards.h"
#include "isa/frontend/place.h"
#include "tests/isa/frontend_kernel.h"

namespace trn::isa::frontend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using trn::test::columns;
using trn::test::Kernel;
using trn::test::rows;

class Hazards : public testing::Test {
 protected:
  /// What the last instruction waits for, by number.
  std::vector<std::uint32_t> last() {
    const Placement placement = place(kernel.builder());
    const Dependences found = find_dependences(kernel.builder(), placement);
    const auto of = found.of(static_cast<std::uint32_t>(kernel.builder().nodes().size() - 1));
    return {of.begin(), of.end()};
  }
  View tile() {
    kernel.on();
    return kernel.sbuf({128, 64});
  }
  Kernel kernel{};
};

TEST_F(Hazards, AReadWaitsForTheWrite) {
  const View a = tile();
  kernel.fill(a);
  kernel.copy(tile(), a, Engine::GpSimd);
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, AWriteWaitsForTheRead) {
  const View a = tile();
  kernel.copy(tile(), a, Engine::GpSimd);
  kernel.fill(a);
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, AWriteWaitsForTheWrite) {
  const View a = tile();
  kernel.fill(a, Engine::GpSimd);
  kernel.fill(a);
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, TwoReadsDoNotWait) {
  const View a = tile();
  kernel.copy(tile(), a, Engine::GpSimd);
  kernel.copy(tile(), a);
  EXPECT_THAT(last(), IsEmpty());
}

TEST_F(Hazards, AnEngineWaitsForItsOwnResultAndNothingElseOfItsOwn) {
  const View a = tile();
  kernel.fill(a);
  kernel.fill(a);
  EXPECT_THAT(last(), IsEmpty());  // in order
  const View b = tile();
  kernel.copy(b, a);
  EXPECT_THAT(last(), ElementsAre(1));
  kernel.fill(a);
  EXPECT_THAT(last(), IsEmpty());  // operands are read in order
}

TEST_F(Hazards, APartThatOverlapsWaits) {
  const View a = tile();
  kernel.fill(columns(a, 0, 32), Engine::GpSimd);
  kernel.copy(tile().sliced(1, 0, 32, 1), columns(a, 31, 32));
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, PartsThatTouchDoNotWait) {
  const View a = tile();
  kernel.fill(columns(a, 0, 32), Engine::GpSimd);
  kernel.copy(tile().sliced(1, 0, 32, 1), columns(a, 32, 32));
  EXPECT_THAT(last(), IsEmpty());
  kernel.fill(rows(a, 0, 64), Engine::GpSimd);
  kernel.copy(rows(tile(), 64, 64), rows(a, 64, 64));
  EXPECT_THAT(last(), ElementsAre(0));  // of the first, not of rows 0..63
}

TEST_F(Hazards, InterleavedColumnsDoNotWait) {
  const View a = tile();
  kernel.fill(columns(a, 0, 32, 2), Engine::GpSimd);
  kernel.fill(columns(a, 1, 32, 2));
  EXPECT_THAT(last(), IsEmpty());
  kernel.fill(columns(a, 0, 16, 4));
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, StridesWithoutACommonGridWait) {
  const View a = tile();
  kernel.fill(columns(a, 0, 16, 2), Engine::GpSimd);
  kernel.fill(columns(a, 1, 16, 3));  // 1, 4: meets 4
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, PlacesThatTheKernelChoseMayAlias) {
  const View a = kernel.sbuf_at(1024, {128, 64});
  const View b = kernel.sbuf_at(1024 + 128, {128, 64});
  const View c = kernel.sbuf_at(1024 + 256, {128, 64});
  kernel.fill(a, Engine::GpSimd);
  kernel.fill(c);
  EXPECT_THAT(last(), IsEmpty());
  kernel.copy(tile(), b, Engine::Scalar);
  EXPECT_THAT(last(), UnorderedElementsAre(0, 1));
}

TEST_F(Hazards, AnAliasOfWhatIsOnlyReadIsWaitedFor) {
  const View read = kernel.sbuf_at(1024, {128, 64});
  const View written = kernel.sbuf_at(1024 + 64, {128, 64});
  kernel.load(kernel.hbm({128, 64}), read);
  kernel.fill(written);
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, AnotherTypesViewIsTheSameBytes) {
  const View a = tile();
  kernel.fill(columns(a, 0, 32), Engine::GpSimd);
  const View halves = a.retyped(Dtype::Bf16);
  kernel.fill(columns(halves, 64, 64));
  EXPECT_THAT(last(), IsEmpty());
  kernel.fill(columns(halves, 62, 4));
  EXPECT_THAT(last(), ElementsAre(0));
}

// ---- transfers ----

TEST_F(Hazards, NeighbouringColumnBlocksOfATensorDoNotWait) {
  const View matrix = kernel.hbm({512, 512});
  const View a = tile();
  const View b = tile();
  kernel.load(rows(columns(matrix, 0, 64), 0, 128), a);
  kernel.load(rows(columns(matrix, 64, 64), 0, 128), b);
  EXPECT_THAT(last(), IsEmpty());
  kernel.load(rows(columns(matrix, 64, 64), 128, 128), b);
  EXPECT_THAT(last(), IsEmpty());
  kernel.load(tile(), rows(columns(matrix, 32, 64), 127, 128));
  EXPECT_THAT(last(), UnorderedElementsAre(0, 1, 2));
  kernel.load(tile(), rows(columns(matrix, 128, 64), 0, 128));
  EXPECT_THAT(last(), IsEmpty());
}

TEST_F(Hazards, ATensorThatNobodyWritesIsNotWaitedFor) {
  const View in = kernel.hbm({128, 64}, Dtype::Fp32, "in", TensorKind::Input);
  kernel.load(tile(), in);
  kernel.load(tile(), in);
  EXPECT_THAT(last(), IsEmpty());
}

TEST_F(Hazards, TransfersOfOneEngineAreNotInOrder) {
  const View matrix = kernel.hbm({128, 64});
  const View a = tile();
  kernel.load(matrix, a);
  kernel.load(matrix, a);
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, StridedRowsOfATensorAreToldApart) {
  const View matrix = kernel.hbm({256, 64});
  kernel.load(rows(matrix, 0, 128, 2), tile());
  kernel.load(rows(matrix, 1, 128, 2), tile());
  EXPECT_THAT(last(), IsEmpty());
  kernel.load(rows(tile(), 0, 64), rows(matrix, 2, 64, 4));
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, AScatterMayTouchAnyRow) {
  const View table = kernel.hbm({1000, 64});
  const View index = kernel.sbuf({128, 1}, Dtype::Int32);
  kernel.builder().dma_copy({.name = "nisa.dma_copy"}, table, tile(),
                            {.index = index, .index_on_dst = true});
  kernel.load(tile().sliced(0, 0, 100, 1), rows(table, 900, 100));
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, AFilledIndexIsWaitedFor) {
  const View table = kernel.hbm({1000, 64}, Dtype::Fp32, "table", TensorKind::Input);
  const View index = kernel.sbuf({128, 1}, Dtype::Int32);
  kernel.fill(index);
  kernel.builder().dma_copy({.name = "nisa.dma_copy"}, tile(), table, {.index = index});
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, ATileReadBackwardsOverPartitionsIsTheSameTile) {
  const View a = tile();
  kernel.fill(rows(a, 0, 32));
  kernel.load(kernel.hbm({128, 64}), a.sliced(0, 127, 128, -1));
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, EachSourceOfASumIsWaitedFor) {
  const std::vector<View> sources = {tile(), tile(), tile()};
  kernel.fill(sources[2]);
  kernel.builder().dma_compute({.name = "nisa.dma_compute"}, kernel.hbm({128, 64}), sources);
  EXPECT_THAT(last(), ElementsAre(0));
}

TEST_F(Hazards, ASourceOfASumIsNotOverwrittenTooEarly) {
  const std::vector<View> sources = {tile(), tile()};
  kernel.builder().dma_compute({.name = "nisa.dma_compute"}, kernel.hbm({128, 64}), sources);
  kernel.fill(sources[1]);
  EXPECT_THAT(last(), ElementsAre(0));
}

// ---- products ----

TEST_F(Hazards, WeightsWaitForAllThatTheProductNeeds) {
  const View weights = kernel.sbuf({128, 128}, Dtype::Bf16);
  const View moving = kernel.sbuf({128, 128}, Dtype::Bf16);
  const View bank = kernel.psum({128, 128});
  kernel.fill(weights);
  kernel.fill(moving, Engine::GpSimd);
  kernel.copy(kernel.sbuf({128, 128}), bank, Engine::Scalar);
  kernel.builder().matmul({.name = "nisa.nc_matmul"}, bank, weights, moving);
  const Placement placement = place(kernel.builder());
  const Dependences found = find_dependences(kernel.builder(), placement);
  const auto of = found.of(3);
  EXPECT_THAT(std::vector<std::uint32_t>(of.begin(), of.end()), UnorderedElementsAre(0, 1, 2));
}

TEST_F(Hazards, ProductsIntoOneBankAreInOrder) {
  const View a = kernel.sbuf({128, 128}, Dtype::Bf16);
  const View bank = kernel.psum({128, 128});
  kernel.builder().matmul({.name = "nisa.nc_matmul"}, bank, a, a);
  kernel.builder().matmul({.name = "nisa.nc_matmul"}, bank, a, a);
  EXPECT_THAT(last(), IsEmpty());
  kernel.copy(kernel.sbuf({128, 128}), bank);
  EXPECT_THAT(last(), ElementsAre(3));  // the last product stands for all
}

TEST_F(Hazards, AReaderThatIsWaitedForStandsForTheWriteItWaitedFor) {
  const View a = tile();
  kernel.load(a, kernel.hbm({128, 64}));
  kernel.copy(tile(), a, Engine::GpSimd);
  kernel.fill(a);
  EXPECT_THAT(last(), ElementsAre(1));
}

}  // namespace
}  // namespace trn::isa::frontend
