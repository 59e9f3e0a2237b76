#include "sim/dma/dma_system.h"

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
using test::copy;
using test::dma_read;
using test::dma_write;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::round_machine;
using test::run;

constexpr DescriptorMode kHardware = DescriptorMode::HardwareDge;
constexpr DescriptorMode kSoftware = DescriptorMode::SoftwareDge;
constexpr DescriptorMode kStatic = DescriptorMode::Static;

// ---- triggers by hardware ----

TEST(HardwareTrigger, HoldsItsEngine) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Scalar).add(dma_read(128, 512)).add(copy()).trace(),
          round_machine());
  EXPECT_EQ(done.start(Engine::Scalar), ns(100));
  EXPECT_EQ(done.end(Engine::Scalar), ns(600));
  EXPECT_EQ(done.start(Engine::Scalar, 1), ns(615));  // the engine's next: 15 ns later
}

TEST(HardwareTrigger, LeavesItsSequencerABitLater) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 512)).add(test::nop(10)).trace(),
          round_machine());
  EXPECT_EQ(done.start(Engine::Sync, 1), ns(650));
}

TEST(HardwareTrigger, TakesLongerInTwoDimensions) {
  isa::DmaSide rows = test::sbuf_rows(128, 64);
  rows.dims = 2;
  rows.pattern[0] = {64, 8};
  rows.pattern[1] = {isa::kSbufPartitionStride, 128};
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(test::dma(test::hbm_rows(1024, 64), rows)).trace(),
          round_machine());
  EXPECT_EQ(done.end(Engine::Sync), ns(620));
}

/// The duration of a second trigger, with a NOP of that many ns between.
Time second_hold(std::uint32_t pause) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Sync)
                               .add(dma_write(128, 512))
                               .add(test::nop(pause))
                               .add(dma_write(128, 512))
                               .trace(),
                           round_machine());
  return done.end(Engine::Sync, 2) - done.start(Engine::Sync, 2);
}

TEST(HardwareTrigger, TakesLongerCloseBehindAnother) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(2, dma_write(128, 512)).trace(), round_machine());
  EXPECT_EQ(done.start(Engine::Sync, 1), ns(650));
  EXPECT_EQ(done.end(Engine::Sync, 1), ns(1190));  // 40 ns more
  // The NOP is at 650; from 100 ns behind the end of the first, at 600, nothing is added.
  EXPECT_EQ(second_hold(49), ns(540));
  EXPECT_EQ(second_hold(50), ns(500));
}

TEST(HardwareTrigger, EnginesHaveTheirOwnGenerators) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_write(128, 512));
  program.on(Engine::Scalar).add(dma_write(128, 512, kHardware, 1));
  const Outcome done = run(program.trace(), round_machine());
  EXPECT_EQ(done.end(Engine::Sync), ns(600));
  EXPECT_EQ(done.end(Engine::Scalar), ns(600));
}

TEST(HardwareTrigger, WaitsLikeAnyInstruction) {
  ProgramBuilder program;
  program.on(Engine::Vector).add(copy()).updates(0);
  program.on(Engine::Sync).add(dma_write(128, 512)).waits(0, 1);
  const Outcome done = run(program.trace(), round_machine());
  EXPECT_EQ(done.start(Engine::Sync), ns(360 + 224));  // Vector to a trigger of Sync: 200 + 20 + 4
}

TEST(StaticTrigger, HoldsItsEngineForLess) {
  const Outcome done = run(
      ProgramBuilder().on(Engine::Sync).add(dma_read(8, 512, kStatic)).add(test::nop(10)).trace(),
      round_machine());
  EXPECT_EQ(done.end(Engine::Sync), ns(150));
  EXPECT_EQ(done.start(Engine::Sync, 1), ns(200));
  EXPECT_EQ(done.record.packets_of(0, 0)[0].start, ns(950));  // 150 + 800
}

// ---- triggers by GpSimd ----

TEST(SoftwareTrigger, GpSimdWritesTheDescriptorsFirst) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(dma_read(128, 512, kSoftware)).trace(),
          round_machine());
  // 100 for the first use, 1000, and half a nanosecond for each of 128 elements.
  EXPECT_EQ(done.start(Engine::GpSimd), ns(100 + 100 + 1000 + 64));
  EXPECT_EQ(done.end(Engine::GpSimd), ns(1264 + 30));
  EXPECT_EQ(done.record.packets_of(0, 0)[0].start, ns(1264 + 760));  // from the trigger's start
}

