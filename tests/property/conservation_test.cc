// What holds for every run: nothing is lost, nothing is counted twice, causes come before effects.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/support/random_program.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::Outcome;
using test::RandomProgram;
using test::RandomProgramMaker;
using test::run;
using test::shipped_machine;

constexpr std::uint32_t kSeeds = 40;

/// Calls `check(program, outcome)` for random programs on the shipped machine.
template <class Check>
void for_each_run(Check&& check) {
  const Machine machine = shipped_machine();
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomProgram program = RandomProgramMaker(seed).make();
    check(program, run(program.trace, machine));
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Conservation, EveryInstructionAndTransferIsExecutedOnce) {
  for_each_run([](const RandomProgram& program, const Outcome& done) {
    EXPECT_EQ(done.result.instructions, program.instructions);
    EXPECT_EQ(done.record.instructions.size(), program.instructions);
    EXPECT_EQ(done.result.dma.transfers, program.transfers);
    EXPECT_EQ(done.record.transfers.size(), program.transfers);
    EXPECT_EQ(done.result.dma.transfer_bytes, program.transfer_bytes);
  });
}

TEST(Conservation, EveryByteOfADmaIsInAPacket) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    std::map<std::uint64_t, std::uint64_t> moved;
    for (const PacketRecord& packet : done.record.packets)
      if (!packet.semaphore) moved[packet.transfer] += packet.bytes;
    for (const TransferRecord& transfer : done.record.transfers)
      EXPECT_EQ(moved[transfer.transfer], transfer.bytes) << transfer.transfer;
  });
}

TEST(Conservation, ActiveStalledAndIdleAddUpToTheLength) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    for (Engine engine : isa::kAllEngines) {
      const EngineStats& stats = done.result.engines[isa::index(engine)];
      EXPECT_EQ(
          std::accumulate(stats.stalled.begin(), stats.stalled.end(), stats.active + stats.idle),
          done.result.length)
          << name_of(engine);
      EXPECT_GE(stats.active, 0);
      EXPECT_GE(stats.idle, 0);
    }
  });
}

TEST(Conservation, StallsOfInstructionsAddUpToThoseOfTheirEngine) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    std::array<std::array<Time, kStallReasons>, isa::kEngines> sums{};
    for (const InstructionRecord& record : done.record.instructions)
      sums[isa::index(record.engine)][static_cast<std::size_t>(record.reason)] += record.stall;
    for (Engine engine : isa::kAllEngines)
      EXPECT_EQ(sums[isa::index(engine)], done.result.engines[isa::index(engine)].stalled)
          << name_of(engine);
  });
}

TEST(Conservation, TheCriticalPathAddsUpToTheLength) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    EXPECT_EQ(done.result.critical_path.total(), done.result.length);
    for (Time part : done.result.critical_path.spent) EXPECT_GE(part, 0);
  });
}

TEST(Conservation, TheLengthIsTheEndOfWhatEndsLast) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    Time last = 0;
    for (const InstructionRecord& record : done.record.instructions)
      last = std::max(last, record.end);
    for (const TransferRecord& transfer : done.record.transfers)
      last = std::max(last, transfer.complete);
    EXPECT_EQ(done.result.length, last);
  });
}

/// The records of one engine in the order of execution.
std::vector<InstructionRecord> in_order(const Outcome& done, Engine engine) {
  std::vector<InstructionRecord> records;
  for (const InstructionRecord& record : done.record.instructions)
    if (record.engine == engine) records.push_back(record);
  std::sort(records.begin(), records.end(),
            [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
  return records;
}

TEST(Causality, AnInstructionStartsWhenItIsReadyAndEndsAfterwards) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    for (Engine engine : isa::kAllEngines) {
      Time ready = 0;
      std::uint64_t sequence = 0;
      for (const InstructionRecord& record : in_order(done, engine)) {
        EXPECT_EQ(record.sequence, sequence++);
        EXPECT_GE(record.start, record.ready);
        EXPECT_GE(record.end, record.start);
        EXPECT_GE(record.ready, ready) << "the sequencer goes in order";
        ready = record.ready;
      }
    }
  });
}

