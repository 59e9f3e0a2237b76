#pragma once

#include <cstddef>
#include <vector>

#include "isa/frontend/builder.h"
#include "isa/instructions.h"

namespace trn::isa::frontend {

/// How long things take, roughly and in nanoseconds: for choices between engines and orders, never
/// for results, which are the simulator's. Read off docs/sources.md#profiles-pipeline,
/// #profiles-tensor and #profiles-dma, and rounded.

/// A DMA trigger holds its engine, whoever writes the descriptors.
inline constexpr double kRoughTriggerNs = 580;
/// From there until the data is complete, beside what the bytes take.
inline constexpr double kRoughLatencyNs = 2000;
/// Sixteen engines, software descriptors.
inline constexpr double kRoughTransferBytesPerNs = 300;

/// How long an instruction holds its engine, or a transfer the DMA engines.
double rough_ns(const Op& op, Engine engine);

/// Who works on a node, to add up such times: its engine, or all DMA engines as one, kEngines.
std::size_t worker(const Node& node);

/// When each node of a program would be done if it waited only for its engine and for what it
/// reads.
std::vector<double> rough_ends(const Builder& builder);

}  // namespace trn::isa::frontend
