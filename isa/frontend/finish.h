#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "isa/frontend/builder.h"
#include "isa/frontend/place.h"
#include "isa/frontend/roll.h"
#include "isa/frontend/synchronise.h"
#include "isa/program.h"

namespace trn::isa::frontend {

/// A loop of the kernel that stayed a loop in an engine's stream.
struct KeptLoop {
  std::uint32_t program = 0;
  Engine engine = Engine::Tensor;
  RolledLoop loop{};
};

struct Finished {
  Trace trace{};
  std::vector<KeptLoop> loops{};
  std::vector<Spill> spills{};
  std::vector<SyncStats> sync{};        ///< by program
  std::vector<std::string> warnings{};  ///< spills, with the tile and its line
  std::uint64_t instructions = 0;       ///< before rolling
  std::uint64_t loads_left_out = 0;     ///< whose data a tile still held
  std::int64_t sbuf_peak_bytes = 0;     ///< of a partition, the fullest program
  std::int64_t psum_peak_bytes = 0;
};

struct FinishOptions {
  std::string name{};
  Target target = Target::NeuronCoreV3;
  std::vector<Work> work{};
  std::vector<std::string> warnings{};  ///< of the tracer, for the run's report
  std::int64_t drop_wait = -1;          ///< leaves out the n-th wait: for the test of the checker
};

/// Makes a trace of the builders' programs, for cores 0, 1 ...: places tiles, finds dependences,
/// orders, sets semaphores, and rolls loops. HBM tensors that are not internal and have the same
/// name are one tensor in all programs. The builders are used up. Throws CapacityError and
/// InputError.
Finished finish(std::vector<Builder*> builders, const FinishOptions& options);

}  // namespace trn::isa::frontend
