#include "sim/core/cost_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn {

void YamlForm<sim::CostRowsConfig>::read(YamlReader& reader, const YamlNode& node,
                                         const std::string& path,
                                         const YamlReader::Inherited& inherited,
                                         sim::CostRowsConfig& out) {
  if (node.kind == YamlNode::Kind::List) {
    reader.read(node, path, inherited, out.by_engine[sim::CostRowsConfig::kEveryEngine]);
  } else {
    reader.read(node, path, inherited, out.by_engine);
  }
}

void YamlForm<sim::CostRowsConfig>::write(YamlWriter& writer, const sim::CostRowsConfig& rows,
                                          const std::string& path) {
  const auto every = rows.by_engine.find(sim::CostRowsConfig::kEveryEngine);
  if (every != rows.by_engine.end()) {
    writer.write(every->second, path);
  } else {
    writer.write(rows.by_engine, path);
  }
}

}  // namespace trn

namespace trn::sim {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::array<isa::EngineSet, isa::kCostClasses> make_engines() {
  std::array<isa::EngineSet, isa::kCostClasses> engines{};
  isa::for_each_instruction(
      [&]<class T>() { engines[static_cast<std::size_t>(T::kCost)].bits |= T::kEngines.bits; });
  return engines;
}

/// Shapes that one row must not be made for.
constexpr std::array<std::string_view, 5> kShapes = {"elements", "dst.elements", "partitions",
                                                     "runs", "bytes"};

constexpr std::size_t kMaxRows = 65535;

/// Reads the rows of one file and gathers what is wrong with them.
class Compiler {
 public:
  Compiler(const CostTableConfig& config, const CostContext& context, const Provenance& provenance,
           std::string_view prefix)
      : config_(config), context_(context), provenance_(provenance), prefix_(prefix) {
    for (const auto& [name, value] : config.constants) names_.push_back(name);
    for (const auto& [name, value] : context.parameters) names_.push_back(name);
  }

  void fail(const std::string& path, std::string_view message) {
    const std::string full = prefix_.empty() ? path : YamlReader::join(prefix_, path);
    const auto origin = provenance_.find(full);
    Place place;
    if (origin != provenance_.end()) {
      place.file = origin->second.file;
      if (origin->second.line != 0) place.line = origin->second.line;
    }
    errors_.emplace_back(place, full, message);
  }

  /// `trn2_costs.yaml:41`: reports show it, so it does not depend on where the files lie.
  [[nodiscard]] std::string place_of(const std::string& path) const {
    const auto origin = provenance_.find(prefix_.empty() ? path : YamlReader::join(prefix_, path));
    if (origin == provenance_.end()) return path;
    Place place{.file = std::filesystem::path(origin->second.file).filename().string()};
    if (origin->second.line != 0) place.line = origin->second.line;
    return to_string(place);
  }

  /// An empty expression when it does not parse; the error is kept.
  CostExpression parse(const std::string& text, CostExpression::Kind kind, isa::Engine engine,
                       std::vector<std::string_view> results, const std::string& path) {
    const ExpressionScope scope{.engine = engine,
                                .clock_hz = context_.clock_hz[isa::index(engine)],
                                .constant = [&](std::string_view name) { return constant(name); },
                                .constant_names = names_,
                                .results = std::move(results)};
    try {
      CostExpression expression = CostExpression::parse(text, kind, scope);
      if (kind == CostExpression::Kind::Condition) {
        for (const std::string_view shape : kShapes) {
          if (!expression.pinned().contains(shape)) continue;
          fail(path, fmt::format("a row for a single value of '{}' is no rule", shape));
        }
      }
      return expression;
    } catch (const InputError& error) {
      fail(path, error.what());
      return {};
    }
  }

  [[nodiscard]] const std::vector<InputError>& errors() const { return errors_; }

 private:
  std::optional<double> constant(std::string_view name) const {
    const auto own = config_.constants.find(std::string(name));
    if (own != config_.constants.end()) return own->second;
    const auto parameter = context_.parameters.find(name);
    if (parameter != context_.parameters.end()) return parameter->second;
    return std::nullopt;
  }

