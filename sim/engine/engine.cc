#include "sim/engine/engine.h"

#include <fmt/format.h>

#include <algorithm>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn::sim {
namespace {

/// Instructions handed over ahead of time in one go; more would only grow the semaphores' logs.
constexpr std::uint64_t kBurst = 32;
/// LOOPs and END_LOOPs one after the other without an instruction between, before it is a mistake:
/// time does not pass in them, so that no time limit ends them.
constexpr std::uint64_t kEmptyRepeats = 1'000'000;
/// Results that may still be on their way when a reader comes; more are always semaphore-ordered.
constexpr std::size_t kPendingWrites = 8;

StallReason waiting_on(std::uint8_t source) {
  return static_cast<StallReason>(static_cast<std::uint8_t>(StallReason::WaitTensor) + source);
}

std::uint64_t stall_key(StallReason reason, std::uint32_t location) {
  return static_cast<std::uint64_t>(reason) << 32U | location;
}

WaiterKind waiter_kind(const Uop& uop) {
  switch (uop.kind) {
    case UopKind::Control:
      return WaiterKind::Control;
    case UopKind::Dma:
      return WaiterKind::Trigger;
    default:
      return WaiterKind::Compute;
  }
}

bool compare(isa::CompareOp op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case isa::CompareOp::Always:
      return true;
    case isa::CompareOp::Equal:
      return a == b;
    case isa::CompareOp::NotEqual:
      return a != b;
    case isa::CompareOp::Less:
      return a < b;
    case isa::CompareOp::LessEqual:
      return a <= b;
    case isa::CompareOp::Greater:
      return a > b;
    case isa::CompareOp::GreaterEqual:
      return a >= b;
  }
  return false;
}

std::int32_t calculate(isa::RegisterOp op, std::int32_t left, std::int32_t right) {
  const auto a = static_cast<std::uint32_t>(left);
  const auto b = static_cast<std::uint32_t>(right);
  switch (op) {
    case isa::RegisterOp::Add:
      return static_cast<std::int32_t>(a + b);
    case isa::RegisterOp::Subtract:
      return static_cast<std::int32_t>(a - b);
    case isa::RegisterOp::Multiply:
      return static_cast<std::int32_t>(a * b);
    case isa::RegisterOp::And:
      return static_cast<std::int32_t>(a & b);
    case isa::RegisterOp::Or:
      return static_cast<std::int32_t>(a | b);
    case isa::RegisterOp::Xor:
      return static_cast<std::int32_t>(a ^ b);
    case isa::RegisterOp::ShiftLeft:
      return static_cast<std::int32_t>(a << (b & 31U));
    case isa::RegisterOp::ShiftRight:
      return static_cast<std::int32_t>(a >> (b & 31U));
    case isa::RegisterOp::Minimum:
      return std::min(left, right);
    case isa::RegisterOp::Maximum:
      return std::max(left, right);
  }
  return 0;
}

}  // namespace

Engine::Engine(const sc_core::sc_module_name& name, isa::Engine id, const EngineConfig& config,
               EngineContext& context, InstructionSource source, std::int64_t rank)
    : sc_core::sc_module(name),
      id_(id),
      resource_(static_cast<Resource>(id)),
      context_(context),
      source_(std::move(source)),
      queue_depth_(config.queue_depth),
      dispatch_time_(from_ns(config.dispatch)),
      refill_time_(from_ns(config.refill)),
      read_after_write_(from_ns(config.read_after_write)),
      asks_(id != isa::Engine::GpSimd),
      sequencer_time_(from_ns(config.launch_delay)),
      queue_(config.queue_depth),
      starts_(config.queue_depth),
      writes_(kPendingWrites) {
  registers_.rank = rank;
  sequencer_path_.add(Resource::Launch, sequencer_time_);
  SC_METHOD(step);
  dont_initialize();
  sensitive << sequencer_wake_.event() << engine_wake_.event();
  if (source_.size() > 0) sequencer_wake_.at(sequencer_time_);
}

bool Engine::finished() const { return pc_ >= source_.size() && queue_.empty(); }

void Engine::step() {
  context_.simulation.guard([this] {
    ++activations_;
    const Time now = Simulation::now();
    sequencer_wake_.expire(now);
    engine_wake_.expire(now);
    bool progress = true;
    while (progress) {
      progress = run_sequencer();
      if (run_engine()) progress = true;
    }
  });
}

