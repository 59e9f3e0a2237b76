#pragma once

#include <cstdint>
#include <vector>

#include "isa/frontend/builder.h"
#include "isa/frontend/hazards.h"

namespace trn::isa::frontend {

/// What an instruction carries so that order holds.
struct NodeSync {
  /// All must hold before it begins; all but the last go into EVENT_SEMAPHOREs before it.
  std::vector<Wait> waits{};
  Update update{};             ///< of an instruction that somebody waits for
  DmaCompletion completion{};  ///< of a transfer
};

struct SyncStats {
  std::uint64_t dependences = 0;  ///< found
  std::uint64_t waits = 0;        ///< written: the others follow from these
  std::uint64_t event_semaphores = 0;
  std::uint32_t semaphores = 0;
};

/// Turns dependences into semaphores. Each engine counts up one semaphore, each transfer one of a
/// few that its line of the kernel rotates through; who waits for an instruction knows all that it
/// had waited for, so most dependences need no wait of their own. drop: leaves out the n-th wait,
/// for the test that the checker finds it. Indexed by node.
std::vector<NodeSync> synchronise(const Builder& builder, const Dependences& dependences,
                                  const std::vector<std::uint32_t>& order, SyncStats& stats,
                                  std::int64_t drop = -1);

}  // namespace trn::isa::frontend
