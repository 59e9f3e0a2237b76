// What is rewritten before tiles are placed: memsets, loads again, loads side by side.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "isa/frontend/rewrite.h"
#include "tests/isa/frontend_kernel.h"

namespace trn::isa::frontend {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using trn::test::columns;
using trn::test::Kernel;
using trn::test::rows;

/// Names of the instructions in the kernel's order.
std::vector<std::string> names(Kernel& kernel) {
  std::vector<std::string> result;
  for (const Node& node : kernel.builder().nodes()) {
    result.emplace_back(std::visit([](const auto& op) { return op.kName; }, node.op));
  }
  return result;
}

std::uint64_t loads(Kernel& kernel) {
  std::uint64_t count = 0;
  for (const std::string& name : names(kernel)) count += name == "DMA_DIRECT2D" ? 1 : 0;
  return count;
}

Options older() {
  Options options;
  options.reuse_loads_bytes = 1024;
  options.merge_loads_bytes = 1024;
  return options;
}

/// A tile loaded from `src` on line 2, and read on line 3.
View load(Kernel& kernel, const View& src) {
  kernel.line(2);
  const View tile = kernel.sbuf({src.dims[0].size, src.dims[1].size}, src.dtype);
  kernel.load(tile, src);
  kernel.line(3);
  kernel.copy(kernel.sbuf({src.dims[0].size, src.dims[1].size}, src.dtype), tile);
  return tile;
}

/// A fill of 2048 columns, 2.2 us on the Vector engine, before each of two loads.
std::vector<std::string> hoisted(std::uint32_t ahead_ns, bool fence = false) {
  Options options;
  options.load_ahead_ns = ahead_ns;
  Kernel kernel(options);
  const View x = kernel.hbm({128, 16}, Dtype::Fp32, "x", TensorKind::Input);
  for (int i = 0; i < 2; ++i) {
    kernel.fill(kernel.sbuf({128, 2048}));
    if (fence) kernel.builder().fence();
    kernel.load(kernel.sbuf({128, 16}), x);
  }
  hoist_loads(kernel.builder());
  return names(kernel);
}

TEST(HoistLoads, ALoadGoesAsFarAheadAsAsked) {
  EXPECT_THAT(hoisted(0), ElementsAre("MEMSET", "DMA_DIRECT2D", "MEMSET", "DMA_DIRECT2D"));
  EXPECT_THAT(hoisted(3000), ElementsAre("DMA_DIRECT2D", "MEMSET", "DMA_DIRECT2D", "MEMSET"));
  EXPECT_THAT(hoisted(9000), ElementsAre("DMA_DIRECT2D", "DMA_DIRECT2D", "MEMSET", "MEMSET"));
}

TEST(HoistLoads, NotOverAFence) {
  EXPECT_THAT(hoisted(9000, true), ElementsAre("MEMSET", "DMA_DIRECT2D", "MEMSET", "DMA_DIRECT2D"));
}

TEST(SinkMemsets, AFillStandsBeforeTheFirstThatAddsToItsTile) {
  Kernel kernel;
  const View a = kernel.sbuf({128, 16});
  const View b = kernel.sbuf({128, 16});
  const View c = kernel.sbuf({128, 16});
  for (const View& tile : {a, b, c}) kernel.fill(tile);
  kernel.copy(kernel.sbuf({128, 16}), c);  // no sum: c's fill stays
  kernel.add(b, b, c);
  kernel.add(a, b, a);
  sink_memsets(kernel.builder());
  EXPECT_THAT(names(kernel),
              ElementsAre("MEMSET", "COPY", "MEMSET", "TENSOR_TENSOR", "MEMSET", "TENSOR_TENSOR"));
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
}

TEST(SinkMemsets, AFillOfATileThatTheKernelPlacedStays) {
  Kernel kernel;
  const View sum = kernel.sbuf_at(0, {128, 16});
  kernel.fill(sum);
  kernel.copy(kernel.sbuf_at(0, {128, 16}), kernel.sbuf({128, 16}));
  kernel.add(sum, sum, sum);
  sink_memsets(kernel.builder());
  EXPECT_THAT(names(kernel), ElementsAre("MEMSET", "COPY", "TENSOR_TENSOR"));
}

TEST(SinkMemsets, AFenceIsNotPassed) {
  Kernel kernel;
  const View a = kernel.sbuf({128, 16});
  kernel.fill(a);
  kernel.builder().fence();
  kernel.copy(kernel.sbuf({128, 16}), kernel.sbuf({128, 16}));
  kernel.add(a, a, a);
  sink_memsets(kernel.builder());
  EXPECT_THAT(names(kernel), ElementsAre("MEMSET", "COPY", "TENSOR_TENSOR"));
}

TEST(ReuseLoads, WhatATileStillHoldsIsNotLoadedAgain) {
  Kernel kernel(older());
  const View x = kernel.hbm({128, 64}, Dtype::Bf16, "x", TensorKind::Input);
  load(kernel, x);
  load(kernel, x);
  EXPECT_EQ(reuse_loads(kernel.builder()), 1U);
  EXPECT_EQ(loads(kernel), 1U);
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
}

TEST(ReuseLoads, OnlySmallElements) {
  Kernel kernel(older());
  const View x = kernel.hbm({128, 64}, Dtype::Fp32, "x", TensorKind::Input);
  load(kernel, x);
  load(kernel, x);
  EXPECT_EQ(reuse_loads(kernel.builder()), 0U);
}

TEST(ReuseLoads, NotWhatWasWrittenSince) {
  Kernel kernel(older());
  const View x = kernel.hbm({128, 64}, Dtype::Bf16);
  const View tile = kernel.sbuf({128, 64}, Dtype::Bf16);
  kernel.fill(tile);
  kernel.load(x, tile);
  load(kernel, x);
  kernel.load(x, tile);
  load(kernel, x);
  EXPECT_EQ(reuse_loads(kernel.builder()), 0U);
}

TEST(ReuseLoads, NotFromATileThatIsWrittenBesides) {
  Kernel kernel(older());
  const View x = kernel.hbm({128, 64}, Dtype::Bf16, "x", TensorKind::Input);
  kernel.fill(columns(load(kernel, x), 0, 8));
  load(kernel, x);
  EXPECT_EQ(reuse_loads(kernel.builder()), 0U);
}

TEST(ReuseLoads, NotAcrossTheEdgeOfADeviceLoop) {
  Kernel kernel(older());
  const View x = kernel.hbm({128, 64}, Dtype::Bf16);
  load(kernel, x);
  kernel.builder().begin_loop(0, 4, 1);
  kernel.load(x, load(kernel, x));  // the next iteration reads what this one wrote
  kernel.builder().end_loop();
  load(kernel, x);
  EXPECT_EQ(reuse_loads(kernel.builder()), 0U);
}

TEST(MergeLoads, NotAcrossTheEdgeOfADeviceLoop) {
  Kernel kernel(older());
  const View x = kernel.hbm({2 * 128, 128}, Dtype::Bf16, "x", TensorKind::Input);
  load(kernel, rows(x, 0, 128));
  kernel.builder().begin_loop(0, 4, 1);
  load(kernel, rows(x, 128, 128));
  kernel.builder().end_loop();
  EXPECT_EQ(merge_loads(kernel.builder()), 0U);
}

TEST(ReuseLoads, HoldsWhatIsLoadedAgainSoonest) {
  Kernel kernel(older());  // 1024 bytes: eight tiles of 128
  const View x = kernel.hbm({10 * 128, 64}, Dtype::Bf16, "x", TensorKind::Input);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i) load(kernel, rows(x, i * 128, 128));
  }
  EXPECT_EQ(reuse_loads(kernel.builder()), 8U + 8U);  // the last two of each round come again
}

