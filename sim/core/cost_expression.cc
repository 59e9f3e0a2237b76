#include "sim/core/cost_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn::sim {
namespace {

using Code = CostExpression::Step::Code;

constexpr char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](char c) { return lower(c); });
  return result;
}

/// A feature as the language sees it.
struct Feature {
  enum class Kind : std::uint8_t { Number, Flag, Name };
  struct NamedCode {
    std::string name;
    std::uint32_t code = 0;
  };
  std::string_view name;
  Kind kind = Kind::Number;
  std::vector<NamedCode> names{};  ///< in lower case
};

template <class T>
struct FeatureKind;
template <>
struct FeatureKind<std::uint32_t> {
  static Feature make(std::string_view name) { return {.name = name}; }
};
template <>
struct FeatureKind<Flag> {
  static Feature make(std::string_view name) { return {.name = name, .kind = Feature::Kind::Flag}; }
};
template <class E>
struct FeatureKind<OrNone<E>> {
  static Feature make(std::string_view name) {
    Feature feature{.name = name, .kind = Feature::Kind::Name};
    for (std::size_t i = 0; i < EnumNames<E>::value.size(); ++i) {
      const auto code = static_cast<std::uint32_t>(i + 1);
      feature.names.push_back({.name = lower(EnumNames<E>::value[i]), .code = code});
    }
    // An enum with a `none` of its own means that by the word; absent operands have no name then.
    const bool has_none = std::any_of(feature.names.begin(), feature.names.end(),
                                      [](const auto& each) { return each.name == "none"; });
    if (!has_none) feature.names.push_back({.name = "none", .code = 0});
    return feature;
  }
};
template <>
struct FeatureKind<OpcodeNumber> {
  static Feature make(std::string_view name) {
    Feature feature{.name = name, .kind = Feature::Kind::Name};
    isa::for_each_instruction(
        [&]<class T>() { feature.names.push_back({.name = lower(T::kName), .code = T::kOpcode}); });
    return feature;
  }
};

std::vector<Feature> make_features() {
  std::vector<Feature> features;
  for_each_field<CostFeatures>([&](const auto& field) {
    using Member = std::remove_cvref_t<decltype(std::declval<CostFeatures&>().*field.member)>;
    features.push_back(FeatureKind<Member>::make(field.name));
  });
  return features;
}

const std::vector<Feature>& all_features() {
  static const std::vector<Feature> kFeatures = make_features();
  return kFeatures;
}

struct Token {
  enum class Kind : std::uint8_t { End, Number, Word, Text, Symbol };
  Kind kind = Kind::End;
  std::string_view text{};
  double number = 0;
  std::size_t column = 1;
};

[[noreturn]] void fail(std::size_t column, std::string_view message) {
  throw InputError(fmt::format("column {}", column), message);
}

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_word(char c) {
  return is_digit(c) || c == '_' || c == '.' || (lower(c) >= 'a' && lower(c) <= 'z');
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { next(); }

  [[nodiscard]] const Token& peek() const { return token_; }
  Token take() {
    const Token token = token_;
    next();
    return token;
  }
  bool accept(std::string_view symbol) {
    const bool word = token_.kind == Token::Kind::Word || token_.kind == Token::Kind::Symbol;
    if (!word || token_.text != symbol) return false;
    next();
    return true;
  }

 private:
  void next() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
    token_ = {.column = at_ + 1};
    if (at_ == text_.size()) return;
    const char c = text_[at_];
    std::size_t end = at_ + 1;
    if (is_digit(c)) {
      const auto [stop, error] =
          std::from_chars(text_.data() + at_, text_.data() + text_.size(), token_.number);
      if (error != std::errc{}) fail(token_.column, "number out of range");
      end = static_cast<std::size_t>(stop - text_.data());
      if (end < text_.size() && is_word(text_[end])) fail(token_.column, "not a number");
      token_.kind = Token::Kind::Number;
    } else if (is_word(c)) {
      while (end < text_.size() && is_word(text_[end])) ++end;
      token_.kind = Token::Kind::Word;
    } else if (c == '\'') {
      end = text_.find('\'', at_ + 1);
      if (end == std::string_view::npos) fail(token_.column, "a quote is not closed");
      token_ = {.kind = Token::Kind::Text,
                .text = text_.substr(at_ + 1, end - at_ - 1),
                .column = at_ + 1};
      at_ = end + 1;
      return;
    } else {
      constexpr std::array<std::string_view, 4> kLong = {"==", "!=", "<=", ">="};
      const bool is_long =
          std::find(kLong.begin(), kLong.end(), text_.substr(at_, 2)) != kLong.end();
      if (is_long) ++end;
      if (!is_long && std::string_view("+-*/(),<>").find(c) == std::string_view::npos) {
        fail(token_.column, fmt::format("unexpected '{}'", c));
      }
      token_.kind = Token::Kind::Symbol;
    }
    token_.text = text_.substr(at_, end - at_);
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  Token token_{};
};

