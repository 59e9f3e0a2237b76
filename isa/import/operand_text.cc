#include "isa/import/operand_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn::isa {
namespace {

// PSUM on the engines' side: right after 128 partitions of SBUF. Source:
// docs/sources.md#profiles-import.
constexpr std::int64_t kPsumBase = 0x2000000;
constexpr std::int64_t kPsumBytes = 16 * 1024;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 40U;
constexpr std::uint64_t kMaxElements = (std::uint64_t{1} << 32U) - 1;
constexpr std::size_t kQuoted = 120;  // characters of a text that a message repeats

struct DtypeName {
  std::string_view name;
  Dtype dtype;
};
constexpr std::array kDtypeNames = {
    DtypeName{"fp32", Dtype::Fp32},     DtypeName{"bfloat16", Dtype::Bf16},
    DtypeName{"fp16", Dtype::Fp16},     DtypeName{"int32", Dtype::Int32},
    DtypeName{"uint32", Dtype::Uint32}, DtypeName{"int16", Dtype::Int16},
    DtypeName{"uint16", Dtype::Uint16}, DtypeName{"int8", Dtype::Int8},
    DtypeName{"uint8", Dtype::Uint8}};

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

void skip_spaces(std::string_view& text) {
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
}

std::string_view next_word(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && !is_space(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

bool starts_semaphore(std::string_view text) {
  return text.starts_with("S[") || text.starts_with("$S[");
}

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// Digits at the start, decimal or 0x; a sign where `negative` allows it.
std::optional<std::int64_t> leading_whole(std::string_view& text) {
  std::string_view digits = text;
  const bool negative = skip(digits, "-");
  const int base = skip(digits, "0x") ? 16 : 10;
  std::uint64_t magnitude = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (error != std::errc{} || magnitude > std::uint64_t{1} << 62U) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  const auto value = static_cast<std::int64_t>(magnitude);
  return negative ? -value : value;
}

std::string shortened(std::string_view text) {
  if (text.size() <= kQuoted) return std::string(text);
  return fmt::format("{}...", text.substr(0, kQuoted));
}

}  // namespace

OperandText::OperandText(std::string_view text, Fail fail) : text_(text), fail_(std::move(fail)) {
  std::string_view rest = text;
  for (skip_spaces(rest); !rest.empty(); skip_spaces(rest)) {
    if (starts_semaphore(rest)) {
      parse_semaphore(rest);
      continue;
    }
    const std::string_view word = next_word(rest);
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      words_.push_back(word);
      continue;
    }
    const std::string_view key = word.substr(0, equals);
    if (std::any_of(pairs_.begin(), pairs_.end(), [&](const Pair& p) { return p.key == key; })) {
      this->fail(key, "given twice");
    }
    pairs_.push_back({key, word.substr(equals + 1)});
  }
}

/// `S[6] (Vector)>=5`, `S[4] (Scalar)++@complete`, and with a `$` in front as the runtime writes
/// it. The name in brackets says who writes the semaphore; that follows from the program.
void OperandText::parse_semaphore(std::string_view& rest) {
  const std::string_view whole = rest;
  const auto refuse = [&](std::string_view expected) {
    fail("", fmt::format("expected {} at '{}'", expected, shortened(whole)));
  };
  skip(rest, "$");
  skip(rest, "S[");
  const auto id = leading_whole(rest);
  if (!id || *id < 0 || *id >= static_cast<std::int64_t>(kSemaphores) || !skip(rest, "]")) {
    refuse(fmt::format("a semaphore S[0] to S[{}]", kSemaphores - 1));
  }
  const std::string_view behind = rest;
  skip_spaces(rest);
  if (skip(rest, "(")) {
    const std::size_t close = rest.find(')');
    if (close == std::string_view::npos) refuse("a name in brackets");
    rest.remove_prefix(close + 1);
  } else {
    rest = behind;
  }
  std::string_view operation = next_word(rest);
  const std::size_t at = operation.find('@');
  if (at == std::string_view::npos) {
    Wait wait{.semaphore = static_cast<SemaphoreId>(*id)};
    if (skip(operation, ">="))
      wait.condition = WaitCondition::GreaterEqual;
    else if (skip(operation, "=="))
      wait.condition = WaitCondition::Equal;
    else if (skip(operation, "<="))
      wait.condition = WaitCondition::LessEqual;
    else
      refuse("a wait (>=, == or <=) or an update (++@complete)");
    const auto value = leading_whole(operation);
    if (!value || *value < 0 || *value > INT32_MAX || !operation.empty())
      refuse("a value to wait for");
    wait.value = *value;
    if (sync_.wait.present()) fail("", "expected one wait at most");
    sync_.wait = wait;
    return;
  }
  if (operation.substr(at) != "@complete") refuse("an update @complete");
  operation = operation.substr(0, at);
  Update update{.semaphore = static_cast<SemaphoreId>(*id)};
  bool has_value = true;
  if (operation == "++" || operation == "--") {
    update.kind = operation == "++" ? UpdateKind::Increment : UpdateKind::Decrement;
    operation = {};
    has_value = false;
  } else if (skip(operation, "+=")) {
    update.kind = UpdateKind::Add;
  } else if (skip(operation, "-=")) {
    update.kind = UpdateKind::Subtract;
  } else if (skip(operation, "=")) {
    update.kind = UpdateKind::Write;
  } else {
    refuse("an update ++, --, +=, -= or =");
  }
  if (has_value) {
    const auto value = leading_whole(operation);
    if (!value || *value < 0 || *value > INT32_MAX || !operation.empty()) refuse("a value to set");
    update.value = static_cast<std::uint32_t>(*value);
  }
  if (sync_.update.present()) fail("", "expected one update at most");
  sync_.update = update;
}

void OperandText::fail(std::string_view key, std::string_view message) {
  const std::string where = key.empty() ? "" : fmt::format("{}: ", key);
  fail_(fmt::format("{}{}, in '{}'", where, message, shortened(text_)));
  TRN_CHECK(false, "the handler of an import error returned");
  std::abort();
}

std::optional<std::string_view> OperandText::take_if(std::string_view key) {
  for (Pair& pair : pairs_) {
    if (pair.key != key || pair.taken) continue;
    pair.taken = true;
    return pair.value;
  }
  return std::nullopt;
}

std::string_view OperandText::take(std::string_view key) {
  const auto value = take_if(key);
  if (!value) fail(key, "expected this operand, it is missing");
  return *value;
}

std::string_view OperandText::take_word(std::string_view expected) {
  if (words_taken_ == words_.size()) fail("", fmt::format("expected {}", expected));
  return words_[words_taken_++];
}

void OperandText::expect(std::string_view key, std::string_view value) {
  const std::string_view got = take(key);
  if (got != value) fail(key, fmt::format("expected {}, got '{}'", value, shortened(got)));
}

std::int64_t OperandText::as_whole(std::string_view key, std::string_view text, std::int64_t min,
                                   std::int64_t max) {
  std::string_view rest = text;
  const auto value = leading_whole(rest);
  if (!value || !rest.empty() || *value < min || *value > max) {
    fail(key,
         fmt::format("expected a whole number in {}..{}, got '{}'", min, max, shortened(text)));
  }
  return *value;
}

std::int64_t OperandText::take_whole(std::string_view key, std::int64_t min, std::int64_t max) {
  return as_whole(key, take(key), min, max);
}

double OperandText::as_real(std::string_view key, std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) ||
      std::abs(value) > std::numeric_limits<float>::max()) {
    fail(key, fmt::format("expected a number, got '{}'", shortened(text)));
  }
  return value;
}

