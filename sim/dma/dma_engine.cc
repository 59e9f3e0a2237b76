#include "sim/dma/dma_engine.h"

#include <algorithm>
#include <utility>

#include "isa/base/check.h"

namespace trn::sim {
namespace {

constexpr std::uint32_t kSemaphoreBytes = 4;  // docs/sources.md#nki-dma

}  // namespace

DmaEngine::DmaEngine(const sc_core::sc_module_name& name, std::uint32_t number,
                     const DmaConfig& config, Simulation& simulation, DmaListener& listener)
    : sc_core::sc_module(name),
      number_(number),
      config_(config),
      overhead_(from_ns(config.packet_overhead)),
      simulation_(simulation),
      listener_(listener),
      rings_(config.queues) {
  SC_METHOD(step);
  dont_initialize();
  sensitive << wake_.event();
}

void DmaEngine::enqueue(Transfer& transfer, std::uint32_t elements, Time available) {
  const Job job{&transfer, available, elements};
  const auto later = [](const Job& a, const Job& b) {
    return std::pair(a.available, a.transfer->number) > std::pair(b.available, b.transfer->number);
  };
  arriving_.insert(std::upper_bound(arriving_.begin(), arriving_.end(), job, later), job);
  wake_.at(std::max(available, Simulation::now()));
}

Time DmaEngine::job_time(const Job& job, Time overhead) {
  const DmaPlan& plan = job.transfer->plan;
  const std::uint32_t packets = plan.packets(job.elements);
  return job.extra + packets * (plan.fixed_time + job.extra_each) +
         job.elements * plan.element_time + (job.semaphore_left ? overhead : 0);
}

Time DmaEngine::remaining(std::uint32_t queue, Time now) const {
  Time time = last_ring_ == queue && busy_until_ > now ? busy_until_ - now : 0;
  for (const Job& job : rings_[queue].jobs) time += job_time(job, overhead_);
  return time;
}

/// The descriptors of a job are in its ring. Reads by software descriptors may have to fetch them.
void DmaEngine::arrive(Job job, Time now) {
  const DmaPlan& plan = job.transfer->plan;
  Ring& ring = rings_[plan.queue];
  if (plan.mode == isa::DescriptorMode::SoftwareDge && plan.read) {
    const SoftwareDgeConfig& software = config_.software;
    const Time ahead = remaining(plan.queue, now);
    const bool covered =
        ring.fetched != -kNever && now - ring.fetched <= from_ns(software.fetch_covers);
    if (ahead == 0 && !covered) {
      ring.fetched = now;
      const Time fetch = from_ns(software.fetch);
      const Time each = from_ns(software.fetch_per_packet);
      const Time restart =
          ring.dry == -kNever ? 0 : ring.dry + from_ns(software.fetch_restart) - now;
      if (restart > fetch + each * plan.packets(job.elements)) {
        job.extra += restart;
      } else {
        job.extra += fetch;
        job.extra_each = each;
      }
    } else if (ahead > 0 && !covered && ahead < from_ns(software.fetch_hidden_by)) {
      job.extra += from_ns(software.fetch_restart);
    }
  }
  ring.jobs.push_back(job);
}

Time DmaEngine::access_hbm(bool write, std::uint32_t bytes, Time duration) {
  payload_.set_command(write ? tlm::TLM_WRITE_COMMAND : tlm::TLM_READ_COMMAND);
  payload_.set_address(0);
  payload_.set_data_ptr(nullptr);  // time only
  payload_.set_data_length(bytes);
  payload_.set_streaming_width(bytes);
  payload_.set_byte_enable_ptr(nullptr);
  payload_.set_dmi_allowed(false);
  payload_.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  sc_core::sc_time delay;
  socket->b_transport(payload_, delay);
  TRN_CHECK(payload_.is_response_ok(), "{}: HBM answers {}", name(),
            payload_.get_response_string());
  return std::max(duration, static_cast<Time>(delay.value()));
}

void DmaEngine::start_packet() {
  const Time now = Simulation::now();
  do {
    last_ring_ = static_cast<std::uint32_t>((last_ring_ + 1) % rings_.size());
  } while (rings_[last_ring_].jobs.empty());
  Ring& ring = rings_[last_ring_];
  Job& job = ring.jobs.front();
  Transfer& transfer = *job.transfer;
  const DmaPlan& plan = transfer.plan;
  const bool data = job.elements > 0;
  const std::uint32_t elements = std::min(job.elements, plan.packet_elements);
  const std::uint32_t bytes = data ? elements * plan.element_bytes : kSemaphoreBytes;
  Time duration = data ? plan.packet_time(elements) + job.extra + job.extra_each : overhead_;
  if (data && plan.read_hbm) duration = access_hbm(false, bytes, duration);
  if (data && plan.write_hbm) duration = access_hbm(true, bytes, duration);
  job.extra = 0;
  job.elements -= elements;
  busy_until_ = now + duration;
  ring.dry = busy_until_;
  listener_.on_packet(transfer, {number_, last_ring_, transfer.number, bytes, data && plan.read_hbm,
                                 data && plan.write_hbm, !data, plan.mode, now, busy_until_});
  wake_.at(busy_until_);
  if (data) return;
  ring.jobs.pop_front();
  listener_.on_engine_done(transfer, busy_until_);
}

void DmaEngine::step() {
  simulation_.guard([this] {
    const Time now = Simulation::now();
    wake_.expire(now);
    while (!arriving_.empty() && arriving_.back().available <= now) {
      const Job job = arriving_.back();
      arriving_.pop_back();
      arrive(job, now);
    }
    if (!arriving_.empty()) wake_.at(arriving_.back().available);
    if (busy_until_ > now) {
      wake_.at(busy_until_);
      return;
    }
    const bool work = std::any_of(rings_.begin(), rings_.end(),
                                  [](const Ring& ring) { return !ring.jobs.empty(); });
    if (work) listener_.on_ready(number_);
  });
}

}  // namespace trn::sim