bool Engine::run_sequencer() {
  const Time now = Simulation::now();
  bool progress = false;
  for (std::uint64_t burst = 0; find_instruction(); ++burst) {
    if (sequencer_time_ > context_.time_limit)
      throw InputError(describe(pc_), fmt::format("still running after {:.3f} s of simulated time",
                                                  to_ns(sequencer_time_) * 1e-9));
    Block& block = source_.block(pc_);
    const Uop& uop = InstructionSource::uop(block, pc_);
    const bool control_uop = in_sequencer(uop.kind);
    if (control_uop) advance_sequencer(control_time_);
    if (sequencer_time_ > now && (control_uop || burst >= kBurst)) {
      sequencer_wake_.move(sequencer_time_);
      break;
    }
    if (uop.drain || uop.descriptors) {
      if (!queue_.empty()) break;  // run_engine() comes back here
      const Time over = uop.drain ? last_end_ : data_end_;
      advance_sequencer(over);
      if (over > now) {
        sequencer_wake_.move(over);
        break;
      }
    }
    if (!ready_) {
      const Readiness ready = wait_for(uop);
      if (ready.at == kNever) break;
      ready_ = ready;
    }
    if (control_uop) {
      control(uop, *ready_);
    } else {
      if (dispatched_ - started_ >= queue_depth_) break;  // ditto
      dispatch(uop, block, *ready_);
    }
    ready_.reset();
    progress = true;
  }
  return progress;
}

/// Goes through LOOPs and END_LOOPs, which take no time, to an instruction; false at the end.
bool Engine::find_instruction() {
  for (std::uint64_t repeats = 0; pc_ < source_.size(); ++repeats) {
    const Uop& uop = InstructionSource::uop(source_.block(pc_), pc_);
    if (uop.kind != UopKind::Repeat) return true;
    if (repeats == kEmptyRepeats)
      throw InputError(describe(pc_),
                       "expected loops to have instructions, found none to run in "
                       "the last million iterations");
    execute_control(*uop.instr);
  }
  return false;
}

void Engine::advance_sequencer(Time to) {
  if (to <= sequencer_time_) return;
  sequencer_path_.add(resource_, to - sequencer_time_);
  sequencer_time_ = to;
}

Engine::Readiness Engine::wait_for(const Uop& uop) {
  if (uop.wait_semaphore == isa::kNoSemaphore)
    return {sequencer_time_, StallReason::None, sequencer_path_, {}, 0};
  if (!waiting_)
    wait_ = {uop.wait_semaphore,
             uop.wait_condition,
             static_cast<std::uint8_t>(id_),
             waiter_kind(uop),
             uop.wait_moves ? registers_.evaluate(uop.instr->sync.wait.value) : uop.wait_value,
             sequencer_time_};
  const Satisfied satisfied = context_.semaphores.evaluate(wait_);
  if (satisfied.at > Simulation::now()) {
    if (!waiting_) context_.semaphores.remember(wait_, sequencer_wake_);
    waiting_ = true;
    if (satisfied.at != kNever) sequencer_wake_.move(satisfied.at);
    return {};
  }
  if (waiting_) context_.semaphores.forget(wait_, sequencer_wake_);
  waiting_ = false;
  if (satisfied.by == nullptr)
    return {satisfied.at, StallReason::None, sequencer_path_, {}, satisfied.met};
  CriticalPath caused = satisfied.by->path;
  caused.add(Resource::Semaphore, satisfied.at - satisfied.by->at);
  const Release release{
      satisfied.by->source == kDmaSource ? Release::Writer::Dma : Release::Writer::Engine,
      satisfied.by->engine, satisfied.by->order, satisfied.by->at};
  return {satisfied.at, waiting_on(satisfied.by->source), caused, release, satisfied.met};
}

void Engine::dispatch(const Uop& uop, Block& block, const Readiness& ready) {
  sequencer_time_ = ready.at;
  sequencer_path_ = ready.path;
  if (dispatched_ >= queue_depth_) advance_sequencer(start_of(dispatched_ - queue_depth_));
  Queued queued;
  queued.uop = &uop;
  queued.block = &block;
  queued.sequence = executed_++;
  queued.ready = {sequencer_time_, ready.reason, sequencer_path_, ready.release, 0};
  if (uop.moves) {
    for (std::size_t i = 0; i < uop.footprint_count; ++i) {
      const isa::Affine* address = uop.footprints[i].address;
      if (address != nullptr) queued.shift[i] = registers_.evaluate(*address) - address->base;
    }
    check_bounds(uop, queued);
  }
  queued.psum_banks = uop.moves ? psum_banks(uop, queued) : uop.psum_banks;
  ++block.pins;
  queue_.push_back(queued);
  ++dispatched_;
  ++pc_;
  const bool refill = refilling_ && ready.reason == StallReason::None;
  refilling_ = false;
  advance_sequencer(sequencer_time_ + (refill ? refill_time_ : dispatch_time_) + context_.fetch);
}

