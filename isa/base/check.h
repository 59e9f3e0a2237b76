#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace trn {

/// A fault of ours: an internal invariant does not hold. `main` maps it to exit code 70.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] inline void check_failed(const char* file, int line, const char* condition,
                                      const std::string& message) {
  throw InternalError(fmt::format("{}:{}: check `{}` failed: {}", file, line, condition, message));
}
}  // namespace detail

}  // namespace trn

/// Checks one of our own invariants; the message is a fmt format string and its arguments.
/// Never for what a user can cause: that is an InputError.
#define TRN_CHECK(condition, ...)                                                              \
  do {                                                                                         \
    if (!(condition)) [[unlikely]]                                                             \
      ::trn::detail::check_failed(__FILE__, __LINE__, #condition, ::fmt::format(__VA_ARGS__)); \
  } while (false)
