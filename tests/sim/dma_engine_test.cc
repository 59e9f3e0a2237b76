// Packets on the DMA engines: order, rings, descriptor fetch.
#include "sim/dma/dma_engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::DescriptorMode;
using isa::Engine;
using test::dma_read;
using test::dma_write;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::round_machine;
using test::run;
using testing::Each;

constexpr DescriptorMode kSoftware = DescriptorMode::SoftwareDge;

TEST(DmaEngine, MovesItsElementsAndThenTheSemaphore) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(dma_write(128, 512)).trace(), round_machine());
  // Triggered at 100, held for 500, 700 to the first packet; 10 + 51.2 each, eight of them, and 10
  // for the four bytes of the semaphore. Engine 3 begins 3 * 8 ns later.
  for (const std::uint32_t engine : {0U, 3U, 15U}) {
    const auto packets = done.record.packets_of(0, engine);
    ASSERT_EQ(packets.size(), 9);
    const Time first = ns(1300 + 8 * engine);
    for (std::size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(packets[i].start, first + static_cast<Time>(i) * from_ns(61.2));
      EXPECT_EQ(packets[i].bytes, 512);
      EXPECT_FALSE(packets[i].semaphore);
    }
    EXPECT_TRUE(packets[8].semaphore);
    EXPECT_EQ(packets[8].bytes, 4);
    EXPECT_EQ(packets[8].start, first + from_ns(8 * 61.2));
    EXPECT_EQ(packets[8].end, first + from_ns(8 * 61.2 + 10));
  }
}

TEST(DmaEngine, APacketOfTheProfilerReachesIntoTheNext) {
  Machine machine = round_machine();
  machine.config.chip.dma.packet_overlap = 3;
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(dma_write(8, 512)).trace(), machine);
  const auto packets = done.record.packets_of(0, 0);
  EXPECT_EQ(packets[0].end - packets[0].start, from_ns(64.2));
  EXPECT_EQ(packets[1].start - packets[0].start, from_ns(61.2));
}

TEST(DmaEngine, ARingKeepsItsOrder) {
  // Three writes on one ring, triggered one behind the other.
  ProgramBuilder program;
  program.on(Engine::Sync).add(3, dma_write(128, 4096));
  const Outcome done = run(program.trace(), round_machine());
  for (std::uint32_t engine = 0; engine < 16; ++engine) {
    std::vector<std::uint64_t> order;
    for (const PacketRecord& packet : done.record.packets)
      if (packet.dma_engine == engine) order.push_back(packet.transfer);
    EXPECT_EQ(order.size(), 27);
    EXPECT_TRUE(std::is_sorted(order.begin(), order.end())) << engine;
  }
}

TEST(DmaEngine, RingsAreServedInTurnPacketByPacket) {
  // Sync and Scalar trigger at 100; both have work on every engine from 1300 on.
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_write(128, 512, DescriptorMode::HardwareDge, 2));
  program.on(Engine::Scalar).add(dma_write(128, 512, DescriptorMode::HardwareDge, 5));
  const Outcome done = run(program.trace(), round_machine());
  for (std::uint32_t engine = 0; engine < 16; ++engine) {
    std::vector<std::uint32_t> queues;
    Time end = 0;
    for (const PacketRecord& packet : done.record.packets) {
      if (packet.dma_engine != engine) continue;
      queues.push_back(packet.queue);
      EXPECT_GE(packet.start, end);  // one at a time
      end = packet.end;
    }
    ASSERT_EQ(queues.size(), 18);
    for (std::size_t i = 2; i < queues.size(); ++i) EXPECT_EQ(queues[i], queues[i - 2]);
    EXPECT_NE(queues[0], queues[1]);
  }
}

TEST(DmaEngine, ARingAloneHasTheWholeEngine) {
  // The same bytes on one ring or on two take the same time in all, as the engine is the limit.
  const auto last_packet = [](std::uint8_t second_queue) {
    ProgramBuilder program;
    program.on(Engine::Sync).add(dma_write(128, 4096, DescriptorMode::HardwareDge, 0));
    program.on(Engine::Scalar).add(dma_write(128, 4096, DescriptorMode::HardwareDge, second_queue));
    const Outcome done = run(program.trace(), round_machine());
    Time last = 0;
    for (const TransferRecord& transfer : done.record.transfers)
      last = std::max(last, transfer.last_packet);
    return last;
  };
  EXPECT_EQ(last_packet(0), last_packet(1));
}

