#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <type_traits>
#include <unordered_map>
#include <vector>

#include "isa/base/error.h"
#include "isa/text.h"

namespace trn::isa {
namespace {

constexpr std::size_t kMaxErrors = 100;
constexpr std::string_view kRankName = "rank";

std::string location_key(const SourceLocation& location) {
  return fmt::format("{}:{}", location.line, location.file);
}

/// What is wrong at a column of the line being read.
struct Failure {
  std::size_t column;
  std::string message;
};

constexpr bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.';
}

template <class E>
std::vector<std::string_view> names_of_enum() {
  return {EnumNames<E>::value.begin(), EnumNames<E>::value.end()};
}

/// Reads one token; columns count from 1.
class Cursor {
 public:
  Cursor(std::string_view text, std::size_t column) : text_(text), column_(column) {}

  [[nodiscard]] bool done() const { return at_ == text_.size(); }
  [[nodiscard]] std::size_t column() const { return column_ + at_; }
  [[nodiscard]] char peek() const { return done() ? '\0' : text_[at_]; }
  [[nodiscard]] std::string_view rest() const { return text_.substr(at_); }
  bool accept(std::string_view text) {
    if (!rest().starts_with(text)) return false;
    at_ += text.size();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail(fmt::format("expected '{}'", text));
  }
  void expect_end() const {
    if (!done()) fail("expected the end of the operand");
  }

  /// Names end where a name's characters do.
  std::string_view name() {
    const std::size_t begin = at_;
    while (!done() && is_name_character(text_[at_])) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  template <class E>
  E named(std::string_view what) {
    const std::size_t begin = at_;
    const std::string_view text = name();
    for (std::size_t i = 0; i < EnumNames<E>::value.size(); ++i) {
      if (EnumNames<E>::value[i] == text) return static_cast<E>(i);
    }
    at_ = begin;
    fail(fmt::format("unknown {} '{}'{}", what, text, did_you_mean(text, names_of_enum<E>())));
  }
  /// A name that may hold any characters: the rest of the token.
  template <class E>
  E named_rest() {
    for (std::size_t i = 0; i < EnumNames<E>::value.size(); ++i) {
      if (EnumNames<E>::value[i] == rest()) {
        at_ = text_.size();
        return static_cast<E>(i);
      }
    }
    const auto names = names_of_enum<E>();
    const std::string near = did_you_mean(rest(), names);
    fail(near.empty() ? fmt::format("expected one of {}, got '{}'", fmt::join(names, " "), rest())
                      : fmt::format("unknown value '{}'{}", rest(), near));
  }

  /// A magnitude, decimal or 0x.
  std::uint64_t magnitude() {
    const std::size_t begin = at_;
    const int base = accept("0x") ? 16 : 10;
    std::uint64_t value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value, base);
    if (error != std::errc{}) {
      at_ = begin;
      fail(error == std::errc::result_out_of_range ? "a number has more than 64 bits"
                                                   : "expected a number");
    }
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }
  template <class T>
  T number() {
    const std::size_t begin = at_;
    const bool negative = accept("-");
    if (!negative) accept("+");
    const std::uint64_t value = magnitude();
    const auto max = static_cast<std::uint64_t>(std::numeric_limits<T>::max());
    const std::uint64_t limit = negative ? (std::is_signed_v<T> ? max + 1 : 0) : max;
    if (value > limit) {
      at_ = begin;
      fail(fmt::format("expected a number from {} to {}", std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max()));
    }
    return static_cast<T>(negative ? ~value + 1 : value);
  }
  float float_number() {
    if (accept("nan:")) {
      const std::size_t begin = at_;
      const auto bits = number<std::uint32_t>();
      if (!std::isnan(std::bit_cast<float>(bits))) {
        at_ = begin;
        fail("expected the bits of a NaN");
      }
      return std::bit_cast<float>(bits);
    }
    float value = 0;
    const char* first = text_.data() + at_;
    const auto [end, error] = std::from_chars(first, text_.data() + text_.size(), value);
    if (error != std::errc{}) fail("expected a number that an fp32 can hold");
    at_ += static_cast<std::size_t>(end - first);
    return value;
  }
  Register reg() {
    if (accept(kRankName)) return kRankRegister;
    const std::size_t begin = at_;
    if (accept("r")) {
      const auto value = number<std::uint32_t>();
      if (value < kRegisters) return static_cast<Register>(value);
    }
    at_ = begin;
    fail(fmt::format("expected a register, r0 to r{} or {}", kRegisters - 1, kRankName));
  }
  std::string quoted() {
    expect("\"");
    std::string out;
    while (!done() && text_[at_] != '"') {
      char c = text_[at_++];
      if (c == '\\') {
        if (accept("x")) {
          unsigned value = 0;
          const char* first = text_.data() + at_;
          const char* last = first + std::min<std::size_t>(2, text_.size() - at_);
          if (std::from_chars(first, last, value, 16).ptr != first + 2) {
            fail("expected two hexadecimal digits");
          }
          at_ += 2;
          c = static_cast<char>(value);
        } else if (done()) {
          break;
        } else {
          c = text_[at_++];
        }
      }
      out += c;
    }
    expect("\"");
    return out;
  }

