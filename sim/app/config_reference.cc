#include "sim/app/config_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <string_view>
#include <type_traits>

#include "isa/base/yaml_load.h"
#include "sim/core/cost_features.h"
#include "sim/machine/machine_config.h"
#include "sim/machine/prices.h"

namespace trn::app {
namespace {

template <class E>
std::string names_of() {
  std::string text;
  for (const std::string_view name : EnumNames<E>::value) {
    if (!text.empty()) text += ", ";
    text.append("`").append(name).append("`");
  }
  return text;
}

template <class T>
std::string type_of(std::string_view unit) {
  if constexpr (detail::IsOptional<T>::value) {
    return type_of<typename T::value_type>(unit) + ", or absent";
  } else if constexpr (std::same_as<T, std::string>) {
    return "text";
  } else if constexpr (std::same_as<T, bool>) {
    return "`true` or `false`";
  } else if constexpr (NamedEnum<T>) {
    return names_of<T>();
  } else if constexpr (detail::IsMap<T>::value) {
    return "by name: " + type_of<typename T::mapped_type>(unit);
  } else if constexpr (detail::IsVector<T>::value || detail::IsArray<T>::value) {
    return "list: " + type_of<typename T::value_type>(unit);
  } else if constexpr (std::is_arithmetic_v<T>) {
    return expected_quantity(unit);
  } else {
    return "block";
  }
}

/// A row for every key under `path`, blocks before what is inside them.
template <class T>
void add_rows(const std::string& path, std::string& page) {
  for_each_field<T>([&](const auto& field) {
    using Member = detail::MemberType<T, decltype(field.member)>;
    const std::string name = YamlReader::join(path, field.name);
    page += fmt::format("| `{}` | {} | {} |\n", name, type_of<Member>(field.unit), field.meaning);
    if constexpr (Described<Member>) {
      add_rows<Member>(name, page);
    } else if constexpr (detail::IsVector<Member>::value) {
      if constexpr (Described<typename Member::value_type>) {
        add_rows<typename Member::value_type>(name + ".N", page);
      }
    }
  });
}

std::string lower(std::string_view name) {
  std::string text(name);
  std::transform(text.begin(), text.end(), text.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return text;
}

template <class T>
struct FeatureType;
template <>
struct FeatureType<std::uint32_t> {
  static std::string text() { return "number"; }
};
template <>
struct FeatureType<sim::Flag> {
  static std::string text() { return "condition"; }
};
template <>
struct FeatureType<sim::OpcodeNumber> {
  static std::string text() { return "a mnemonic of isa.md"; }
};
template <class E>
struct FeatureType<sim::OrNone<E>> {
  static std::string text() { return lower(names_of<E>()); }
};

}  // namespace

std::string configuration_page() {
  std::string page =
      "# Configuration\n"
      "\n"
      "Written by the test `ConfigReference` from the lists in the code; edit those.\n"
      "\n"
      "A machine is a system file (`configs/systems/`), which names its chip (`configs/chips/`), "
      "which "
      "names its cost table. `--set PATH=VALUE` overrides a key by its path; `--dump-config` "
      "prints the "
      "effective values with the file and line of each. Every number, switch and choice has a "
      "status "
      "and a source: `{value: 2.4 GHz, status: doc, source: docs/sources.md#a2-clocks}`, or keys "
      "`status` and `source` of a block around it. Frequencies, bandwidths, sizes and times need a "
      "unit; `GB` is 10^9 bytes, `GiB` 2^30.\n"
      "\n"
      "## Machine\n"
      "\n"
      "| key | value | meaning |\n"
      "|---|---|---|\n";
  add_rows<sim::MachineConfig>("", page);
  page +=
      "\n"
      "## A row of a cost table\n"
      "\n"
      "Under `chip.costs.rows.CLASS` stands a list of rows, or a list for each engine: see "
      "[ADR 2](../adr/0002-cost-tables.md).\n"
      "\n"
      "| key | value | meaning |\n"
      "|---|---|---|\n";
  add_rows<sim::CostRowConfig>("", page);
  page +=
      "\n"
      "## Cost classes\n"
      "\n"
      "| class | engines | instructions |\n"
      "|---|---|---|\n";
  for (std::size_t i = 0; i < isa::kCostClasses; ++i) {
    std::string instructions;
    isa::EngineSet engines;
    isa::for_each_instruction([&]<class T>() {
      if (static_cast<std::size_t>(T::kCost) != i) return;
      engines.bits |= T::kEngines.bits;
      if (!instructions.empty()) instructions += ", ";
      instructions.append("`").append(T::kName).append("`");
    });
    std::string where;
    for (const isa::Engine engine : isa::kAllEngines) {
      if (!engines.contains(engine)) continue;
      if (!where.empty()) where += ", ";
      where.append("`").append(lower(name_of(engine))).append("`");
    }
    page += fmt::format("| `{}` | {} | {} |\n", EnumNames<isa::CostClass>::value[i], where,
                        instructions);
  }
  page +=
      "\n"
      "## Features of a cost formula\n"
      "\n"
      "| feature | value | meaning |\n"
      "|---|---|---|\n";
  for_each_field<sim::CostFeatures>([&](const auto& field) {
    using Member = detail::MemberType<sim::CostFeatures, decltype(field.member)>;
    page +=
        fmt::format("| `{}` | {} | {} |\n", field.name, FeatureType<Member>::text(), field.meaning);
  });
  page += "| `engine` | `tensor`, `vector`, `scalar`, `gpsimd`, `sync` | the engine of the row |\n";
  page +=
      "\n"
      "## Prices\n"
      "\n"
      "`configs/prices.yaml`:\n"
      "\n"
      "| key | value | meaning |\n"
      "|---|---|---|\n";
  add_rows<sim::PriceList>("", page);
  return page;
}

}  // namespace trn::app
