#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/cost_features.h"

namespace trn::sim {

/// What the names of a cost formula stand for, beside the features.
struct ExpressionScope {
  /// The engine whose row this is: `engine == vector`, and ns(t), which is t ns in its cycles.
  isa::Engine engine = isa::Engine::Tensor;
  double clock_hz = 1e9;
  /// Constants of the table and parameters of the chip, by name.
  std::function<std::optional<double>(std::string_view)> constant{};
  std::vector<std::string_view> constant_names{};  ///< for near misses
  /// Results of the row's earlier formulas: ii_cycles, occupancy_cycles. By position in `results`.
  std::vector<std::string_view> results{};
};

/// A formula or condition of a cost row, parsed once.
///
/// Numbers, features, constants, + - * / ( ), min max ceil floor ns if(condition, a, b),
/// comparisons, and or not. A feature that names something compares with == and != to its names:
/// `dtype == fp32`, `sparsity == '4:16'`, `opcode == DRAIN`; the case of names does not matter.
class CostExpression {
 public:
  enum class Kind : std::uint8_t { Number, Condition };

  /// Throws InputError whose message starts with the column, from 1.
  static CostExpression parse(std::string_view text, Kind kind, const ExpressionScope& scope);

  /// The value; of a condition, 1 when it holds and 0 otherwise. Not finite where the formula
  /// divides by 0.
  [[nodiscard]] double evaluate(const PackedFeatures& features,
                                std::span<const double> results = {}) const;

  /// Features that the formula compares with == to a constant number: shapes that it pins.
  [[nodiscard]] const std::set<std::string_view>& pinned() const { return pinned_; }

  struct Step {
    enum class Code : std::uint8_t {
      Number,
      Feature,
      Result,
      Add,
      Subtract,
      Multiply,
      Divide,
      Negate,
      Minimum,
      Maximum,
      Ceil,
      Floor,
      Equal,
      NotEqual,
      Less,
      LessEqual,
      Greater,
      GreaterEqual,
      And,
      Or,
      Not,
      If
    };
    Code code = Code::Number;
    std::uint32_t index = 0;
    double number = 0;
  };
  static constexpr std::size_t kMaxLength = 500;
  static constexpr std::size_t kMaxStack = 64;

 private:
  std::vector<Step> steps_{};
  std::set<std::string_view> pinned_{};
};

}  // namespace trn::sim
