#include "isa/import/profile_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <type_traits>

#include "isa/base/error.h"

namespace trn::isa {
namespace {

constexpr std::size_t kMaxDepth = 64;  // rows are three deep; this is no profile any more
constexpr std::size_t kQuoted = 80;    // characters of a text that a message repeats

std::string in_quotes(std::string_view text) {
  if (text.size() <= kQuoted) return fmt::format("'{}'", text);
  return fmt::format("'{}...'", text.substr(0, kQuoted));
}

std::string describe(const ProfileRow::Value& value) {
  return std::visit(
      []<class T>(const T& v) -> std::string {
        if constexpr (std::is_same_v<T, ProfileRow::Nested>)
          return std::string(v.kind);
        else if constexpr (std::is_same_v<T, bool>)
          return v ? "true" : "false";
        else if constexpr (std::is_same_v<T, std::string>)
          return in_quotes(v);
        else
          return fmt::format("{}", v);
      },
      value);
}

/// Follows the parser's events; keeps the row that is being read, no more.
class Handler final : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(const std::string& file, std::size_t size, std::span<const ProfileSection> sections,
          const std::function<void(const ProfileRow&)>& visit)
      : file_(file), size_(size), sections_(sections), visit_(visit) {}

  bool null() override {
    if (depth_ < 3) take("null");
    return true;
  }
  bool boolean(bool value) override { return scalar(value, "true or false"); }
  bool number_integer(number_integer_t value) override { return scalar(value, "a number"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<number_unsigned_t>(std::numeric_limits<std::int64_t>::max())) {
      return scalar(static_cast<std::int64_t>(value), "a number");
    }
    return scalar(static_cast<double>(value), "a number");
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return scalar(value, "a number");
  }
  bool string(string_t& value) override {
    if (depth_ >= 3 && value.empty()) return true;
    return scalar(std::move(value), "a text");
  }
  bool binary(binary_t& /*value*/) override { return true; }

  bool start_object(std::size_t /*elements*/) override {
    if (depth_ == 2) {
      if (section_ != nullptr) row_.emplace(file_, section_->name, rows_);
      ++rows_;
    } else if (depth_ != 0) {
      take("an object");
    }
    return enter();
  }
  bool key(string_t& value) override {
    if (depth_ == 1) {
      begin_section(value);
    } else if (depth_ == 3 && row_) {
      const auto wanted = std::find(section_->keys.begin(), section_->keys.end(), value);
      key_ = wanted == section_->keys.end() ? std::string_view{} : *wanted;
    }
    return true;
  }
  bool end_object() override {
    if (--depth_ == 2 && row_) {
      visit_(*row_);
      row_.reset();
    }
    return true;
  }
  bool start_array(std::size_t /*elements*/) override {
    if (depth_ != 1) take("a list");
    return enter();
  }
  bool end_array() override {
    --depth_;
    return true;
  }

  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::json::exception& error) override {
    std::string_view cause = error.what();
    for (std::string_view skip : {"] ", ": syntax error", " - "}) {
      const auto at = cause.find(skip);
      if (at != std::string_view::npos) cause.remove_prefix(at + skip.size());
    }
    const std::uint64_t byte = std::min(position - std::min<std::size_t>(position, 1), size_);
    throw InputError({file_, std::nullopt, byte}, "", fmt::format("expected JSON: {}", cause));
  }

 private:
  bool enter() {
    if (++depth_ > kMaxDepth) {
      throw InputError({file_}, path(), fmt::format("nested deeper than {} levels", kMaxDepth));
    }
    return true;
  }

  void begin_section(const std::string& name) {
    rows_ = 0;
    section_ = nullptr;
    for (std::size_t i = 0; i < sections_.size(); ++i) {
      if (sections_[i].name != name) continue;
      if ((seen_ >> i & 1U) != 0) throw InputError({file_}, name, "this list is here twice");
      seen_ |= std::uint64_t{1} << i;
      section_ = &sections_[i];
    }
  }

  template <class T>
  bool scalar(T value, std::string_view what) {
    if (depth_ == 3 && row_ && !key_.empty()) {
      if (!row_->add(key_, std::move(value))) row_->fail(key_, "this field is here twice");
    } else {
      take(what);
    }
    return true;
  }