TEST(DmaEngine, APacketUnderWayIsNotInterrupted) {
  // A long packet on ring 0 from 1300; ring 1 gets work at 1500 and waits for its end.
  Machine machine = round_machine();
  machine.config.chip.scalar.launch_delay = 300;
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_write(1, 65'536, DescriptorMode::HardwareDge, 0));
  program.on(Engine::Scalar).add(dma_write(1, 512, DescriptorMode::HardwareDge, 1));
  const Outcome done = run(program.trace(), machine);
  EXPECT_EQ(done.record.packets_of(0, 0)[0].end, ns(1300) + from_ns(6563.6));
  EXPECT_EQ(done.record.packets_of(1, 0)[0].start, ns(1300) + from_ns(6563.6));
}

// ---- descriptors that software wrote are fetched ----
//
// One engine moves eight rows of 512 bytes in one packet of 10 + 409.6 ns. The first trigger is at
// 100 + 100 + 1000 + 8 * 0.5 = 1204, its first packet at 1964; the fetch costs 120 ns and 60 a
// packet, so that packet and semaphore end at 2563.6 and 2573.6.

TEST(DescriptorFetch, TheFirstReadOfARingPaysForIt) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(dma_read(8, 512, kSoftware)).trace(),
          round_machine());
  const auto packets = done.record.packets_of(0, 0);
  EXPECT_EQ(packets[0].start, ns(1964));
  EXPECT_EQ(packets[0].end, from_ns(2563.6));
  EXPECT_EQ(packets[1].end, from_ns(2573.6));
}

TEST(DescriptorFetch, EachPacketWaitsForItsDescriptor) {
  // Eight packets of 4096 bytes: 120 once, 10 + 409.6 + 60 each.
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(dma_read(8, 4096, kSoftware)).trace(),
          round_machine());
  const auto packets = done.record.packets_of(0, 0);
  EXPECT_EQ(packets[0].end - packets[0].start, from_ns(599.6));
  for (std::size_t i = 1; i < 8; ++i)
    EXPECT_EQ(packets[i].end - packets[i].start, from_ns(479.6)) << i;
  EXPECT_EQ(packets[8].end - packets[8].start, ns(10));
}

TEST(DescriptorFetch, WritesPayNothing) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(dma_write(8, 4096, kSoftware)).trace(),
          round_machine());
  // 0.2 ns a byte
  for (const PacketRecord& packet : done.record.packets_of(0, 0)) {
    if (!packet.semaphore) {
      EXPECT_EQ(packet.end - packet.start, from_ns(829.2));
    }
  }
}

TEST(DescriptorFetch, AReadThatArrivesSoonIsCovered) {
  // The second trigger follows 504 ns behind the first, well within 750 of the fetch: no cost.
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(2, dma_read(8, 512, kSoftware)).trace(),
          round_machine());
  const auto packets = done.record.packets_of(1, 0);
  EXPECT_EQ(packets[0].start, from_ns(2573.6));  // arrives at 2468, behind the first
  EXPECT_EQ(packets[0].end - packets[0].start, from_ns(419.6));
}

/// The first packet of a second read whose descriptors are there at `arrival`, which is at least
/// 3008: GpSimd passes the time between with a NOP.
PacketRecord second_packet(std::uint32_t first_bytes, std::uint32_t arrival) {
  // The first trigger ends at 1234; prepared from then on, the second one is at 2238 + NOP, and its
  // packet 760 later: 2998 + NOP.
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::GpSimd)
                               .add(dma_read(8, first_bytes, kSoftware))
                               .add(test::nop(arrival - 2998))
                               .add(dma_read(8, 512, kSoftware))
                               .trace(),
                           round_machine());
  return done.record.packets_of(1, 0)[0];
}

TEST(DescriptorFetch, ARingThatRanDryIsFetchedFromAgainOnlyAfterAWhile) {
  // Dry since 2573.6: not before 3273.6. At 3008 that is 265.6 away, more than a fetch (180).
  const PacketRecord packet = second_packet(512, 3008);
  EXPECT_EQ(packet.start, ns(3008));
  EXPECT_EQ(packet.end, from_ns(3273.6 + 419.6));
}

TEST(DescriptorFetch, ARingThatRanDryLongAgoPaysForAFetch) {
  // At 3094 the restart, 179.6 away, is nearer than a fetch of 180.
  const PacketRecord packet = second_packet(512, 3094);
  EXPECT_EQ(packet.end, ns(3094) + from_ns(180 + 419.6));
  EXPECT_EQ(second_packet(512, 3093).end, from_ns(3273.6 + 419.6));
}

TEST(DescriptorFetch, AFullRingHidesIt) {
  // The first read moves 8 * 4096 bytes until 1964 + 120 + 8 * 479.6 + 10 = 5930.8. At 4930 the
  // ring has 1000.8 ns of work left.
  const PacketRecord packet = second_packet(4096, 4930);
  EXPECT_EQ(packet.start, from_ns(5930.8));
  EXPECT_EQ(packet.end - packet.start, from_ns(419.6));
}

TEST(DescriptorFetch, ARingThatIsNearlyEmptyDoesNot) {
  // At 4931 it has 999.8 ns left: less than 1000.
  const PacketRecord packet = second_packet(4096, 4931);
  EXPECT_EQ(packet.start, from_ns(5930.8));
  EXPECT_EQ(packet.end - packet.start, from_ns(700 + 419.6));
}

}  // namespace
}  // namespace trn::sim
