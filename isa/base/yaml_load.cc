#include "isa/base/yaml_load.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "isa/base/check.h"

namespace trn {
namespace {

constexpr std::string_view kCommandLine = "command line";

/// Thrown out of the event handler where going on would only repeat the trouble.
struct Abandon {};

bool plain_word(std::string_view name) {
  constexpr std::size_t kLongest = 128;
  return !name.empty() && name.size() <= kLongest &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                  c == '_' || c == '-' || c == '.';
         });
}

/// Builds the tree from yaml-cpp's events, which carry a mark each.
class Builder : public YAML::EventHandler {
 public:
  explicit Builder(std::shared_ptr<const std::string> file) : file_(std::move(file)) {}

  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    check(mark, "", anchor);
    add(make(YamlNode::Kind::Null, mark));
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
    error(mark, "aliases are not supported");
    throw Abandon{};
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check(mark, tag, anchor);
    YamlNode node = make(YamlNode::Kind::Scalar, mark);
    node.text = value;
    node.quoted = tag == "!";
    add(std::move(node));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value /*style*/) override {
    check(mark, tag, anchor);
    open(make(YamlNode::Kind::List, mark));
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value /*style*/) override {
    check(mark, tag, anchor);
    open(make(YamlNode::Kind::Block, mark));
  }
  void OnMapEnd() override { close(); }

  [[nodiscard]] YamlNode take_root() { return std::move(root_); }
  [[nodiscard]] const std::vector<InputError>& errors() const { return errors_; }

 private:
  struct Open {
    YamlNode node;
    std::optional<YamlNode::Key> key{};  ///< of a block: read, its value is next
    bool dropped = false;                ///< the key was repeated, its value is ignored
  };

  YamlNode make(YamlNode::Kind kind, const YAML::Mark& mark) const {
    YamlNode node;
    node.kind = kind;
    node.line = static_cast<std::uint32_t>(mark.line + 1);
    node.file = file_;
    return node;
  }

  void error(const YAML::Mark& mark, std::string_view message) {
    errors_.emplace_back(Place{.file = *file_, .line = static_cast<std::uint64_t>(mark.line + 1)},
                         "", message);
    constexpr std::size_t kEnough = 100;
    if (errors_.size() >= kEnough) throw Abandon{};
  }

  void check(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) error(mark, "anchors are not supported");
    if (!tag.empty() && tag != "?" && tag != "!") error(mark, "tags are not supported");
  }

  void open(YamlNode node) {
    if (stack_.size() >= static_cast<std::size_t>(kYamlMaxDepth)) {
      errors_.emplace_back(node.place(), "",
                           fmt::format("nested deeper than {} levels", kYamlMaxDepth));
      throw Abandon{};
    }
    stack_.push_back({.node = std::move(node)});
  }

  void close() {
    YamlNode node = std::move(stack_.back().node);
    stack_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (stack_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = stack_.back();
    if (parent.node.kind == YamlNode::Kind::List) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.key) {
      add_key(parent, node);
    } else {
      if (node.kind == YamlNode::Kind::Null) node.line = parent.key->line;
      if (!parent.dropped) parent.node.entries.emplace_back(*parent.key, std::move(node));
      parent.key.reset();
    }
  }

  void add_key(Open& parent, const YamlNode& node) {
    parent.key = YamlNode::Key{.name = node.text, .line = node.line};
    parent.dropped = true;
    if (node.kind != YamlNode::Kind::Scalar || !plain_word(node.text)) {
      errors_.emplace_back(node.place(), "", "expected a word as key");
      return;
    }
    for (const auto& [key, value] : parent.node.entries) {
      if (key.name != node.text) continue;
      errors_.emplace_back(
          node.place(), "",
          fmt::format("key '{}' is repeated, first in line {}", key.name, key.line));
      return;
    }
    parent.dropped = false;
  }

  std::shared_ptr<const std::string> file_;
  std::vector<Open> stack_{};
  YamlNode root_{};
  std::vector<InputError> errors_{};
};

