// Where tiles lie, and what does not fit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/place.h"
#include "tests/isa/frontend_kernel.h"

namespace trn::isa::frontend {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using trn::test::columns;
using trn::test::Kernel;

std::int64_t address(const Placement& placement, const View& view) {
  return placement.address[index(view.storage)];
}
/// Options for a partition of so many bytes, a tile of 16 fp32 being 64.
Options small(std::uint32_t bytes, std::uint32_t prefetch = 0) {
  Options options;
  options.sbuf_partition_bytes = bytes;
  options.prefetch_tiles = prefetch;
  options.spill_ahead_ns = 0;
  options.sink_memsets = false;
  return options;
}
std::string full(Kernel& kernel) {
  try {
    place(kernel.builder());
  } catch (const CapacityError& error) {
    return error.what();
  }
  return "it fits";
}
/// Reads a tile without needing another one.
void read(Kernel& kernel, const View& tile) { kernel.load(kernel.hbm({128, 16}), tile); }

// ---- rings ----

std::vector<std::int64_t> ring(std::uint32_t prefetch, int tiles, bool two_at_once = false) {
  Options options;
  options.prefetch_tiles = prefetch;
  options.spill_ahead_ns = 0;
  Kernel kernel(options);
  std::vector<View> made;
  for (int i = 0; i < tiles; ++i) {
    kernel.line(2);
    made.push_back(kernel.sbuf({128, 16}));
    kernel.line(3);
    kernel.fill(made.back());
    if (two_at_once && i % 2 == 0) continue;
    if (two_at_once) read(kernel, made[made.size() - 2]);
    read(kernel, made.back());
  }
  const Placement placement = place(kernel.builder());
  std::vector<std::int64_t> addresses;
  for (const View& view : made) addresses.push_back(address(placement, view));
  return addresses;
}

TEST(Place, TilesOfALineTakeTurns) {
  EXPECT_THAT(ring(3, 7), ElementsAre(0, 64, 128, 0, 64, 128, 0));
  EXPECT_THAT(ring(16, 3), ElementsAre(0, 64, 128));  // never more places than tiles
}

TEST(Place, WithoutPrefetchATileUsesThePlaceOfTheOneBefore) {
  EXPECT_THAT(ring(0, 3), ElementsAre(0, 0, 0));
}

TEST(Place, SetsOfTilesThatLiveTogetherAreDoubled) {
  EXPECT_THAT(ring(2, 8, true), ElementsAre(0, 64, 128, 192, 0, 64, 128, 192));
}

/// Places of tiles that are loaded and read by two products each: of two sums, one after the other
/// or side by side.
std::size_t places_of_moving(bool side_by_side, bool sets_of_two = false) {
  static const Call kMatmul{.name = "nisa.nc_matmul"};
  Options options;
  options.prefetch_tiles = 5;
  options.prefetch_kept_tiles = 2;
  Kernel kernel(options);
  const View weights = kernel.sbuf({128, 128}, Dtype::Bf16);
  kernel.fill(weights);
  std::vector<View> set;
  std::vector<View> made;
  for (int i = 0; i < 12; ++i) {
    kernel.line(2);
    made.push_back(kernel.sbuf({128, 16}, Dtype::Bf16));
    set.push_back(made.back());
    kernel.load(made.back(), kernel.hbm({128, 16}, Dtype::Bf16));
    kernel.line(3);
    if (sets_of_two && i % 2 == 0) continue;
    std::vector<View> sums;
    for (int j = 0; j < 2; ++j) {
      sums.push_back(kernel.psum({128, 16}));
      for (const View& tile : set) kernel.builder().matmul(kMatmul, sums.back(), weights, tile);
      if (!side_by_side) kernel.copy(kernel.sbuf({128, 16}), sums.back());
    }
    for (const View& sum : sums) {
      if (side_by_side) kernel.copy(kernel.sbuf({128, 16}), sum);
    }
    set.clear();
  }
  const Placement placement = place(kernel.builder());
  std::set<std::int64_t> addresses;
  for (const View& view : made) addresses.insert(address(placement, view));
  return addresses.size();
}

TEST(Place, ATileThatSumsReadOneAfterAnotherIsDoubled) {
  EXPECT_EQ(places_of_moving(false), 2U);
  EXPECT_EQ(places_of_moving(true), 5U);
  EXPECT_EQ(places_of_moving(false, true), 5U);  // two live together
}

TEST(Place, TilesOfDifferentLinesDoNotTakeTurns) {
  Kernel kernel;
  kernel.line(2);
  const View a = kernel.sbuf({128, 16});
  kernel.fill(a);
  kernel.line(3);
  const View b = kernel.sbuf({128, 16});
  kernel.fill(b);
  const Placement placement = place(kernel.builder());
  EXPECT_NE(address(placement, a), address(placement, b));
}

TEST(Place, TilesShareBytesByLifetimeWhenTheyHaveTo) {
  Kernel kernel(small(128));
  std::vector<View> tiles;
  for (std::uint32_t i = 0; i < 4; ++i) {  // one after the other, on four lines
    kernel.line(2 + i);
    tiles.push_back(kernel.sbuf({128, 16}));
    kernel.fill(tiles.back());
    read(kernel, tiles.back());
  }
  const Placement placement = place(kernel.builder());
  EXPECT_THAT(placement.spills, IsEmpty());
  EXPECT_LE(placement.sbuf_peak_bytes, 128);
}

TEST(Place, WhatLivesLongLiesSideBySide) {
  // Rows of 128 bytes stay to the end; tiles of 64 come and go between them. Side by side the rows
  // leave a place for the tiles; with a tile between each two of them they would not fit.
  Kernel kernel(small(4 * 128 + 64));
  std::vector<View> rows_made;
  for (std::uint32_t i = 0; i < 4; ++i) {
    kernel.line(2 + 2 * i);
    const View tile = kernel.sbuf({128, 16});
    kernel.fill(tile);
    read(kernel, tile);
    kernel.line(3 + 2 * i);
    rows_made.push_back(kernel.sbuf({128, 32}));
    kernel.fill(rows_made.back());
    kernel.line(20 + i);
    const View other = kernel.sbuf({128, 16});
    kernel.fill(other);
    read(kernel, other);
  }
  kernel.line(30);
  for (const View& row : rows_made) kernel.load(kernel.hbm({128, 32}), row);
  const Placement placement = place(kernel.builder());
  EXPECT_THAT(placement.spills, IsEmpty());
  EXPECT_LE(placement.sbuf_peak_bytes, 4 * 128 + 64);
}

TEST(Place, ThePrefetchIsHalvedWhenNotAllFits) {
  Kernel kernel(small(64 * 64, 16));
  std::vector<View> tiles;
  for (int i = 0; i < 40; ++i) {
    for (std::uint32_t line = 2; line < 10; ++line) {
      kernel.line(line);
      tiles.push_back(kernel.sbuf({128, 16}));
      kernel.fill(tiles.back());
      read(kernel, tiles.back());
    }
  }
  const Placement placement = place(kernel.builder());
  EXPECT_THAT(placement.spills, IsEmpty());
  std::set<std::int64_t> places;
  for (const View& view : tiles) places.insert(address(placement, view));
  EXPECT_FALSE(placement.by_lifetime);
  EXPECT_THAT(places, SizeIs(64));
  EXPECT_LE(placement.sbuf_peak_bytes, 64 * 64);
}

TEST(Place, TilesThatLiveTogetherDoNotMeet) {
  Kernel kernel;
  std::vector<View> tiles;
  for (std::uint32_t i = 0; i < 20; ++i) {
    kernel.line(2 + i % 3);
    tiles.push_back(kernel.sbuf({128, 8 + 8 * (i % 5)}));
    kernel.fill(tiles.back());
  }
  for (const View& tile : tiles) kernel.fill(tile);
  const Placement placement = place(kernel.builder());
  std::vector<std::pair<std::int64_t, std::int64_t>> spans;
  for (const View& tile : tiles) {
    const std::int64_t at = address(placement, tile);
    EXPECT_EQ(at % 64, 0);
    spans.emplace_back(at, at + kernel.builder().storage(tile.storage).bytes);
  }
  std::sort(spans.begin(), spans.end());
  for (std::size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].second, spans[i].first);
}