TEST(ReuseLoads, HoldsNoMoreThanItMay) {
  Kernel kernel(older());
  const View x = kernel.hbm({9 * 128, 64}, Dtype::Bf16, "x", TensorKind::Input);
  for (int i = 0; i < 9; ++i) load(kernel, rows(x, i * 128, 128));
  for (int i = 9; i-- > 0;) load(kernel, rows(x, i * 128, 128));
  EXPECT_EQ(reuse_loads(kernel.builder()), 8U);
}

/// Loads of `rounds` times the same tiles of 256 bytes of a partition, each alone on its line or
/// all of a round read together at its end; how many are left out.
std::uint64_t recent(std::uint32_t within_bytes, int rounds, int tiles, bool together = false) {
  Options options;
  options.reuse_within_bytes = within_bytes;
  Kernel kernel(options);
  const View x = kernel.hbm({tiles * 128, 64}, Dtype::Fp32, "x", TensorKind::Input);
  for (int round = 0; round < rounds; ++round) {
    std::vector<View> set;
    for (int i = 0; i < tiles; ++i) set.push_back(load(kernel, rows(x, i * 128, 128)));
    if (!together) continue;
    for (const View& tile : set) kernel.copy(kernel.sbuf({128, 64}), tile);
  }
  const std::uint64_t dropped = reuse_recent_loads(kernel.builder());
  EXPECT_EQ(dropped + loads(kernel), static_cast<std::uint64_t>(rounds * tiles));
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
  return dropped;
}

