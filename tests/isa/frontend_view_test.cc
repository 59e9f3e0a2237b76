// Parts of tensors at their corners.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "isa/frontend/view.h"
#include "tests/isa/frontend_kernel.h"

namespace trn::isa::frontend {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using trn::test::Kernel;
using trn::test::Shape;

Shape sizes(const View& view) {
  Shape all;
  for (const ViewDim& dim : view.dims) all.push_back(dim.size);
  return all;
}
Shape steps(const View& view) {
  Shape all;
  for (const ViewDim& dim : view.dims) all.push_back(dim.step);
  return all;
}
Shape partitions(const View& view) {
  Shape all;
  for (const ViewDim& dim : view.dims) all.push_back(dim.partitions);
  return all;
}
/// What a wrong argument says.
template <class Act>
std::string error_of(const Act& act) {
  try {
    act();
  } catch (const TraceError& error) {
    return error.what();
  }
  return "no error";
}

class FrontendView : public testing::Test {
 protected:
  Kernel kernel{};
  View tile = kernel.sbuf({128, 4, 8});
  View table = kernel.hbm({100, 64});
};

TEST_F(FrontendView, ATileGoesOverPartitionsAndElements) {
  EXPECT_THAT(partitions(tile), ElementsAre(1, 0, 0));
  EXPECT_THAT(steps(tile), ElementsAre(0, 8, 1));
  EXPECT_TRUE(tile.contiguous());
  EXPECT_EQ(tile.size(), 4096);
  EXPECT_THAT(steps(table), ElementsAre(64, 1));
  EXPECT_FALSE(table.partition_dim());
}

TEST_F(FrontendView, ASliceMovesTheStart) {
  const View part = tile.sliced(2, 1, 3, 2);  // 1, 3, 5
  EXPECT_EQ(part.offset, 1);
  EXPECT_THAT(sizes(part), ElementsAre(128, 4, 3));
  EXPECT_THAT(steps(part), ElementsAre(0, 8, 2));
  EXPECT_FALSE(part.contiguous());
  const View lower = tile.sliced(0, 32, 64, 1);
  EXPECT_EQ(lower.partition, 32);
  EXPECT_EQ(lower.offset, 0);
}

TEST_F(FrontendView, ASliceOfASliceCountsInItsSteps) {
  const View part = table.sliced(1, 4, 20, 3).sliced(1, 2, 5, 2);
  EXPECT_EQ(part.offset, 4 + 2 * 3);
  EXPECT_THAT(steps(part), ElementsAre(64, 6));
}

TEST_F(FrontendView, ASliceMayGoBackwards) {
  const View back = table.sliced(1, 63, 64, -1);
  EXPECT_EQ(back.offset, 63);
  EXPECT_THAT(steps(back), ElementsAre(64, -1));
  EXPECT_FALSE(back.contiguous());
}

TEST_F(FrontendView, ASliceReachesTheLastIndexAndNoFurther) {
  EXPECT_EQ(table.sliced(0, 99, 1, 1).offset, 99 * 64);
  EXPECT_EQ(table.sliced(1, 1, 32, 2).offset, 1);  // 1 .. 63
  EXPECT_THAT(error_of([&] { (void)table.sliced(0, 100, 1, 1); }),
              HasSubstr("dimension 0: expected within 0..99, got 1 from 100"));
  EXPECT_THAT(error_of([&] { (void)table.sliced(1, 2, 32, 2); }),
              HasSubstr("dimension 1: expected within 0..63, got 32 from 2 in steps of 2"));
  EXPECT_THAT(error_of([&] { (void)table.sliced(1, 3, 5, -1); }), HasSubstr("expected within"));
  EXPECT_THAT(error_of([&] { (void)table.sliced(1, 0, 0, 1); }), HasSubstr("expected within"));
  EXPECT_THAT(error_of([&] { (void)table.sliced(2, 0, 1, 1); }),
              HasSubstr("dimension: expected 0..1, got 2"));
}

TEST_F(FrontendView, AnIndexDropsItsDimensionUnlessItIsThePartitions) {
  EXPECT_THAT(sizes(tile.selected(1, 3)), ElementsAre(128, 8));
  EXPECT_EQ(tile.selected(1, 3).offset, 24);
  EXPECT_EQ(tile.selected(2, -1).offset, 7);
  const View row = tile.selected(0, 5);
  EXPECT_THAT(sizes(row), ElementsAre(1, 4, 8));
  EXPECT_EQ(row.partition, 5);
  EXPECT_THAT(error_of([&] { (void)tile.selected(1, 4); }), HasSubstr("expected -4..3, got 4"));
  EXPECT_THAT(error_of([&] { (void)tile.selected(1, -5); }), HasSubstr("expected -4..3"));
}

TEST_F(FrontendView, DimensionsOfOneComeAndGo) {
  EXPECT_THAT(sizes(table.expanded(0)), ElementsAre(1, 100, 64));
  EXPECT_THAT(sizes(table.expanded(2)), ElementsAre(100, 64, 1));
  EXPECT_THAT(sizes(table.expanded(1).squeezed(1)), ElementsAre(100, 64));
  EXPECT_THAT(error_of([&] { (void)table.expanded(3); }), HasSubstr("expected 0..2, got 3"));
  EXPECT_THAT(error_of([&] { (void)table.squeezed(0); }), HasSubstr("expected size 1, got 100"));
}

TEST_F(FrontendView, AReshapeCutsAndJoinsWhatFollowsEachOther) {
  const View flat = tile.reshaped(Shape{128, 32});
  EXPECT_THAT(steps(flat), ElementsAre(0, 1));
  EXPECT_THAT(partitions(flat), ElementsAre(1, 0));
  const View cut = tile.reshaped(Shape{128, 2, -1, 4});
  EXPECT_THAT(sizes(cut), ElementsAre(128, 2, 4, 4));
  EXPECT_THAT(steps(cut), ElementsAre(0, 16, 4, 1));
  const View blocks = tile.reshaped(Shape{2, 64, 32});
  EXPECT_THAT(partitions(blocks), ElementsAre(64, 1, 0));
  EXPECT_THAT(sizes(table.reshaped(Shape{-1})), ElementsAre(6400));
}

TEST_F(FrontendView, AReshapeThatNeedsACopyIsRefused) {
  const View gaps = tile.sliced(2, 0, 4, 1);  // 4 of each 8
  EXPECT_THAT(error_of([&] {
                (void)gaps.reshaped(Shape{128, 16});
              }),
              HasSubstr("[128, 4, 4] to [128, 16] would need a copy"));
  // Partitions do not become elements.
  EXPECT_THAT(error_of([&] { (void)tile.reshaped(Shape{64, 64}); }), HasSubstr("need a copy"));
  EXPECT_THAT(error_of([&] {
                (void)tile.reshaped(Shape{128, 33});
              }),
              HasSubstr("expected 4096 elements as in [128, 4, 8], got [128, 33]"));
}

TEST_F(FrontendView, ATileOfOnePartitionKeepsThePartitions) {
  const View row = tile.sliced(0, 3, 1, 1).reshaped(Shape{1, 32});
  EXPECT_EQ(row.partition, 3);
  EXPECT_THAT(partitions(row), ElementsAre(1, 0));
}

TEST_F(FrontendView, APermutationNeedsEachDimensionOnce) {
  const View turned = tile.permuted(Shape{0, 2, 1});
  EXPECT_THAT(steps(turned), ElementsAre(0, 1, 8));
  for (const Shape& wrong : {Shape{0, 1}, Shape{0, 1, 1}, Shape{0, 1, 3}, Shape{0, -1, 2}}) {
    EXPECT_THAT(error_of([&] { (void)tile.permuted(wrong); }),
                HasSubstr("expected an order of 3 dimensions"));
  }
}

TEST_F(FrontendView, ABroadcastStandsStill) {
  const View column = tile.sliced(1, 0, 1, 1).sliced(2, 5, 1, 1);
  const View wide = column.broadcast(Shape{128, 7, 9});
  EXPECT_THAT(sizes(wide), ElementsAre(128, 7, 9));
  EXPECT_THAT(steps(wide), ElementsAre(0, 0, 0));
  EXPECT_EQ(wide.offset, 5);
  EXPECT_THAT(sizes(table.broadcast(Shape{3, 100, 64})), ElementsAre(3, 100, 64));
  EXPECT_THAT(error_of([&] {
                (void)table.broadcast(Shape{100, 128});
              }),
              HasSubstr("[100, 64] does not fit [100, 128]"));
  EXPECT_THAT(error_of([&] { (void)table.broadcast(Shape{64}); }),
              HasSubstr("expected at least 2 dimensions, got 1"));
  const View row = tile.sliced(0, 0, 1, 1);
  EXPECT_THAT(error_of([&] {
                (void)row.broadcast(Shape{128, 4, 8});
              }),
              HasSubstr("the partition dimension of [1, 4, 8] cannot be broadcast"));
}

TEST_F(FrontendView, AnotherTypeRescalesTheInnermostDimension) {
  const View halves = tile.sliced(2, 2, 4, 1).retyped(Dtype::Bf16);
  EXPECT_THAT(sizes(halves), ElementsAre(128, 4, 8));
  EXPECT_THAT(steps(halves), ElementsAre(0, 16, 1));
  EXPECT_EQ(halves.offset, 4);
  EXPECT_EQ(halves.storage_elements, 64);
  EXPECT_THAT(sizes(halves.retyped(Dtype::Fp32)), ElementsAre(128, 4, 4));
  EXPECT_THAT(sizes(tile.retyped(Dtype::Int32)), ElementsAre(128, 4, 8));
}

TEST_F(FrontendView, AnotherTypeThatDoesNotFitIsRefused) {
  const View odd = kernel.sbuf({128, 7}, Dtype::Bf16);
  EXPECT_THAT(error_of([&] { (void)odd.retyped(Dtype::Fp32); }), HasSubstr("view as fp32"));
  const View even = kernel.sbuf({128, 8}, Dtype::Bf16);
  EXPECT_THAT(error_of([&] { (void)even.sliced(1, 1, 4, 1).retyped(Dtype::Fp32); }),
              HasSubstr("an offset of 1 elements of 2 bytes is not a multiple of 4 bytes"));
  EXPECT_THAT(error_of([&] { (void)even.sliced(1, 0, 4, 2).retyped(Dtype::Fp32); }),
              HasSubstr("the innermost dimension is not contiguous"));
}

TEST_F(FrontendView, IndexExpressionsAreStepsOfTheirAxes) {
  // table[2 + 3 * i, 8 + j - i], i < 4, j < 16
  const std::vector<View::Axis> axes = {{4, {3, -1}}, {16, {0, 1}}};
  const View view = table.affine(Shape{2, 8}, axes);
  EXPECT_THAT(sizes(view), ElementsAre(4, 16));
  EXPECT_THAT(steps(view), ElementsAre(3 * 64 - 1, 1));
  EXPECT_EQ(view.offset, 2 * 64 + 8);
}

TEST_F(FrontendView, IndexExpressionsStayWithinTheTensor) {
  const std::vector<View::Axis> last = {{33, {3, 0}}, {64, {0, 1}}};
  EXPECT_EQ(table.affine(Shape{3, 0}, last).offset, 192);  // rows 3 .. 99
  EXPECT_THAT(error_of([&] {
                (void)table.affine(Shape{4, 0}, last);
              }),
              HasSubstr("dimension 0: expected within 0..99, got 4..100"));
  const std::vector<View::Axis> down = {{4, {0, -1}}};
  EXPECT_THAT(error_of([&] {
                (void)table.affine(Shape{0, 2}, down);
              }),
              HasSubstr("dimension 1: expected within 0..63, got -1..2"));
}

TEST_F(FrontendView, PatternsGoOverTheWholeTensor) {
  using Pairs = std::vector<std::array<std::int64_t, 2>>;
  const View rows = table.pattern(Pairs{{128, 50}, {1, 64}}, 64, Dtype::Fp32);  // odd rows
  EXPECT_THAT(sizes(rows), ElementsAre(50, 64));
  EXPECT_EQ(rows.offset, 64);
  EXPECT_THAT(error_of([&] {
                (void)table.pattern(Pairs{{128, 51}, {1, 64}}, 64, Dtype::Fp32);
              }),
              HasSubstr("expected elements within 0..6399, got 64..6527"));
  EXPECT_THAT(error_of([&] {
                (void)table.pattern(Pairs{{64, 0}}, 0, Dtype::Fp32);
              }),
              HasSubstr("counts of at least 1, got 0"));
  // On chip the first pair goes over partitions, a partition's 32 elements apart.
  const View lower = tile.pattern(Pairs{{32, 64}, {2, 16}}, 64 * 32 + 1, Dtype::Fp32);
  EXPECT_EQ(lower.partition, 64);
  EXPECT_EQ(lower.offset, 1);
  EXPECT_THAT(partitions(lower), ElementsAre(1, 0));
  EXPECT_THAT(error_of([&] {
                (void)tile.pattern(Pairs{{31, 64}, {1, 8}}, 0, Dtype::Fp32);
              }),
              HasSubstr("one partition's 32 elements, got 31"));
  const View halves = table.pattern(Pairs{{1, 12800}}, 0, Dtype::Bf16);
  EXPECT_EQ(halves.storage_elements, 12800);
}

}  // namespace
}  // namespace trn::isa::frontend
