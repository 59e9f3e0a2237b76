#include "sim/report/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "isa/base/check.h"

namespace trn::sim {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 2;

std::string leaf(const Json& value) {
  if (!value.is_number_float()) return value.dump();
  const double number = value.get<double>();
  TRN_CHECK(std::isfinite(number), "a report holds {}", number);
  return fmt::format("{}", number);
}

std::string key_text(const std::string& key) { return Json(key).dump() + ": "; }

/// On one line; empty when it holds lists or objects itself.
std::string flat(const Json& value) {
  if (!value.is_structured()) return leaf(value);
  const bool nested = std::any_of(value.begin(), value.end(),
                                  [](const Json& item) { return item.is_structured(); });
  if (nested) return {};
  std::string text(1, value.is_object() ? '{' : '[');
  for (const auto& [key, item] : value.items()) {
    if (text.size() > 1) text += ", ";
    if (value.is_object()) text += key_text(key);
    text += leaf(item);
  }
  return text + (value.is_object() ? '}' : ']');
}

void append(const Json& value, std::size_t level, std::size_t used, std::string& out) {
  const std::string line = flat(value);
  // An object at the top of a report is read by its keys: one a line.
  if (!value.is_structured() || value.empty() ||
      (!line.empty() && used + line.size() < kColumns && level > 0)) {
    out += line.empty() ? value.dump() : line;
    return;
  }
  out += value.is_object() ? '{' : '[';
  bool first = true;
  const std::string indent((level + 1) * kIndent, ' ');
  for (const auto& [key, item] : value.items()) {
    out += first ? "\n" : ",\n";
    first = false;
    const std::string start = indent + (value.is_object() ? key_text(key) : std::string{});
    out += start;
    append(item, level + 1, start.size(), out);
  }
  out += '\n';
  out.append(level * kIndent, ' ');
  out += value.is_object() ? '}' : ']';
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& value) {
  std::string text;
  append(value, 0, 0, text);
  return text + '\n';
}

}  // namespace trn::sim
