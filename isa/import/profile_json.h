#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace trn::isa {

/// One object of a list of the profiler's export, with the fields that were asked for. A field that
/// is null or an empty text counts as absent, as exporters differ in what they leave out.
/// Every error is an InputError at `file: section[number].key`.
class ProfileRow {
 public:
  /// What stands for a list or an object within a row: its content is not kept.
  struct Nested {
    std::string_view kind;
  };
  using Value = std::variant<Nested, bool, std::int64_t, double, std::string>;

  ProfileRow(const std::string& file, std::string_view section, std::uint64_t number)
      : file_(&file), section_(section), number_(number) {}

  [[nodiscard]] std::string_view section() const { return section_; }
  [[nodiscard]] std::uint64_t number() const { return number_; }
  [[nodiscard]] bool has(std::string_view key) const { return find(key) != nullptr; }
  /// The text of a field. Throws when it is absent or no text.
  [[nodiscard]] std::string_view text(std::string_view key) const;
  [[nodiscard]] std::optional<std::string_view> text_if(std::string_view key) const;
  /// A whole number within limits. Throws when it is absent, no such number or outside them.
  [[nodiscard]] std::int64_t whole(
      std::string_view key, std::int64_t min = std::numeric_limits<std::int64_t>::min(),
      std::int64_t max = std::numeric_limits<std::int64_t>::max()) const;
  /// A finite number. Throws when it is absent or no number.
  [[nodiscard]] double number(std::string_view key) const;
  [[noreturn]] void fail(std::string_view key, std::string_view message) const;

  /// False when the key is there already.
  bool add(std::string_view key, Value value);

 private:
  [[nodiscard]] const Value* find(std::string_view key) const;
  [[nodiscard]] const Value& need(std::string_view key, std::string_view expected) const;

  const std::string* file_;
  std::string_view section_;
  std::uint64_t number_;
  std::vector<std::pair<std::string_view, Value>> fields_;
};

/// A list of the export and the fields of its rows that are wanted. Nothing else is kept.
struct ProfileSection {
  std::string_view name;
  std::span<const std::string_view> keys;
};

/// Calls `visit` for each row of the named sections, in the order of the file. Sections and fields
/// that are not asked for may hold anything that is JSON. Memory does not follow the depth of the
/// text, nor its length beside one row.
/// Throws InputError: at a byte for what is not JSON, at a path for what is no list of objects.
void read_profile(std::string_view json, const std::string& file,
                  std::span<const ProfileSection> sections,
                  const std::function<void(const ProfileRow&)>& visit);

/// The content of a profile's file. Throws InputError when there is none to read: a missing or
/// unreadable file, a directory, an empty file, a Git LFS pointer.
std::string load_profile(const std::filesystem::path& path);

}  // namespace trn::isa
