#include "sim/core/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "isa/base/error.h"

namespace trn::sim {
namespace {

using isa::Access;

constexpr float kArrayRows = 128;  // docs/sources.md#a1-tensor

/// Whether an operand of that name is a result.
constexpr bool is_written(std::string_view name, isa::CostClass cost_class) {
  if (name == "dst" || name == "result") return true;
  return name == "indices" &&
         (cost_class == isa::CostClass::TopK || cost_class == isa::CostClass::MatchReplace8);
}

/// The profiler counts the bytes of one partition. Source: docs/sources.md#profiler-metrics.
void count_bytes(const Access& access, bool write, Uop& out) {
  const auto bytes = static_cast<std::uint32_t>(access.elements() * isa::bytes_of(access.dtype));
  if (access.memory == isa::Memory::Psum) {
    (write ? out.psum_write : out.psum_read) += bytes;
  } else {
    (write ? out.sbuf_write : out.sbuf_read) += bytes;
  }
}

void add_footprint(const Access& access, bool write, Uop& out) {
  if (!access.present()) return;
  count_bytes(access, write, out);
  if (out.footprint_count == Uop::kMaxFootprints) return;
  Footprint& footprint = out.footprints[out.footprint_count++];
  std::int64_t low = 0;
  std::int64_t high = 0;
  for (std::size_t i = 0; i < access.dims; ++i) {
    const std::int64_t reach =
        static_cast<std::int64_t>(access.free[i].stride) * (access.free[i].size - std::int64_t{1});
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t width = isa::bytes_of(access.dtype);
  footprint.memory = access.memory;
  footprint.write = write;
  footprint.first_partition = access.start_partition;
  footprint.partitions = access.partitions;
  footprint.low = access.offset.base + low * width;
  footprint.high = access.offset.base + (high + 1) * width;
  footprint.address = access.offset.constant() ? nullptr : &access.offset;
  if (footprint.address != nullptr) out.moves = true;
}

template <class T>
void add_footprints(const T& instr, Uop& out) {
  isa::for_each_operand<T>([&](const auto& operand) {
    const auto& value = instr.*operand.member;
    using Value = std::remove_cvref_t<decltype(value)>;
    if constexpr (std::is_same_v<Value, Access>) {
      add_footprint(value, is_written(operand.name, T::kCost), out);
    } else if constexpr (std::is_same_v<Value, isa::ScalarOperand>) {
      if (value.kind == isa::ScalarOperand::Kind::Pointer) add_footprint(value.pointer, false, out);
    }
  });
}

/// A mask of the banks that the instruction's accesses to PSUM may touch.
std::uint8_t psum_banks(const Uop& uop, const PsumConfig& psum) {
  std::uint8_t mask = 0;
  for (std::size_t i = 0; i < uop.footprint_count; ++i) {
    const Footprint& footprint = uop.footprints[i];
    if (footprint.memory != isa::Memory::Psum) continue;
    if (footprint.address != nullptr) return 0xff;  // any
    const std::uint8_t own = banks_of(footprint.low, footprint.high,
                                      static_cast<std::int64_t>(psum.bank_size), psum.banks);
    mask = static_cast<std::uint8_t>(mask | own);
  }
  return mask;
}

/// LOOP and END_LOOP that only say how a trace is written. One that waits or updates is executed.
/// Source: docs/adr/0001-trace-format.md.
bool is_repeat(const isa::Instr& instr) {
  return (std::holds_alternative<isa::Loop>(instr.op) ||
          std::holds_alternative<isa::EndLoop>(instr.op)) &&
         !instr.sync.wait.present() && !instr.sync.update.present();
}

/// In bf16 equivalents: fp32 four times (two passes of two cycles a column), fp8 half.
/// Source: docs/sources.md#profiler-metrics.
double adjustment(const isa::Matmul& matmul) {
  const isa::Dtype dtype = matmul.src.dtype;
  if (dtype == isa::Dtype::Fp32) return 4;
  return isa::bytes_of(dtype) == 1 ? 0.5 : 1;
}

}  // namespace

Lowering::Lowering(const ChipConfig& chip, const CostTable& costs)
    : chip_(chip),
      costs_(costs),
      clock_hz_{chip.tensor.clock, chip.vector.clock, chip.scalar.clock, chip.gpsimd.clock,
                chip.sync.clock} {}

PipelineCost Lowering::pipeline_cost(const Cost& cost, isa::Engine engine) const {
  const double hz = clock_hz_[isa::index(engine)];
  return {from_cycles(cost.ii_cycles, hz), from_cycles(cost.occupancy_cycles, hz),
          from_cycles(cost.latency_cycles, hz), from_cycles(cost.restart_cycles, hz)};
}

const Lowering::Known& Lowering::known_cost(isa::CostClass cost_class, isa::Engine engine,
                                            const CostFeatures& features) {
  Known& known = last_[static_cast<std::size_t>(cost_class) * isa::kEngines + isa::index(engine)];
  if (known.valid && known.features == features) return known;
  const Cost cost = costs_.lookup(cost_class, engine, features);
  known.features = features;
  known.valid = true;
  known.ii_cycles = cost.ii_cycles;
  known.cost = pipeline_cost(cost, engine);
  known.contended = known.cost;
  if (engine == isa::Engine::Vector) {
    CostFeatures contended = features;
    contended.contended = Flag::Yes;
    known.contended = pipeline_cost(costs_.lookup(cost_class, engine, contended), engine);
  }
  return known;
}

void Lowering::lower(const isa::Instr& instr, isa::Engine engine, std::uint64_t index, Uop& out,
                     std::vector<std::unique_ptr<DmaPlan>>& plans) {
  out = Uop{};
  out.instr = &instr;
  out.index = index;
  out.location = instr.at.location;
  out.wait_semaphore = instr.sync.wait.semaphore;
  out.wait_condition = instr.sync.wait.condition;
  out.wait_value = instr.sync.wait.value.base;
  out.wait_moves = !instr.sync.wait.value.constant();
  out.update_semaphore = instr.sync.update.semaphore;
  out.update_kind = instr.sync.update.kind;
  out.update_value = instr.sync.update.value;
  out.update_at_read = instr.sync.update.when == isa::UpdateWhen::OperandsRead;
  const isa::CostClass cost_class = isa::cost_class(instr);
  if (cost_class == isa::CostClass::Collective)
    throw InputError(fmt::format("{} #{} {}", name_of(engine), index, isa::mnemonic(instr)),
                     "runs use one core so far: there is nobody to exchange data with");
  if (cost_class == isa::CostClass::DmaTrigger) {
    out.kind = UopKind::Dma;
    plans.push_back(std::make_unique<DmaPlan>(plan_dma(instr.op, chip_.dma)));
    out.plan = plans.back().get();
    out.descriptors = out.plan->mode == isa::DescriptorMode::SoftwareDge;
    return;
  }
  if (is_repeat(instr)) {
    out.kind = UopKind::Repeat;
    return;
  }
  const Known& cost = known_cost(cost_class, engine, features_of(instr.op));
  out.cost = cost.cost;
  if (cost_class == isa::CostClass::Control) {
    if (out.cost.issue <= 0)
      throw InputError("chip.costs.rows.control",
                       fmt::format("expected {} to take time on {}, or a loop of it never ends",
                                   isa::mnemonic(instr), name_of(engine)));
    out.semaphore = std::holds_alternative<isa::EventSemaphore>(instr.op);
    out.drain = std::holds_alternative<isa::Drain>(instr.op);
    return;
  }

  std::visit([&](const auto& op) { add_footprints(op, out); }, instr.op);
  switch (cost_class) {
    case isa::CostClass::LoadWeights:
      out.kind = UopKind::LoadWeights;
      out.cycles = cost.ii_cycles;
      return;
    case isa::CostClass::Matmul: {
      const auto& matmul = std::get<isa::Matmul>(instr.op);
      out.kind = UopKind::Matmul;
      out.cycles = cost.ii_cycles;
      out.transpose = matmul.transpose;
      out.array_share = std::min(1.0F, static_cast<float>(matmul.src.partitions) / kArrayRows);
      out.flops = 2.0 * matmul.src.partitions * matmul.dst.partitions *
                  static_cast<double>(matmul.src.elements());
      out.adjusted_flops = out.flops * adjustment(matmul);
      return;
    }
    case isa::CostClass::LoadTable:
      out.kind = UopKind::LoadTable;
      return;
    default:
      out.kind = UopKind::Compute;
  }
  if (const auto* activate = std::get_if<isa::Activate>(&instr.op)) {
    out.activate = true;
    const auto set = chip_.scalar.function_sets.find(std::string(name_of(activate->function)));
    if (set != chip_.scalar.function_sets.end())
      out.function_set = static_cast<std::uint8_t>(set->second);
  }
  out.contended = cost.contended;
  out.psum_banks = psum_banks(out, chip_.psum);
  const bool contends = out.contended.occupancy != out.cost.occupancy;
  out.shared = out.psum_banks != 0 || contends || engine == isa::Engine::GpSimd;
}

PipelineCost Lowering::table_load() {
  const isa::Instr load{{}, {}, isa::ActTableLoad{}};
  return pipeline_cost(costs_.lookup(load, isa::Engine::Scalar), isa::Engine::Scalar);
}

std::vector<std::string> Lowering::assumed_costs() const {
  std::vector<std::string> rows;
  for (const CostRowInfo* row : costs_.assumed_rows_used())
    rows.push_back(
        fmt::format("{} on {} ({})", name_of(row->cost_class), name_of(row->engine), row->place));
  return rows;
}

}  // namespace trn::sim
