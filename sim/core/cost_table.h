#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/yaml_load.h"
#include "isa/instructions.h"
#include "sim/core/cost_config.h"
#include "sim/core/cost_expression.h"
#include "sim/core/cost_features.h"

namespace trn::sim {

/// What an instruction costs, in cycles of its engine's clock (the Tensor engine's: warm).
struct Cost {
  double ii_cycles = 0;  ///< from its start to the next instruction's, when nothing else waits
  double occupancy_cycles = 0;  ///< the unit is held, from the effective start
  double latency_cycles = 0;    ///< from the effective start to the result
  double restart_cycles = 0;    ///< from reported to effective start, when the unit was idle before
  std::uint16_t row = 0;        ///< of CostTable::rows()
  Status status = Status::Estimated;
};

/// Where a row stands and how well it is known.
struct CostRowInfo {
  isa::CostClass cost_class{};
  isa::Engine engine{};
  std::uint32_t number = 0;  ///< in its list, from 0
  std::string when;          ///< empty: always
  std::string place;         ///< `trn2_costs.yaml:41`
  std::string source;
  Status status = Status::Estimated;
};

/// What formulas may use besides features and the table's own constants.
struct CostContext {
  std::array<double, isa::kEngines> clock_hz{};
  std::map<std::string, double, std::less<>> parameters{};  ///< `dma.hardware.trigger_hold`: 590
};

/// The costs of one chip: rows per cost class and engine, complete for the instruction set.
class CostTable {
 public:
  /// Parses and checks every row. Throws one InputError with all that is wrong: unknown classes,
  /// engines and names, formulas that do not parse, rows that no case reaches, a class and engine
  /// without rows that some instruction needs, a `when` that pins a shape to one value.
  /// prefix: path of the table within `provenance`, for places in messages.
  CostTable(const CostTableConfig& config, const CostContext& context,
            const Provenance& provenance = {}, std::string_view prefix = {});

  /// The first row whose condition holds. The class runs on the engine. Throws InputError when the
  /// row gives a negative or infinite number of cycles for these features.
  [[nodiscard]] Cost evaluate(isa::CostClass cost_class, isa::Engine engine,
                              const CostFeatures& features) const;

  [[nodiscard]] std::span<const CostRowInfo> rows() const { return infos_; }
  /// Whether row i's condition holds; of a row without condition, always.
  [[nodiscard]] bool matches(std::size_t row, const CostFeatures& features) const;

 private:
  struct Row {
    std::optional<CostExpression> when{};
    CostExpression ii;
    std::optional<CostExpression> occupancy{};
    CostExpression latency;
    std::optional<CostExpression> restart{};
  };
  struct Range {
    std::uint16_t first = 0;
    std::uint16_t count = 0;
  };
  static std::size_t slot(isa::CostClass cost_class, isa::Engine engine) {
    return static_cast<std::size_t>(cost_class) * isa::kEngines + isa::index(engine);
  }

  std::vector<Row> rows_{};
  std::vector<CostRowInfo> infos_{};
  std::array<Range, isa::kCostClasses * isa::kEngines> ranges_{};
};

/// Which engines an instruction of this class may run on, by the instruction set.
isa::EngineSet engines_of(isa::CostClass cost_class);

/// Costs kept by features, so that a formula runs once per distinct instruction; and which rows
/// were used.
class CostCache {
 public:
  explicit CostCache(const CostTable& table);

  [[nodiscard]] Cost lookup(isa::CostClass cost_class, isa::Engine engine,
                            const CostFeatures& features);
  [[nodiscard]] Cost lookup(const isa::Instr& instr, isa::Engine engine) {
    return lookup(isa::cost_class(instr), engine, features_of(instr.op));
  }

  /// Rows that are assumptions and were used, in the table's order: the report warns of them.
  [[nodiscard]] std::vector<const CostRowInfo*> assumed_rows_used() const;
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Entry {
    std::uint64_t hash = 0;
    std::uint32_t slot = 0;  ///< class and engine; kEmpty: free
    CostFeatures features{};
    Cost cost{};
  };
  static constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
  void grow();

  const CostTable& table_;
  std::vector<Entry> entries_{};  ///< open addressing; a power of two
  std::size_t size_ = 0;
  std::vector<bool> used_{};
};

}  // namespace trn::sim
