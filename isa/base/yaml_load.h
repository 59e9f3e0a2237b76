#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "isa/base/describe.h"
#include "isa/base/error.h"
#include "isa/base/units.h"

namespace trn {

/// How well a number is known, as the tables of docs/sources.md mark it.
enum class Status : std::uint8_t { Documented, Derived, Measured, Disputed, Estimated };
template <>
struct EnumNames<Status> {
  static constexpr std::array<std::string_view, 5> value = {"doc", "der", "meas", "disp", "est"};
};
/// "documented", "derived", "measured", "disputed" or "assumed".
std::string_view long_name(Status status);

/// Where a value came from.
struct Origin {
  std::string value{};     ///< the text as written
  std::string file{};      ///< "command line" for an override
  std::uint32_t line = 0;  ///< 0: none
  std::optional<Status> status{};
  std::string source{};
};
/// By dotted path: `chip.tensor.clock`, list elements by number.
using Provenance = std::map<std::string, Origin, std::less<>>;

/// A parsed YAML document, with the place of every node.
struct YamlNode {
  enum class Kind : std::uint8_t { Null, Scalar, List, Block };
  struct Key {
    std::string name;
    std::uint32_t line = 0;
  };
  Kind kind = Kind::Null;
  bool quoted = false;  ///< of a scalar: quotes were around it
  std::uint32_t line = 0;
  std::shared_ptr<const std::string> file{};
  std::string text{};                               ///< of a scalar
  std::vector<YamlNode> items{};                    ///< of a list
  std::vector<std::pair<Key, YamlNode>> entries{};  ///< of a block, in the file's order

  [[nodiscard]] const YamlNode* find(std::string_view name) const;
  [[nodiscard]] Place place() const;
};

/// Limits that no honest file reaches; past them, parsing is an error.
inline constexpr std::size_t kYamlMaxBytes = std::size_t{4} << 20U;
inline constexpr int kYamlMaxDepth = 32;

/// Parses one YAML document. Anchors with aliases, tags, several documents, keys that are no plain
/// words, and repeated keys are errors: all of them are gathered in one InputError.
YamlNode parse_yaml(const std::string& text, const std::string& file);
/// As parse_yaml, of a file. Throws InputError when it cannot be read.
YamlNode read_yaml(const std::filesystem::path& path);

/// `--set PATH=VALUE`.
struct Override {
  std::string path;
  std::string value;
};
/// Splits `PATH=VALUE`; throws InputError when there is no path or no `=`.
Override parse_override(std::string_view text);

/// A key that has moved; the old name is still read, with a warning, for one release.
struct RenamedKey {
  std::string_view old_path;
  std::string_view new_path;
};

struct LoadOptions {
  /// Every number, bool and choice needs a status and a source: in its own block
  /// `{value: 2.4 GHz, status: doc, source: docs/sources.md#a2-clocks}`, or as keys `status` and
  /// `source` of an enclosing block. Names and other texts do not.
  bool need_source = false;
  std::vector<Override> overrides{};
  std::vector<RenamedKey> renamed{};
  /// Where a block is expected and a name stands, the file that holds the block: given the path of
  /// the block, the name, and the including file. Without it an include is an error.
  std::function<std::filesystem::path(std::string_view path, const std::string& name,
                                      const std::filesystem::path& from)>
      find_include{};
};

/// Walks described structs over a parsed document; used through `load` below.
/// Errors are gathered; `finish` throws them.
class YamlReader {
 public:
  explicit YamlReader(LoadOptions options);

  /// What a block hands down to the values inside it.
  struct Inherited {
    std::optional<Status> status{};
    std::string source{};
  };

  template <class T>
  void read(const YamlNode& node, const std::string& path, const Inherited& inherited, T& out);

  void fail(const YamlNode& node, std::string_view path, std::string_view message);
  void fail(const Place& place, std::string_view path, std::string_view message);
  /// Reports overrides that fit no path; throws when anything failed.
  void finish();

  [[nodiscard]] Provenance take_provenance() { return std::move(provenance_); }
  [[nodiscard]] std::vector<std::string> take_warnings() { return std::move(warnings_); }

  static std::string join(std::string_view path, std::string_view name);