TEST(Place, AnExplicitPlaceIsObeyedAndLeftAlone) {
  Kernel kernel;
  const View fixed = kernel.sbuf_at(64, {128, 16});
  const View other = kernel.sbuf({128, 32});
  kernel.fill(fixed);
  kernel.fill(other);
  read(kernel, fixed);
  const Placement placement = place(kernel.builder());
  EXPECT_EQ(address(placement, fixed), 64);
  EXPECT_GE(address(placement, other), 128);
}

// ---- PSUM ----

TEST(Place, APsumTileTakesTheBankThatHasBeenFreeForLongest) {
  Kernel kernel;
  std::vector<View> banks;
  for (int i = 0; i < 10; ++i) {
    banks.push_back(kernel.psum({128, 128}));
    kernel.fill(banks.back());
  }
  const Placement placement = place(kernel.builder());
  std::vector<std::int64_t> numbers;
  for (const View& bank : banks) numbers.push_back(address(placement, bank) / 2048);
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 0, 1));
  EXPECT_EQ(placement.psum_peak_bytes, 16384);
}

TEST(Place, APsumTileOfTwoBanksTakesNeighbours) {
  Kernel kernel;
  const View a = kernel.psum({128, 512});
  const View b = kernel.psum({128, 1024});
  kernel.fill(a);
  kernel.fill(b);
  kernel.fill(a);
  const Placement placement = place(kernel.builder());
  EXPECT_EQ(address(placement, b) % 2048, 0);
  EXPECT_GE(address(placement, b), 2048);
}