  [[noreturn]] void fail(std::string message) const {
    throw Failure{column_ + at_, std::move(message)};
  }

 private:
  std::string_view text_;
  std::size_t column_;
  std::size_t at_ = 0;
};

void parse(Cursor& in, Affine& value) {
  value = {};
  value.base = in.number<std::int64_t>();
  while (in.peek() == '+' || in.peek() == '-') {
    if (value.term_count == Affine::kMaxTerms) {
      in.fail(fmt::format("expected at most {} registers", Affine::kMaxTerms));
    }
    Affine::Term& term = value.terms[value.term_count++];
    term.coefficient = in.number<std::int64_t>();
    in.expect("*");
    term.reg = in.reg();
  }
}

/// `[strides][sizes]` into dims; gives the number of dimensions.
template <class Dims, class SetStride>
std::uint8_t parse_pattern(Cursor& in, Dims& dims, SetStride set_stride) {
  if (!in.accept("[")) return 0;
  std::size_t count = 0;
  do {
    if (count == dims.size()) in.fail(fmt::format("expected at most {} dimensions", dims.size()));
    set_stride(dims[count++]);
  } while (in.accept(","));
  in.expect("]");
  in.expect("[");
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) in.expect(",");
    dims[i].size = in.number<std::uint32_t>();
    elements *= dims[i].size;
    if (elements >> 32U != 0) in.fail("expected fewer than 2^32 elements");
  }
  in.expect("]");
  return static_cast<std::uint8_t>(count);
}

void parse(Cursor& in, Access& value) {
  value.dtype = in.named<Dtype>("dtype");
  in.expect("@");
  value.memory = in.named<Memory>("memory");
  if (value.memory == Memory::Hbm) in.fail("an engine reaches sbuf and psum only");
  value.start_partition = 0;
  value.partitions = kPartitions;
  if (in.accept("[")) {
    const auto first = in.number<std::uint8_t>();
    in.expect(":");
    const auto end = in.number<std::uint8_t>();
    if (first >= end || end > kPartitions) {
      in.fail(fmt::format("expected partitions within 0:{}, got {}:{}", kPartitions, first, end));
    }
    in.expect("]");
    value.start_partition = first;
    value.partitions = static_cast<std::uint8_t>(end - first);
  }
  in.expect(":");
  parse(in, value.offset);
  value.dims =
      parse_pattern(in, value.free, [&](FreeDim& dim) { dim.stride = in.number<std::int32_t>(); });
}