TEST(ReuseRecentLoads, ATileIsHeldUntilSoMuchWasLoadedItselfIncluded) {
  EXPECT_EQ(recent(4 * 256, 2, 4), 4U);
  EXPECT_EQ(recent(4 * 256 - 1, 2, 4), 0U);
}

TEST(ReuseRecentLoads, WhatIsLeftOutDoesNotMakeItRecent) {
  // Rounds 0, 2 and 4 load all: a fifth tile, new in each round, lets the others grow old.
  Options options;
  options.reuse_within_bytes = 5 * 256;
  Kernel kernel(options);
  const View x = kernel.hbm({4 * 128, 64}, Dtype::Fp32, "x", TensorKind::Input);
  const View y = kernel.hbm({6 * 128, 64}, Dtype::Fp32, "y", TensorKind::Input);
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 4; ++i) load(kernel, rows(x, i * 128, 128));
    load(kernel, rows(y, round * 128, 128));
  }
  EXPECT_EQ(reuse_recent_loads(kernel.builder()), 3U * 4U);
}

TEST(ReuseRecentLoads, NotOfTilesThatLiveTogether) { EXPECT_EQ(recent(1 << 20, 3, 4, true), 0U); }

TEST(ReuseRecentLoads, OnlyLargeElements) {
  Kernel kernel;
  const View x = kernel.hbm({128, 64}, Dtype::Bf16, "x", TensorKind::Input);
  load(kernel, x);
  load(kernel, x);
  EXPECT_EQ(reuse_recent_loads(kernel.builder()), 0U);
}

TEST(ReuseRecentLoads, NotWhatWasWrittenSince) {
  Kernel kernel;
  const View x = kernel.hbm({128, 64}, Dtype::Fp32);
  const View tile = kernel.sbuf({128, 64});
  kernel.fill(tile);
  for (int i = 0; i < 2; ++i) {
    kernel.load(x, tile);
    load(kernel, x);
  }
  EXPECT_EQ(reuse_recent_loads(kernel.builder()), 0U);
}

TEST(MergeLoads, TilesBehindEachOtherBecomeOneTransfer) {
  Kernel kernel(older());
  const View x = kernel.hbm({10 * 128, 512}, Dtype::Bf16, "x", TensorKind::Input);
  for (int i = 0; i < 10; ++i) load(kernel, columns(rows(x, i * 128, 128), 128, 128));
  EXPECT_EQ(merge_loads(kernel.builder()), 7U);  // four tiles of 256 bytes, four, and two
  const auto& first = std::get<DmaDirect2d>(kernel.builder().nodes()[0].op);
  EXPECT_EQ(first.src.dims, 2);
  EXPECT_EQ(first.src.pattern[1], (DmaDim{128 * 1024, 4}));
  EXPECT_EQ(first.dst.pattern[1], (DmaDim{256, 4}));
  EXPECT_EQ(first.src.bytes(), 4U * 128 * 256);
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
}

