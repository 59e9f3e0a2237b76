#include "sim/dma/dma_system.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "isa/base/check.h"

namespace trn::sim {
namespace {

constexpr std::uint32_t kTurns = 7;  // neighbours are apart in the order of restarts

}  // namespace

DmaSystem::DmaSystem(const sc_core::sc_module_name& name, const DmaConfig& config,
                     Simulation& simulation, Semaphores& semaphores, HbmStack& hbm,
                     Observer* observer)
    : sc_core::sc_module(name),
      config_(config),
      simulation_(simulation),
      semaphores_(semaphores),
      observer_(observer),
      ready_(config.engines),
      rings_(isa::kEngines * config.queues) {
  for (std::uint32_t i = 0; i < config.engines; ++i) {
    engines_.push_back(std::make_unique<DmaEngine>(fmt::format("engine{}", i).c_str(), i, config_,
                                                   simulation, *this));
    engines_.back()->socket.bind(hbm.socket);
  }
  SC_METHOD(grant);
  dont_initialize();
  sensitive << grant_.event();
}

void DmaSystem::on_ready(std::uint32_t engine) {
  ready_[engine] = true;
  grant_.soon();
}

void DmaSystem::grant() {
  simulation_.guard([this] {
    grant_.expire(Simulation::now());
    for (std::uint32_t i = 0; i < engines_.size(); ++i) {
      if (!ready_[i]) continue;
      ready_[i] = false;
      engines_[i]->start_packet();
    }
  });
}

const DmaDirectionConfig& DmaSystem::direction(const DmaPlan& plan) const {
  switch (plan.mode) {
    case isa::DescriptorMode::SoftwareDge:
      return plan.read ? config_.software.read : config_.software.write;
    case isa::DescriptorMode::Static:
      return plan.read ? config_.fixed.read : config_.fixed.write;
    default:
      return plan.read ? config_.hardware.read : config_.hardware.write;
  }
}

TriggerTiming DmaSystem::hardware_timing(const HardwareDgeConfig& dge, const DmaTrigger& trigger) {
  Generator& generator = generators_[isa::index(trigger.engine)];
  double hold = dge.trigger_hold;
  if (trigger.plan->two_dimensional) hold += dge.trigger_two_dimensional;
  const bool close =
      generator.last_end != -kNever && trigger.ready - generator.last_end < from_ns(dge.close_gap);
  if (close) hold += dge.trigger_close;
  const Time end = trigger.ready + from_ns(hold);
  generator.last_end = end;
  return {trigger.ready, end, end + from_ns(dge.gap_to_data), end + from_ns(dge.gap_to_control)};
}

/// GpSimd writes the descriptors of a trigger before it; those of one that comes right behind
/// another, while that one is on its way, as soon as what it waits for is there.
TriggerTiming DmaSystem::software_timing(const DmaTrigger& trigger) {
  const SoftwareDgeConfig& dge = config_.software;
  Generator& generator = generators_[isa::index(trigger.engine)];
  const Time elements = from_ns(dge.per_element * static_cast<double>(trigger.plan->elements));
  const bool follows = generator.used && generator.last_sequence + 1 == trigger.sequence;
  Time prepare = trigger.ready + (generator.used ? 0 : from_ns(dge.first_use));
  if (generator.used) {
    const Time next = generator.prepared + from_ns(dge.interval) + elements;
    prepare = std::max(follows ? trigger.met : prepare, next);
  }
  generator.in_a_row = follows ? std::min(generator.in_a_row + 1, dge.hold_behind_most) : 0;
  generator.prepared = prepare;
  generator.last_sequence = trigger.sequence;
  generator.used = true;
  const Time start = std::max(trigger.ready, prepare + from_ns(dge.latency) + elements);
  const double hold =
      trigger.plan->read ? dge.hold + dge.hold_behind * generator.in_a_row : dge.hold_write;
  const Time end = start + from_ns(hold);
  return {start, end, end, end};
}

TriggerTiming DmaSystem::trigger(const DmaTrigger& trigger) {
  const DmaPlan& plan = *trigger.plan;
  const bool software = plan.mode == isa::DescriptorMode::SoftwareDge;
  const bool fixed = plan.mode == isa::DescriptorMode::Static;
  const TriggerTiming timing =
      software ? software_timing(trigger)
               : hardware_timing(fixed ? config_.fixed : config_.hardware, trigger);

  auto made = std::make_unique<Transfer>();
  Transfer& transfer = *made;
  transfer.number = trigger.sequence * isa::kEngines + isa::index(trigger.engine);
  transfer.plan = plan;
  transfer.engine = trigger.engine;
  transfer.index = trigger.index;
  transfer.sequence = trigger.sequence;
  transfer.trigger = timing.start;
  transfer.nominal_start = (software ? timing.start : timing.end) + from_ns(direction(plan).start);
  transfer.path = trigger.path;
  transfer.path.add(static_cast<Resource>(trigger.engine), timing.start - trigger.ready);
  transfer.engines_left = static_cast<std::uint32_t>(plan.share.size());
  transfers_.emplace(transfer.number, std::move(made));

  ++stats_.transfers;
  stats_.transfer_bytes += std::max(plan.src_bytes, plan.dst_bytes);
  (plan.read_hbm ? stats_.hbm_read_bytes : stats_.sbuf_read_bytes) += plan.src_bytes;
  (plan.write_hbm ? stats_.hbm_write_bytes : stats_.sbuf_write_bytes) += plan.dst_bytes;
  if (plan.spill && plan.write_hbm) stats_.spill_save_bytes += plan.dst_bytes;
  if (plan.spill && plan.read_hbm) stats_.spill_reload_bytes += plan.src_bytes;
  queues_used_ |= 1U << plan.queue;

  // What has to know when the transfer before it ends waits for it, and so does what follows.
  Ring& ring = ring_of(transfer);
  if (ring.last != nullptr && (restart_of(plan) != nullptr || !ring.last->released)) {
    ring.last->behind = &transfer;
  } else {
    release(transfer, ring);
  }
  ring.last = &transfer;
  return timing;
}

DmaSystem::Ring& DmaSystem::ring_of(const Transfer& transfer) {
  return rings_[isa::index(transfer.engine) * config_.queues + transfer.plan.queue];
}

const HardwareDgeConfig* DmaSystem::restart_of(const DmaPlan& plan) const {
  if (!plan.read || plan.mode == isa::DescriptorMode::SoftwareDge) return nullptr;
  const HardwareDgeConfig& dge =
      plan.mode == isa::DescriptorMode::Static ? config_.fixed : config_.hardware;
  return dge.read_restart > 0 ? &dge : nullptr;
}

void DmaSystem::release(Transfer& transfer, Ring& ring) {
  const DmaPlan& plan = transfer.plan;
  Time start = std::max(transfer.nominal_start, ring.open);
  ring.open = start;
  Time apart = from_ns(direction(plan).stagger);
  std::uint32_t turn = 0;  // of the first engine
  std::uint32_t step = 1;
  const HardwareDgeConfig* restart = restart_of(plan);
  if (restart != nullptr && start < ring.ended + from_ns(restart->read_restart)) {
    start = ring.ended + from_ns(restart->read_restart);
    ring.open = start + from_ns(restart->read_spread);
    apart = from_ns(restart->read_spread / config_.engines);
    turn = ring.restarts++;
    step = kTurns;
  }
  transfer.released = true;
  for (std::size_t i = 0; i < plan.share.size(); ++i, turn += step)
    engines_[i]->enqueue(transfer, plan.share[i], start + turn % config_.engines * apart);
}

void DmaSystem::on_packet(Transfer& transfer, const PacketRecord& packet) {
  transfer.first_packet = std::min(transfer.first_packet, packet.start);
  DmaModeStats& mode = stats_.modes[static_cast<std::size_t>(packet.mode)];
  ++mode.packets;
  mode.bytes += packet.bytes;
  const Time end = packet.end + from_ns(config_.packet_overlap);
  stats_.packet_time += end - packet.start;
  active_.add(packet.start, end);
  mode_active_[static_cast<std::size_t>(packet.mode)].add(packet.start, end);
  if (observer_ != nullptr) {
    PacketRecord record = packet;
    record.end = end;
    const DmaPlan& plan = transfer.plan;
    const double share = packet.bytes / (static_cast<double>(plan.elements) * plan.element_bytes);
    if (packet.read_hbm) record.hbm_read_bytes = share * static_cast<double>(plan.src_bytes);
    if (packet.write_hbm) record.hbm_write_bytes = share * static_cast<double>(plan.dst_bytes);
    observer_->on_packet(record);
  }
}

void DmaSystem::on_engine_done(Transfer& transfer, Time at) {
  const DmaPlan& plan = transfer.plan;
  const auto engines = static_cast<std::uint32_t>(plan.share.size());
  const std::uint32_t done = engines - transfer.engines_left;
  --transfer.engines_left;
  transfer.last_packet = std::max(transfer.last_packet, at);

  SemaphoreWrite write;
  write.at = at + from_ns(direction(plan).completion);
  write.path = transfer.path;
  write.path.add(Resource::DmaLatency, transfer.nominal_start - transfer.trigger);
  write.path.add(Resource::Dma, at - transfer.nominal_start);
  write.path.add(Resource::DmaLatency, write.at - at);
  if (plan.completion.increment != 0) {
    write.order = transfer.number;
    write.kind = isa::UpdateKind::Add;
    // The increments of all engines add up to the instruction's.
    write.value = plan.completion.increment * (done + 1) / engines -
                  plan.completion.increment * done / engines;
    write.source = kDmaSource;
    write.engine = transfer.engine;
    write.index = transfer.index;
    if (write.value != 0) semaphores_.post(plan.completion.semaphore, write);
  }
  transfer.complete = std::max(transfer.complete, write.at);
  if (write.at > last_completion_) {
    last_completion_ = write.at;
    last_path_ = write.path;
  }
  if (transfer.engines_left == 0) finish(transfer);
}

void DmaSystem::finish(Transfer& transfer) {
  stats_.transfer_time += transfer.complete - transfer.first_packet;
  if (observer_ != nullptr)
    observer_->on_transfer({transfer.number, transfer.engine, transfer.index,
                            std::max(transfer.plan.src_bytes, transfer.plan.dst_bytes),
                            transfer.trigger, transfer.first_packet, transfer.last_packet,
                            transfer.complete, transfer.sequence});
  Ring& ring = ring_of(transfer);
  ring.ended = std::max(ring.ended, transfer.last_packet);
  if (transfer.behind != nullptr) release(*transfer.behind, ring);
  if (ring.last == &transfer) ring.last = nullptr;
  transfers_.erase(transfer.number);
}

DmaStats DmaSystem::stats() const {
  DmaStats stats = stats_;
  stats.active = active_.total;
  stats.queues = static_cast<std::uint64_t>(std::popcount(queues_used_));
  for (std::size_t i = 0; i < mode_active_.size(); ++i)
    stats.modes[i].active = mode_active_[i].total;
  return stats;
}

}  // namespace trn::sim