TEST(Causality, DataInstructionsOfAnEngineStartInOrder) {
  for_each_run([](const RandomProgram& program, const Outcome& done) {
    for (Engine engine : isa::kAllEngines) {
      const auto& stream = program.trace.code[0].streams[isa::index(engine)];
      Time start = 0;
      for (const InstructionRecord& record : in_order(done, engine)) {
        const isa::CostClass kind = isa::cost_class(stream[record.index]);
        if (kind == isa::CostClass::Control || kind == isa::CostClass::DmaTrigger) continue;
        EXPECT_GE(record.start, start);
        start = record.start;
      }
    }
  });
}

TEST(Causality, AWaitingInstructionStartsAHandOverAfterItsSemaphore) {
  const Machine machine = shipped_machine();
  const HandOverTable table = hand_over_table(machine.config.chip.semaphores);
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const RandomProgram program = RandomProgramMaker(seed).make();
    const Outcome done = run(program.trace, machine);
    // When the semaphore of each engine reaches 1, 2, 3 ...: its updates in the order of their
    // ends.
    std::array<std::vector<Time>, isa::kEngines> reached;
    for (const InstructionRecord& record : done.record.instructions) {
      const isa::Instr& instr =
          program.trace.code[0].streams[isa::index(record.engine)][record.index];
      if (instr.sync.update.present()) reached[instr.sync.update.semaphore].push_back(record.end);
    }
    for (auto& times : reached) std::sort(times.begin(), times.end());
    for (const InstructionRecord& record : done.record.instructions) {
      const isa::Instr& instr =
          program.trace.code[0].streams[isa::index(record.engine)][record.index];
      const isa::Wait& wait = instr.sync.wait;
      if (!wait.present() || wait.semaphore >= isa::kEngines) continue;
      const isa::CostClass cost = isa::cost_class(instr);
      const WaiterKind kind = cost == isa::CostClass::Control      ? WaiterKind::Control
                              : cost == isa::CostClass::DmaTrigger ? WaiterKind::Trigger
                                                                   : WaiterKind::Compute;
      const Time written =
          reached[wait.semaphore].at(static_cast<std::size_t>(wait.value.base - 1));
      EXPECT_GE(
          record.ready,
          written +
              table[wait.semaphore][isa::index(record.engine)][static_cast<std::size_t>(kind)]);
    }
  }
}

TEST(Causality, ADmaEngineMovesOnePacketAtATime) {
  Machine machine = shipped_machine();
  machine.config.chip.dma.packet_overlap = 0;
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const Outcome done = run(RandomProgramMaker(seed).make().trace, machine);
    std::map<std::uint32_t, Time> busy_until;
    for (const PacketRecord& packet : done.record.packets) {
      EXPECT_GE(packet.start, busy_until[packet.dma_engine]);
      busy_until[packet.dma_engine] = packet.end;
    }
  }
}

TEST(Causality, TransfersGoFromTriggerToPacketsToCompletion) {
  for_each_run([](const RandomProgram&, const Outcome& done) {
    for (const TransferRecord& transfer : done.record.transfers) {
      EXPECT_GT(transfer.first_packet, transfer.trigger);
      EXPECT_GT(transfer.last_packet, transfer.first_packet);
      EXPECT_GT(transfer.complete, transfer.last_packet);
    }
  });
}

TEST(Causality, DmaMovesNoMoreThanItsEnginesAndTheStackCan) {
  const Machine machine = shipped_machine();
  const DmaConfig& dma = machine.config.chip.dma;
  const double peak =
      std::min(dma.engines * dma.bandwidth_per_engine, machine.config.chip.hbm.bandwidth_per_stack);
  for_each_run([&](const RandomProgram&, const Outcome& done) {
    if (done.record.packets.empty()) return;
    double bytes = 0;
    for (const PacketRecord& packet : done.record.packets) bytes += packet.bytes;
    const double seconds = static_cast<double>(done.result.dma.active) / kFsPerSecond;
    EXPECT_LE(bytes / seconds, peak);
  });
}

}  // namespace
}  // namespace trn::sim