TEST(SoftwareTrigger, TheHoldOfAWriteIsItsOwn) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(dma_write(128, 512, kSoftware)).trace(),
          round_machine());
  EXPECT_EQ(done.end(Engine::GpSimd) - done.start(Engine::GpSimd), ns(40));
}

TEST(SoftwareTrigger, TriggersThatWaitForNothingArePipelined) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::GpSimd).add(5, dma_read(128, 512, kSoftware)).trace(),
          round_machine());
  // Their descriptors are begun 500 + 64 ns apart, although each takes 1000 + 64.
  for (std::uint64_t i = 0; i < 5; ++i)
    EXPECT_EQ(done.start(Engine::GpSimd, i), ns(1264 + 564 * static_cast<Time>(i))) << i;
  // Each of up to two behind the first holds 20 ns more.
  const auto hold = [&](std::uint64_t i) {
    return done.end(Engine::GpSimd, i) - done.start(Engine::GpSimd, i);
  };
  EXPECT_EQ(hold(0), ns(30));
  EXPECT_EQ(hold(1), ns(50));
  EXPECT_EQ(hold(2), ns(70));
  EXPECT_EQ(hold(3), ns(70));
}

TEST(SoftwareTrigger, OneThatWaitsBeginsWhenItsWaitIsOver) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(test::nop(4000)).updates(0);
  program.on(Engine::GpSimd).add(dma_read(128, 512, kSoftware));
  program.add(dma_read(128, 512, kSoftware)).waits(0, 1);
  const Outcome done = run(program.trace(), round_machine());
  // Sync ends at 4100; to a trigger of GpSimd 253 ns; then the whole latency.
  EXPECT_EQ(done.start(Engine::GpSimd, 1), ns(4100 + 253 + 1064));
}

// ---- what follows a trigger ----

TEST(DmaSystem, EngineAfterEngineBegins) {
  const Outcome read =
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 512)).trace(), round_machine());
  const Outcome write =
      run(ProgramBuilder().on(Engine::Sync).add(dma_write(128, 512)).trace(), round_machine());
  for (std::uint32_t engine = 0; engine < 16; ++engine) {
    EXPECT_EQ(read.record.packets_of(0, engine)[0].start, ns(600 + 800 + 16 * engine));
    EXPECT_EQ(write.record.packets_of(0, engine)[0].start, ns(600 + 700 + 8 * engine));
  }
}

TEST(DmaSystem, ATransferIsCompleteWhenItsLastEngineIs) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 512)).trace(), round_machine());
  const TransferRecord transfer = done.record.transfers.at(0);
  EXPECT_EQ(transfer.trigger, ns(100));
  EXPECT_EQ(transfer.first_packet, ns(1400));
  // Engine 15 begins at 1640: eight packets of 112.4 and the semaphore of 10.
  EXPECT_EQ(transfer.last_packet, from_ns(2549.2));
  EXPECT_EQ(transfer.complete, from_ns(2849.2));
  EXPECT_EQ(transfer.bytes, 65'536);
  EXPECT_EQ(done.result.length, from_ns(2849.2));
}

/// When Vector sees the completion semaphore of a read reach `value`.
Time seen(std::uint32_t partitions, std::uint16_t increment, std::int64_t value) {
  ProgramBuilder program;
  program.on(Engine::Sync)
      .add(dma_read(partitions, 512, kHardware, 0, {.semaphore = 6, .increment = increment}));
  program.on(Engine::Vector).add(copy()).waits(6, value);
  return run(program.trace(), round_machine()).start(Engine::Vector);
}

TEST(DmaSystem, EachEngineRaisesTheSemaphoreByOne) {
  // Engine i is done at 1400 + 16 i + 909.2, counts 300 ns later, and Vector sees it after 61.
  for (const std::int64_t engines : {1, 2, 9, 16})
    EXPECT_EQ(seen(128, 16, engines), from_ns(2670.2) + ns(16 * (engines - 1))) << engines;
}

