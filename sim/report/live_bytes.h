#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/core/time.h"
#include "sim/report/time_bins.h"

namespace trn::sim {

/// How full an on-chip memory is over time. A byte is in use from the write of a value to its last
/// read; the next write ends that, unless the value has not been read yet and is still being
/// completed or accumulated. As the profiler does, it looks at four partitions, 32 apart, in blocks
/// of kBlock bytes.
class LiveBytes {
 public:
  static constexpr std::int64_t kBlock = 64;
  static constexpr std::array<std::uint32_t, 4> kPartitions = {0, 32, 64, 96};

  /// The bytes of each partition that an access may touch.
  struct Range {
    std::uint32_t first_partition = 0;
    std::uint32_t partitions = 0;
    std::int64_t low = 0;
    std::int64_t high = 0;
  };

  LiveBytes(std::uint64_t partition_bytes, const TimeBins& bins);

  /// Accesses to the same bytes come in the order of their effects.
  void read(const Range& range, Time from, Time to) { access(range, from, to, false); }
  void write(const Range& range, Time from, Time to) { access(range, from, to, true); }

  /// Mean share of the four partitions in use, per cent, bin by bin. Ends all values.
  std::vector<double> percent();
  [[nodiscard]] const TimeBins& bins() const { return bins_; }

 private:
  struct Block {
    Time since = -1;  // -1: never touched
    Time until = 0;
    bool read = false;
  };

  void access(const Range& range, Time from, Time to, bool write);
  void close(const Block& block, std::int64_t blocks);

  std::uint64_t partition_bytes_;
  TimeBins bins_;
  std::vector<Block> blocks_;  // of one partition after the other
  std::size_t blocks_each_;
};

}  // namespace trn::sim