/// How many of so many tiles of 256 bytes, one row of HBM, go when all may have `far` bytes.
std::uint64_t merged(int tiles, std::uint32_t far) {
  Options options = older();
  options.merge_far_bytes = far;
  Kernel kernel(options);
  const View x = kernel.hbm({tiles * 128L, 512}, Dtype::Bf16, "x", TensorKind::Input);
  for (int i = 0; i < tiles; ++i) load(kernel, columns(rows(x, i * 128, 128), 128, 128));
  return merge_loads(kernel.builder());
}

TEST(MergeLoads, LongRowsOfMuchStayApart) {
  EXPECT_EQ(merged(16, 0), 12U);
  EXPECT_EQ(merged(17, 0), 0U);
  EXPECT_EQ(merged(17, 17 * 256), 12U);  // sixteen by fours, and one
}

/// Sums of `tiles` products, whose operands are tiles of 256 bytes in rows of HBM; the stationary
/// ones are loaded for two sums.
void product(Kernel& kernel, int tiles) {
  const View x = kernel.hbm({tiles * 128L, 256}, Dtype::Bf16, "x", TensorKind::Input);
  const View y = kernel.hbm({tiles * 128L, 512}, Dtype::Bf16, "y", TensorKind::Input);
  const auto tile_of = [&](const View& src, int k, int column) {
    const View tile = kernel.sbuf({128, 128}, Dtype::Bf16);
    kernel.load(tile, columns(rows(src, k * 128, 128), column, 128));
    return tile;
  };
  for (int m = 0; m < 2; ++m) {
    const View sum = kernel.psum({128, 128});
    for (int k = 0; k < tiles; ++k) {
      kernel.line(2);
      const View stationary = tile_of(x, k, m * 128);
      kernel.line(3);
      const View moving = m == 0 ? tile_of(y, k, 0) : stationary;
      kernel.builder().matmul({.name = "nisa.nc_matmul"}, sum, stationary, moving);
    }
  }
}

/// How many loads go of such a product, when rows of all tiles may have `far` bytes.
std::uint64_t merged_of_product(int tiles, std::uint32_t far) {
  Options options = older();
  options.merge_far_bytes = far;
  Kernel kernel(options);
  product(kernel, tiles);
  const std::uint64_t went = merge_loads(kernel.builder());
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
  return went;
}

TEST(MergeLoads, FewStationaryTilesStayApart) {
  EXPECT_EQ(merged_of_product(4, 0), 3U);            // the four of y
  EXPECT_EQ(merged_of_product(8, 0), 6U + 2U * 6U);  // and of x, in both sums
}

TEST(MergeLoads, LongRowsOfStationaryTilesFollowThoseOfMovingOnes) {
  EXPECT_EQ(merged_of_product(20, 20 * 256 - 1), 0U);
  EXPECT_EQ(merged_of_product(20, 20 * 256), 15U + 2U * 15U);
}

/// Branches of GpSimd's program, which stand for loops of loads.
std::size_t branches(int tiles, std::uint32_t far, std::uint32_t merge_tiles = 16) {
  Options options = older();
  options.merge_tiles = merge_tiles;
  options.merge_far_bytes = far;
  options.roll = false;
  Kernel kernel(options);
  product(kernel, tiles);
  std::size_t count = 0;
  const Finished made = kernel.finish();
  for (const Instr& instr : made.trace.code[0].streams[index(Engine::GpSimd)]) {
    count += std::holds_alternative<CompareBranch>(instr.op) ? 1 : 0;
  }
  EXPECT_THAT(check_order(made.trace.code[0]), IsEmpty());
  return count;
}

TEST(MergeLoads, LongRowsOfWhichNoneIsJoinedStayLoops) {
  EXPECT_EQ(branches(20, 0), 3U);  // sixty loads, sixteen to a loop's body
  EXPECT_EQ(branches(20, 20 * 256), 0U);
  EXPECT_EQ(branches(16, 0), 0U);
  EXPECT_EQ(branches(16, 0, 0), 0U);  // no loop has no loads
}

TEST(MergeLoads, NotAcrossAWriteOfTheirTensor) {
  Kernel kernel(older());
  const View x = kernel.hbm({2 * 128, 128}, Dtype::Bf16);
  const View tile = kernel.sbuf({128, 128}, Dtype::Bf16);
  kernel.fill(tile);
  kernel.load(rows(x, 0, 128), tile);
  kernel.load(rows(x, 128, 128), tile);
  load(kernel, rows(x, 0, 128));
  kernel.load(rows(x, 128, 128), tile);
  load(kernel, rows(x, 128, 128));
  EXPECT_EQ(merge_loads(kernel.builder()), 0U);
}

