#pragma once

#include <cstdint>
#include <vector>

#include "isa/frontend/builder.h"
#include "isa/frontend/hazards.h"
#include "isa/frontend/place.h"

namespace trn::isa::frontend {

/// All nodes in an order in which they can begin, engine by engine the order of its stream: no node
/// comes before one that it depends on. Instructions of an engine keep the kernel's order; a DMA
/// trigger may come later, or earlier by up to Options::dma_lookahead instructions, when by a rough
/// estimate it would hold up others or be held up. So loads are not stuck behind a store that
/// waits.
std::vector<std::uint32_t> schedule(const Builder& builder, const Dependences& dependences);

/// Puts the nodes of a program whose tiles share memory by lifetime into an order in which a
/// product, copy, sum or fill whose operands are there, by a rough estimate, comes before up to
/// Options::lookahead instructions of its engine whose operands are not. A program with fences,
/// device loops or registers stays as it is.
void interleave(Builder& builder, const Placement& placement);

}  // namespace trn::isa::frontend