  const CostTableConfig& config_;
  const CostContext& context_;
  const Provenance& provenance_;
  std::string prefix_;
  std::vector<std::string_view> names_{};
  std::vector<InputError> errors_{};
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t word) {
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  hash = (hash ^ word) * kOdd;
  return hash ^ (hash >> 29U);
}

std::uint64_t hash_of(std::uint32_t slot, const CostFeatures& features) {
  // Four chains, so that the multiplications overlap.
  constexpr std::size_t kChains = 4;
  constexpr std::size_t kStep = kChains * sizeof(std::uint64_t);
  std::array<std::uint64_t, (sizeof(CostFeatures) + kStep - 1) / kStep * kChains> words{};
  std::memcpy(words.data(), &features, sizeof(features));
  std::array<std::uint64_t, kChains> chains = {slot + 1, 0, 0, 0};
  for (std::size_t i = 0; i < words.size(); i += kChains) {
    for (std::size_t chain = 0; chain < kChains; ++chain) {
      chains[chain] = mix(chains[chain], words[i + chain]);
    }
  }
  return mix(mix(chains[0], chains[1]), mix(chains[2], chains[3]));
}

bool same(const CostFeatures& a, const CostFeatures& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;  // no gaps: equal bytes are equal features
}

}  // namespace

isa::EngineSet engines_of(isa::CostClass cost_class) {
  static const auto kEnginesOf = make_engines();
  return kEnginesOf[static_cast<std::size_t>(cost_class)];
}

CostTable::CostTable(const CostTableConfig& config, const CostContext& context,
                     const Provenance& provenance, std::string_view prefix) {
  Compiler compiler(config, context, provenance, prefix);
  const auto& class_names = EnumNames<isa::CostClass>::value;
  for (const auto& [name, rows] : config.rows) {
    if (std::find(class_names.begin(), class_names.end(), name) == class_names.end()) {
      compiler.fail("rows." + name, "unknown cost class" + did_you_mean(name, {class_names.begin(),
                                                                               class_names.end()}));
    }
  }
  for (std::size_t c = 0; c < isa::kCostClasses; ++c) {
    const auto cost_class = static_cast<isa::CostClass>(c);
    const isa::EngineSet engines = engines_of(cost_class);
    const std::string class_path = fmt::format("rows.{}", class_names[c]);
    const auto found = config.rows.find(std::string(class_names[c]));
    const CostRowsConfig none;
    const CostRowsConfig& lists = found == config.rows.end() ? none : found->second;
    const bool shared = lists.by_engine.contains(CostRowsConfig::kEveryEngine);
    for (const auto& [engine_name, list] : lists.by_engine) {
      if (shared) break;
      std::vector<std::string> names;
      for (const isa::Engine engine : isa::kAllEngines) {
        if (engines.contains(engine)) names.push_back(lower(name_of(engine)));
      }
      if (std::find(names.begin(), names.end(), engine_name) == names.end()) {
        compiler.fail(YamlReader::join(class_path, engine_name),
                      "no instruction of this class runs there" +
                          did_you_mean(engine_name, {names.begin(), names.end()}));
      }
    }
    for (const isa::Engine engine : isa::kAllEngines) {
      if (!engines.contains(engine)) continue;
      const auto list =
          lists.by_engine.find(shared ? CostRowsConfig::kEveryEngine : lower(name_of(engine)));
      if (list == lists.by_engine.end() || list->second.empty()) {
        compiler.fail(class_path, fmt::format("missing rows for the {} engine", name_of(engine)));
        continue;
      }
      const std::string list_path = shared ? class_path : YamlReader::join(class_path, list->first);
      Range& range = ranges_[slot(cost_class, engine)];
      range.first = static_cast<std::uint16_t>(rows_.size());
      for (std::size_t i = 0; i < list->second.size(); ++i) {
        const CostRowConfig& text = list->second[i];
        const std::string path = YamlReader::join(list_path, std::to_string(i));
        const bool last = i + 1 == list->second.size();
        if (last && text.when) {
          compiler.fail(path + ".when", "the last row must hold always: expected no `when`");
        }
        if (!last && !text.when) {
          compiler.fail(path + ".ii_cycles", "no row after this one is reached: expected a `when`");
        }
        const auto parse = [&](std::string_view key, const std::string& formula,
                               std::vector<std::string_view> results,
                               CostExpression::Kind kind = CostExpression::Kind::Number) {
          return compiler.parse(formula, kind, engine, std::move(results),
                                YamlReader::join(path, key));
        };
        Row row;
        if (text.when) row.when = parse("when", *text.when, {}, CostExpression::Kind::Condition);
        row.ii = parse("ii_cycles", text.ii_cycles, {});
        if (text.occupancy_cycles) {
          row.occupancy = parse("occupancy_cycles", *text.occupancy_cycles, {"ii_cycles"});
        }
        row.latency =
            parse("latency_cycles", text.latency_cycles, {"ii_cycles", "occupancy_cycles"});
        if (text.restart_cycles) {
          row.restart =
              parse("restart_cycles", *text.restart_cycles, {"ii_cycles", "occupancy_cycles"});
        }
        rows_.push_back(std::move(row));
        infos_.push_back({.cost_class = cost_class,
                          .engine = engine,
                          .number = static_cast<std::uint32_t>(i),
                          .when = text.when.value_or(""),
                          .place = compiler.place_of(path + ".ii_cycles"),
                          .source = text.source,
                          .status = text.status});
      }
      range.count = static_cast<std::uint16_t>(list->second.size());
      if (rows_.size() > kMaxRows) {
        compiler.fail(class_path, fmt::format("more than {} rows", kMaxRows));
        throw InputError(compiler.errors());
      }
    }
  }
  if (!compiler.errors().empty()) {
    // A list for every engine is compiled for each; its errors are reported once.
    std::vector<InputError> errors;
    std::set<std::string, std::less<>> seen;
    for (const InputError& error : compiler.errors()) {
      if (seen.insert(error.what()).second) errors.push_back(error);
    }
    throw InputError(errors);
  }
}

