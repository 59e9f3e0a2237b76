#include "isa/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>

#include "isa/base/check.h"

namespace trn {
namespace {

enum class Dimension : std::uint8_t { Frequency, Bandwidth, Size, Time };

/// Scale to the dimension's base (Hz, B/s, B, ns): 10^decimal * 2^binary, and / 8 for bits.
struct Symbol {
  std::string_view text;
  Dimension dimension;
  int decimal;
  int binary;
  bool shown;  ///< format_quantity uses it
};

constexpr std::array kSymbols = {
    Symbol{"GHz", Dimension::Frequency, 9, 0, true},
    Symbol{"MHz", Dimension::Frequency, 6, 0, true},
    Symbol{"kHz", Dimension::Frequency, 3, 0, true},
    Symbol{"Hz", Dimension::Frequency, 0, 0, true},

    Symbol{"TB/s", Dimension::Bandwidth, 12, 0, true},
    Symbol{"GB/s", Dimension::Bandwidth, 9, 0, true},
    Symbol{"MB/s", Dimension::Bandwidth, 6, 0, true},
    Symbol{"kB/s", Dimension::Bandwidth, 3, 0, true},
    Symbol{"B/s", Dimension::Bandwidth, 0, 0, true},
    Symbol{"B/ns", Dimension::Bandwidth, 9, 0, false},
    Symbol{"TiB/s", Dimension::Bandwidth, 0, 40, false},
    Symbol{"GiB/s", Dimension::Bandwidth, 0, 30, false},
    Symbol{"MiB/s", Dimension::Bandwidth, 0, 20, false},
    Symbol{"KiB/s", Dimension::Bandwidth, 0, 10, false},
    Symbol{"Tbit/s", Dimension::Bandwidth, 12, -3, false},
    Symbol{"Gbit/s", Dimension::Bandwidth, 9, -3, false},
    Symbol{"Mbit/s", Dimension::Bandwidth, 6, -3, false},

    Symbol{"TiB", Dimension::Size, 0, 40, true},
    Symbol{"GiB", Dimension::Size, 0, 30, true},
    Symbol{"MiB", Dimension::Size, 0, 20, true},
    Symbol{"KiB", Dimension::Size, 0, 10, true},
    Symbol{"B", Dimension::Size, 0, 0, true},
    Symbol{"bytes", Dimension::Size, 0, 0, false},
    Symbol{"TB", Dimension::Size, 12, 0, false},
    Symbol{"GB", Dimension::Size, 9, 0, false},
    Symbol{"MB", Dimension::Size, 6, 0, false},
    Symbol{"kB", Dimension::Size, 3, 0, false},

    Symbol{"s", Dimension::Time, 9, 0, true},
    Symbol{"ms", Dimension::Time, 6, 0, true},
    Symbol{"us", Dimension::Time, 3, 0, true},
    Symbol{"ns", Dimension::Time, 0, 0, true},
    Symbol{"ps", Dimension::Time, -3, 0, false},
    Symbol{"fs", Dimension::Time, -6, 0, false},
};

const Symbol* find_symbol(std::string_view text) {
  for (const Symbol& symbol : kSymbols) {
    if (symbol.text == text) return &symbol;
  }
  return nullptr;
}

constexpr std::string_view kBlanks = " \t";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

/// The number at the start of a quantity: sign, digits, fraction, exponent.
struct Number {
  std::string_view text;    ///< empty: there is none
  std::string_view digits;  ///< the whole part without its sign
  bool negative = false;
  bool whole = true;  ///< neither fraction nor exponent
  std::string_view mantissa;
  int exponent = 0;
};

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

Number scan_number(std::string_view text) {
  Number number;
  std::size_t at = 0;
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) number.negative = text[at++] == '-';
  const std::size_t start = at;
  at = skip_digits(text, at);
  number.digits = text.substr(start, at - start);
  if (number.digits.empty()) return {};
  if (at + 1 < text.size() && text[at] == '.' && is_digit(text[at + 1])) {
    at = skip_digits(text, at + 1);
    number.whole = false;
  }
  number.mantissa = text.substr(start, at - start);
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t digit = at + 1;
    if (digit < text.size() && (text[digit] == '-' || text[digit] == '+')) ++digit;
    const std::size_t end = skip_digits(text, digit);
    if (end > digit) {
      const bool negative = text[digit - 1] == '-';
      constexpr std::size_t kExponentDigits = 4;
      if (end - digit > kExponentDigits) return {};
      std::from_chars(text.data() + digit, text.data() + end, number.exponent);
      if (negative) number.exponent = -number.exponent;
      number.whole = false;
      at = end;
    }
  }
  number.text = text.substr(0, at);
  return number;
}

std::string got(std::string_view text) {
  constexpr std::size_t kShown = 60;
  if (text.empty()) return "got nothing";
  if (text.size() > kShown) return fmt::format("got '{}...'", text.substr(0, kShown));
  return fmt::format("got '{}'", text);
}

std::string unexpected(std::string_view text, std::string_view unit) {
  return fmt::format("expected {}, {}", expected_quantity(unit), got(text));
}

/// A quantity taken apart: its number and the factor from the text's unit to the wanted one.
struct Scaled {
  Number number;
  int decimal = 0;
  int binary = 0;
};