/// What a part of a formula is, found while parsing.
struct Part {
  enum class Kind : std::uint8_t { Number, Condition, Named, Word };
  Kind kind = Kind::Number;
  std::size_t column = 1;
  const Feature* feature = nullptr;       ///< of a lone feature
  bool literal = false;                   ///< a constant: no feature is in it
  std::optional<std::uint32_t> engine{};  ///< the word `engine`
  std::string_view word{};
};

constexpr std::array<std::string_view, 6> kFunctions = {"min", "max", "ceil", "floor", "ns", "if"};

class Parser {
 public:
  Parser(std::string_view text, const ExpressionScope& scope) : lexer_(text), scope_(scope) {}

  void parse(CostExpression::Kind kind) {
    const Part part = disjunction();
    if (lexer_.peek().kind != Token::Kind::End) {
      fail(lexer_.peek().column, fmt::format("unexpected '{}'", lexer_.peek().text));
    }
    if (kind == CostExpression::Kind::Number) need_number(part);
    if (kind == CostExpression::Kind::Condition) need_condition(part);
  }

  std::vector<CostExpression::Step> steps{};
  std::set<std::string_view> pinned{};

 private:
  void emit(Code code, std::size_t pops, std::uint32_t index = 0, double number = 0) {
    steps.push_back({.code = code, .index = index, .number = number});
    depth_ = depth_ - pops + 1;
    if (depth_ > CostExpression::kMaxStack) fail(lexer_.peek().column, "the formula is too deep");
  }

  static std::string unknown(const Part& part, const std::vector<std::string_view>& names) {
    return fmt::format("unknown name '{}'{}", part.word, did_you_mean(part.word, names));
  }

  void need_known(const Part& part) const {
    if (part.kind != Part::Kind::Word) return;
    std::vector<std::string_view> names(scope_.constant_names);
    for (const Feature& feature : all_features()) names.push_back(feature.name);
    names.insert(names.end(), scope_.results.begin(), scope_.results.end());
    names.insert(names.end(), kFunctions.begin(), kFunctions.end());
    names.emplace_back("engine");
    fail(part.column, unknown(part, names));
  }
  void need_number(const Part& part) const {
    need_known(part);
    if (part.kind == Part::Kind::Condition) fail(part.column, "expected a number, got a condition");
    if (part.kind == Part::Kind::Named) {
      fail(part.column, "expected a number; names only compare with == and !=");
    }
  }
  void need_condition(const Part& part) const {
    need_known(part);
    if (part.kind != Part::Kind::Condition) fail(part.column, "expected a condition, got a number");
  }

  Part disjunction() {
    Part left = conjunction();
    while (lexer_.accept("or")) {
      need_condition(left);
      need_condition(conjunction());
      emit(Code::Or, 2);
    }
    return left;
  }

  Part conjunction() {
    Part left = negation();
    while (lexer_.accept("and")) {
      need_condition(left);
      need_condition(negation());
      emit(Code::And, 2);
    }
    return left;
  }