TEST(DmaSystem, TheIncrementsOfAllEnginesAddUpToTheInstructions) {
  // One engine alone raises it by all 16; 16 engines raise it by 40 in steps of 2 and 3 (to 37
  // before the last), by 5 in steps of 0 and 1, and by 1 with the last one.
  EXPECT_EQ(seen(8, 16, 16), seen(8, 16, 1));
  const Time last = seen(128, 16, 16);
  EXPECT_EQ(seen(128, 40, 40), last);
  EXPECT_EQ(seen(128, 5, 5), last);
  EXPECT_EQ(seen(128, 1, 1), last);
  EXPECT_LT(seen(128, 40, 37), last);
  for (const std::uint16_t increment : std::initializer_list<std::uint16_t>{1, 5, 16, 40}) {
    ProgramBuilder program;
    program.on(Engine::Sync)
        .add(dma_read(128, 512, kHardware, 0, {.semaphore = 6, .increment = increment}));
    program.on(Engine::Vector).add(copy()).waits(6, increment, isa::WaitCondition::Equal);
    EXPECT_NO_THROW(run(program.trace(), round_machine())) << increment;
  }
}

TEST(DmaSystem, ATransferWithoutSemaphoreCompletesToo) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 512)).trace(), round_machine());
  EXPECT_EQ(done.record.transfers.size(), 1);
}

TEST(DmaSystem, HardwareReadsOfOneRingAreSerial) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(2, dma_read(128, 512));
  const Outcome done = run(program.trace(), round_machine());
  // The second is due at 650 + 540 + 800 = 1990, while the first runs: on engine 0 until 2309.2, on
  // each further one 16 longer. It begins 600 ns after the last one's end, within 160 in turns:
  // engine 5 is the third after engine 0.
  const Time end = from_ns(2309.2 + 15 * 16);
  EXPECT_EQ(done.record.packets_of(0, 15).back().end, end);
  const auto packets = done.record.packets_of(1, 0);
  EXPECT_EQ(packets[0].start, end + ns(600));
  EXPECT_EQ(packets[0].end - packets[0].start, from_ns(112.4));
  EXPECT_EQ(done.record.packets_of(1, 5)[0].start, end + ns(600 + 3 * 10));
}

TEST(DmaSystem, EnginesTakeTurnsInTheOrderOfARestart) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(3, dma_read(128, 512));
  const Outcome done = run(program.trace(), round_machine());
  const auto first = [&](std::uint64_t transfer, std::uint32_t engine) {
    return done.record.packets_of(transfer, engine)[0].start;
  };
  EXPECT_EQ(first(1, 1) - first(1, 0), ns(70));
  EXPECT_EQ(first(2, 1) - first(2, 0), ns(70));
  EXPECT_EQ(first(1, 7) - first(1, 0), ns(10));  // 49 mod 16
  EXPECT_EQ(first(2, 0) - first(2, 9), ns(10));  // one turn on: 1 and 64 mod 16
}

TEST(DmaSystem, AnotherRingMovesWhileAHardwareReadBeginsAnew) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(2, dma_read(128, 512));
  program.on(Engine::Scalar).add(test::nop(1000)).add(dma_write(128, 512, kHardware, 1));
  const Outcome done = run(program.trace(), round_machine());
  const auto reads = done.record.packets_of(1, 0);
  const auto writes = done.record.packets_of(2, 0);
  EXPECT_GE(writes[0].start, from_ns(2309.2));
  EXPECT_LT(writes.back().end, reads[0].start);
}

TEST(DmaSystem, AHardwareReadSoonAfterAnotherWaitsAsWell) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(2, dma_read(8, 64));
  const Outcome done = run(program.trace(), round_machine());
  // Due at 1990, when the first has been over for 397.6: eight packets of 22.8, and the semaphore.
  EXPECT_EQ(done.record.packets_of(0, 0).back().end, from_ns(1592.4));
  EXPECT_EQ(done.record.packets_of(1, 0)[0].start, from_ns(1592.4 + 600));
  EXPECT_EQ(done.record.packets_of(1, 0)[0].end, from_ns(1592.4 + 600 + 22.8));
}

TEST(DmaSystem, AHardwareReadThatFindsItsRingIdleIsNotDelayed) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_read(128, 512)).add(test::nop(1500)).add(dma_read(128, 512));
  const Outcome done = run(program.trace(), round_machine());
  // Triggered at 2150: due at 2150 + 500 + 800, 900.8 after the last engine's end.
  EXPECT_EQ(done.record.packets_of(1, 0)[0].start, ns(3450));
  EXPECT_EQ(done.record.packets_of(1, 0)[0].end, from_ns(3450 + 112.4));
}