Parsed<Scaled> scan(std::string_view raw, std::string_view unit) {
  const std::string_view text = trim(raw);
  const Number number = scan_number(text);
  if (number.text.empty()) return {.problem = unexpected(text, unit)};
  if (number.digits.size() > 1 && number.digits.front() == '0') {
    return {.problem = fmt::format("expected a number without leading zeros, {}", got(text))};
  }
  const std::string_view suffix = trim(text.substr(number.text.size()));
  const Symbol* const wanted = find_symbol(unit);
  if (wanted == nullptr) {
    if (!suffix.empty() && (unit.empty() || suffix != unit)) {
      return {.problem = unexpected(text, unit)};
    }
    return {.value = Scaled{.number = number}};
  }
  const Symbol* const given = find_symbol(suffix);
  if (given == nullptr || given->dimension != wanted->dimension) {
    return {.problem = unexpected(text, unit)};
  }
  return {.value = Scaled{.number = number,
                          .decimal = given->decimal - wanted->decimal,
                          .binary = given->binary - wanted->binary}};
}

std::optional<double> to_double(const Scaled& scaled) {
  const std::string text =
      fmt::format("{}e{}", scaled.number.mantissa, scaled.number.exponent + scaled.decimal);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  value = std::ldexp(value, scaled.binary);
  if (!std::isfinite(value)) return std::nullopt;
  return scaled.number.negative ? -value : value;
}

/// The magnitude of a whole number, exactly; nothing when it has a fraction or passes 2^64.
std::optional<std::uint64_t> to_magnitude(const Scaled& scaled) {
  if (scaled.number.whole && scaled.decimal == 0 && scaled.binary >= 0) {
    std::uint64_t value = 0;
    const std::string_view digits = scaled.number.digits;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || scaled.binary >= 64) return std::nullopt;
    if (scaled.binary > 0 && value >> (64 - scaled.binary) != 0) return std::nullopt;
    return value << scaled.binary;
  }
  const auto value = to_double(scaled);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!value || std::floor(*value) != *value || std::abs(*value) > kExact) return std::nullopt;
  return static_cast<std::uint64_t>(std::abs(*value));
}

/// Integers shown in messages with their unit: 64 KiB, 16.
template <class T>
std::string limit(T value, std::string_view unit) {
  if (find_symbol(unit) == nullptr) return fmt::format("{}", value);
  return format_quantity(static_cast<double>(value), unit);
}

template <class T>
Parsed<T> parse_integer(std::string_view text, std::string_view unit, T min, T max) {
  const Parsed<Scaled> scaled = scan(text, unit);
  if (!scaled) return {.problem = scaled.problem};
  const auto value = to_double(*scaled.value);
  if (value && std::floor(*value) != *value) {
    const bool plain = unit.empty() || unit == "count";
    return {.problem = fmt::format("expected a whole number{}{}, {}", plain ? "" : " of ",
                                   plain ? "" : unit, got(trim(text)))};
  }
  const auto magnitude = to_magnitude(*scaled.value);
  const bool negative = scaled.value->number.negative;
  std::optional<T> result;
  if (magnitude && !negative && *magnitude <= static_cast<std::uint64_t>(max)) {
    result = static_cast<T>(*magnitude);
  } else if (magnitude && negative && *magnitude <= static_cast<std::uint64_t>(1) << 63U) {
    if (std::is_signed_v<T> || *magnitude == 0) result = static_cast<T>(0U - *magnitude);
  }
  if (!result || *result < min || *result > max) {
    return {.problem = fmt::format("expected {} to {}, {}", limit(min, unit), limit(max, unit),
                                   got(trim(text)))};
  }
  return {.value = result};
}

}  // namespace

std::string expected_quantity(std::string_view unit) {
  if (const Symbol* const symbol = find_symbol(unit)) {
    switch (symbol->dimension) {
      case Dimension::Frequency:
        return "a frequency such as 2.4 GHz";
      case Dimension::Bandwidth:
        return "a bandwidth such as 716 GB/s";
      case Dimension::Size:
        return "a size such as 224 KiB";
      case Dimension::Time:
        return "a time such as 600 ns";
    }
  }
  if (unit.empty()) return "a number";
  if (unit == "cycles") return "a number of cycles such as 64";
  if (unit == "count") return "a count such as 16";
  return fmt::format("a number of {}", unit);
}

Parsed<double> parse_quantity(std::string_view text, std::string_view unit) {
  const Parsed<Scaled> scaled = scan(text, unit);
  if (!scaled) return {.problem = scaled.problem};
  const auto value = to_double(*scaled.value);
  if (!value) return {.problem = fmt::format("expected a number in range, {}", got(trim(text)))};
  return {.value = value};
}

Parsed<std::int64_t> parse_signed(std::string_view text, std::string_view unit, std::int64_t min,
                                  std::int64_t max) {
  return parse_integer(text, unit, min, max);
}

Parsed<std::uint64_t> parse_unsigned(std::string_view text, std::string_view unit,
                                     std::uint64_t min, std::uint64_t max) {
  return parse_integer(text, unit, min, max);
}

std::string format_quantity(double value, std::string_view unit) {
  TRN_CHECK(std::isfinite(value), "formats {} {}", value, unit);
  const Symbol* const wanted = find_symbol(unit);
  if (wanted == nullptr) return fmt::format("{}", value);
  // The shortest text wins: 224 KiB, but 212984 B rather than 207.9921875 KiB. Under 1 of the
  // smallest unit there is no choice.
  std::string best;
  std::string smallest;
  for (const Symbol& symbol : kSymbols) {
    if (!symbol.shown || symbol.dimension != wanted->dimension) continue;
    const double scale = std::ldexp(std::pow(10.0, symbol.decimal - wanted->decimal),
                                    symbol.binary - wanted->binary);
    const double shown = value / scale;
    std::string text = fmt::format("{} {}", shown, symbol.text);
    if (parse_quantity(text, unit).value != value) continue;
    if (std::abs(shown) >= 1 && (best.empty() || text.size() < best.size())) best = text;
    smallest = std::move(text);
  }
  return best.empty() ? smallest : best;
}

}  // namespace trn