class DiscardEvents : public YAML::EventHandler {
 public:
  void OnDocumentStart(const YAML::Mark& /*mark*/) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnScalar(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {}
  void OnSequenceStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& /*mark*/, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {}
  void OnMapEnd() override {}
};

std::string lower_first(std::string text) {
  if (!text.empty() && text[0] >= 'A' && text[0] <= 'Z') {
    text[0] = static_cast<char>(text[0] - 'A' + 'a');
  }
  return text;
}

/// `chip.tensor` of `chip.tensor.clock`.
std::string_view parent_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

std::string_view name_in(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? path : path.substr(dot + 1);
}

std::string written(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::List) return node.text;
  std::string text = "[";
  for (const YamlNode& item : node.items) {
    if (text.size() > 1) text += ", ";
    text += written(item);
  }
  return text + "]";
}

std::string_view kind_name(YamlNode::Kind kind) {
  switch (kind) {
    case YamlNode::Kind::Null:
      return "nothing";
    case YamlNode::Kind::Scalar:
      return "a value";
    case YamlNode::Kind::List:
      return "a list";
    case YamlNode::Kind::Block:
      return "a block of keys";
  }
  return "?";
}

/// A value as it would stand in a file: `2.4 GHz`, `[1, 2]`.
YamlNode parse_override_value(const Override& override) {
  const auto fail = [&](std::string_view message) {
    return InputError(Place{.file = std::string(kCommandLine)}, override.path, message);
  };
  YamlNode node;
  try {
    node = parse_yaml(override.value, std::string(kCommandLine));
  } catch (const InputError&) {
    throw fail(fmt::format("expected a value, got '{}'", override.value));
  }
  const auto strip = [](YamlNode& each, const auto& self) -> void {
    each.line = 0;
    for (YamlNode& item : each.items) self(item, self);
    for (auto& entry : each.entries) self(entry.second, self);
  };
  strip(node, strip);
  if (node.kind == YamlNode::Kind::Block) {
    throw fail(fmt::format("expected one value, got '{}'", override.value));
  }
  return node;
}

}  // namespace

std::string_view long_name(Status status) {
  switch (status) {
    case Status::Documented:
      return "documented";
    case Status::Derived:
      return "derived";
    case Status::Measured:
      return "measured";
    case Status::Disputed:
      return "disputed";
    case Status::Estimated:
      return "assumed";
  }
  return "?";
}

const YamlNode* YamlNode::find(std::string_view name) const {
  for (const auto& [key, value] : entries) {
    if (key.name == name) return &value;
  }
  return nullptr;
}

Place YamlNode::place() const {
  Place place{.file = file ? *file : std::string{}};
  if (line != 0) place.line = line;
  return place;
}

YamlNode parse_yaml(const std::string& text, const std::string& file) {
  const Place whole{.file = file};
  if (text.size() > kYamlMaxBytes) {
    throw InputError(whole, "", fmt::format("larger than {} MiB", kYamlMaxBytes >> 20U));
  }
  if (text.find('\0') != std::string::npos) throw InputError(whole, "", "not a text file");
  Builder builder(std::make_shared<const std::string>(file));
  const auto fail_all = [&] {
    if (!builder.errors().empty()) throw InputError(builder.errors());
  };
  try {
    std::istringstream stream(text);
    YAML::Parser parser(stream);
    if (!parser.HandleNextDocument(builder)) throw InputError(whole, "", "the file is empty");
    DiscardEvents rest;
    if (parser.HandleNextDocument(rest)) throw InputError(whole, "", "expected one YAML document");
  } catch (const YAML::Exception& error) {
    fail_all();
    Place place = whole;
    if (!error.mark.is_null()) place.line = static_cast<std::uint64_t>(error.mark.line + 1);
    throw InputError(place, "", "not valid YAML: " + lower_first(error.msg));
  } catch (const Abandon&) {
    TRN_CHECK(!builder.errors().empty(), "parsing stopped without an error");
  }
  fail_all();
  return builder.take_root();
}

YamlNode read_yaml(const std::filesystem::path& path) {
  const Place place{.file = path.string()};
  std::error_code code;
  const auto status = std::filesystem::status(path, code);
  if (!std::filesystem::exists(status)) throw InputError(place, "", "no such file");
  if (!std::filesystem::is_regular_file(status)) throw InputError(place, "", "not a regular file");
  std::ifstream in(path, std::ios::binary);
  if (!in) throw InputError(place, "", "cannot be read");
  std::string text(kYamlMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) throw InputError(place, "", "cannot be read");
  text.resize(static_cast<std::size_t>(in.gcount()));
  return parse_yaml(text, path.string());
}

Override parse_override(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    throw InputError("--set", fmt::format("expected PATH=VALUE, got '{}'", text));
  }
  return {.path = std::string(text.substr(0, equals)),
          .value = std::string(text.substr(equals + 1))};
}