TEST(DmaSystem, HardwareReadsOfTwoRingsAreNotSerial) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_read(128, 512, kHardware, 0));
  program.add(dma_read(128, 512, kHardware, 1));
  const Outcome done = run(program.trace(), round_machine());
  const auto packets = done.record.packets_of(1, 0);
  EXPECT_GE(packets[0].start, ns(1990));
  EXPECT_LE(packets[0].start, from_ns(1990 + 112.4));  // behind the packet under way
  EXPECT_EQ(packets[0].end - packets[0].start, from_ns(112.4));
}

TEST(DmaSystem, HardwareWritesOfOneRingFollowEachOther) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(2, dma_write(8, 65'536));
  const Outcome done = run(program.trace(), round_machine());
  EXPECT_EQ(done.record.packets_of(1, 0)[0].start, done.record.packets_of(0, 0).back().end);
}

TEST(DmaSystem, AWriteBehindAReadOfItsRingWaitsForIt) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_read(8, 65'536)).add(dma_write(8, 512));
  const Outcome done = run(program.trace(), round_machine());
  EXPECT_GE(done.record.packets_of(1, 0)[0].start, done.record.packets_of(0, 0).back().end);
}

TEST(DmaSystem, StaticReadsOfARingFollowWithoutAGapInEachEngine) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(2, dma_read(128, 8192, kStatic));
  const Outcome done = run(program.trace(), round_machine());
  for (const std::uint32_t engine : {0U, 15U}) {
    EXPECT_EQ(done.record.packets_of(1, engine)[0].start,
              done.record.packets_of(0, engine).back().end);
  }
}

TEST(DmaSystem, CountsWhatItMoves) {
  ProgramBuilder program;
  program.on(Engine::Sync).add(dma_read(128, 512));
  program.on(Engine::Scalar).add(dma_write(64, 256, kHardware, 1));
  program.on(Engine::GpSimd)
      .add(test::dma(test::hbm_rows(32, 1024), test::hbm_rows(32, 1024), kSoftware, 2));
  const Outcome done = run(program.trace(), round_machine());
  const DmaStats& stats = done.result.dma;
  EXPECT_EQ(stats.transfers, 3);
  EXPECT_EQ(stats.transfer_bytes, 65'536 + 16'384 + 32'768);
  EXPECT_EQ(stats.hbm_read_bytes, 65'536 + 32'768);
  EXPECT_EQ(stats.hbm_write_bytes, 16'384 + 32'768);
  EXPECT_EQ(stats.sbuf_read_bytes, 16'384);
  EXPECT_EQ(stats.sbuf_write_bytes, 65'536);
  EXPECT_EQ(stats.queues, 3);
  // Packets: 128 and 64 of hardware with 16 + 8 semaphores; 16 of software with as many.
  const auto& hardware = stats.modes[static_cast<std::size_t>(kHardware)];
  EXPECT_EQ(hardware.packets, 128 + 64 + 24);
  EXPECT_EQ(hardware.bytes, 65'536 + 16'384 + 24 * 4);
  const auto& software = stats.modes[static_cast<std::size_t>(kSoftware)];
  EXPECT_EQ(software.packets, 16 + 16);
  EXPECT_EQ(software.bytes, 32'768 + 16 * 4);
  Time packet_time = 0;
  for (const PacketRecord& packet : done.record.packets) packet_time += packet.end - packet.start;
  EXPECT_EQ(stats.packet_time, packet_time);
}

TEST(DmaSystem, ActiveTimeIsTheUnionOfPackets) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 512)).trace(), round_machine());
  // From engine 0's first packet at 1400 to engine 15's last at 2549.2, without a gap.
  EXPECT_EQ(done.result.dma.active, from_ns(1149.2));
}

// ---- rates ----

/// Bytes a second from the first data packet to the last one's end.
double rate(const Outcome& run) {
  Time first = kNever;
  Time last = 0;
  double bytes = 0;
  for (const PacketRecord& packet : run.record.packets) {
    if (packet.semaphore) continue;
    first = std::min(first, packet.start);
    last = std::max(last, packet.end);
    bytes += packet.bytes;
  }
  return bytes / (static_cast<double>(last - first) / kFsPerSecond);
}