/// Writes so many tiles of 256 bytes, each a sum of `products`, side by side into out, which `read`
/// reads after the second; how many stores go.
std::uint64_t stored(Kernel& kernel, int tiles, int products, bool read = false) {
  const View x = kernel.sbuf({128, 128}, Dtype::Bf16);
  const View out = kernel.hbm({128, tiles * 128L}, Dtype::Bf16, "out", TensorKind::Output);
  kernel.fill(x);
  for (int i = 0; i < tiles; ++i) {
    const View sum = kernel.psum({128, 128});
    for (int k = 0; k < products; ++k) {
      kernel.builder().matmul({.name = "nisa.nc_matmul"}, sum, x, x);
    }
    kernel.line(2);
    const View tile = kernel.sbuf({128, 128}, Dtype::Bf16);
    kernel.copy(tile, sum);
    kernel.load(columns(out, i * 128, 128), tile);
    kernel.line(3);
    if (read && i == 1) load(kernel, columns(out, 0, 128));
  }
  return merge_stores(kernel.builder());
}

TEST(MergeStores, TilesBesideEachOtherBecomeOneTransfer) {
  Kernel kernel(older());
  EXPECT_EQ(stored(kernel, 6, 16), 4U);  // four tiles of 256 bytes, and two
  std::vector<std::uint64_t> bytes;
  std::vector<std::int64_t> to;    // where in HBM each store goes
  std::vector<std::int64_t> from;  // where in its tile each sum is put
  for (const Node& node : kernel.builder().nodes()) {
    if (const auto* cast = std::get_if<Cast>(&node.op))
      from.push_back(bytes_in(cast->dst.offset.base));
    const auto* store = std::get_if<DmaDirect2d>(&node.op);
    if (store == nullptr) continue;
    bytes.push_back(store->src.bytes());
    to.push_back(bytes_in(store->dst.address.base));
    EXPECT_EQ(store->src.element_bytes, store->dst.element_bytes);
    EXPECT_EQ(bytes_in(store->src.address.base), 0);
  }
  EXPECT_THAT(bytes, ElementsAre(128U * 1024, 128U * 512));
  EXPECT_THAT(to, ElementsAre(0, 1024));
  EXPECT_THAT(from, ElementsAre(0, 256, 512, 768, 0, 256));
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
}

TEST(MergeStores, ATileThatIsStoredTwiceJoinsOnce) {
  Kernel kernel(older());
  const View x = kernel.sbuf({128, 128}, Dtype::Bf16);
  const View one = kernel.hbm({128, 256}, Dtype::Bf16, "one", TensorKind::Output);
  const View two = kernel.hbm({128, 256}, Dtype::Bf16, "two", TensorKind::Output);
  kernel.fill(x);
  for (int i = 0; i < 2; ++i) {
    const View sum = kernel.psum({128, 128});
    kernel.builder().matmul({.name = "nisa.nc_matmul"}, sum, x, x);
    const View tile = kernel.sbuf({128, 128}, Dtype::Bf16);
    kernel.copy(tile, sum);
    kernel.load(columns(one, i * 128, 128), tile);
    kernel.load(columns(two, i * 128, 128), tile);
  }
  EXPECT_EQ(merge_stores(kernel.builder()), 1U);
  EXPECT_EQ(loads(kernel), 3U);
  EXPECT_THAT(check_order(kernel.finish().trace.code[0]), IsEmpty());
}

TEST(MergeStores, NotOfLongSums) {
  Kernel kernel(older());
  EXPECT_EQ(stored(kernel, 4, 17), 0U);
}

TEST(MergeStores, NotOverAReadOfTheirTensor) {
  Kernel kernel(older());
  EXPECT_EQ(stored(kernel, 4, 1, true), 2U);  // two before it, and two behind
}

}  // namespace
}  // namespace trn::isa::frontend