void Engine::control(const Uop& uop, const Readiness& ready) {
  const isa::Instr& instr = *uop.instr;
  const std::uint64_t sequence = executed_++;
  sequencer_time_ = ready.at;
  sequencer_path_ = ready.path;
  Time end = 0;
  Time next = 0;
  if (uop.kind == UopKind::Dma) {
    const TriggerTiming timing = context_.dma->trigger(
        {id_, uop.index, sequence, uop.plan, ready.met, ready.at, ready.path});
    advance_sequencer(timing.start);
    end = timing.end;
    next = timing.next_data;
    control_time_ = timing.next_control;
  } else {
    end = sequencer_time_ + uop.cost.latency;
    next = sequencer_time_ + uop.cost.issue;
    refilling_ = uop.semaphore;
  }
  account({uop, sequence, ready, sequencer_time_, end, ready.reason}, sequencer_path_);
  CriticalPath path = sequencer_path_;
  path.add(resource_, end - sequencer_time_);
  update(uop, sequence, end, path);
  execute_control(instr);
  advance_sequencer(next + context_.fetch);
}

/// What an instruction of the sequencer does beside taking time; moves pc_ on.
void Engine::execute_control(const isa::Instr& instr) {
  std::int64_t to = 1;  // relative to this instruction
  if (const auto* jump = std::get_if<isa::CompareBranch>(&instr.op)) {
    if (compare(jump->op, registers_.read(jump->a), registers_.read(jump->b))) to = jump->target;
  } else if (const auto* loop = std::get_if<isa::Loop>(&instr.op)) {
    registers_.value[loop->counter] = 0;
    if (registers_.read(loop->count) <= 0) to = loop->end + 1;
  } else if (const auto* end = std::get_if<isa::EndLoop>(&instr.op)) {
    std::int32_t& counter = registers_.value[end->counter];
    counter = calculate(isa::RegisterOp::Add, counter, 1);
    if (counter < registers_.read(end->count)) to = end->begin + 1;
  } else if (const auto* move = std::get_if<isa::RegisterMove>(&instr.op)) {
    registers_.value[move->dst] = registers_.read_word(move->src);
  } else if (const auto* alu = std::get_if<isa::RegisterAlu>(&instr.op)) {
    registers_.value[alu->dst] =
        calculate(alu->op, registers_.read_word(alu->a), registers_.read_word(alu->b));
  } else if (const auto* load = std::get_if<isa::TensorLoad>(&instr.op)) {
    for (std::size_t i = 0; i < load->count; ++i)
      registers_.value[(load->dst + i) % isa::kRegisters] = load->value;
  } else if (const auto* rank = std::get_if<isa::RankId>(&instr.op)) {
    registers_.value[rank->dst] = static_cast<std::int32_t>(registers_.rank);
  } else if (const auto* mode = std::get_if<isa::SetOrderingMode>(&instr.op)) {
    strict_ = mode->mode == isa::OrderingMode::Strict;
  } else if (const auto* clear = std::get_if<isa::SemaphoreRangeClear>(&instr.op)) {
    SemaphoreWrite write = semaphore_write(pc_, executed_ - 1, sequencer_time_, sequencer_path_);
    write.kind = isa::UpdateKind::Write;
    write.value = 0;
    for (std::uint32_t id = clear->first; id <= clear->last; ++id)
      context_.semaphores.post(static_cast<isa::SemaphoreId>(id), write);
  }
  const auto target = static_cast<std::int64_t>(pc_) + to;
  if (target < 0 || target > static_cast<std::int64_t>(source_.size()))
    throw InputError(describe(pc_),
                     fmt::format("branches to instruction {} of {}", target, source_.size()));
  pc_ = static_cast<std::uint64_t>(target);
}