 private:
  /// A scalar or list taken out of `{value, status, source}`, its origin noted.
  const YamlNode* leaf(const YamlNode& node, const std::string& path, const Inherited& inherited,
                       bool needs_source);
  /// The block at `node`, or in the file that it names.
  const YamlNode* block(const YamlNode& node, const std::string& path);
  bool is_block(const YamlNode& node, const std::string& path);
  const YamlNode* overridden(const std::string& path);
  Inherited inherit(const YamlNode& node, const std::string& path, const Inherited& outer);
  std::optional<Status> read_status(const YamlNode& node, const std::string& path);
  void check_keys(const YamlNode& node, const std::string& path,
                  const std::vector<std::string_view>& fields, bool described);
  const YamlNode* entry(const YamlNode& node, const std::string& path, std::string_view name);
  std::optional<std::string> scalar(const YamlNode& node, const std::string& path,
                                    std::string_view expected);

  template <class T>
  void read_block(const YamlNode& node, const std::string& path, const Inherited& inherited,
                  T& out);
  template <class T>
  void read_list(const YamlNode& node, const std::string& path, const Inherited& inherited, T& out);
  template <class T>
  void read_map(const YamlNode& node, const std::string& path, const Inherited& inherited, T& out);
  template <class T>
  void read_value(const YamlNode& node, const std::string& path, T& out);

  LoadOptions options_;
  std::vector<InputError> errors_{};
  Provenance provenance_{};
  std::vector<std::string> warnings_{};
  std::set<std::string, std::less<>> known_{};  ///< paths that an override may name
  std::map<std::string, YamlNode, std::less<>> overrides_{};
  std::set<std::string, std::less<>> used_overrides_{};
  std::vector<std::unique_ptr<YamlNode>> included_{};
  std::string_view unit_{};  ///< of the field being read
};

/// How a type that is no described struct reads and writes itself: specialised with
/// `static void read(YamlReader&, const YamlNode&, const std::string& path,
///                   const YamlReader::Inherited&, T&)` and
/// `static void write(YamlWriter&, const T&, const std::string& path)`.
template <class T>
struct YamlForm;

namespace detail {

template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
template <class T>
struct IsArray : std::false_type {};
template <class T, std::size_t N>
struct IsArray<std::array<T, N>> : std::true_type {};
template <class T>
struct IsMap : std::false_type {};
template <class T>
struct IsMap<std::map<std::string, T>> : std::true_type {};

template <class T>
concept HasForm = requires { &YamlForm<T>::read; };
/// What is written as one word or number.
template <class T>
concept Scalar = std::is_arithmetic_v<T> || NamedEnum<T> || std::same_as<T, std::string>;
/// A list of such, one value with one source.
template <class T>
concept ScalarList = (IsVector<T>::value || IsArray<T>::value) && Scalar<typename T::value_type>;
template <class T>
concept Leaf = Scalar<T> || ScalarList<T>;
/// Facts need a source; texts and the marks themselves do not.
template <class T>
constexpr bool needs_source() {
  if constexpr (IsVector<T>::value || IsArray<T>::value)
    return needs_source<typename T::value_type>();
  return !std::same_as<T, std::string> && !std::same_as<T, Status>;
}

template <class T>
void collect_names(std::vector<std::string_view>& names) {
  for_each_field<T>([&](const auto& field) { names.push_back(field.name); });
}

template <class T, class M>
using MemberType = std::remove_cvref_t<decltype(std::declval<T&>().*std::declval<M>())>;

}  // namespace detail

template <class T>
void YamlReader::read(const YamlNode& given, const std::string& path, const Inherited& inherited,
                      T& out) {
  const YamlNode* const replacement = overridden(path);
  const YamlNode& node = replacement != nullptr ? *replacement : given;
  if constexpr (detail::HasForm<T>) {
    if (const YamlNode* const inside = block(node, path)) {
      YamlForm<T>::read(*this, *inside, path, inherited, out);
    }
  } else if constexpr (detail::IsOptional<T>::value) {
    read(given, path, inherited, out.emplace());
  } else if constexpr (Described<T>) {
    const YamlNode* const inside = block(node, path);
    if (inside != nullptr && is_block(*inside, path)) read_block(*inside, path, inherited, out);
  } else if constexpr (detail::IsMap<T>::value) {
    const YamlNode* const inside = block(node, path);
    if (inside != nullptr && is_block(*inside, path)) read_map(*inside, path, inherited, out);
  } else if constexpr (detail::Leaf<T>) {
    const YamlNode* const value = leaf(node, path, inherited, detail::needs_source<T>());
    if (value == nullptr) return;
    if constexpr (detail::ScalarList<T>) {
      read_list(*value, path, inherited, out);
    } else {
      read_value(*value, path, out);
    }
  } else {
    read_list(node, path, inherited, out);
  }
}

template <class T>
void YamlReader::read_block(const YamlNode& node, const std::string& path,
                            const Inherited& inherited, T& out) {
  std::vector<std::string_view> names;
  detail::collect_names<T>(names);
  check_keys(node, path, names, true);
  Inherited own = inherited;
  const auto has = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!has("status") && !has("source")) own = inherit(node, path, inherited);
  for_each_field<T>([&](const auto& field) {
    using Member = detail::MemberType<T, decltype(field.member)>;
    const std::string field_path = join(path, field.name);
    known_.insert(field_path);
    const YamlNode* value = entry(node, field_path, field.name);
    if (value == nullptr) value = overridden(field_path);
    if (value == nullptr) {
      if constexpr (!detail::IsOptional<Member>::value) {
        fail(node, path, std::string("missing key '").append(field.name).append("'"));
      }
      return;
    }
    const std::string_view outer_unit = std::exchange(unit_, field.unit);
    read(*value, field_path, own, out.*field.member);
    unit_ = outer_unit;
  });
}