  Part negation() {
    const std::size_t column = lexer_.peek().column;
    if (!lexer_.accept("not")) return comparison();
    const Nesting nesting(*this);
    need_condition(negation());
    emit(Code::Not, 1);
    return {.kind = Part::Kind::Condition, .column = column};
  }

  Part comparison() {
    Part left = sum();
    struct Operator {
      std::string_view symbol;
      Code code;
    };
    constexpr std::array<Operator, 6> kOperators = {{{"==", Code::Equal},
                                                     {"!=", Code::NotEqual},
                                                     {"<=", Code::LessEqual},
                                                     {">=", Code::GreaterEqual},
                                                     {"<", Code::Less},
                                                     {">", Code::Greater}}};
    for (const Operator& each : kOperators) {
      if (!lexer_.accept(each.symbol)) continue;
      const Part right = sum();
      compare(left, right, each.code);
      return {.kind = Part::Kind::Condition, .column = left.column};
    }
    return left;
  }

  void compare(const Part& left, const Part& right, Code code) {
    const bool equality = code == Code::Equal || code == Code::NotEqual;
    if (left.kind == Part::Kind::Named || right.kind == Part::Kind::Named) {
      const bool named_left = left.kind == Part::Kind::Named;
      const Part& named = named_left ? left : right;
      const Part& other = named_left ? right : left;
      if (!equality) fail(named.column, "names only compare with == and !=");
      if (other.kind == Part::Kind::Named) {
        if (other.feature == nullptr || named.feature == nullptr || !same_names(named, other)) {
          fail(other.column, "these two do not compare");
        }
      } else if (other.kind == Part::Kind::Word) {
        const double number = code_of(named, other);
        // A word put no value on the stack; a left one belongs below the feature, in any order.
        emit(Code::Number, 0, 0, number);
      } else {
        fail(other.column, fmt::format("expected a name such as {}", example(named)));
      }
    } else {
      need_number(left);
      need_number(right);
      const Part& varying = left.literal ? right : left;
      const Part& fixed = left.literal ? left : right;
      if (code == Code::Equal && fixed.literal && varying.feature != nullptr) {
        pinned.insert(varying.feature->name);
      }
    }
    emit(code, 2);
  }

  static bool same_names(const Part& a, const Part& b) {
    const auto& left = a.feature->names;
    const auto& right = b.feature->names;
    return std::equal(left.begin(), left.end(), right.begin(), right.end(),
                      [](const auto& x, const auto& y) { return x.name == y.name; });
  }

  static std::string example(const Part& named) {
    if (named.engine) return "vector";
    return named.feature->names.front().name;
  }

  double code_of(const Part& named, const Part& word) const {
    const std::string wanted = lower(word.word);
    std::vector<std::string> names;
    if (named.engine) {
      for (const isa::Engine engine : isa::kAllEngines) {
        names.push_back(lower(name_of(engine)));
        if (names.back() == wanted) return static_cast<double>(engine);
      }
    } else {
      for (const Feature::NamedCode& each : named.feature->names) {
        if (each.name == wanted) return each.code;
        names.push_back(each.name);
      }
    }
    fail(word.column, unknown(word, {names.begin(), names.end()}));
  }

  Part sum() {
    Part left = term();
    for (;;) {
      Code code{};
      if (lexer_.accept("+")) {
        code = Code::Add;
      } else if (lexer_.accept("-")) {
        code = Code::Subtract;
      } else {
        return left;
      }
      left = arithmetic(left, term(), code);
    }
  }

  Part term() {
    Part left = factor();
    for (;;) {
      Code code{};
      if (lexer_.accept("*")) {
        code = Code::Multiply;
      } else if (lexer_.accept("/")) {
        code = Code::Divide;
      } else {
        return left;
      }
      left = arithmetic(left, factor(), code);
    }
  }

