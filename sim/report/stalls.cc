#include "sim/report/stalls.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "isa/base/check.h"

namespace trn::sim {

Time EngineAccount::stalled_total() const {
  return std::accumulate(stalled.begin(), stalled.end(), Time{0});
}

std::vector<EngineAccount> engine_accounts(const CoreResult& core) {
  std::vector<EngineAccount> accounts;
  for (isa::Engine engine : isa::kAllEngines) {
    const EngineStats& stats = core.engines[isa::index(engine)];
    accounts.push_back({engine, stats.instructions, stats.active, stats.idle, stats.stalled});
    TRN_CHECK(accounts.back().total() == core.length, "{} accounts for {} fs of {}",
              name_of(engine), accounts.back().total(), core.length);
  }
  return accounts;
}

std::size_t StallTable::Hash::operator()(const Key& key) const {
  constexpr std::uint64_t kOdd =
      0x9e3779b97f4a7c15;  // spreads neighbours, as Fibonacci hashing does
  const auto kind =
      static_cast<std::uint64_t>(key.engine) << 8U | static_cast<std::uint64_t>(key.reason);
  return (kind << 48U ^ static_cast<std::uint64_t>(key.at.location) << 24U ^ key.at.label) * kOdd;
}

void StallTable::on_instruction(const InstructionRecord& record) {
  if (record.stall <= 0) return;
  isa::SourceRef at = record.instr->at;
  if (at.location != 0) at.label = 0;
  times_[{record.engine, record.reason, at}] += record.stall;
}

std::vector<Stall> StallTable::rows(const isa::TraceInfo& trace, std::uint32_t core) const {
  std::vector<std::pair<Key, Time>> sorted(times_.begin(), times_.end());
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::vector<Stall> rows;
  std::map<std::pair<isa::Engine, StallReason>, Time> rest;
  for (const auto& [key, time] : sorted) {
    if (rows.size() < kRows) {
      rows.push_back({core, key.engine, key.reason, source_text(trace, key.at.location),
                      key.at.label < trace.labels.size() ? trace.labels[key.at.label] : "", time});
    } else {
      rest[{key.engine, key.reason}] += time;
    }
  }
  for (const auto& [what, time] : rest)
    rows.push_back({core, what.first, what.second, "", "", time});
  return rows;
}

std::string source_text(const isa::TraceInfo& trace, std::uint32_t location) {
  if (location >= trace.locations.size() || trace.locations[location].file.empty()) return {};
  return fmt::format("{}:{}", trace.locations[location].file, trace.locations[location].line);
}

}  // namespace trn::sim