template <class T>
void YamlReader::read_list(const YamlNode& node, const std::string& path,
                           const Inherited& inherited, T& out) {
  if (node.kind != YamlNode::Kind::List) {
    fail(node, path, "expected a list such as [a, b]");
    return;
  }
  if constexpr (detail::IsArray<T>::value) {
    if (node.items.size() != out.size()) {
      fail(node, path,
           "expected " + std::to_string(out.size()) + " values, got " +
               std::to_string(node.items.size()));
      return;
    }
  } else {
    out.clear();
    out.resize(node.items.size());
  }
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string item_path = join(path, std::to_string(i));
    if constexpr (detail::Scalar<typename T::value_type>) {
      typename T::value_type value{};
      read_value(node.items[i], item_path, value);
      out[i] = std::move(value);
    } else {
      read(node.items[i], item_path, inherited, out[i]);
    }
  }
}

template <class T>
void YamlReader::read_map(const YamlNode& node, const std::string& path, const Inherited& inherited,
                          T& out) {
  const Inherited own = inherit(node, path, inherited);
  out.clear();
  for (const auto& [key, value] : node.entries) {
    if (key.name == "status" || key.name == "source") continue;
    const std::string item_path = join(path, key.name);
    known_.insert(item_path);
    read(value, item_path, own, out[key.name]);
  }
}

template <class T>
void YamlReader::read_value(const YamlNode& node, const std::string& path, T& out) {
  if constexpr (std::same_as<T, std::string>) {
    if (auto text = scalar(node, path, "a text")) out = std::move(*text);
  } else if constexpr (std::same_as<T, bool>) {
    const auto text = scalar(node, path, "true or false");
    if (!text) return;
    if (*text != "true" && *text != "false") {
      fail(node, path, "expected true or false, got '" + *text + "'");
      return;
    }
    out = *text == "true";
  } else if constexpr (NamedEnum<T>) {
    const auto text = scalar(node, path, "a name");
    if (!text) return;
    constexpr auto& names = EnumNames<T>::value;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == *text) {
        out = static_cast<T>(i);
        return;
      }
    }
    std::string message = "expected ";
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i != 0) message += i + 1 == names.size() ? " or " : ", ";
      message += names[i];
    }
    fail(node, path,
         message + ", got '" + *text + "'" + did_you_mean(*text, {names.begin(), names.end()}));
  } else {
    const auto text = scalar(node, path, expected_quantity(unit_));
    if (!text) return;
    const auto parsed = [&] {
      if constexpr (std::is_integral_v<T>) return parse_whole<T>(*text, unit_);
      if constexpr (!std::is_integral_v<T>) return parse_quantity(*text, unit_);
    }();
    if (!parsed) {
      fail(node, path, parsed.problem);
      return;
    }
    out = static_cast<T>(*parsed.value);
  }
}

template <class T>
struct Loaded {
  T value{};
  Provenance provenance{};
  std::vector<std::string> warnings{};  ///< renamed keys
};

