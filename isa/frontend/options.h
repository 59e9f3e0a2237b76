#pragma once

#include <cstdint>
#include <tuple>

#include "isa/base/describe.h"

namespace trn::isa::frontend {

/// What the builder decides for a kernel, each choice imitating AWS's compiler as far as it can be
/// seen from outside. Reasons and sources: docs/concepts/scheduling.md.
struct Options {
  std::uint32_t sbuf_partition_bytes = 212984;
  std::uint32_t psum_partition_bytes = 16384;
  std::uint32_t psum_bank_bytes = 2048;
  std::uint32_t prefetch_tiles = 8;
  std::uint32_t prefetch_kept_tiles = 2;
  std::uint32_t load_ahead_ns = 44000;
  std::uint32_t cut_load_bytes = 2048;
  std::uint32_t dma_lookahead = 6;
  std::uint32_t lookahead = 512;
  std::uint32_t store_slack_ns = 4000;
  bool inputs_by_software = true;
  bool hardware_descriptors = true;
  bool waits_at_weights = true;
  bool relaxed_ordering = true;
  bool tables_ahead = true;
  bool sink_memsets = true;
  std::uint32_t reuse_loads_bytes = 0;
  std::uint32_t reuse_within_bytes = 43008;
  std::uint32_t merge_loads_bytes = 0;
  std::uint32_t merge_tiles = 16;
  std::uint32_t merge_far_bytes = 32768;
  std::uint32_t merge_stationary_tiles = 8;
  bool merge_stores = false;
  std::uint32_t reuse_element_bytes = 2;
  bool spill = true;
  std::uint32_t spill_ahead_ns = 20000;
  bool roll = true;
  std::uint32_t semaphore_max = 65535;

  static constexpr auto fields() {
    return std::tuple{
        Field{"sbuf_partition_bytes", &Options::sbuf_partition_bytes, "bytes",
              "of a partition of SBUF that a kernel may use"},
        Field{"psum_partition_bytes", &Options::psum_partition_bytes, "bytes",
              "of a partition of PSUM"},
        Field{"psum_bank_bytes", &Options::psum_bank_bytes, "bytes", "of a PSUM bank"},
        Field{"prefetch_tiles", &Options::prefetch_tiles, "",
              "places beyond those in use that tiles of one line rotate through, in SBUF"},
        Field{"prefetch_kept_tiles", &Options::prefetch_kept_tiles, "",
              "the same, at most, for tiles that sums in PSUM read one after another"},
        Field{"cut_load_bytes", &Options::cut_load_bytes, "bytes",
              "of a row, to which loads are cut when tiles have no second place; 0: never"},
        Field{"load_ahead_ns", &Options::load_ahead_ns, "ns",
              "that loads go ahead of their place when tiles share memory by lifetime; 0: none"},
        Field{"dma_lookahead", &Options::dma_lookahead, "",
              "instructions that a DMA trigger whose data is ready may overtake; 0: none"},
        Field{
            "lookahead", &Options::lookahead, "",
            "instructions of its engine that a matmul, copy, sum or fill whose operands are there "
            "may overtake when tiles share memory by lifetime; 0: none"},
        Field{"store_slack_ns", &Options::store_slack_ns, "ns",
              "a store by software descriptors goes so much later than its data is expected"},
        Field{"inputs_by_software", &Options::inputs_by_software, "",
              "kernel arguments go through GpSimd's software descriptors"},
        Field{"hardware_descriptors", &Options::hardware_descriptors, "",
              "the core generates descriptors in hardware; if not, they are written at load"},
        Field{"waits_at_weights", &Options::waits_at_weights, "",
              "a matmul waits for all its operands before its weights are loaded"},
        Field{"relaxed_ordering", &Options::relaxed_ordering, "",
              "each engine begins with SET_ORDERING_MODE relaxed"},
        Field{"tables_ahead", &Options::tables_ahead, "",
              "activation tables are loaded as soon as the last use of the one before is over"},
        Field{"sink_memsets", &Options::sink_memsets, "",
              "a MEMSET that begins a sum goes right before the first instruction that adds to it"},
        Field{
            "reuse_loads_bytes", &Options::reuse_loads_bytes, "bytes",
            "of a partition, within which a load of what a tile still holds is left out; 0: none"},
        Field{
            "reuse_within_bytes", &Options::reuse_within_bytes, "bytes",
            "of a partition, loaded since a tile of 4-byte elements, within which another load of "
            "the same is left out, where one tile of its line lives at a time; 0: none"},
        Field{"merge_loads_bytes", &Options::merge_loads_bytes, "bytes",
              "of a partition, up to which loads of tiles behind each other become one; 0: none"},
        Field{"merge_tiles", &Options::merge_tiles, "",
              "in a row of HBM, up to which loads are joined whatever is loaded in all; when no "
              "longer row is joined, its loads stay in device loops of so many"},
        Field{"merge_stationary_tiles", &Options::merge_stationary_tiles, "",
              "of a stationary operand in a row of HBM, from which on loads are joined"},
        Field{"merge_far_bytes", &Options::merge_far_bytes, "bytes",
              "of a partition, all tiles together, up to which longer rows are joined, too"},
        Field{"reuse_element_bytes", &Options::reuse_element_bytes, "bytes",
              "of the largest elements whose loads are left out or joined"},
        Field{"merge_stores", &Options::merge_stores, "",
              "stores of sums of up to merge_tiles products beside each other in HBM become one "
              "transfer, as loads do"},
        Field{"spill", &Options::spill, "", "what does not fit into SBUF goes to HBM and back"},
        Field{
            "spill_ahead_ns", &Options::spill_ahead_ns, "ns",
            "once tiles have to spill, as many bytes as are worked on in the time to come, up to a "
            "quarter of SBUF, are kept free by saving tiles early; 0: none"},
        Field{"roll", &Options::roll, "", "iterations that are alike become loops"},
        Field{"semaphore_max", &Options::semaphore_max, "", "largest value of a semaphore"}};
  }
};

}  // namespace trn::isa::frontend