void parse(Cursor& in, DmaSide& value) {
  value.dtype = in.named<Dtype>("dtype");
  in.expect("@");
  value.memory = in.named<Memory>("memory");
  in.expect(":");
  parse(in, value.address);
  in.expect("{");
  value.element_bytes = in.number<std::uint32_t>();
  if (value.element_bytes == 0 || value.element_bytes > 1U << 30U) {
    in.fail("expected an element of 1 to 2^30 bytes");
  }
  in.expect("}");
  value.dims = parse_pattern(in, value.pattern,
                             [&](DmaDim& dim) { dim.stride_bytes = in.number<std::int64_t>(); });
}

void parse(Cursor& in, ScalarOperand& value) {
  if (in.accept("i:")) {
    value.kind = ScalarOperand::Kind::Integer;
    value.integer = in.number<std::int32_t>();
  } else if (in.rest().find('@') != std::string_view::npos) {
    value.kind = ScalarOperand::Kind::Pointer;
    parse(in, value.pointer);
  } else {
    value.kind = ScalarOperand::Kind::Immediate;
    value.immediate = in.float_number();
  }
}

void parse(Cursor& in, RegisterOperand& value) {
  if (in.peek() == 'r') {
    value.reg = in.reg();
  } else {
    value.constant = in.number<std::int32_t>();
  }
}

void parse(Cursor& in, DmaCompletion& value) {
  in.expect("S[");
  value.semaphore = in.number<std::uint16_t>();
  if (value.semaphore >= kSemaphores) {
    in.fail(fmt::format("expected a semaphore under {}", kSemaphores));
  }
  in.expect("]+=");
  value.increment = in.number<std::uint16_t>();
}

void parse(Cursor& in, RankGroup& value) {
  value.size = in.number<std::uint32_t>();
  in.expect(":");
  value.stride = in.number<std::uint32_t>();
  in.expect(":");
  value.offset = in.number<std::uint32_t>();
}

void parse(Cursor& in, PeTile& value) {
  value.row = in.number<std::uint8_t>();
  in.expect(":");
  value.column = in.number<std::uint8_t>();
  in.expect(":");
  value.rows = in.number<std::uint8_t>();
  in.expect(":");
  value.columns = in.number<std::uint8_t>();
}

void parse(Cursor& in, ShuffleMask& value) {
  in.expect("[");
  for (std::size_t i = 0; i < value.source.size(); ++i) {
    if (i > 0) in.expect(",");
    value.source[i] = in.number<std::uint8_t>();
    if (value.source[i] >= value.source.size() && value.source[i] != ShuffleMask::kKeep) {
      in.fail("expected a partition from 0 to 31, or 255");
    }
  }
  in.expect("]");
}

void parse(Cursor& in, IndexPattern& value) {
  value.base = in.number<std::int32_t>();
  if (in.peek() == '+' || in.peek() == '-') {
    value.channel = in.number<std::int32_t>();
    in.expect("*p");
  }
  value.dims =
      parse_pattern(in, value.steps, [&](FreeDim& dim) { dim.stride = in.number<std::int32_t>(); });
}

template <class T>
  requires std::is_arithmetic_v<T> || NamedEnum<T>
void parse(Cursor& in, T& value) {
  if constexpr (NamedEnum<T>) {
    value = in.named_rest<T>();
  } else if constexpr (std::is_same_v<T, bool>) {
    if (in.accept("true") || in.accept("1")) {
      value = true;
    } else if (in.accept("false") || in.accept("0")) {
      value = false;
    } else {
      in.fail("expected true or false");
    }
  } else if constexpr (std::is_same_v<T, float>) {
    value = in.float_number();
  } else if constexpr (std::is_same_v<T, Register>) {
    value = in.peek() == 'r' ? in.reg() : in.number<T>();
  } else {
    value = in.number<T>();
  }
}

SemaphoreId parse_semaphore(Cursor& in) {
  const bool event = in.accept("E[");
  if (!event) in.expect("S[");
  const auto id = in.number<std::uint16_t>();
  const std::uint32_t count = event ? kEvents : kSemaphores;
  if (id >= count) in.fail(fmt::format("expected a number under {}", count));
  in.expect("]");
  return static_cast<SemaphoreId>(event ? kFirstEvent + id : id);
}