bool Engine::run_engine() {
  const Time now = Simulation::now();
  bool progress = false;
  while (!queue_.empty()) {
    Queued& head = queue_.front();
    const Uop& uop = *head.uop;
    const Readiness& ready = head.ready;
    const Time free = earliest(uop);
    Time start = std::max(ready.at, free);
    StallReason reason = ready.at > free ? ready.reason : StallReason::None;
    if (const Time safe = hazard(head, start); safe > start) {
      start = safe;
      reason = StallReason::ReadAfterWrite;
    }
    if (uop.shared) {
      if (start > now) {
        engine_wake_.move(start);
        break;
      }
      if (head.announced == kNotAnnounced) {
        head.announced = sc_core::sc_delta_count();
        context_.shared.announce(id_, head.psum_banks, start, start + uop.cost.occupancy);
        if (asks_) {
          engine_wake_.soon();
          break;
        }
      } else if (head.announced == sc_core::sc_delta_count()) {
        break;  // others may still announce
      }
    }
    const bool waited = start > free;
    CriticalPath path = ready.path;
    if (ready.at < start) {
      path = engine_path_;
      path.add(resource_, start - engine_path_at_);
    }
    const Execution execution = execute(uop, start, waited);
    account({uop, head.sequence, ready, start, execution.end, reason, head.shift.data()}, path);
    data_end_ = std::max(data_end_, execution.end);
    engine_path_ = path;
    engine_path_at_ = start;
    const Time updated = uop.update_at_read ? execution.read : execution.end;
    path.add(resource_, updated - start);
    update(uop, head.sequence, updated, path);
    note_accesses(head, execution.end);
    starts_.push_back(start);
    ++started_;
    --head.block->pins;
    queue_.pop_front();
    progress = true;
  }
  return progress;
}

/// When the engine's queued instruction `number` started; it is among the last queue_depth_.
Time Engine::start_of(std::uint64_t number) const {
  return starts_[static_cast<std::size_t>(number - (started_ - starts_.size()))];
}

/// When the results that the instruction reads are there; `start` or earlier when it need not wait.
Time Engine::hazard(const Queued& queued, Time start) {
  if (strict_) return last_end_;
  while (!writes_.empty() && writes_.front().end + read_after_write_ <= start) writes_.pop_front();
  Time until = 0;
  for (const Pending& write : writes_) {
    for (std::size_t i = 0; i < queued.uop->footprint_count; ++i) {
      const Footprint& access = queued.uop->footprints[i];
      const std::int64_t shift = queued.shift[i];
      if (access.write || access.memory != write.memory || access.low + shift >= write.high ||
          access.high + shift <= write.low)
        continue;
      if (access.first_partition < write.first_partition + write.partitions &&
          write.first_partition < access.first_partition + access.partitions)
        until = std::max(until, write.end + read_after_write_);
    }
  }
  return until;
}

void Engine::note_accesses(const Queued& queued, Time end) {
  for (std::size_t i = 0; i < queued.uop->footprint_count; ++i) {
    const Footprint& access = queued.uop->footprints[i];
    const std::int64_t high = access.high + queued.shift[i];
    std::uint64_t& peak = access.memory == isa::Memory::Psum ? psum_peak_ : sbuf_peak_;
    peak = std::max(peak, static_cast<std::uint64_t>(high));
    if (!access.write) continue;
    writes_.push_back({access.memory, access.first_partition, access.partitions,
                       access.low + queued.shift[i], high, end});
  }
}

std::uint8_t Engine::psum_banks(const Uop& uop, const Queued& queued) const {
  std::uint8_t mask = 0;
  const auto bank_bytes = static_cast<std::int64_t>(context_.psum_bank_bytes);
  const auto banks = static_cast<std::int64_t>(context_.psum_partition_bytes) / bank_bytes;
  for (std::size_t i = 0; i < uop.footprint_count; ++i) {
    const Footprint& access = uop.footprints[i];
    if (access.memory != isa::Memory::Psum) continue;
    const std::uint8_t own =
        banks_of(access.low + queued.shift[i], access.high + queued.shift[i], bank_bytes, banks);
    mask = static_cast<std::uint8_t>(mask | own);
  }
  return mask;
}

void Engine::check_bounds(const Uop& uop, const Queued& queued) {
  for (std::size_t i = 0; i < uop.footprint_count; ++i) {
    const Footprint& access = uop.footprints[i];
    const std::uint64_t limit = access.memory == isa::Memory::Psum ? context_.psum_partition_bytes
                                                                   : context_.sbuf_partition_bytes;
    const std::int64_t low = access.low + queued.shift[i];
    const std::int64_t high = access.high + queued.shift[i];
    if (low < 0 || high > static_cast<std::int64_t>(limit))
      throw InputError(describe(uop.index),
                       fmt::format("accesses bytes {} to {} of a partition of {}, which has {}",
                                   low, high, name_of(access.memory), limit));
  }
}

