#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace trn {

/// A value read from text, or what is wrong with the text: `expected ..., got '...'`.
template <class T>
struct Parsed {
  std::optional<T> value{};
  std::string problem{};
  explicit operator bool() const { return value.has_value(); }
};

/// Reads a quantity and returns it in `unit`, which is spelt as in Field::unit: "Hz", "B/s",
/// "bytes", "ns", "cycles", "count", "" (a pure number) or any other word. Frequencies, bandwidths,
/// sizes and times need a unit in the text (GHz, GB/s, GiB/s, Gbit/s, KiB, kB, us ...; decimal and
/// binary prefixes differ); cycles, counts and words may be followed by theirs; a pure number has
/// none. A number has no leading zero, so that 010 is never taken for 8. The result is the double
/// nearest to the decimal text.
Parsed<double> parse_quantity(std::string_view text, std::string_view unit);

/// As parse_quantity, for what comes in whole numbers between min and max.
Parsed<std::int64_t> parse_signed(std::string_view text, std::string_view unit, std::int64_t min,
                                  std::int64_t max);
Parsed<std::uint64_t> parse_unsigned(std::string_view text, std::string_view unit,
                                     std::uint64_t min, std::uint64_t max);

template <std::integral T>
Parsed<T> parse_whole(std::string_view text, std::string_view unit,
                      T min = std::numeric_limits<T>::min(),
                      T max = std::numeric_limits<T>::max()) {
  const auto narrow = [](auto wide) {
    Parsed<T> result{.problem = std::move(wide.problem)};
    if (wide.value) result.value = static_cast<T>(*wide.value);
    return result;
  };
  if constexpr (std::signed_integral<T>) return narrow(parse_signed(text, unit, min, max));
  return narrow(parse_unsigned(text, unit, min, max));
}

/// A quantity as people write it: 2.4 GHz, 716 GB/s, 224 KiB, 3413.33 ns. The same value comes back
/// from parse_quantity. value is finite.
std::string format_quantity(double value, std::string_view unit);

/// "a frequency such as 2.4 GHz": what a value of this unit should look like.
std::string expected_quantity(std::string_view unit);

}  // namespace trn