YamlReader::YamlReader(LoadOptions options) : options_(std::move(options)) {
  for (Override& override : options_.overrides) {
    for (const RenamedKey& renamed : options_.renamed) {
      if (override.path != renamed.old_path) continue;
      warnings_.push_back(fmt::format("{}: {}: renamed, now '{}'", kCommandLine, renamed.old_path,
                                      renamed.new_path));
      override.path = renamed.new_path;
    }
    try {
      overrides_[override.path] = parse_override_value(override);
    } catch (const InputError& error) {
      errors_.push_back(error);
    }
  }
}

std::string YamlReader::join(std::string_view path, std::string_view name) {
  if (path.empty()) return std::string(name);
  return fmt::format("{}.{}", path, name);
}

void YamlReader::fail(const Place& place, std::string_view path, std::string_view message) {
  errors_.emplace_back(place, path, message);
}

void YamlReader::fail(const YamlNode& node, std::string_view path, std::string_view message) {
  fail(node.place(), path, message);
}

const YamlNode* YamlReader::overridden(const std::string& path) {
  const auto found = overrides_.find(path);
  if (found == overrides_.end()) return nullptr;
  used_overrides_.insert(path);
  return &found->second;
}

std::optional<Status> YamlReader::read_status(const YamlNode& node, const std::string& path) {
  Status status{};
  const std::size_t before = errors_.size();
  read_value(node, join(path, "status"), status);
  if (errors_.size() != before) return std::nullopt;
  return status;
}

YamlReader::Inherited YamlReader::inherit(const YamlNode& node, const std::string& path,
                                          const Inherited& outer) {
  Inherited result = outer;
  if (const YamlNode* const status = node.find("status")) {
    if (const auto value = read_status(*status, path)) result.status = value;
  }
  if (const YamlNode* const source = node.find("source")) {
    if (auto text = scalar(*source, join(path, "source"), "a source")) {
      result.source = std::move(*text);
    }
  }
  return result;
}

const YamlNode* YamlReader::leaf(const YamlNode& node, const std::string& path,
                                 const Inherited& inherited, bool needs_source) {
  const bool from_command_line = node.file && *node.file == kCommandLine;
  const YamlNode* value = &node;
  Inherited own = inherited;
  if (node.kind == YamlNode::Kind::Block) {
    check_keys(node, path, {"value"}, true);
    own = inherit(node, path, inherited);
    value = node.find("value");
    if (value == nullptr) {
      fail(node, path, "missing key 'value'");
      return nullptr;
    }
  }
  if (from_command_line) own = {.status = Status::Estimated, .source = std::string(kCommandLine)};
  if (options_.need_source && needs_source && (!own.status || own.source.empty())) {
    fail(node, path,
         fmt::format("expected {{value: ..., status: ..., source: ...}}, {} missing",
                     !own.status && own.source.empty() ? "status and source are"
                     : !own.status                     ? "status is"
                                                       : "source is"));
  }
  provenance_[path] = {.value = written(*value),
                       .file = value->file ? *value->file : std::string{},
                       .line = value->line,
                       .status = own.status,
                       .source = own.source};
  return value;
}

const YamlNode* YamlReader::block(const YamlNode& node, const std::string& path) {
  if (node.kind == YamlNode::Kind::Block) return &node;
  // A list may stand for a block in a form of its own; it checks that itself.
  if (node.kind == YamlNode::Kind::List) return &node;
  if (node.kind != YamlNode::Kind::Scalar || !options_.find_include) {
    fail(node, path,
         fmt::format("expected a block of keys, got {}", node.kind == YamlNode::Kind::Scalar
                                                             ? fmt::format("'{}'", node.text)
                                                             : std::string(kind_name(node.kind))));
    return nullptr;
  }
  constexpr std::size_t kDeepest = 8;
  if (included_.size() >= kDeepest) {
    fail(node, path, fmt::format("more than {} files include one another", kDeepest));
    return nullptr;
  }
  try {
    const std::filesystem::path from = node.file ? *node.file : std::string{};
    auto content =
        std::make_unique<YamlNode>(read_yaml(options_.find_include(path, node.text, from)));
    if (content->kind != YamlNode::Kind::Block) {
      fail(*content, path,
           fmt::format("expected a block of keys, got {}", kind_name(content->kind)));
      return nullptr;
    }
    included_.push_back(std::move(content));
    return included_.back().get();
  } catch (const InputError& error) {
    errors_.emplace_back(node.place(), path, fmt::format("cannot include '{}'", node.text));
    errors_.push_back(error);
    return nullptr;
  }
}

