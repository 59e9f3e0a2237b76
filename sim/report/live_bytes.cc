#include "sim/report/live_bytes.h"

#include <algorithm>

namespace trn::sim {

LiveBytes::LiveBytes(std::uint64_t partition_bytes, const TimeBins& bins)
    : partition_bytes_(partition_bytes),
      bins_(bins),
      blocks_each_(static_cast<std::size_t>((partition_bytes + kBlock - 1) / kBlock)) {
  blocks_.resize(blocks_each_ * kPartitions.size());
}

void LiveBytes::close(const Block& block, std::int64_t blocks) {
  if (block.since < 0) return;
  bins_.add(block.since, block.until, static_cast<double>(blocks * kBlock));
}

void LiveBytes::access(const Range& range, Time from, Time to, bool write) {
  const auto low = static_cast<std::size_t>(std::max<std::int64_t>(0, range.low) / kBlock);
  const auto high = std::min(
      blocks_each_,
      static_cast<std::size_t>((std::max<std::int64_t>(0, range.high) + kBlock - 1) / kBlock));
  for (std::size_t p = 0; p < kPartitions.size(); ++p) {
    const std::uint32_t partition = kPartitions[p];
    if (partition < range.first_partition || partition >= range.first_partition + range.partitions)
      continue;
    Block ended;  // of the last `count` blocks
    std::int64_t count = 0;
    for (std::size_t i = p * blocks_each_ + low; i < p * blocks_each_ + high; ++i) {
      Block& block = blocks_[i];
      if (block.since < 0) {
        block.since = from;
      } else if (write && block.read) {
        if (count > 0 && (block.since != ended.since || block.until != ended.until)) {
          close(ended, count);
          count = 0;
        }
        ended = block;
        ++count;
        block = {from, 0, false};
      }
      block.until = std::max(block.until, to);
      block.read = block.read || !write;
    }
    close(ended, count);
  }
}

std::vector<double> LiveBytes::percent() {
  for (Block& block : blocks_) {
    close(block, 1);
    block = {};
  }
  std::vector<double> means = bins_.means();
  const double whole = static_cast<double>(partition_bytes_ * kPartitions.size());
  for (double& mean : means) mean *= 100 / whole;
  return means;
}

}  // namespace trn::sim
