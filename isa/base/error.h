#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace trn {

/// Where an input is wrong: a file, and within it a line (text, from 1) or a byte offset (binary).
struct Place {
  std::string file;
  std::optional<std::uint64_t> line{};
  std::optional<std::uint64_t> byte{};
};

/// `file:line`, `file: byte N`, or `file`.
std::string to_string(const Place& place);

/// The user's input is wrong. `what()` is `place: path: message`; path names the key, operand or
/// option and may be empty. `main` maps it to exit code 2.
class InputError : public std::runtime_error {
 public:
  InputError(const Place& place, std::string_view path, std::string_view message);
  InputError(std::string_view path, std::string_view message);
  /// Several errors of one file at once; `what()` has one line each. errors is not empty.
  explicit InputError(const std::vector<InputError>& errors);
};

/// The program stopped before its end; `what()` says who waits for what. Exit code 3.
class DeadlockError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The program does not fit; `what()` names memory, limit and the largest tensors. Exit code 4.
class CapacityError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The candidate nearest to `name` by edit distance, when near enough to be a slip of the pen.
std::optional<std::string> nearest(std::string_view name,
                                   const std::vector<std::string_view>& candidates);

/// ` (did you mean 'x'?)`, or empty when nothing is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& candidates);

}  // namespace trn
