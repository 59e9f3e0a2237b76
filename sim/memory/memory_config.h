#pragma once

#include <cstdint>
#include <tuple>

#include "isa/base/describe.h"

namespace trn::sim {

/// The state buffer. Source of the figures: docs/sources.md#a2-sbuf.
struct SbufConfig {
  std::uint32_t partitions = 0;
  std::uint64_t partition_size = 0;
  std::uint64_t reserved = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"partitions", &SbufConfig::partitions, "count", "partitions"},
        Field{"partition_size", &SbufConfig::partition_size, "bytes", "bytes of one partition"},
        Field{"reserved", &SbufConfig::reserved, "bytes",
              "bytes of a partition that software descriptors keep to themselves"}};
  }
};

/// The accumulators. Source of the figures: docs/sources.md#a1-psum.
struct PsumConfig {
  std::uint64_t partition_size = 0;
  std::uint32_t banks = 0;
  std::uint64_t bank_size = 0;
  double bank_conflict = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"partition_size", &PsumConfig::partition_size, "bytes", "bytes of one partition"},
        Field{"banks", &PsumConfig::banks, "count", "banks of a partition"},
        Field{"bank_size", &PsumConfig::bank_size, "bytes", "bytes of a bank in one partition"},
        Field{"bank_conflict", &PsumConfig::bank_conflict, "",
              "share of the overlap by which VectorE and ScalarE delay each other in one bank"}};
  }
};

/// The stacks of high-bandwidth memory; each serves two cores.
struct HbmConfig {
  std::uint32_t stacks = 0;
  std::uint64_t stack_size = 0;
  double bandwidth_per_stack = 0;
  static constexpr auto fields() {
    return std::tuple{Field{"stacks", &HbmConfig::stacks, "count", "stacks of a chip"},
                      Field{"stack_size", &HbmConfig::stack_size, "bytes", "capacity of a stack"},
                      Field{"bandwidth_per_stack", &HbmConfig::bandwidth_per_stack, "B/s",
                            "bytes read and written together"}};
  }
};

}  // namespace trn::sim