void parse(Cursor& in, Wait& wait) {
  wait.semaphore = parse_semaphore(in);
  if (in.accept(">=")) {
    wait.condition = WaitCondition::GreaterEqual;
  } else if (in.accept("<=")) {
    wait.condition = WaitCondition::LessEqual;
  } else if (in.accept("==")) {
    wait.condition = WaitCondition::Equal;
  } else {
    in.fail("expected >=, == or <=");
  }
  parse(in, wait.value);
}

void parse(Cursor& in, Update& update) {
  update.semaphore = parse_semaphore(in);
  update.value = 1;
  const auto& names = EnumNames<UpdateKind>::value;
  std::size_t kind = 0;
  while (kind < names.size() && !in.accept(names[kind])) ++kind;
  if (kind == names.size()) in.fail("expected ++, --, +=, -= or =");
  update.kind = static_cast<UpdateKind>(kind);
  if (update.kind >= UpdateKind::Add) update.value = in.number<std::uint32_t>();
  update.when = UpdateWhen::Complete;
  if (in.accept("@")) update.when = in.named<UpdateWhen>("moment");
}

/// What lies between spaces, at a column from 1; quotes keep spaces together.
struct Token {
  std::string_view text;
  std::size_t column = 1;
  [[nodiscard]] Cursor cursor() const { return {text, column}; }
};

std::vector<Token> split(std::string_view line) {
  std::vector<Token> tokens;
  std::size_t at = 0;
  while (at < line.size()) {
    if (line[at] == ' ' || line[at] == '\t' || line[at] == '\r') {
      ++at;
      continue;
    }
    if (line[at] == ';' || line[at] == '#') break;
    const std::size_t begin = at;
    bool quoted = false;
    for (; at < line.size(); ++at) {
      const char c = line[at];
      if (c == '"') quoted = !quoted;
      if (quoted && c == '\\') ++at;
      if (!quoted && (c == ' ' || c == '\t' || c == '\r' || c == ';' || c == '#')) break;
    }
    at = std::min(at, line.size());
    tokens.push_back({line.substr(begin, at - begin), begin + 1});
  }
  return tokens;
}

const std::map<std::string_view, Op>& ops_by_name() {
  static const std::map<std::string_view, Op> kOps = [] {
    std::map<std::string_view, Op> ops;
    for_each_instruction([&]<class T>() { ops.emplace(T::kName, T{}); });
    return ops;
  }();
  return kOps;
}

class Parser {
 public:
  explicit Parser(std::string_view file) : file_(file) {
    locations_.emplace(location_key({}), 0);
    labels_.emplace("", 0);
  }

