#include "sim/dma/dma_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/instructions.h"
#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using isa::DescriptorMode;
using isa::Dtype;
using test::dma;
using test::dma_read;
using test::dma_write;
using test::hbm_rows;
using test::ns;
using test::sbuf_rows;
using testing::Each;
using testing::ElementsAre;

// On round_machine() an engine moves 10 GB/s: of reads, hardware 0.2 and software 0.1 ns a byte; of
// writes, 0.1 and 0.2. A packet costs 10 ns beside.

DmaPlan planned(const isa::Op& op) { return plan_dma(op, test::round_machine().config.chip.dma); }

std::uint64_t bytes_of(const DmaPlan& plan) {
  return std::accumulate(plan.share.begin(), plan.share.end(), std::uint64_t{0}) *
         plan.element_bytes;
}

TEST(DmaPlan, HardwareMakesOnePacketOfEachElement) {
  const DmaPlan plan = planned(dma_read(128, 512));
  EXPECT_EQ(plan.packet_elements, 1);
  EXPECT_EQ(plan.packets(8), 8);
  EXPECT_EQ(plan.packet_time(1), ns(10) + from_ns(102.4));
  EXPECT_TRUE(plan.read);
  EXPECT_FALSE(plan.two_dimensional);
}

TEST(DmaPlan, SoftwareJoinsElementsToPackets) {
  // 4096 / 512 = 8 elements, as many as each engine has.
  const DmaPlan plan = planned(dma_read(128, 512, DescriptorMode::SoftwareDge));
  EXPECT_EQ(plan.packet_elements, 8);
  EXPECT_EQ(plan.packets(8), 1);
  EXPECT_EQ(plan.packet_time(8), ns(10) + from_ns(8 * 51.2));
}

TEST(DmaPlan, APacketOfSoftwareHoldsNoMoreThanItsSize) {
  EXPECT_EQ(planned(dma_read(128, 1024, DescriptorMode::SoftwareDge)).packet_elements, 4);
  EXPECT_EQ(planned(dma_read(128, 1000, DescriptorMode::SoftwareDge)).packet_elements, 4);
  EXPECT_EQ(planned(dma_read(128, 4096, DescriptorMode::SoftwareDge)).packet_elements, 1);
  EXPECT_EQ(planned(dma_read(128, 2049, DescriptorMode::SoftwareDge)).packet_elements, 1);
}

TEST(DmaPlan, APacketOfSoftwareHoldsNoMoreThanItsEngineHas) {
  // 4096 / 64 = 64, but 128 elements are 8 for each of 16 engines.
  const DmaPlan plan = planned(dma_read(128, 64, DescriptorMode::SoftwareDge));
  EXPECT_EQ(plan.packet_elements, 8);
}

TEST(DmaPlan, TheLastPacketMayBeShort) {
  const DmaPlan plan = planned(dma_read(8, 1024, DescriptorMode::SoftwareDge));
  EXPECT_EQ(plan.packet_elements, 4);
  EXPECT_EQ(plan.packets(5), 2);
  EXPECT_EQ(plan.packets(4), 1);
  EXPECT_EQ(plan.packets(1), 1);
}

TEST(DmaPlan, ACastMakesOnePacketOfEachElementOfTheWiderType) {
  const isa::DmaDirect2d cast = dma(hbm_rows(128, 512, Dtype::Bf16),
                                    sbuf_rows(128, 1024, Dtype::Fp32), DescriptorMode::SoftwareDge);
  const DmaPlan plan = planned(cast);
  EXPECT_EQ(plan.packet_elements, 1);
  EXPECT_EQ(plan.element_bytes, 1024);
  EXPECT_EQ(plan.packet_time(1), ns(12) + from_ns(102.4));  // 2 ns beside the 10 for the cast
  EXPECT_EQ(plan.src_bytes, 128 * 512);
  EXPECT_EQ(plan.dst_bytes, 128 * 1024);
}

TEST(DmaPlan, ACastIsCutAsItsFinerSideIs) {
  // 512 values of each partition go to four rows of 128.
  const isa::DmaDirect2d cast = dma(sbuf_rows(128, 2048, Dtype::Fp32),
                                    hbm_rows(512, 256, Dtype::Bf16), DescriptorMode::SoftwareDge);
  const DmaPlan plan = planned(cast);
  EXPECT_EQ(plan.packet_elements, 1);
  EXPECT_EQ(plan.element_bytes, 512);
  EXPECT_EQ(bytes_of(plan), 128 * 2048);
}

