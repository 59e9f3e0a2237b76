#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>

namespace trn {

/// One member of a plain struct that describes itself: config and stats blocks list their members
/// once, and loading, dumping, reports and reference pages walk that list.
template <class Member>
struct Field {
  std::string_view name;  ///< lower_snake, as in the file or report
  Member member;          ///< pointer to member
  std::string_view unit;  ///< "ns", "cycles", "bytes", "GB/s" ...; empty for a pure number or name
  std::string_view meaning;
};
template <class Member>
Field(std::string_view, Member, std::string_view, std::string_view) -> Field<Member>;

/// A struct with a static `fields()` tuple of Field.
template <class T>
concept Described = requires { T::fields(); };

/// Calls `visit(field)` for every field of T, in order.
template <Described T, class Visit>
constexpr void for_each_field(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, T::fields());
}

/// The names of an enum, in the order of its values, which count up from 0.
/// Specialise with `static constexpr std::array<std::string_view, N> value`.
template <class E>
struct EnumNames;

template <class E>
concept NamedEnum = requires { EnumNames<E>::value.size(); };

template <NamedEnum E>
constexpr std::string_view name_of(E value) {
  const auto index = static_cast<std::size_t>(value);
  return index < EnumNames<E>::value.size() ? EnumNames<E>::value[index] : std::string_view{"?"};
}

}  // namespace trn