  Part arithmetic(const Part& left, const Part& right, Code code) {
    need_number(left);
    need_number(right);
    emit(code, 2);
    return {.column = left.column, .literal = left.literal && right.literal};
  }

  Part factor() {
    const std::size_t column = lexer_.peek().column;
    if (!lexer_.accept("-")) return primary();
    const Nesting nesting(*this);
    const Part part = factor();
    need_number(part);
    emit(Code::Negate, 1);
    return {.column = column, .literal = part.literal};
  }

  Part primary() {
    const Token token = lexer_.take();
    switch (token.kind) {
      case Token::Kind::End:
        fail(token.column, "the formula ends too early");
      case Token::Kind::Number:
        emit(Code::Number, 0, 0, token.number);
        return {.column = token.column, .literal = true};
      case Token::Kind::Text:
        return {.kind = Part::Kind::Word, .column = token.column, .word = token.text};
      case Token::Kind::Word:
        return word(token);
      case Token::Kind::Symbol:
        break;
    }
    if (token.text != "(") fail(token.column, fmt::format("unexpected '{}'", token.text));
    const Nesting nesting(*this);
    Part part = disjunction();
    expect(")");
    part.feature = nullptr;
    return part;
  }

  void expect(std::string_view symbol) {
    if (lexer_.accept(symbol)) return;
    const Token& token = lexer_.peek();
    if (token.kind == Token::Kind::End) fail(token.column, fmt::format("expected '{}'", symbol));
    fail(token.column, fmt::format("expected '{}', got '{}'", symbol, token.text));
  }

  Part word(const Token& token) {
    if (lexer_.accept("(")) return call(token);
    const auto& features = all_features();
    for (std::size_t i = 0; i < features.size(); ++i) {
      if (features[i].name != token.text) continue;
      emit(Code::Feature, 0, static_cast<std::uint32_t>(i));
      Part part{.column = token.column, .feature = &features[i]};
      if (features[i].kind == Feature::Kind::Flag) part.kind = Part::Kind::Condition;
      if (features[i].kind == Feature::Kind::Name) part.kind = Part::Kind::Named;
      return part;
    }
    if (token.text == "engine") {
      emit(Code::Number, 0, 0, static_cast<double>(scope_.engine));
      return {.kind = Part::Kind::Named,
              .column = token.column,
              .engine = static_cast<std::uint32_t>(scope_.engine)};
    }
    for (std::size_t i = 0; i < scope_.results.size(); ++i) {
      if (scope_.results[i] != token.text) continue;
      emit(Code::Result, 0, static_cast<std::uint32_t>(i));
      return {.column = token.column};
    }
    if (scope_.constant) {
      if (const auto value = scope_.constant(token.text)) {
        emit(Code::Number, 0, 0, *value);
        return {.column = token.column, .literal = true};
      }
    }
    return {.kind = Part::Kind::Word, .column = token.column, .word = token.text};
  }

  Part call(const Token& name) {
    const Nesting nesting(*this);
    Part result{.column = name.column, .literal = true};
    if (name.text == "if") {
      need_condition(disjunction());
      expect(",");
      need_number(disjunction());
      expect(",");
      need_number(disjunction());
      expect(")");
      emit(Code::If, 3);
      result.literal = false;
      return result;
    }
    if (name.text == "min" || name.text == "max") {
      const Code code = name.text == "min" ? Code::Minimum : Code::Maximum;
      std::size_t count = 0;
      do {
        const Part part = disjunction();
        need_number(part);
        result.literal = result.literal && part.literal;
        if (++count > 1) emit(code, 2);
      } while (lexer_.accept(","));
      expect(")");
      if (count < 2) fail(name.column, fmt::format("{} needs two numbers or more", name.text));
      return result;
    }
    const bool known = name.text == "ceil" || name.text == "floor" || name.text == "ns";
    if (!known) {
      fail(name.column,
           fmt::format("unknown function '{}'{}", name.text,
                       did_you_mean(name.text, {kFunctions.begin(), kFunctions.end()})));
    }
    const Part part = disjunction();
    need_number(part);
    expect(")");
    if (name.text == "ns") {
      constexpr double kNanosecond = 1e-9;
      emit(Code::Number, 0, 0, scope_.clock_hz * kNanosecond);
      emit(Code::Multiply, 2);
    } else {
      emit(name.text == "ceil" ? Code::Ceil : Code::Floor, 1);
    }
    result.literal = part.literal;
    return result;
  }