bool YamlReader::is_block(const YamlNode& node, const std::string& path) {
  if (node.kind == YamlNode::Kind::Block) return true;
  fail(node, path, fmt::format("expected a block of keys, got {}", kind_name(node.kind)));
  return false;
}

void YamlReader::check_keys(const YamlNode& node, const std::string& path,
                            const std::vector<std::string_view>& fields, bool described) {
  if (node.kind != YamlNode::Kind::Block) return;
  for (const auto& [key, value] : node.entries) {
    if (std::find(fields.begin(), fields.end(), key.name) != fields.end()) continue;
    if (described && (key.name == "status" || key.name == "source")) continue;
    const std::string key_path = join(path, key.name);
    const bool moved =
        std::any_of(options_.renamed.begin(), options_.renamed.end(),
                    [&](const RenamedKey& each) { return each.old_path == key_path; });
    if (moved) continue;
    fail(Place{.file = node.place().file, .line = key.line}, key_path,
         "unknown key" + did_you_mean(key.name, fields));
  }
}

const YamlNode* YamlReader::entry(const YamlNode& node, const std::string& path,
                                  std::string_view name) {
  if (const YamlNode* const value = node.find(name)) return value;
  for (const RenamedKey& renamed : options_.renamed) {
    if (renamed.new_path != path || parent_of(renamed.old_path) != parent_of(path)) continue;
    if (const YamlNode* const value = node.find(name_in(renamed.old_path))) {
      warnings_.push_back(fmt::format("{}: {}: renamed, now '{}'", to_string(value->place()),
                                      renamed.old_path, renamed.new_path));
      return value;
    }
  }
  return nullptr;
}

std::optional<std::string> YamlReader::scalar(const YamlNode& node, const std::string& path,
                                              std::string_view expected) {
  if (node.kind == YamlNode::Kind::Scalar) return node.text;
  fail(node, path, fmt::format("expected {}, got {}", expected, kind_name(node.kind)));
  return std::nullopt;
}

void YamlReader::finish() {
  // After other errors, paths may be unknown only because their block could not be read.
  if (errors_.empty()) {
    const std::vector<std::string_view> paths(known_.begin(), known_.end());
    for (const auto& [path, node] : overrides_) {
      if (used_overrides_.contains(path)) continue;
      fail(node, path, "unknown key" + did_you_mean(path, paths));
    }
  }
  if (!errors_.empty()) throw InputError(errors_);
}

void YamlWriter::indent() {
  constexpr std::size_t kStep = 2;
  std::string blanks(static_cast<std::size_t>(depth_) * kStep, ' ');
  if (item_) blanks.replace(blanks.size() - kStep, kStep, "- ");
  item_ = false;
  text_ += blanks;
}

void YamlWriter::open(std::string_view key) {
  indent();
  text_.append(key).append(":\n");
  ++depth_;
}

void YamlWriter::empty(std::string_view key, std::string_view text) {
  indent();
  text_.append(key).append(": ").append(text).append("\n");
}

void YamlWriter::line(std::string_view key, std::string_view text, const std::string& path,
                      bool with_source) {
  indent();
  const auto found = provenance_.find(path);
  const Origin* const origin = found == provenance_.end() ? nullptr : &found->second;
  if (with_source && origin != nullptr && origin->status) {
    text_ += fmt::format("{}: {{value: {}, status: {}, source: {}}}", key, text,
                         name_of(*origin->status), quote(origin->source));
  } else {
    text_ += fmt::format("{}: {}", key, text);
  }
  if (origin != nullptr && !origin->file.empty()) {
    Place place{.file = origin->file};
    if (origin->line != 0) place.line = origin->line;
    text_ += fmt::format("  # {}", to_string(place));
  }
  text_ += '\n';
}

std::string YamlWriter::quote(std::string_view text) {
  const bool plain = !text.empty() && text != "true" && text != "false" && text != "null" &&
                     std::all_of(text.begin(), text.end(),
                                 [](char c) {
                                   return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                          (c >= '0' && c <= '9') || c == '_' || c == '.' ||
                                          c == '/' || c == '-';
                                 }) &&
                     text.front() != '-' && text.front() != '.';
  if (plain) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace trn