std::size_t OperandText::choose(std::string_view key, std::string_view value,
                                const std::string_view* names, std::size_t count) {
  const std::vector<std::string_view> candidates(names, names + count);
  const auto at = std::find(candidates.begin(), candidates.end(), value);
  if (at == candidates.end()) {
    fail(key,
         fmt::format("unknown value '{}'{}", shortened(value), did_you_mean(value, candidates)));
  }
  return static_cast<std::size_t>(at - candidates.begin());
}

Dtype OperandText::as_dtype(std::string_view key, std::string_view name) {
  std::array<std::string_view, kDtypeNames.size()> names;
  std::transform(kDtypeNames.begin(), kDtypeNames.end(), names.begin(),
                 [](const DtypeName& d) { return d.name; });
  return kDtypeNames[choose(key, name, names.data(), names.size())].dtype;
}

/// Takes `[a,b,...]` of one to four numbers off the front.
std::vector<std::int64_t> OperandText::list(std::string_view key, std::string_view& rest,
                                            std::int64_t min, std::int64_t max) {
  std::vector<std::int64_t> numbers;
  const std::string_view whole = rest;
  bool good = skip(rest, "[");
  while (good) {
    const auto value = leading_whole(rest);
    good = value && *value >= min && *value <= max && numbers.size() < kFreeDims;
    if (!good) break;
    numbers.push_back(*value);
    if (skip(rest, "]")) return numbers;
    good = skip(rest, ",");
  }
  fail(key, fmt::format("expected a list of one to {} numbers in {}..{}, got '{}'", kFreeDims, min,
                        max, shortened(whole)));
}