  /// A value where none is kept: wrong above the rows, skipped below them.
  void take(std::string_view what) {
    if (depth_ == 0) {
      throw InputError({file_}, "", fmt::format("expected an object of lists, got {}", what));
    }
    if (depth_ <= 2 && section_ != nullptr) {
      throw InputError(
          {file_}, path(),
          fmt::format("expected {}, got {}", depth_ == 1 ? "a list" : "an object", what));
    }
    if (depth_ == 3 && row_ && !key_.empty()) {
      if (!row_->add(key_, ProfileRow::Nested{what})) row_->fail(key_, "this field is here twice");
    }
  }

  [[nodiscard]] std::string path() const {
    if (section_ == nullptr) return {};
    return depth_ == 1 ? std::string(section_->name)
                       : fmt::format("{}[{}]", section_->name, row_ ? row_->number() : rows_);
  }

  const std::string& file_;
  std::size_t size_;
  std::span<const ProfileSection> sections_;
  const std::function<void(const ProfileRow&)>& visit_;
  std::size_t depth_ = 0;
  std::uint64_t seen_ = 0;  // a bit a section
  const ProfileSection* section_ = nullptr;
  std::uint64_t rows_ = 0;
  std::string_view key_;
  std::optional<ProfileRow> row_;
};

}  // namespace

bool ProfileRow::add(std::string_view key, Value value) {
  if (has(key)) return false;
  fields_.emplace_back(key, std::move(value));
  return true;
}

const ProfileRow::Value* ProfileRow::find(std::string_view key) const {
  const auto at =
      std::find_if(fields_.begin(), fields_.end(), [&](const auto& f) { return f.first == key; });
  return at == fields_.end() ? nullptr : &at->second;
}

const ProfileRow::Value& ProfileRow::need(std::string_view key, std::string_view expected) const {
  const Value* value = find(key);
  if (value == nullptr) fail(key, fmt::format("expected {}, the field is missing", expected));
  return *value;
}

std::string_view ProfileRow::text(std::string_view key) const {
  const Value& value = need(key, "a text");
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  fail(key, fmt::format("expected a text, got {}", describe(value)));
}

std::optional<std::string_view> ProfileRow::text_if(std::string_view key) const {
  if (!has(key)) return std::nullopt;
  return text(key);
}

std::int64_t ProfileRow::whole(std::string_view key, std::int64_t min, std::int64_t max) const {
  const bool limited = min != std::numeric_limits<std::int64_t>::min() ||
                       max != std::numeric_limits<std::int64_t>::max();
  const std::string expected =
      limited ? fmt::format("a whole number in {}..{}", min, max) : std::string("a whole number");
  const Value& value = need(key, expected);
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    if (*whole >= min && *whole <= max) return *whole;
  }
  fail(key, fmt::format("expected {}, got {}", expected, describe(value)));
}

double ProfileRow::number(std::string_view key) const {
  const Value& value = need(key, "a number");
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
  if (const auto* real = std::get_if<double>(&value)) return *real;
  fail(key, fmt::format("expected a number, got {}", describe(value)));
}

void ProfileRow::fail(std::string_view key, std::string_view message) const {
  const std::string dot = key.empty() ? "" : ".";
  throw InputError({*file_}, fmt::format("{}[{}]{}{}", section_, number_, dot, key), message);
}

void read_profile(std::string_view json, const std::string& file,
                  std::span<const ProfileSection> sections,
                  const std::function<void(const ProfileRow&)>& visit) {
  Handler handler(file, json.size(), sections, visit);
  nlohmann::json::sax_parse(json.begin(), json.end(), &handler);
}

std::string load_profile(const std::filesystem::path& path) {
  const Place place{path.string()};
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw InputError(place, "", "no such file");
  }
  if (std::filesystem::is_directory(status)) {
    throw InputError(place, "", "expected a profile (JSON), got a directory");
  }
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  if (!in || in.bad()) throw InputError(place, "", "cannot be read");
  if (text.empty()) throw InputError(place, "", "expected a profile (JSON), got an empty file");
  if (text.starts_with("version https://git-lfs")) {
    throw InputError(place, "",
                     "this is a Git LFS pointer, not the profile: fetch it with `git lfs pull`");
  }
  return text;
}

}  // namespace trn::isa