TEST(DmaPlan, AWriteOfSoftwarePaysForEachPartitionRowOfAPacketBeyondTheFirst) {
  // Eight rows of 512 bytes a packet: 10 + 7 * 45.
  const DmaPlan plan = planned(dma_write(128, 512, DescriptorMode::SoftwareDge));
  EXPECT_EQ(plan.packet_elements, 8);
  EXPECT_EQ(plan.fixed_time, ns(325));
  EXPECT_EQ(planned(dma_write(128, 4096, DescriptorMode::SoftwareDge)).fixed_time, ns(10));
  EXPECT_EQ(planned(dma_read(128, 512, DescriptorMode::SoftwareDge)).fixed_time, ns(10));
}

TEST(DmaPlan, ElementsOfOnePartitionRowArePaidOnce) {
  // 8 partitions, each 64 elements of 64 contiguous bytes: one row fills a packet of 4096 bytes.
  isa::DmaSide rows = sbuf_rows(8, 64);
  rows.dims = 2;
  rows.pattern[0] = {64, 64};
  rows.pattern[1] = {isa::kSbufPartitionStride, 8};
  const DmaPlan plan = planned(dma(rows, hbm_rows(512, 64), DescriptorMode::SoftwareDge));
  EXPECT_EQ(plan.packet_elements, 64);
  EXPECT_EQ(plan.fixed_time, ns(10));
}

