#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/operand.h"

namespace trn::isa {

/// The `operands` text of an instruction row, taken apart: waits and updates, `key=value` pairs and
/// bare words. Whoever reads it takes what is known; finish() refuses the rest, so that nothing is
/// skipped. Errors are thrown by `fail`, which gets the message and does not return.
/// Source of the forms: docs/sources.md#profiles-import.
class OperandText {
 public:
  using Fail = std::function<void(const std::string&)>;

  OperandText(std::string_view text, Fail fail);

  [[nodiscard]] const Sync& sync() const { return sync_; }

  /// The value of a key. Fails when there is none.
  std::string_view take(std::string_view key);
  std::optional<std::string_view> take_if(std::string_view key);
  /// The next word that is no pair. Fails when there is none.
  std::string_view take_word(std::string_view expected);

  std::int64_t take_whole(std::string_view key, std::int64_t min, std::int64_t max);
  /// Fails when the key has any other value.
  void expect(std::string_view key, std::string_view value);
  /// One of a named enum's spellings.
  template <NamedEnum E>
  E take_enum(std::string_view key) {
    return static_cast<E>(
        choose(key, take(key), EnumNames<E>::value.data(), EnumNames<E>::value.size()));
  }
  template <NamedEnum E>
  E as_enum(std::string_view key, std::string_view value) {
    return static_cast<E>(
        choose(key, value, EnumNames<E>::value.data(), EnumNames<E>::value.size()));
  }

  /// `dtype@address[strides][sizes]`, or without the dtype when `implied` gives it. Unit dimensions
  /// at the outer end are dropped: they move nothing.
  Access take_access(std::string_view key, std::uint32_t partitions,
                     std::optional<Dtype> implied = std::nullopt);
  /// One element per partition at an engine address.
  Access element_at(std::string_view key, std::string_view address, Dtype dtype,
                    std::uint32_t partitions);
  Dtype as_dtype(std::string_view key, std::string_view name);
  /// `[strides][sizes]` in bytes.
  void take_pattern(std::string_view key, DmaSide& side);
  std::int64_t as_whole(std::string_view key, std::string_view text, std::int64_t min,
                        std::int64_t max);
  double as_real(std::string_view key, std::string_view text);

  void finish();
  [[noreturn]] void fail(std::string_view key, std::string_view message);

 private:
  struct Pair {
    std::string_view key;
    std::string_view value;
    bool taken = false;
  };

  void parse_semaphore(std::string_view& rest);
  std::vector<std::int64_t> list(std::string_view key, std::string_view& rest, std::int64_t min,
                                 std::int64_t max);
  std::size_t choose(std::string_view key, std::string_view value, const std::string_view* names,
                     std::size_t count);
  void locate(std::string_view key, std::int64_t address, Access& access);

  std::string_view text_;
  Fail fail_;
  Sync sync_{};
  std::vector<Pair> pairs_;
  std::vector<std::string_view> words_;
  std::size_t words_taken_ = 0;
};

}  // namespace trn::isa