  Trace run(std::string_view text) {
    while (!text.empty() && errors_.size() < kMaxErrors) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      ++line_;
      parse_line(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    finish();
    if (!errors_.empty()) throw InputError(errors_);
    return std::move(trace_);
  }

 private:
  using Tokens = std::span<const Token>;

  /// Where an instruction was written, to resolve code labels at the end.
  struct Branch {
    std::size_t stream;
    std::size_t index;
    std::string label;
    std::uint64_t line;
    std::size_t column;
  };

  void error(std::uint64_t line, std::string_view path, const Failure& failure) {
    errors_.emplace_back(Place{.file = std::string(file_), .line = line}, path,
                         fmt::format("column {}: {}", failure.column, failure.message));
  }

  void parse_line(std::string_view line) {
    const std::vector<Token> tokens = split(line);
    if (tokens.empty()) return;
    path_.clear();
    try {
      Tokens rest = tokens;
      if (rest[0].text.starts_with('.')) {
        parse_directive(rest);
        return;
      }
      if (rest[0].text.ends_with(':')) {
        define_code_label(rest[0]);
        rest = rest.subspan(1);
        if (rest.empty()) return;
      }
      parse_instruction(rest);
    } catch (const Failure& failure) {
      error(line_, path_, failure);
    }
  }

  static const Token& token(Tokens tokens, std::size_t index, std::string_view what) {
    if (index >= tokens.size()) {
      const Token& last = tokens.back();
      throw Failure{last.column + last.text.size(), fmt::format("expected {}", what)};
    }
    return tokens[index];
  }
  static void expect_count(Tokens tokens, std::size_t count) {
    if (tokens.size() > count) throw Failure{tokens[count].column, "expected the end of the line"};
  }
  static std::string text_of(const Token& token) {
    if (!token.text.starts_with('"')) return std::string(token.text);
    Cursor in = token.cursor();
    std::string text = in.quoted();
    in.expect_end();
    return text;
  }
  template <class T>
  static T number_of(const Token& token, std::string_view key = "") {
    Cursor in = token.cursor();
    if (!key.empty()) in.expect(key);
    const T value = in.number<T>();
    in.expect_end();
    return value;
  }

  void parse_directive(Tokens tokens) {
    const std::string_view name = tokens[0].text;
    path_ = name;
    TraceInfo& info = trace_.header;
    if (name == ".trace") {
      const auto version = number_of<int>(token(tokens, 1, "the version of the text form"));
      if (version != kTextVersion) {
        throw Failure{tokens[1].column,
                      fmt::format("text form version {}, but this program reads version {}",
                                  version, kTextVersion)};
      }
      expect_count(tokens, 2);
    } else if (name == ".name") {
      info.name = text_of(token(tokens, 1, "a name"));
      expect_count(tokens, 2);
    } else if (name == ".target") {
      Cursor in = token(tokens, 1, "a processor").cursor();
      info.target = in.named_rest<Target>();
      expect_count(tokens, 2);
    } else if (name == ".work") {
      parse_work(tokens);
    } else if (name == ".warning") {
      info.warnings.push_back(text_of(token(tokens, 1, "a text")));
      expect_count(tokens, 2);
    } else if (name == ".location") {
      const SourceLocation location = location_of(token(tokens, 1, "file:line"));
      locations_.emplace(location_key(location), info.locations.size());
      info.locations.push_back(location);
      expect_count(tokens, 2);
    } else if (name == ".label") {
      const std::string label = text_of(token(tokens, 1, "a label"));
      labels_.emplace(label, info.labels.size());
      info.labels.push_back(label);
      expect_count(tokens, 2);
    } else if (name == ".tensor") {
      parse_tensor(tokens);
    } else if (name == ".core") {
      CoreBinding core;
      core.core = number_of<std::uint32_t>(token(tokens, 1, "a core"));
      core.program = number_of<std::uint32_t>(token(tokens, 2, "program=N"), "program=");
      core.rank = number_of<std::uint32_t>(token(tokens, 3, "rank=N"), "rank=");
      expect_count(tokens, 4);
      core_lines_.push_back(line_);
      info.cores.push_back(core);
    } else if (name == ".program") {
      parse_program(tokens);
    } else if (name == ".engine") {
      Cursor in = token(tokens, 1, "an engine").cursor();
      engine_ = in.named_rest<Engine>();
      if (!program_) program_ = 0;
      if (trace_.code.empty()) trace_.code.emplace_back();
      expect_count(tokens, 2);
    } else {
      throw Failure{1, fmt::format("unknown directive '{}'{}", name,
                                   did_you_mean(name, {".trace", ".name", ".target", ".work",
                                                       ".warning", ".location", ".label", ".tensor",
                                                       ".core", ".program", ".engine"}))};
    }
  }

  void parse_work(Tokens tokens) {
    const Token& amount = token(tokens, 1, "an amount");
    Work work;
    const char* end = amount.text.data() + amount.text.size();
    const auto result = std::from_chars(amount.text.data(), end, work.amount);
    if (result.ec != std::errc{} || result.ptr != end || !std::isfinite(work.amount)) {
      throw Failure{amount.column, "expected a number"};
    }
    work.unit = text_of(token(tokens, 2, "a unit, as \"token\""));
    expect_count(tokens, 3);
    trace_.header.work.push_back(work);
  }

  void parse_tensor(Tokens tokens) {
    Tensor tensor;
    tensor.name = text_of(token(tokens, 1, "a name"));
    Cursor kind = token(tokens, 2, "the kind of tensor").cursor();
    tensor.kind = kind.named_rest<TensorKind>();
    Cursor memory = token(tokens, 3, "a memory").cursor();
    tensor.memory = memory.named_rest<Memory>();
    Cursor dtype = token(tokens, 4, "a dtype").cursor();
    tensor.dtype = dtype.named_rest<Dtype>();
    Cursor shape = token(tokens, 5, "a shape, as [512,128]").cursor();
    shape.expect("[");
    while (!shape.accept("]")) {
      if (!tensor.shape.empty()) shape.expect(",");
      tensor.shape.push_back(shape.number<std::uint64_t>());
    }
    shape.expect_end();
    tensor.address = number_of<std::uint64_t>(token(tokens, 6, "address=N"), "address=");
    tensor.bytes = number_of<std::uint64_t>(token(tokens, 7, "bytes=N"), "bytes=");
    if (tokens.size() > 8) {
      if (tokens[8].text != "at") throw Failure{tokens[8].column, "expected 'at'"};
      tensor.location = location_index(token(tokens, 9, "file:line"));
    }
    expect_count(tokens, 10);
    trace_.header.tensors.push_back(tensor);
  }

  void parse_program(Tokens tokens) {
    const auto program = number_of<std::uint32_t>(token(tokens, 1, "a number"));
    if (program > trace_.code.size()) {
      throw Failure{tokens[1].column,
                    fmt::format("expected at most {}: programs count from 0 without gaps",
                                trace_.code.size())};
    }
    expect_count(tokens, 2);
    if (program == trace_.code.size()) trace_.code.emplace_back();
    program_ = program;
    engine_.reset();
  }

  static SourceLocation location_of(const Token& token) {
    Cursor in = token.cursor();
    SourceLocation location;
    if (in.peek() == '"') {
      location.file = in.quoted();
    } else {
      const std::size_t colon = token.text.rfind(':');
      if (colon == std::string_view::npos) in.fail("expected file:line");
      location.file = token.text.substr(0, colon);
      in.expect(location.file);
    }
    in.expect(":");
    location.line = in.number<std::uint32_t>();
    in.expect_end();
    return location;
  }

  /// `%N`: an entry of a table of `size`.
  static std::optional<std::uint32_t> table_index(const Token& token, std::size_t size) {
    Cursor in = token.cursor();
    if (!in.accept("%")) return std::nullopt;
    const auto entry = in.number<std::uint32_t>();
    in.expect_end();
    if (entry >= size) in.fail(fmt::format("the table has {} entries", size));
    return entry;
  }

  std::uint32_t location_index(const Token& token) {
    std::vector<SourceLocation>& table = trace_.header.locations;
    if (const auto entry = table_index(token, table.size())) return *entry;
    const SourceLocation location = location_of(token);
    const auto [found, added] = locations_.emplace(location_key(location), table.size());
    if (added) table.push_back(location);
    return static_cast<std::uint32_t>(found->second);
  }

  std::uint32_t label_index(const Token& token) {
    std::vector<std::string>& table = trace_.header.labels;
    if (const auto entry = table_index(token, table.size())) return *entry;
    const std::string label = text_of(token);
    const auto [found, added] = labels_.emplace(label, table.size());
    if (added) table.push_back(label);
    return static_cast<std::uint32_t>(found->second);
  }

  [[nodiscard]] std::size_t stream_number() const {
    return std::size_t{*program_} * kEngines + index(*engine_);
  }
  std::vector<Instr>& stream() { return trace_.code[*program_].streams[index(*engine_)]; }
  void need_stream(const Token& token) const {
    if (!program_ || !engine_) {
      throw Failure{token.column, "expected '.engine NAME' before the first instruction"};
    }
  }

  void define_code_label(const Token& token) {
    need_stream(token);
    const std::string label(token.text.substr(0, token.text.size() - 1));
    if (!code_labels_.emplace(std::pair(stream_number(), label), stream().size()).second) {
      throw Failure{token.column, fmt::format("'{}' names two places of this stream", label)};
    }
  }

  void parse_instruction(Tokens tokens) {
    need_stream(tokens[0]);
    const std::string_view name = tokens[0].text;
    const auto& ops = ops_by_name();
    const auto found = ops.find(name);
    if (found == ops.end()) {
      std::vector<std::string_view> names;
      names.reserve(ops.size());
      for (const auto& [known, op] : ops) names.push_back(known);
      throw Failure{tokens[0].column,
                    fmt::format("unknown instruction '{}'{}", name, did_you_mean(name, names))};
    }
    Instr instr;
    instr.op = found->second;
    std::uint32_t seen = 0;
    for (std::size_t i = 1; i < tokens.size(); ++i) {
      path_ = name;
      try {
        const std::string_view word = tokens[i].text;
        if (word == "wait" || word == "update" || word == "at" || word == "label") {
          parse_common(instr, word, token(tokens, ++i, fmt::format("something after '{}'", word)));
        } else {
          std::visit([&](auto& op) { parse_operand(op, tokens[i], seen); }, instr.op);
        }
      } catch (const Failure& failure) {
        error(line_, path_, failure);
      }
    }
    note_open_loop(instr, seen);
    stream().push_back(instr);
  }

  void parse_common(Instr& instr, std::string_view word, const Token& token) {
    path_ += fmt::format(".{}", word);
    if (word == "at") {
      instr.at.location = location_index(token);
    } else if (word == "label") {
      instr.at.label = label_index(token);
    } else {
      Cursor in = token.cursor();
      if (word == "wait" ? instr.sync.wait.present() : instr.sync.update.present()) {
        in.fail(fmt::format("an instruction has at most one {}", word));
      }
      if (word == "wait") {
        parse(in, instr.sync.wait);
      } else {
        parse(in, instr.sync.update);
      }
      in.expect_end();
    }
  }

  template <class T>
  void parse_operand(T& op, const Token& token, std::uint32_t& seen) {
    const std::size_t equals = token.text.find('=');
    const std::string_view key = token.text.substr(0, equals);
    if (equals == std::string_view::npos) {
      throw Failure{token.column, "expected operand=value, wait, update, at or label"};
    }
    bool known = false;
    std::uint32_t bit = 1;
    for_each_operand<T>([&](const auto& operand) {
      if (operand.name == key) {
        known = true;
        path_ += fmt::format(".{}", key);
        if ((seen & bit) != 0) throw Failure{token.column, "the operand stands twice"};
        seen |= bit;
        Cursor in(token.text.substr(equals + 1), token.column + equals + 1);
        parse_value(in, op, operand);
      }
      bit <<= 1U;
    });
    if (!known) {
      std::vector<std::string_view> names;
      for_each_operand<T>([&](const auto& operand) { names.push_back(operand.name); });
      throw Failure{token.column,
                    fmt::format("unknown operand '{}'{}", key, did_you_mean(key, names))};
    }
  }

  template <class T, class Member>
  void parse_value(Cursor in, T& op, const Operand<Member>& operand) {
    if constexpr (std::is_same_v<T, CompareBranch>) {
      if (operand.name == "target" && in.peek() != '-' && in.peek() != '+' &&
          (in.peek() < '0' || in.peek() > '9')) {
        branches_.push_back(
            {stream_number(), stream().size(), std::string(in.rest()), line_, in.column()});
        return;
      }
    }
    auto& value = op.*operand.member;
    const Cursor start = in;
    parse(in, value);
    in.expect_end();
    using Value = std::remove_reference_t<decltype(value)>;
    if constexpr (std::is_integral_v<Value> && !std::is_same_v<Value, bool>) {
      const Limits& limits = operand.limits;
      const auto number = static_cast<std::int64_t>(value);
      if (limits.min != limits.max && (number < limits.min || number > limits.max)) {
        start.fail(fmt::format("expected {}..{}, got {}", limits.min, limits.max, number));
      }
    }
  }

  void finish() {
    for (const Branch& branch : branches_) {
      const auto found = code_labels_.find({branch.stream, branch.label});
      if (found == code_labels_.end()) {
        std::vector<std::string_view> names;
        for (const auto& [key, index] : code_labels_) {
          if (key.first == branch.stream) names.push_back(key.second);
        }
        error(branch.line, "COMPARE_BRANCH.target",
              {branch.column, fmt::format("nothing in this stream is named '{}'{}", branch.label,
                                          did_you_mean(branch.label, names))});
        continue;
      }
      Instr& instr =
          trace_.code[branch.stream / kEngines].streams[branch.stream % kEngines][branch.index];
      std::get<CompareBranch>(instr.op).target =
          static_cast<std::int64_t>(found->second) - static_cast<std::int64_t>(branch.index);
    }
    for (std::size_t i = 0; i < trace_.header.cores.size(); ++i) {
      const CoreBinding& core = trace_.header.cores[i];
      if (core.program >= trace_.code.size()) {
        error(core_lines_[i], ".core",
              {1, fmt::format("core {} runs program {}, but there are {}", core.core, core.program,
                              trace_.code.size())});
      }
    }
    for (Program& program : trace_.code) {
      for (std::vector<Instr>& instrs : program.streams) {
        close_loops(instrs, static_cast<std::size_t>(&program - trace_.code.data()) * kEngines +
                                static_cast<std::size_t>(&instrs - program.streams.data()));
      }
    }
    for (const auto& [place, line] : open_) {
      error(line, "", {1, "LOOP and END_LOOP do not match, and no distance is given"});
    }
  }

  /// Remembers a LOOP or END_LOOP whose distance, its third operand, was not written.
  void note_open_loop(const Instr& instr, std::uint32_t seen) {
    const bool loop =
        std::holds_alternative<Loop>(instr.op) || std::holds_alternative<EndLoop>(instr.op);
    if (loop && (seen & 4U) == 0) open_.emplace(std::pair(stream_number(), stream().size()), line_);
  }

  /// Gives LOOP and END_LOOP the distances that were left out.
  void close_loops(std::vector<Instr>& instrs, std::size_t stream) {
    std::vector<std::size_t> nest;
    for (std::size_t i = 0; i < instrs.size(); ++i) {
      if (std::holds_alternative<Loop>(instrs[i].op)) {
        nest.push_back(i);
      } else if (auto* end = std::get_if<EndLoop>(&instrs[i].op); end != nullptr && !nest.empty()) {
        auto& loop = std::get<Loop>(instrs[nest.back()].op);
        const auto distance = static_cast<std::int64_t>(i - nest.back());
        if (open_.erase({stream, nest.back()}) != 0) loop.end = distance;
        if (open_.erase({stream, i}) != 0) *end = {loop.counter, loop.count, -distance};
        nest.pop_back();
      }
    }
  }

  std::string_view file_;
  std::uint64_t line_ = 0;
  std::string path_;
  std::vector<InputError> errors_;
  Trace trace_;
  std::optional<std::uint32_t> program_;
  std::optional<Engine> engine_;
  std::unordered_map<std::string, std::size_t> locations_;
  std::unordered_map<std::string, std::size_t> labels_;
  std::map<std::pair<std::size_t, std::string>, std::size_t> code_labels_;
  std::vector<Branch> branches_;
  std::map<std::pair<std::size_t, std::size_t>, std::uint64_t> open_;  ///< loops, with their lines
  std::vector<std::uint64_t> core_lines_;
};

}  // namespace

Trace parse_text(std::string_view text, std::string_view file) { return Parser(file).run(text); }

}  // namespace trn::isa
