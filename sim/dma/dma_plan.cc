#include "sim/dma/dma_plan.h"

#include <algorithm>

#include "isa/base/check.h"

namespace trn::sim {
namespace {

/// Partitions that a pattern in SBUF reaches into, from its first one.
std::uint64_t partitions_of(const isa::DmaSide& side) {
  std::uint64_t partitions = 1;
  for (std::size_t i = 0; i < side.dims; ++i) {
    const std::int64_t stride = std::abs(side.pattern[i].stride_bytes);
    if (stride >= isa::kSbufPartitionStride)
      partitions += static_cast<std::uint64_t>(stride / isa::kSbufPartitionStride) *
                    (side.pattern[i].size - 1);
  }
  return partitions;
}

/// Elements that follow each other without a gap within one partition.
std::uint32_t contiguous_elements(const isa::DmaSide& side) {
  const bool joined = side.dims > 0 && side.pattern[0].stride_bytes == side.element_bytes;
  return joined ? side.pattern[0].size : 1;
}

/// The SBUF side decides which engines take part; between HBM regions all do.
std::uint32_t engines_of(const isa::DmaSide& src, const isa::DmaSide& dst,
                         const DmaConfig& config) {
  const isa::DmaSide* sbuf = dst.memory == isa::Memory::Sbuf   ? &dst
                             : src.memory == isa::Memory::Sbuf ? &src
                                                               : nullptr;
  if (sbuf == nullptr) return config.engines;
  const std::uint64_t per_engine = config.partitions_per_engine;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(
      (partitions_of(*sbuf) + per_engine - 1) / per_engine, 1, config.engines));
}

bool spans_two_dimensions(const isa::DmaSide& side) {
  return std::count_if(side.pattern.begin(), side.pattern.begin() + side.dims,
                       [](const isa::DmaDim& dim) { return dim.size > 1; }) > 1;
}

struct Sides {
  const isa::DmaSide& src;
  const isa::DmaSide& dst;
  isa::DescriptorMode mode;
  std::uint8_t queue;
  isa::DmaCompletion completion;
  double slowdown;  // of bytes, against a plain copy
  bool regroups;    // elements are gathered on the way, whatever the pattern
};

DmaPlan plan(const Sides& op, const DmaConfig& config) {
  const bool software = op.mode == isa::DescriptorMode::SoftwareDge;
  const bool fixed = op.mode == isa::DescriptorMode::Static;
  const HardwareDgeConfig& hardware = fixed ? config.fixed : config.hardware;

  DmaPlan plan;
  plan.mode = op.mode;
  plan.queue = op.queue;
  plan.completion = op.completion;
  plan.read_hbm = op.src.memory == isa::Memory::Hbm;
  plan.write_hbm = op.dst.memory == isa::Memory::Hbm;
  plan.read = plan.read_hbm;
  plan.src_bytes = op.src.bytes();
  plan.dst_bytes = op.dst.bytes();
  plan.two_dimensional = spans_two_dimensions(op.src) || spans_two_dimensions(op.dst);

  // The side with the finer pattern cuts the bytes; a cast keeps elements and changes their size.
  const bool cast = op.src.dtype != op.dst.dtype;
  const isa::DmaSide& finer = op.src.elements() >= op.dst.elements() ? op.src : op.dst;
  plan.elements = finer.elements();
  plan.element_bytes = finer.element_bytes;
  if (cast) {
    const std::uint32_t values = finer.element_bytes / isa::bytes_of(finer.dtype);
    plan.element_bytes =
        values * std::max(isa::bytes_of(op.src.dtype), isa::bytes_of(op.dst.dtype));
  }
  const std::uint32_t engines = engines_of(op.src, op.dst, config);
  const auto per_engine = static_cast<std::uint32_t>((plan.elements + engines - 1) / engines);

  const DmaDirectionConfig& direction =
      software ? (plan.read ? config.software.read : config.software.write)
               : (plan.read ? hardware.read : hardware.write);
  const double rate = config.bandwidth_per_engine * direction.efficiency / op.slowdown;
  double fixed_ns = config.packet_overhead;
  const std::uint64_t packet_size = software ? config.software.packet_size : hardware.packet_size;
  if (software && cast) {
    fixed_ns += config.software.cast_overhead;
  } else if (software) {
    plan.packet_elements = static_cast<std::uint32_t>(
        std::clamp<std::uint64_t>(packet_size / plan.element_bytes, 1, std::max(1U, per_engine)));
    if (!plan.read) {
      const std::uint32_t row = contiguous_elements(op.src);
      const std::uint32_t rows = (plan.packet_elements + row - 1) / row;
      fixed_ns += config.software.row_overhead * (rows - 1);
    }
  }
  if (op.regroups) {
    const std::uint64_t bytes = plan.elements * plan.element_bytes;
    plan.elements = std::max<std::uint64_t>(engines, (bytes + packet_size - 1) / packet_size);
    plan.element_bytes = static_cast<std::uint32_t>((bytes + plan.elements - 1) / plan.elements);
    plan.packet_elements = 1;
  } else if (plan.element_bytes > packet_size) {  // long runs are cut
    const auto pieces =
        static_cast<std::uint32_t>((plan.element_bytes + packet_size - 1) / packet_size);
    plan.elements *= pieces;
    plan.element_bytes = (plan.element_bytes + pieces - 1) / pieces;
  }
  plan.fixed_time = from_ns(fixed_ns);
  plan.element_time = from_bytes(plan.element_bytes, rate);

  plan.share.resize(std::min<std::uint64_t>(engines, plan.elements));
  const std::uint64_t base = plan.elements / plan.share.size();
  const std::uint64_t rest = plan.elements % plan.share.size();
  for (std::size_t i = 0; i < plan.share.size(); ++i)
    plan.share[i] = static_cast<std::uint32_t>(base + (i < rest ? 1 : 0));
  return plan;
}

}  // namespace

DmaPlan plan_dma(const isa::Op& op, const DmaConfig& config) {
  if (const auto* copy = std::get_if<isa::DmaDirect2d>(&op)) {
    DmaPlan made =
        plan({copy->src, copy->dst, copy->mode, copy->queue, copy->completion, 1, false}, config);
    made.spill = copy->spill;
    return made;
  }
  if (const auto* transpose = std::get_if<isa::DmaTranspose>(&op)) {
    const double efficiency = transpose->src.memory == isa::Memory::Hbm
                                  ? config.transpose_efficiency
                                  : config.transpose_on_chip_efficiency;
    return plan({transpose->src, transpose->dst, transpose->mode, transpose->queue,
                 transpose->completion, 1 / efficiency, true},
                config);
  }
  const auto* compute = std::get_if<isa::DmaCompute>(&op);
  TRN_CHECK(compute != nullptr, "no DMA instruction");
  return plan({compute->src, compute->dst, compute->mode, compute->queue, compute->completion,
               compute->sources / config.compute_efficiency, false},
              config);
}

}  // namespace trn::sim