SemaphoreWrite Engine::semaphore_write(std::uint64_t index, std::uint64_t sequence, Time at,
                                       const CriticalPath& path) const {
  SemaphoreWrite write;
  write.at = at;
  write.order = sequence;
  write.source = static_cast<std::uint8_t>(id_);
  write.engine = id_;
  write.index = index;
  write.path = path;
  return write;
}

void Engine::update(const Uop& uop, std::uint64_t sequence, Time at, const CriticalPath& path) {
  if (uop.update_semaphore == isa::kNoSemaphore) return;
  SemaphoreWrite write = semaphore_write(uop.index, sequence, at, path);
  write.value = uop.update_value;
  write.kind = uop.update_kind;
  context_.semaphores.post(uop.update_semaphore, write);
}

void Engine::account(const Executed& done, const CriticalPath& path_to_start) {
  const Uop& uop = done.uop;
  const Time start = done.start;
  const Time end = done.end;
  StallReason reason = done.reason;
  ++stats_.instructions;
  if (!in_sequencer(uop.kind)) ++stats_.data_instructions;
  stats_.instruction_time += end - start;
  stats_.sbuf_read_bytes += uop.sbuf_read;
  stats_.sbuf_write_bytes += uop.sbuf_write;
  stats_.psum_read_bytes += uop.psum_read;
  stats_.psum_write_bytes += uop.psum_write;
  if (uop.psum_read != 0 && uop.sbuf_write != 0) {
    ++stats_.psum_read_sbuf_write_count;
    stats_.psum_read_sbuf_write_bytes += uop.psum_read;
  }
  const Time stall = std::max<Time>(0, start - cursor_);
  if (stall > 0) {
    if (reason == StallReason::None) reason = first_ ? StallReason::Launch : StallReason::Sequencer;
    stats_.stalled[static_cast<std::size_t>(reason)] += stall;
    const std::uint64_t key = stall_key(reason, uop.location);
    if (last_stall_ == nullptr || last_stall_->first != key)
      last_stall_ = &*stalls_.try_emplace(key).first;
    last_stall_->second += stall;
    cursor_ = start;
  }
  // As the profiler has it, waiting for a semaphore is no activity.
  if (!uop.semaphore && end > cursor_) {
    stats_.active += end - cursor_;
    cursor_ = end;
  }
  first_ = false;
  if (end > last_end_) {
    last_end_ = end;
    last_path_ = path_to_start;
    last_path_.add(resource_, end - start);
  }
  if (context_.observer != nullptr)
    context_.observer->on_instruction({id_, uop.index, done.sequence, uop.instr, done.ready.at,
                                       start, end, stall > 0 ? reason : StallReason::None, stall,
                                       done.ready.release, &uop, done.shift,
                                       done.shift == nullptr ? &registers_ : nullptr});
}

EngineStats Engine::stats(Time length) const {
  EngineStats stats = stats_;
  TRN_CHECK(length >= cursor_, "{} was active after the kernel's end", name());
  stats.idle = length - cursor_;
  return stats;
}

std::vector<StallAt> Engine::stalls() const {
  std::vector<StallAt> stalls;
  stalls.reserve(stalls_.size());
  for (const auto& [key, time] : stalls_)
    stalls.push_back({id_, static_cast<StallReason>(key >> 32U),
                      static_cast<std::uint32_t>(key & 0xffffffffU), time});
  std::sort(stalls.begin(), stalls.end(), [](const StallAt& a, const StallAt& b) {
    return std::tuple(a.reason, a.location) < std::tuple(b.reason, b.location);
  });
  return stalls;
}

std::string Engine::describe(std::uint64_t index) {
  std::string text = fmt::format("{} #{}", name(), index);
  if (index >= source_.size()) return text;
  const isa::Instr& instr = *InstructionSource::uop(source_.block(index), index).instr;
  text += fmt::format(" {}", isa::mnemonic(instr));
  const isa::SourceLocation& at = context_.info.locations.at(instr.at.location);
  if (!at.file.empty()) text += fmt::format(" ({}:{})", at.file, at.line);
  return text;
}

std::string Engine::waiting_for() {
  std::string where = describe(pc_);
  if (!waiting_) return where;
  const bool event = wait_.semaphore >= isa::kFirstEvent;
  return fmt::format("{}: {} {} {} {}, is {}", where, event ? "event" : "semaphore",
                     event ? wait_.semaphore - isa::kFirstEvent : wait_.semaphore,
                     name_of(wait_.condition), wait_.value,
                     context_.semaphores.last_value(wait_.semaphore));
}

}  // namespace trn::sim