TEST(DmaPlan, LongRunsAreCut) {
  // 200 000 bytes in packets of at most 65 536: four of 50 000.
  const DmaPlan plan = planned(dma_read(16, 200'000));
  EXPECT_EQ(plan.element_bytes, 50'000);
  EXPECT_EQ(plan.elements, 64);
  EXPECT_EQ(bytes_of(plan), 16 * 200'000);
  const DmaPlan software = planned(dma_read(16, 10'000, DescriptorMode::SoftwareDge));
  EXPECT_EQ(software.elements, 48);  // 4096 each at most
  EXPECT_EQ(software.element_bytes, 3334);
  EXPECT_EQ(planned(dma_read(16, 65'536)).elements, 16);
  EXPECT_EQ(planned(dma_read(16, 65'537)).elements, 32);
}

TEST(DmaPlan, AStaticRunIsCutAtItsOwnSize) {
  const DmaPlan plan = planned(dma_read(128, 8192, DescriptorMode::Static));
  EXPECT_EQ(plan.elements, 256);
  EXPECT_EQ(plan.element_bytes, 4096);
  EXPECT_EQ(plan.packet_elements, 1);
}

TEST(DmaPlan, PartitionsDecideHowManyEnginesTakePart) {
  for (const auto& [partitions, engines] :
       {std::pair{1U, 1U}, {4U, 1U}, {8U, 1U}, {9U, 2U}, {64U, 8U}, {120U, 15U}, {128U, 16U}}) {
    EXPECT_EQ(planned(dma_read(partitions, 512)).share.size(), engines) << partitions;
    EXPECT_EQ(planned(dma_write(partitions, 512)).share.size(), engines) << partitions;
  }
}

TEST(DmaPlan, OneEngineServesFewPartitionsWhateverTheirBytes) {
  // [4, n]: four rows of 1024 elements each.
  isa::DmaSide rows = sbuf_rows(4, 64);
  rows.dims = 2;
  rows.pattern[0] = {128, 1024};
  rows.pattern[1] = {isa::kSbufPartitionStride, 4};
  const DmaPlan plan = planned(dma(hbm_rows(4096, 64), rows));
  EXPECT_THAT(plan.share, ElementsAre(4096));
}

TEST(DmaPlan, ElementsAreSpreadEvenly) {
  EXPECT_THAT(planned(dma_read(128, 512)).share, Each(8));
  EXPECT_THAT(planned(dma_read(9, 512)).share, ElementsAre(5, 4));
  EXPECT_THAT(planned(dma_read(20, 512)).share, ElementsAre(7, 7, 6));
}

TEST(DmaPlan, BetweenRegionsOfHbmAllEnginesTakePart) {
  EXPECT_EQ(planned(dma(hbm_rows(64, 512), hbm_rows(64, 512))).share.size(), 16);
  EXPECT_EQ(planned(dma(hbm_rows(3, 512), hbm_rows(3, 512))).share.size(), 3);  // no empty shares
}

TEST(DmaPlan, TheFinerSideCutsTheBytes) {
  // 128 rows of 512 bytes gathered from 512 pieces of 128.
  isa::DmaSide pieces = hbm_rows(512, 128, Dtype::Bf16, 4096);
  const DmaPlan plan = planned(dma(pieces, sbuf_rows(128, 512)));
  EXPECT_EQ(plan.elements, 512);
  EXPECT_EQ(plan.element_bytes, 128);
  EXPECT_EQ(bytes_of(plan), 128 * 512);
  const DmaPlan back = planned(dma(sbuf_rows(128, 512), pieces));
  EXPECT_EQ(back.elements, 512);
  EXPECT_EQ(back.element_bytes, 128);
}

TEST(DmaPlan, SeveralDimensionsCountOnlyWithSeveralElements) {
  isa::DmaSide rows = sbuf_rows(4, 64);
  rows.dims = 2;
  rows.pattern[0] = {64, 1};
  rows.pattern[1] = {isa::kSbufPartitionStride, 4};
  EXPECT_FALSE(planned(dma(hbm_rows(4, 64), rows)).two_dimensional);
  rows.pattern[0] = {64, 2};
  EXPECT_TRUE(planned(dma(hbm_rows(8, 64), rows)).two_dimensional);
}

TEST(DmaPlan, DirectionAndMemoriesFollowTheSides) {
  const DmaPlan write = planned(dma_write(128, 512));
  EXPECT_FALSE(write.read);
  EXPECT_FALSE(write.read_hbm);
  EXPECT_TRUE(write.write_hbm);
  EXPECT_EQ(write.packet_time(1), ns(10) + from_ns(51.2));
  const DmaPlan within_hbm = planned(dma(hbm_rows(64, 512), hbm_rows(64, 512)));
  EXPECT_TRUE(within_hbm.read);
  EXPECT_TRUE(within_hbm.read_hbm);
  EXPECT_TRUE(within_hbm.write_hbm);
  const DmaPlan within_sbuf = planned(dma(sbuf_rows(128, 512), sbuf_rows(128, 512)));
  EXPECT_FALSE(within_sbuf.read);
  EXPECT_FALSE(within_sbuf.read_hbm);
  EXPECT_FALSE(within_sbuf.write_hbm);
}

/// Of all packets of the busiest engine.
Time time_of(const DmaPlan& plan) {
  const std::uint32_t elements = plan.share.front();
  return plan.packets(elements) * plan.fixed_time + elements * plan.element_time;
}

TEST(DmaPlan, ATransposeMovesBytesAtItsShareOfTheRate) {
  isa::DmaTranspose transpose;
  transpose.src = hbm_rows(128, 4096);
  transpose.dst = sbuf_rows(128, 4096);
  // From HBM at half the rate of 5 GB/s, 0.4 ns a byte: 32 768 bytes on each engine.
  const DmaPlan plan = planned(transpose);
  EXPECT_EQ(bytes_of(plan), 128 * 4096);
  EXPECT_EQ(plan.share.size(), 16);
  EXPECT_EQ(plan.element_time * plan.share.front(), from_ns(0.4 * 32'768));
  // From SBUF at a quarter of 10 GB/s: 0.4 ns as well.
  transpose.src = sbuf_rows(128, 4096);
  EXPECT_EQ(planned(transpose).element_time * planned(transpose).share.front(),
            from_ns(0.4 * 32'768));
}

TEST(DmaPlan, ATransposeOfSmallElementsIsNotPaidByTheElement) {
  isa::DmaTranspose transpose;
  transpose.src = hbm_rows(128, 4096);
  transpose.dst = sbuf_rows(128, 2);
  transpose.dst.dims = 2;
  transpose.dst.pattern[0] = {2, 2048};
  transpose.dst.pattern[1] = {isa::kSbufPartitionStride, 128};
  isa::DmaTranspose rows = transpose;
  rows.dst = sbuf_rows(128, 4096);
  EXPECT_EQ(time_of(planned(transpose)), time_of(planned(rows)));
}

TEST(DmaPlan, ADmaThatAddsReadsAllSourcesAtItsShareOfTheRate) {
  isa::DmaCompute add;
  add.src = hbm_rows(128, 512);
  add.dst = sbuf_rows(128, 512);
  add.mode = DescriptorMode::HardwareDge;
  const Time copy = planned(dma_read(128, 512)).element_time;
  for (const int sources : {1, 2, 16}) {
    add.sources = static_cast<std::uint8_t>(sources);
    EXPECT_EQ(planned(add).element_time, copy * sources * 2) << sources;
  }
}

TEST(DmaPlan, EveryByteIsOnSomeEngine) {
  for (const auto mode :
       {DescriptorMode::Static, DescriptorMode::SoftwareDge, DescriptorMode::HardwareDge}) {
    for (const std::uint32_t partitions : {1U, 3U, 8U, 17U, 100U, 128U}) {
      for (const std::uint32_t bytes : {2U, 64U, 4096U, 8192U, 131'072U}) {
        EXPECT_EQ(bytes_of(planned(dma_read(partitions, bytes, mode))),
                  std::uint64_t{partitions} * bytes)
            << name_of(mode) << ' ' << partitions << " x " << bytes;
      }
    }
  }
}

}  // namespace
}  // namespace trn::sim
