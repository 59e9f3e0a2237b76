#include "sim/report/time_bins.h"

#include <algorithm>

namespace trn::sim {

void TimeBins::add(Time from, Time to, double rate) {
  from = std::max(from, from_) - from_;
  to = std::min(to, to_) - from_;
  if (to <= from) return;
  grow(to);
  const auto first = static_cast<std::size_t>(from / width_);
  const auto last = static_cast<std::size_t>((to - 1) / width_);
  const auto start = [this](std::size_t bin) { return static_cast<Time>(bin) * width_; };
  if (first == last) {
    amounts_[first] += rate * static_cast<double>(to - from);
    return;
  }
  amounts_[first] += rate * static_cast<double>(start(first + 1) - from);
  amounts_[last] += rate * static_cast<double>(to - start(last));
  steps_[first + 1] += rate;
  steps_[last] -= rate;
}

/// Makes room for a time after from_.
void TimeBins::grow(Time to) {
  while ((to - 1) / width_ >= static_cast<Time>(kMost)) {
    settle();
    for (std::size_t i = 0; i < amounts_.size(); i += 2)
      amounts_[i / 2] = amounts_[i] + (i + 1 < amounts_.size() ? amounts_[i + 1] : 0);
    amounts_.resize((amounts_.size() + 1) / 2);
    steps_.resize(amounts_.size());
    width_ *= 2;
  }
  const auto bins = static_cast<std::size_t>((to - 1) / width_) + 1;
  if (bins <= amounts_.size()) return;
  amounts_.resize(bins);
  steps_.resize(bins);
}

/// Turns steps into amounts.
void TimeBins::settle() {
  double rate = 0;
  for (std::size_t i = 0; i < amounts_.size(); ++i) {
    rate += steps_[i];
    steps_[i] = 0;
    amounts_[i] += rate * static_cast<double>(width_);
  }
}

std::vector<double> TimeBins::means() const {
  TimeBins settled = *this;
  settled.settle();
  for (double& amount : settled.amounts_) amount /= static_cast<double>(width_);
  return settled.amounts_;
}

}  // namespace trn::sim
