#include "isa/base/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace trn {
namespace {

std::string compose(const Place& place, std::string_view path, std::string_view message) {
  std::string text = to_string(place);
  for (std::string_view part : {path, message}) {
    if (part.empty()) continue;
    if (!text.empty()) text += ": ";
    text += part;
  }
  return text;
}

std::string join_lines(const std::vector<InputError>& errors) {
  std::string text;
  for (const InputError& error : errors) {
    if (!text.empty()) text += '\n';
    text += error.what();
  }
  return text;
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string to_string(const Place& place) {
  if (place.line) return fmt::format("{}:{}", place.file, *place.line);
  if (place.byte) return fmt::format("{}: byte {}", place.file, *place.byte);
  return place.file;
}

InputError::InputError(const Place& place, std::string_view path, std::string_view message)
    : std::runtime_error(compose(place, path, message)) {}

InputError::InputError(std::string_view path, std::string_view message)
    : InputError(Place{}, path, message) {}

InputError::InputError(const std::vector<InputError>& errors)
    : std::runtime_error(join_lines(errors)) {}

std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string_view>& candidates) {
  constexpr std::size_t kLongestName = 256;  // beyond it nothing is a slip of the pen
  if (name.size() > kLongestName) return std::nullopt;
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, name.size() / 3) + 1;
  for (std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates) {
  const auto candidate = nearest(name, candidates);
  return candidate ? fmt::format(" (did you mean '{}'?)", *candidate) : std::string{};
}

}  // namespace trn