bool CostTable::matches(std::size_t row, const CostFeatures& features) const {
  TRN_CHECK(row < rows_.size(), "row {} of {}", row, rows_.size());
  return !rows_[row].when || rows_[row].when->evaluate(pack(features)) != 0;
}

Cost CostTable::evaluate(isa::CostClass cost_class, isa::Engine engine,
                         const CostFeatures& features) const {
  const Range range = ranges_[slot(cost_class, engine)];
  TRN_CHECK(range.count != 0, "{} does not run on the {} engine", name_of(cost_class),
            name_of(engine));
  const PackedFeatures packed = pack(features);
  std::size_t i = range.first;
  while (rows_[i].when && rows_[i].when->evaluate(packed) == 0) ++i;
  const Row& row = rows_[i];
  Cost cost{.row = static_cast<std::uint16_t>(i), .status = infos_[i].status};
  cost.ii_cycles = row.ii.evaluate(packed);
  cost.occupancy_cycles =
      row.occupancy ? row.occupancy->evaluate(packed, std::array{cost.ii_cycles}) : cost.ii_cycles;
  const std::array results = {cost.ii_cycles, cost.occupancy_cycles};
  cost.latency_cycles = row.latency.evaluate(packed, results);
  if (row.restart) cost.restart_cycles = row.restart->evaluate(packed, results);

  constexpr double kLongest = 1e15;  // 10 days: nothing else overflows before it
  const auto check = [&](std::string_view name, double cycles) {
    if (cycles >= 0 && cycles <= kLongest) return;
    throw InputError(infos_[i].place, fmt::format("{} is {} for {} elements in {} partitions", name,
                                                  cycles, features.elements, features.partitions));
  };
  check("ii_cycles", cost.ii_cycles);
  check("occupancy_cycles", cost.occupancy_cycles);
  check("latency_cycles", cost.latency_cycles);
  check("restart_cycles", cost.restart_cycles);
  return cost;
}

CostCache::CostCache(const CostTable& table) : table_(table), used_(table.rows().size()) { grow(); }

Cost CostCache::lookup(isa::CostClass cost_class, isa::Engine engine,
                       const CostFeatures& features) {
  const auto slot = static_cast<std::uint32_t>(
      static_cast<std::size_t>(cost_class) * isa::kEngines + isa::index(engine));
  const std::uint64_t hash = hash_of(slot, features);
  std::size_t at = hash & (entries_.size() - 1);
  for (; entries_[at].slot != kEmpty; at = (at + 1) & (entries_.size() - 1)) {
    const Entry& entry = entries_[at];
    if (entry.hash == hash && entry.slot == slot && same(entry.features, features))
      return entry.cost;
  }
  const Cost cost = table_.evaluate(cost_class, engine, features);
  used_[cost.row] = true;
  if (2 * ++size_ > entries_.size()) {
    grow();
    at = hash & (entries_.size() - 1);
    while (entries_[at].slot != kEmpty) at = (at + 1) & (entries_.size() - 1);
  }
  entries_[at] = {.hash = hash, .slot = slot, .features = features, .cost = cost};
  return cost;
}

void CostCache::grow() {
  constexpr std::size_t kFirst = 256;
  std::vector<Entry> old(entries_.empty() ? kFirst : 2 * entries_.size(), Entry{.slot = kEmpty});
  old.swap(entries_);
  for (Entry& entry : old) {
    if (entry.slot == kEmpty) continue;
    std::size_t at = entry.hash & (entries_.size() - 1);
    while (entries_[at].slot != kEmpty) at = (at + 1) & (entries_.size() - 1);
    entries_[at] = entry;
  }
}

std::vector<const CostRowInfo*> CostCache::assumed_rows_used() const {
  std::vector<const CostRowInfo*> rows;
  for (std::size_t i = 0; i < used_.size(); ++i) {
    if (used_[i] && table_.rows()[i].status == Status::Estimated) rows.push_back(&table_.rows()[i]);
  }
  return rows;
}

}  // namespace trn::sim