/// Large transfers on several rings, enough to keep all engines busy.
isa::Trace heavy_traffic(bool read, DescriptorMode mode, Engine engine) {
  ProgramBuilder program;
  program.on(engine);
  for (std::uint8_t queue = 0; queue < 8; ++queue)
    program.add(read ? dma_read(128, 131'072, mode, queue) : dma_write(128, 131'072, mode, queue));
  return program.trace();
}

TEST(DmaRate, ComesNearTheEnginesRateAndDoesNotPassIt) {
  const Machine machine = test::shipped_machine();
  const DmaConfig& dma = machine.config.chip.dma;
  const double peak = dma.engines * dma.bandwidth_per_engine;
  for (const bool read : {true, false}) {
    const Outcome hardware = run(heavy_traffic(read, kHardware, Engine::Sync), machine);
    const auto& direction = read ? dma.hardware.read : dma.hardware.write;
    EXPECT_LE(rate(hardware), peak * direction.efficiency);
    EXPECT_GE(rate(hardware), 0.95 * peak * direction.efficiency);
    const Outcome software = run(heavy_traffic(read, kSoftware, Engine::GpSimd), machine);
    EXPECT_LE(rate(software), peak);
  }
}

TEST(DmaRate, TheStackOfHbmCapsIt) {
  // A quarter of what the engines can move.
  Machine machine = round_machine();
  machine.config.chip.hbm.bandwidth_per_stack = 20e9;
  const Outcome read = run(heavy_traffic(true, kHardware, Engine::Sync), machine);
  EXPECT_LE(rate(read), 20e9);
  EXPECT_GE(rate(read), 0.98 * 20e9);
  const Outcome write = run(heavy_traffic(false, kHardware, Engine::Sync), machine);
  EXPECT_LE(rate(write), 20e9);
  EXPECT_GE(rate(write), 0.98 * 20e9);
}

TEST(DmaRate, AtNoTimeHaveMoreBytesLeftHbmThanItsRateAllows) {
  Machine machine = round_machine();
  machine.config.chip.hbm.bandwidth_per_stack = 20e9;
  const Outcome done = run(heavy_traffic(true, kHardware, Engine::Sync), machine);
  std::vector<PacketRecord> packets = done.record.packets;
  std::sort(packets.begin(), packets.end(),
            [](const PacketRecord& a, const PacketRecord& b) { return a.end < b.end; });
  Time first = kNever;
  for (const PacketRecord& packet : packets) first = std::min(first, packet.start);
  double bytes = 0;
  for (const PacketRecord& packet : packets) {
    if (packet.semaphore) continue;
    bytes += packet.bytes;
    ASSERT_LE(bytes, 20e9 * static_cast<double>(packet.end - first) / kFsPerSecond + 1);
  }
}

TEST(DmaRate, ACopyWithinHbmCountsTwice) {
  Machine machine = round_machine();
  machine.config.chip.hbm.bandwidth_per_stack = 20e9;
  ProgramBuilder program;
  program.on(Engine::Sync).add(test::dma(test::hbm_rows(512, 65'536), test::hbm_rows(512, 65'536)));
  const Outcome done = run(program.trace(), machine);
  EXPECT_LE(rate(done), 10e9);
  EXPECT_GE(rate(done), 0.98 * 10e9);
}

TEST(DmaRate, ATransposeIsSlowerByItsEfficiency) {
  isa::DmaTranspose transpose;
  transpose.src = test::hbm_rows(128, 65'536);
  transpose.dst = test::sbuf_rows(128, 65'536);
  const double plain = rate(
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 65'536)).trace(), round_machine()));
  const double transposed =
      rate(run(ProgramBuilder().on(Engine::Sync).add(transpose).trace(), round_machine()));
  EXPECT_NEAR(transposed / plain, 0.5, 0.005);
}

TEST(DmaRate, AnAddingDmaIsSlowerByItsSourcesAndEfficiency) {
  isa::DmaCompute add;
  add.src = test::hbm_rows(128, 65'536);
  add.dst = test::sbuf_rows(128, 65'536);
  add.sources = 2;
  add.mode = kHardware;
  const double plain = rate(
      run(ProgramBuilder().on(Engine::Sync).add(dma_read(128, 65'536)).trace(), round_machine()));
  const double added =
      rate(run(ProgramBuilder().on(Engine::Sync).add(add).trace(), round_machine()));
  EXPECT_NEAR(added / plain, 0.25, 0.005);  // two sources at half the rate
}

}  // namespace
}  // namespace trn::sim
