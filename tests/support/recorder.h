#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "isa/base/check.h"
#include "sim/core/observer.h"
#include "sim/machine/run_core.h"
#include "tests/support/machines.h"

namespace trn::test {

/// Keeps all that a run tells.
class Recorder : public sim::Observer {
 public:
  void on_instruction(const sim::InstructionRecord& record) override {
    instructions.push_back(record);
    instructions.back().instr = nullptr;  // valid during the call
  }
  void on_packet(const sim::PacketRecord& record) override { packets.push_back(record); }
  void on_transfer(const sim::TransferRecord& record) override { transfers.push_back(record); }
  void on_clock(const sim::ClockRecord& record) override { clocks.push_back(record); }

  /// The `sequence`-th instruction that the engine executed, from 0.
  [[nodiscard]] const sim::InstructionRecord& at(isa::Engine engine, std::uint64_t sequence) const {
    for (const sim::InstructionRecord& record : instructions)
      if (record.engine == engine && record.sequence == sequence) return record;
    TRN_CHECK(false, "{} executed no instruction {}", name_of(engine), sequence);
  }
  [[nodiscard]] std::uint64_t executed(isa::Engine engine) const {
    return static_cast<std::uint64_t>(
        std::count_if(instructions.begin(), instructions.end(),
                      [&](const auto& record) { return record.engine == engine; }));
  }
  /// The packets of one transfer on one DMA engine, in order; the last one is its semaphore's.
  [[nodiscard]] std::vector<sim::PacketRecord> packets_of(std::size_t transfer,
                                                          std::uint32_t dma_engine) const {
    std::vector<sim::PacketRecord> found;
    for (const sim::PacketRecord& packet : packets)
      if (packet.transfer == transfers_by_trigger().at(transfer).transfer &&
          packet.dma_engine == dma_engine)
        found.push_back(packet);
    return found;
  }
  /// Transfers in the order of their triggers.
  [[nodiscard]] std::vector<sim::TransferRecord> transfers_by_trigger() const {
    std::vector<sim::TransferRecord> sorted = transfers;
    std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return std::pair(a.trigger, a.transfer) < std::pair(b.trigger, b.transfer);
    });
    return sorted;
  }

  std::vector<sim::InstructionRecord> instructions;
  std::vector<sim::PacketRecord> packets;
  std::vector<sim::TransferRecord> transfers;
  std::vector<sim::ClockRecord> clocks;
};

/// A run and all that it told.
struct Outcome {
  sim::CoreResult result;
  Recorder record;

  [[nodiscard]] sim::Time start(isa::Engine engine, std::uint64_t sequence = 0) const {
    return record.at(engine, sequence).start;
  }
  [[nodiscard]] sim::Time end(isa::Engine engine, std::uint64_t sequence = 0) const {
    return record.at(engine, sequence).end;
  }
};

inline Outcome run(const isa::Code& code, const sim::Machine& machine,
                   sim::CoreRunOptions options = {}) {
  Outcome done;
  options.observer = &done.record;
  done.result = run_core(code, machine.config, *machine.costs, options);
  return done;
}

/// Every number of a run in one text: equal runs give equal texts.
std::string digest(const Outcome& run);

}  // namespace trn::test