  /// Bounds the recursion, so that no text overruns the stack.
  struct Nesting {
    explicit Nesting(Parser& owner) : parser(owner) {
      constexpr int kDeepest = 48;
      if (++parser.nesting_ > kDeepest) {
        fail(parser.lexer_.peek().column, "the formula is nested too deep");
      }
    }
    ~Nesting() { --parser.nesting_; }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    Parser& parser;
  };

  Lexer lexer_;
  const ExpressionScope& scope_;
  std::size_t depth_ = 0;
  int nesting_ = 0;
};

}  // namespace

CostExpression CostExpression::parse(std::string_view text, Kind kind,
                                     const ExpressionScope& scope) {
  if (text.size() > kMaxLength) {
    fail(kMaxLength, fmt::format("longer than {} characters", kMaxLength));
  }
  Parser parser(text, scope);
  parser.parse(kind);
  CostExpression expression;
  expression.steps_ = std::move(parser.steps);
  expression.pinned_ = std::move(parser.pinned);
  return expression;
}

double CostExpression::evaluate(const PackedFeatures& features,
                                std::span<const double> results) const {
  std::array<double, kMaxStack + 1> stack;  // NOLINT: filled from the bottom
  std::size_t top = 0;                      // values on the stack
  for (const Step& step : steps_) {
    switch (step.code) {
      case Code::Number:
        stack[top++] = step.number;
        continue;
      case Code::Feature:
        stack[top++] = features[step.index];
        continue;
      case Code::Result:
        stack[top++] = results[step.index];
        continue;
      case Code::Negate:
        stack[top - 1] = -stack[top - 1];
        continue;
      case Code::Ceil:
        stack[top - 1] = std::ceil(stack[top - 1]);
        continue;
      case Code::Floor:
        stack[top - 1] = std::floor(stack[top - 1]);
        continue;
      case Code::Not:
        stack[top - 1] = stack[top - 1] == 0 ? 1 : 0;
        continue;
      case Code::If:
        top -= 2;
        stack[top - 1] = stack[top - 1] != 0 ? stack[top] : stack[top + 1];
        continue;
      default:
        break;
    }
    const double right = stack[--top];
    double& left = stack[top - 1];
    switch (step.code) {
      case Code::Add:
        left += right;
        break;
      case Code::Subtract:
        left -= right;
        break;
      case Code::Multiply:
        left *= right;
        break;
      case Code::Divide:
        left /= right;
        break;
      case Code::Minimum:
        left = std::min(left, right);
        break;
      case Code::Maximum:
        left = std::max(left, right);
        break;
      case Code::Equal:
        left = left == right ? 1 : 0;
        break;
      case Code::NotEqual:
        left = left != right ? 1 : 0;
        break;
      case Code::Less:
        left = left < right ? 1 : 0;
        break;
      case Code::LessEqual:
        left = left <= right ? 1 : 0;
        break;
      case Code::Greater:
        left = left > right ? 1 : 0;
        break;
      case Code::GreaterEqual:
        left = left >= right ? 1 : 0;
        break;
      case Code::And:
        left = left != 0 && right != 0 ? 1 : 0;
        break;
      case Code::Or:
        left = left != 0 || right != 0 ? 1 : 0;
        break;
      default:
        TRN_CHECK(false, "formula step {} is not binary", static_cast<int>(step.code));
    }
  }
  TRN_CHECK(top == 1, "a formula left {} values", top);
  return stack[0];
}

}  // namespace trn::sim
