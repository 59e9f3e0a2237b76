#include "tests/support/machines.h"

#include <fmt/format.h>

#include "tests/support/paths.h"
#include "tests/support/recorder.h"

namespace trn::test {
namespace {

/// 10, 20 ... 60 ns by writer (the engines in order, then DMA), and 0 ... 4 ns by waiter; all
/// different, so that a mistaken pair shows.
sim::HandOverConfig hand_over(double base) {
  const auto row = [&](double writer) {
    const double first = base + 10 * writer;
    return sim::HandOverRow{first, first + 1, first + 2, first + 3, first + 4};
  };
  return {row(1), row(2), row(3), row(4), row(5), row(6)};
}

void set_engine(sim::EngineConfig& engine) {
  engine.clock = 1e9;
  engine.queue_depth = 8;
  engine.dispatch = 2;
  engine.refill = 20;
  engine.launch_delay = 100;
  engine.read_after_write = 30;
}

void set_tensor(sim::TensorEngineConfig& tensor) {
  tensor.cold_clock = 0.5e9;
  tensor.activity_window = 1000;
  tensor.activity_raise = 0.8;
  tensor.activity_lower = 0.4;
  tensor.clock_gating = false;
  tensor.background_load_delay = 2;
  tensor.weights_switch_cycles = 10;
  tensor.stream_gap_cycles = 5;
  tensor.load_report_busy = 50;
  tensor.load_report_busy_cycles = 80;
  tensor.load_report_idle = 90;
  tensor.load_report_idle_cycles = -10;
  tensor.load_to_stream = 60;
  tensor.load_to_stream_cycles = -20;
  tensor.load_to_stream_share = 0.5;
  tensor.load_early = 40;
  tensor.drain = 100;
  tensor.drain_cycles = 120;
}

void set_dma(sim::DmaConfig& dma) {
  dma.engines = 16;
  dma.queues = 16;
  dma.bandwidth_per_engine = 10e9;  // 0.1 ns a byte
  dma.partitions_per_engine = 8;
  dma.packet_overhead = 10;
  dma.packet_overlap = 0;
  dma.transpose_efficiency = 0.5;
  dma.transpose_on_chip_efficiency = 0.25;
  dma.compute_efficiency = 0.5;

  dma.hardware.trigger_hold = 500;
  dma.hardware.trigger_two_dimensional = 20;
  dma.hardware.trigger_close = 40;
  dma.hardware.close_gap = 100;
  dma.hardware.gap_to_data = 15;
  dma.hardware.gap_to_control = 50;
  dma.hardware.read_restart = 600;
  dma.hardware.read_spread = 160;
  dma.hardware.packet_size = 65536;
  dma.hardware.read = {0.5, 800, 16, 300};  // 0.2 ns a byte
  dma.hardware.write = {1, 700, 8, 400};

  dma.fixed = dma.hardware;
  dma.fixed.trigger_hold = 50;
  dma.fixed.trigger_two_dimensional = 0;
  dma.fixed.trigger_close = 0;
  dma.fixed.read_restart = 0;
  dma.fixed.read_spread = 0;
  dma.fixed.packet_size = 4096;

  dma.software.latency = 1000;
  dma.software.interval = 500;
  dma.software.per_element = 0.5;
  dma.software.first_use = 100;
  dma.software.hold = 30;
  dma.software.hold_write = 40;
  dma.software.hold_behind = 20;
  dma.software.hold_behind_most = 2;
  dma.software.packet_size = 4096;
  dma.software.cast_overhead = 2;
  dma.software.row_overhead = 45;
  dma.software.fetch = 120;
  dma.software.fetch_per_packet = 60;
  dma.software.fetch_restart = 700;
  dma.software.fetch_covers = 750;
  dma.software.fetch_hidden_by = 1000;
  dma.software.read = {1, 760, 20, 300};  // 0.1 ns a byte
  dma.software.write = {0.5, 640, 10, 350};
}

sim::CostRowConfig row_of(const RoundCost& cost) {
  sim::CostRowConfig row;
  if (!cost.when.empty()) row.when = cost.when;
  row.ii_cycles = cost.ii;
  row.occupancy_cycles = cost.occupancy;
  row.latency_cycles = cost.latency;
  row.restart_cycles = cost.restart;
  row.status = Status::Documented;
  row.source = "tests/support/machines.cc";
  return row;
}

}  // namespace

sim::Machine shipped_machine(const std::vector<Override>& overrides) {
  return sim::load_machine(source_path("configs/systems/trn2.3xlarge.yaml"), overrides,
                           source_path("configs"));
}

void set_cost(sim::Machine& machine, const std::string& cost_class,
              const std::vector<RoundCost>& rows) {
  auto& lists = machine.config.chip.costs.rows.at(cost_class).by_engine;
  lists.clear();
  auto& list = lists[sim::CostRowsConfig::kEveryEngine];
  for (const RoundCost& row : rows) list.push_back(row_of(row));
  rebuild_costs(machine);
}

void rebuild_costs(sim::Machine& machine) {
  machine.costs = std::make_shared<const sim::CostTable>(machine.config.chip.costs,
                                                         cost_context(machine.config.chip));
}

sim::Machine round_machine() {
  sim::Machine machine = shipped_machine();
  sim::ChipConfig& chip = machine.config.chip;
  for (sim::EngineConfig* engine :
       {static_cast<sim::EngineConfig*>(&chip.tensor), &chip.vector,
        static_cast<sim::EngineConfig*>(&chip.scalar), &chip.gpsimd, &chip.sync})
    set_engine(*engine);
  set_tensor(chip.tensor);
  chip.scalar.implicit_table_load = true;
  chip.scalar.function_sets = {{"EXP", 1}, {"LOG", 2}, {"TANH", 4}, {"SIGMOID", 4}};
  chip.semaphores.max_value = 100;
  chip.semaphores.to_compute = hand_over(0);
  chip.semaphores.to_control = hand_over(100);
  chip.semaphores.to_trigger = hand_over(200);
  chip.psum.bank_conflict = 1;
  chip.hbm.bandwidth_per_stack = 1e12;  // never in the way
  set_dma(chip.dma);
  chip.runtime.include = false;
  chip.fetch.model = false;
  machine.config.tensor.activity_window_phase = 0;
  chip.runtime.prologue = 0;  // the phase counts from the kernel's start

  // LDWEIGHTS and MATMUL keep their formulas, which are documented rates: one column a cycle, four
  // rows of weights a cycle, fp32 at a quarter.
  chip.costs.constants["min_ii"] = 64;
  set_cost(machine, "copy", {{"100", "100", "250", "10"}});
  set_cost(machine, "one_input", {{"100", "120", "250", "10"}});
  set_cost(machine, "two_input",
           {{"200", "200", "350", "10", "contended"}, {"100", "100", "250", "10"}});
  set_cost(machine, "activate", {{"100", "100", "250", "10"}});
  set_cost(machine, "load_table", {{"1000", "1000", "1000"}});
  set_cost(machine, "control",
           {{"20", "20", "5", "0", "opcode == EVENT_SEMAPHORE"},
            {"30", "30", "6", "0", "opcode == DRAIN"},
            {"max(10, count)", "max(10, count)", "max(10, count)", "0", "opcode == NOP"},
            {"50", "50", "40", "0", "opcode == EVENT_SEMAPHORE_RANGE_CLEAR"},
            {"10", "10", "10"}});
  return machine;
}

std::string digest(const Outcome& run) {
  const sim::CoreResult& result = run.result;
  std::string text = fmt::format("length {} instructions {} events {}\n", result.length,
                                 result.instructions, result.events);
  for (isa::Engine engine : isa::kAllEngines) {
    const sim::EngineStats& stats = result.engines[isa::index(engine)];
    text +=
        fmt::format("{}: {} {} {} {} {} [{}] {} {} {} {} {} {}\n", name_of(engine),
                    stats.instructions, stats.data_instructions, stats.instruction_time,
                    stats.active, stats.idle, fmt::join(stats.stalled, " "), stats.sbuf_read_bytes,
                    stats.sbuf_write_bytes, stats.psum_read_bytes, stats.psum_write_bytes,
                    stats.psum_read_sbuf_write_count, stats.psum_read_sbuf_write_bytes);
  }
  const sim::TensorStats& tensor = result.tensor;
  text += fmt::format("tensor {} {} {} {} {} {}\n", tensor.matmuls, tensor.hardware_flops,
                      tensor.transpose_flops, tensor.adjusted_hardware_flops,
                      tensor.adjusted_transpose_flops, tensor.warm);
  text += fmt::format("scalar {} {} {}\n", result.scalar.activates, result.scalar.activate_time,
                      result.scalar.table_loads);
  const sim::DmaStats& dma = result.dma;
  text +=
      fmt::format("dma {} {} {} {} {} {} {} {} {} {}\n", dma.transfers, dma.transfer_bytes,
                  dma.hbm_read_bytes, dma.hbm_write_bytes, dma.sbuf_read_bytes,
                  dma.sbuf_write_bytes, dma.packet_time, dma.transfer_time, dma.active, dma.queues);
  for (const sim::DmaModeStats& mode : dma.modes)
    text += fmt::format("mode {} {} {}\n", mode.packets, mode.bytes, mode.active);
  text += fmt::format("path {}\n", fmt::join(result.critical_path.spent, " "));
  for (const sim::StallAt& stall : result.stalls)
    text += fmt::format("stall {} {} {} {}\n", name_of(stall.engine), name_of(stall.reason),
                        stall.location, stall.time);
  text += fmt::format("peaks {} {}\n", result.sbuf.peak_bytes, result.psum.peak_bytes);

  const Recorder& record = run.record;
  for (isa::Engine engine : isa::kAllEngines) {
    std::vector<sim::InstructionRecord> mine;
    for (const sim::InstructionRecord& instruction : record.instructions)
      if (instruction.engine == engine) mine.push_back(instruction);
    std::sort(mine.begin(), mine.end(),
              [](const auto& a, const auto& b) { return a.sequence < b.sequence; });
    for (const sim::InstructionRecord& i : mine)
      text += fmt::format("{} {} #{}: {} {} {} {} {}\n", name_of(engine), i.sequence, i.index,
                          i.ready, i.start, i.end, name_of(i.reason), i.stall);
  }
  std::vector<std::string> lines;
  for (const sim::PacketRecord& p : record.packets)
    lines.push_back(fmt::format("packet {:012} {} {} {} {} {}\n", p.start, p.dma_engine, p.queue,
                                p.transfer, p.bytes, p.end));
  for (const sim::TransferRecord& t : record.transfers)
    lines.push_back(fmt::format("transfer {:012} {} {} {} {} {} {}\n", t.transfer,
                                name_of(t.engine), t.index, t.trigger, t.first_packet,
                                t.last_packet, t.complete));
  for (const sim::ClockRecord& clock : record.clocks)
    lines.push_back(fmt::format("clock {} {}\n", clock.at, clock.warm));
  std::sort(lines.begin(), lines.end());
  for (const std::string& line : lines) text += line;
  return text;
}

}  // namespace trn::test