/// Engine addresses: partition * kSbufPartitionStride + byte in SBUF, kPsumBase + byte in PSUM.
void OperandText::locate(std::string_view key, std::int64_t address, Access& access) {
  std::int64_t partition = 0;
  if (address < kPsumBase) {
    access.memory = Memory::Sbuf;
    partition = address / kSbufPartitionStride;
    access.offset = address % kSbufPartitionStride;
  } else if (address < kPsumBase + kPsumBytes) {
    access.memory = Memory::Psum;
    access.offset = address - kPsumBase;
  } else {
    fail(key,
         fmt::format("address {:#x} is neither in SBUF (below {:#x}) nor in PSUM (below {:#x})",
                     address, kPsumBase, kPsumBase + kPsumBytes));
  }
  if (partition + access.partitions > static_cast<std::int64_t>(kPartitions)) {
    fail(key, fmt::format("partitions {}..{} are past the last, {}", partition,
                          partition + access.partitions - 1, kPartitions - 1));
  }
  access.start_partition = static_cast<std::uint8_t>(partition);
}

Access OperandText::element_at(std::string_view key, std::string_view address, Dtype dtype,
                               std::uint32_t partitions) {
  Access access;
  access.dtype = dtype;
  access.partitions = static_cast<std::uint8_t>(partitions);
  locate(key, as_whole(key, address, 0, INT32_MAX), access);
  return access;
}

Access OperandText::take_access(std::string_view key, std::uint32_t partitions,
                                std::optional<Dtype> implied) {
  TRN_CHECK(partitions >= 1 && partitions <= kPartitions, "{} partitions", partitions);
  const std::string_view text = take(key);
  std::string_view rest = text;
  Access access;
  if (implied) {
    access.dtype = *implied;
  } else {
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) {
      fail(key, fmt::format("expected dtype@address[strides][sizes], got '{}'", shortened(text)));
    }
    access.dtype = as_dtype(key, text.substr(0, at));
    rest.remove_prefix(at + 1);
  }
  access.partitions = static_cast<std::uint8_t>(partitions);
  const std::string_view address = rest.substr(0, rest.find('['));
  rest.remove_prefix(address.size());
  locate(key, as_whole(key, address, 0, INT32_MAX), access);
  if (rest.empty()) return access;

  const auto strides = list(key, rest, -kSbufPartitionStride, kSbufPartitionStride);
  const auto sizes = list(key, rest, 1, kSbufPartitionStride);
  if (!rest.empty()) fail(key, fmt::format("unexpected '{}'", shortened(rest)));
  if (strides.size() != sizes.size()) {
    fail(key, fmt::format("{} strides, but {} sizes", strides.size(), sizes.size()));
  }
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    access.free[i] = {static_cast<std::int32_t>(strides[i]), static_cast<std::uint32_t>(sizes[i])};
    elements *= access.free[i].size;
    if (elements > kMaxElements) fail(key, "more than 2^32 elements");
    if (access.free[i].size != 1) access.dims = static_cast<std::uint8_t>(i + 1);
  }
  for (std::size_t i = access.dims; i < kFreeDims; ++i) access.free[i] = {};
  return access;
}

void OperandText::take_pattern(std::string_view key, DmaSide& side) {
  std::string_view rest = take(key);
  const auto strides = list(key, rest, -kMaxStride, kMaxStride);
  const auto sizes = list(key, rest, 1, INT32_MAX);
  if (!rest.empty()) fail(key, fmt::format("unexpected '{}'", shortened(rest)));
  if (strides.size() != sizes.size()) {
    fail(key, fmt::format("{} strides, but {} sizes", strides.size(), sizes.size()));
  }
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    side.pattern[i] = {strides[i], static_cast<std::uint32_t>(sizes[i])};
    elements *= side.pattern[i].size;
    if (elements > kMaxElements) fail(key, "more than 2^32 elements");
    if (std::abs(strides[i]) > kMaxStride / (sizes[i] == 1 ? 1 : sizes[i] - 1)) {
      fail(key, "the pattern spans more than 1 TiB");
    }
    if (sizes[i] != 1) side.dims = static_cast<std::uint8_t>(i + 1);
  }
  for (std::size_t i = side.dims; i < kFreeDims; ++i) side.pattern[i] = {};
}

void OperandText::finish() {
  for (const Pair& pair : pairs_) {
    if (!pair.taken) fail(pair.key, "unknown operand of this instruction");
  }
  if (words_taken_ != words_.size()) {
    fail("", fmt::format("unknown operand '{}'", shortened(words_[words_taken_])));
  }
}

}  // namespace trn::isa
