#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "isa/base/describe.h"

namespace trn::sim {

template <class T>
nlohmann::ordered_json fields_json(const T& value);

/// A value of a report. A double that holds a whole number is written as one.
template <class T>
nlohmann::ordered_json value_json(const T& value) {
  if constexpr (Described<T>) {
    return fields_json(value);
  } else if constexpr (NamedEnum<T>) {
    return std::string(name_of(value));
  } else if constexpr (std::same_as<T, double>) {
    constexpr double kExact = 9007199254740992.0;  // 2^53
    if (std::abs(value) < kExact && value == std::trunc(value))
      return static_cast<std::int64_t>(value);
    return value;
  } else {
    return value;
  }
}

/// The members of a described struct; one that is absent is left out.
template <class T>
nlohmann::ordered_json fields_json(const T& value) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for_each_field<T>([&](const auto& field) {
    const auto& member = value.*field.member;
    if constexpr (requires { member.has_value(); }) {
      if (member) json[std::string(field.name)] = value_json(*member);
    } else {
      json[std::string(field.name)] = value_json(member);
    }
  });
  return json;
}

}  // namespace trn::sim