TEST(Place, SmallPsumTilesShareABankWhenBanksRunOut) {
  Kernel kernel;
  std::vector<View> tiles;
  for (std::uint32_t i = 0; i < 16; ++i) {
    kernel.line(2 + i);
    tiles.push_back(kernel.psum({128, 256}));  // half a bank
    kernel.fill(tiles.back());
  }
  for (const View& tile : tiles) kernel.fill(tile);
  const Placement placement = place(kernel.builder());
  std::set<std::int64_t> places;
  for (const View& tile : tiles) places.insert(address(placement, tile));
  EXPECT_THAT(places, SizeIs(16));
}

TEST(Place, PsumNeverSpills) {
  Kernel kernel;
  std::vector<View> tiles;
  for (std::uint32_t i = 0; i < 9; ++i) {
    kernel.line(2 + i);
    tiles.push_back(kernel.make(Memory::Psum, {128, 512}, Dtype::Fp32, "bank" + std::to_string(i)));
    kernel.fill(tiles.back());
  }
  kernel.line(40);
  for (const View& tile : tiles) kernel.fill(tile);
  EXPECT_THAT(full(kernel),
              AllOf(HasSubstr("psum is full: 18432 bytes per partition are live at once, the "
                              "limit is 16384"),
                    HasSubstr("bank0 fp32[128,512], 2048 bytes per partition, kernel.py:2"),
                    HasSubstr("and 1 more")));
}

// ---- spills ----

/// Four tiles in a memory for three, filled in the order a b c d and read in the order a d c b.
struct FourInThree {
  explicit FourInThree(bool spill = true) : kernel(options(spill)) {
    for (const char* name : {"a", "b", "c", "d"}) {
      kernel.on();
      tiles.push_back(kernel.sbuf({128, 16}, Dtype::Fp32, name));
    }
    kernel.line(10);
    for (const View& tile : tiles) kernel.fill(tile);
    kernel.line(11);
    for (const int i : {0, 3, 2, 1}) read(kernel, tiles[static_cast<std::size_t>(i)]);
  }
  static Options options(bool spill) {
    Options result = small(3 * 64);
    result.spill = spill;
    return result;
  }
  Kernel kernel;
  std::vector<View> tiles;
};

