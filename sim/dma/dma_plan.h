#pragma once

#include <cstdint>
#include <vector>

#include "isa/instructions.h"
#include "sim/core/time.h"
#include "sim/dma/dma_config.h"

namespace trn::sim {

/// How a DMA instruction becomes packets on the engines. Source: docs/sources.md#profiles-dma.
struct DmaPlan {
  isa::DescriptorMode mode = isa::DescriptorMode::HardwareDge;
  std::uint32_t queue = 0;
  isa::DmaCompletion completion{};
  bool read_hbm = false;
  bool write_hbm = false;
  bool read = false;             ///< counts as HBM to SBUF: its source is HBM
  bool spill = false;            ///< moves a tile for lack of SBUF
  bool two_dimensional = false;  ///< more than one dimension has several elements
  std::uint64_t elements = 0;    ///< of the whole pattern
  std::uint64_t src_bytes = 0;
  std::uint64_t dst_bytes = 0;
  std::uint32_t packet_elements = 1;
  std::uint32_t element_bytes = 0;   ///< moved, the larger side
  Time fixed_time = 0;               ///< of each packet
  Time element_time = 0;             ///< of each element in it
  std::vector<std::uint32_t> share;  ///< elements of each engine; engines without any are left out

  /// Of a packet with that many elements, from its start to the next one's.
  [[nodiscard]] Time packet_time(std::uint32_t count) const {
    return fixed_time + element_time * count;
  }
  /// Packets of an engine with that many elements.
  [[nodiscard]] std::uint32_t packets(std::uint32_t elements_of_engine) const {
    return (elements_of_engine + packet_elements - 1) / packet_elements;
  }
};

/// Pure; for DMA_DIRECT2D, DMA_TRANSPOSE and DMA_COMPUTE. The patterns are valid.
DmaPlan plan_dma(const isa::Op& op, const DmaConfig& config);

}  // namespace trn::sim