/// Reads a described struct. Unknown, repeated, missing and ill-typed keys and overrides that name
/// nothing are errors with their place, path and the nearest valid name; all of them are gathered,
/// then thrown as one InputError.
template <class T>
Loaded<T> load(const YamlNode& document, LoadOptions options = {}) {
  Loaded<T> result;
  YamlReader reader(std::move(options));
  reader.read(document, "", {}, result.value);
  reader.finish();
  result.provenance = reader.take_provenance();
  result.warnings = reader.take_warnings();
  return result;
}

template <class T>
Loaded<T> load_file(const std::filesystem::path& path, LoadOptions options = {}) {
  return load<T>(read_yaml(path), std::move(options));
}

/// Writes described structs so that `load` reads the same values, each with the file and line that
/// it came from as a comment.
class YamlWriter {
 public:
  explicit YamlWriter(const Provenance& provenance) : provenance_(provenance) {}

  template <class T>
  void write(const T& value, const std::string& path);

  [[nodiscard]] std::string take() { return std::move(text_); }

  static std::string quote(std::string_view text);

 private:
  void open(std::string_view key);  // begins a block
  void close() { --depth_; }
  void line(std::string_view key, std::string_view text, const std::string& path, bool with_source);
  void empty(std::string_view key, std::string_view text);
  template <class T>
  void write_field(std::string_view key, const T& value, const std::string& path);
  template <class T>
  std::string text_of(const T& value) const;
  void indent();

  const Provenance& provenance_;
  std::string text_{};
  int depth_ = 0;
  bool item_ = false;  // the next line starts a list element
  std::string_view unit_{};
};

template <class T>
std::string YamlWriter::text_of(const T& value) const {
  if constexpr (std::same_as<T, std::string>) {
    return quote(value);
  } else if constexpr (std::same_as<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (NamedEnum<T>) {
    return quote(name_of(value));
  } else if constexpr (std::is_integral_v<T>) {
    // Whole numbers past 2^53 have no double of their own; none of them carries a unit.
    const auto wide = static_cast<double>(value);
    constexpr double kExact = 9007199254740992.0;
    return wide < kExact && wide > -kExact ? format_quantity(wide, unit_) : std::to_string(value);
  } else if constexpr (std::is_floating_point_v<T>) {
    return format_quantity(static_cast<double>(value), unit_);
  } else {
    std::string text = "[";
    for (const auto& item : value) {
      if (text.size() > 1) text += ", ";
      text += text_of(item);
    }
    return text + "]";
  }
}

template <class T>
void YamlWriter::write_field(std::string_view key, const T& value, const std::string& path) {
  if constexpr (detail::IsOptional<T>::value) {
    if (value) write_field(key, *value, path);
  } else if constexpr (detail::Leaf<T>) {
    line(key, text_of(value), path, detail::needs_source<T>());
  } else if constexpr (detail::IsVector<T>::value || detail::IsArray<T>::value) {
    if (value.empty()) {
      empty(key, "[]");
      return;
    }
    open(key);
    write(value, path);
    close();
  } else {
    const std::size_t before = text_.size();
    const bool item = item_;
    open(key);
    const std::size_t opened = text_.size();
    write(value, path);
    close();
    if (text_.size() == opened) {  // nothing inside
      text_.resize(before);
      item_ = item;
      empty(key, "{}");
    }
  }
}

template <class T>
void YamlWriter::write(const T& value, const std::string& path) {
  if constexpr (detail::HasForm<T>) {
    YamlForm<T>::write(*this, value, path);
  } else if constexpr (detail::IsVector<T>::value || detail::IsArray<T>::value) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      item_ = true;
      ++depth_;
      write(value[i], YamlReader::join(path, std::to_string(i)));
      --depth_;
    }
  } else if constexpr (detail::IsMap<T>::value) {
    for (const auto& [key, item] : value) write_field(key, item, YamlReader::join(path, key));
  } else {
    for_each_field<T>([&](const auto& field) {
      const std::string_view outer_unit = std::exchange(unit_, field.unit);
      write_field(field.name, value.*field.member, YamlReader::join(path, field.name));
      unit_ = outer_unit;
    });
  }
}

/// The effective values as YAML.
template <class T>
std::string dump_yaml(const T& value, const Provenance& provenance) {
  YamlWriter writer(provenance);
  writer.write(value, "");
  return writer.take();
}

}  // namespace trn