TEST(Place, TheTileWhoseNextUseIsFurthestSpills) {
  // When d comes, a is needed at node 4, c at 6, b at 7: b goes. It comes back at 7, when a, read
  // at 4, has left its place.
  FourInThree four;
  const Placement placement = place(four.kernel.builder());
  ASSERT_THAT(placement.spills, SizeIs(1));
  const Spill& spill = placement.spills[0];
  EXPECT_EQ(spill.name, "spill_b");
  EXPECT_EQ(spill.saves, 1U);
  EXPECT_EQ(spill.reloads, 1U);
  EXPECT_EQ(spill.bytes, 128 * 64);
  EXPECT_EQ(four.kernel.builder().locations()[spill.location].line, 3U);

  const auto& nodes = four.kernel.builder().nodes();
  ASSERT_THAT(nodes, SizeIs(10));
  const auto& save = std::get<DmaDirect2d>(nodes[3].op);  // before d is filled
  EXPECT_EQ(save.src.memory, Memory::Sbuf);
  EXPECT_EQ(save.dst.memory, Memory::Hbm);
  EXPECT_EQ(save.mode, DescriptorMode::HardwareDge);
  const auto& reload = std::get<DmaDirect2d>(nodes[8].op);  // before b is read
  EXPECT_EQ(reload.dst.memory, Memory::Sbuf);
  EXPECT_EQ(storage_of(reload.src.address.base), storage_of(save.dst.address.base));
  EXPECT_LE(placement.sbuf_peak_bytes, 3 * 64);
}

/// How often a tile is saved when six are filled, or loaded, and then added to in turn, in a memory
/// for five.
std::ptrdiff_t saves_of_six(std::uint32_t spill_ahead_ns, bool loaded = false) {
  Options options = small(5 * 64);
  options.spill_ahead_ns = spill_ahead_ns;
  options.load_ahead_ns = 0;
  Kernel kernel(options);
  const View source = kernel.hbm({128, 16});
  std::vector<View> tiles;
  for (const char* name : {"a", "b", "c", "d", "e", "f"}) {
    kernel.on();
    tiles.push_back(kernel.sbuf({128, 16}, Dtype::Fp32, name));
  }
  for (const View& tile : tiles) loaded ? kernel.load(tile, source) : kernel.fill(tile);
  for (const View& tile : tiles) kernel.add(tile, tile, tile);
  place(kernel.builder());
  const auto& nodes = kernel.builder().nodes();
  return std::count_if(nodes.begin(), nodes.end(), [](const Node& node) {
    const auto* copy = std::get_if<DmaDirect2d>(&node.op);
    return copy != nullptr && copy->spill && copy->dst.memory == Memory::Hbm;
  });
}

TEST(Place, WhatIsWorkedOnSoonHasRoomAhead) {
  const std::ptrdiff_t needed = saves_of_six(0);
  EXPECT_GT(needed, 0);
  EXPECT_EQ(saves_of_six(100), needed + 1);  // a fill takes 129 ns by the estimate: one tile
  EXPECT_GT(saves_of_six(300), needed + 1);
  EXPECT_EQ(saves_of_six(100, true), saves_of_six(0, true));  // loads move up by themselves
}

/// Rows of four pieces of 512 bytes, of which only `fit` have room, filled piece by piece across
/// all rows and then read row by row; returns how many bytes of a partition each spill moves.
std::set<std::int64_t> bytes_spilled(std::int64_t row_count, std::uint32_t fit) {
  Options options = small(fit * 2048);
  Kernel kernel(options);
  std::vector<View> made;
  for (std::int64_t i = 0; i < row_count; ++i) {
    kernel.line(static_cast<std::uint32_t>(2 + i));
    made.push_back(kernel.sbuf({128, 512}));
  }
  kernel.line(50);
  for (std::int64_t piece = 0; piece < 4; ++piece) {
    for (const View& row : made) kernel.fill(columns(row, piece * 128, 128));
    for (const View& row : made) {
      const View part = columns(row, piece * 128, 128);
      kernel.add(part, part, part);
    }
  }
  kernel.line(60);
  for (const View& row : made) {
    for (std::int64_t piece = 0; piece < 4; ++piece) {
      kernel.load(kernel.hbm({128, 128}), columns(row, piece * 128, 128));
    }
  }
  const Placement placement = place(kernel.builder());
  std::set<std::int64_t> bytes;
  for (const Spill& spill : placement.spills) bytes.insert(spill.bytes / 128);
  return bytes;
}

