#pragma once

#include "isa/instructions.h"

namespace trn::isa::frontend {

/// How long things take, roughly and in nanoseconds: for choices between engines and orders, never
/// for results, which are the simulator's. Read off docs/sources.md#profiles-pipeline,
/// #profiles-tensor and #profiles-dma, and rounded.

/// A DMA trigger holds its engine, whoever writes the descriptors.
inline constexpr double kRoughTriggerNs = 580;
/// From there until the data is complete, beside what the bytes take.
inline constexpr double kRoughLatencyNs = 2000;

/// How long an instruction holds its engine, or a transfer the DMA engines.
double rough_ns(const Op& op, Engine engine);

}  // namespace trn::isa::frontend