TEST(Place, ARowSpillsInPiecesWhenWholeItWouldGoToAndFro) {
  EXPECT_THAT(bytes_spilled(8, 4), testing::ElementsAre(512));
}

TEST(Place, ASpillIsWarnedOfWithItsTileAndLine) {
  FourInThree four;
  const Finished made = four.kernel.finish();
  EXPECT_THAT(made.warnings, ElementsAre(AllOf(StartsWith("kernel.py:3:"), HasSubstr("spill_b"),
                                               HasSubstr("in sbuf"))));
  EXPECT_THAT(check_order(made.trace.code[0]), IsEmpty());
}

TEST(Place, WithoutSpillingTheTilesAreNamed) {
  FourInThree four(false);
  EXPECT_THAT(
      full(four.kernel),
      AllOf(StartsWith("kernel.py:10: sbuf is full: 256 bytes per partition are live at once, the "
                       "limit is 192, and spilling is off:"),
            HasSubstr("a fp32[128,16], 64 bytes per partition, kernel.py:2"),
            HasSubstr("d fp32[128,16], 64 bytes per partition, kernel.py:5")));
}

TEST(Place, ATileThatIsWrittenAfterItCameBackIsSavedAgain) {
  Kernel kernel(small(2 * 64));
  const View a = kernel.sbuf({128, 16}, Dtype::Fp32, "a");
  const View b = kernel.on().tensor({.shape = std::vector<std::int64_t>{128, 16}, .name = "b"});
  const View c = kernel.on().tensor({.shape = std::vector<std::int64_t>{128, 16}, .name = "c"});
  kernel.on();
  for (const View& tile : {a, b, c}) kernel.fill(tile);  // a goes, its next use is furthest
  read(kernel, b);
  read(kernel, c);
  kernel.fill(columns(a, 0, 8));  // a comes back and changes
  kernel.add(b, c, c);            // both are needed: a goes again, with its change
  read(kernel, a);
  const Placement placement = place(kernel.builder());
  const auto spill = std::find_if(placement.spills.begin(), placement.spills.end(),
                                  [](const Spill& it) { return it.name == "spill_a"; });
  ASSERT_NE(spill, placement.spills.end());
  EXPECT_EQ(spill->saves, 2U);
  EXPECT_EQ(spill->reloads, 2U);
}

TEST(Place, WhatOneInstructionNeedsAtOnceIsNotSpilled) {
  Kernel kernel(small(2 * 64));
  std::vector<View> tiles;
  for (int i = 0; i < 3; ++i) {
    kernel.on();
    tiles.push_back(kernel.sbuf({128, 16}));
  }
  kernel.add(tiles[0], tiles[1], tiles[2]);
  EXPECT_THAT(full(kernel), HasSubstr("all of it is in use by one instruction"));
}

TEST(Place, SpilledProgramsAreInOrder) {
  // Twelve tiles in a memory for four, used in turns at random.
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    Kernel kernel(small(4 * 64));
    std::vector<View> tiles;
    for (std::uint32_t i = 0; i < 12; ++i) {
      kernel.line(2 + i);
      tiles.push_back(kernel.sbuf({128, 16}));
      kernel.fill(tiles.back());
    }
    std::uint32_t state = seed;
    const auto pick = [&] {
      state = state * 1664525U + 1013904223U;
      return tiles[(state >> 16U) % tiles.size()];
    };
    for (int i = 0; i < 60; ++i) {
      kernel.on();
      kernel.add(pick(), pick(), pick(), i % 3 == 0 ? Engine::GpSimd : Engine::Vector);
    }
    const Finished made = kernel.finish();
    EXPECT_FALSE(made.spills.empty());
    EXPECT_LE(made.sbuf_peak_bytes, 4 * 64);
    EXPECT_THAT(check_order(made.trace.code[0], 1), IsEmpty()) << "seed " << seed;
  }
}

}  // namespace
}  // namespace trn::isa::frontend
