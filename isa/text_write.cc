#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <ostream>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "isa/text.h"

namespace trn::isa {
namespace {

template <class... Args>
void print_to(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

void print_register(std::string& out, Register reg) {
  if (reg == kRankRegister) {
    out += "rank";
  } else {
    print_to(out, "r{}", reg);
  }
}

enum class Base { Decimal, Hex };

void print(std::string& out, const Affine& value, Base base) {
  if (base == Base::Hex) {
    const auto bits = static_cast<std::uint64_t>(value.base);
    print_to(out, "{}0x{:x}", value.base < 0 ? "-" : "", value.base < 0 ? ~bits + 1 : bits);
  } else {
    print_to(out, "{}", value.base);
  }
  for (std::size_t i = 0; i < value.term_count; ++i) {
    print_to(out, "{:+}*", value.terms[i].coefficient);
    print_register(out, value.terms[i].reg);
  }
}

/// `[strides][sizes]`, innermost first.
template <class Dims, class Stride>
void print_pattern(std::string& out, const Dims& dims, std::size_t count, Stride stride) {
  if (count == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    print_to(out, "{}{}", i == 0 ? '[' : ',', stride(dims[i]));
  }
  for (std::size_t i = 0; i < count; ++i) print_to(out, "{}{}", i == 0 ? "][" : ",", dims[i].size);
  out += ']';
}

void print(std::string& out, const Access& value) {
  print_to(out, "{}@{}", name_of(value.dtype), name_of(value.memory));
  if (value.start_partition != 0 || value.partitions != kPartitions) {
    print_to(out, "[{}:{}]", value.start_partition, value.start_partition + value.partitions);
  }
  out += ':';
  print(out, value.offset, Base::Hex);
  print_pattern(out, value.free, value.dims, [](const FreeDim& dim) { return dim.stride; });
}

void print(std::string& out, const DmaSide& value) {
  print_to(out, "{}@{}:", name_of(value.dtype), name_of(value.memory));
  print(out, value.address, Base::Hex);
  print_to(out, "{{{}}}", value.element_bytes);
  print_pattern(out, value.pattern, value.dims, [](const DmaDim& dim) { return dim.stride_bytes; });
}

void print(std::string& out, float value) {
  if (std::isnan(value)) {
    print_to(out, "nan:0x{:08x}", std::bit_cast<std::uint32_t>(value));
  } else {
    print_to(out, "{}", value);
  }
}

void print(std::string& out, const ScalarOperand& value) {
  switch (value.kind) {
    case ScalarOperand::Kind::None:
      break;
    case ScalarOperand::Kind::Immediate:
      print(out, value.immediate);
      break;
    case ScalarOperand::Kind::Integer:
      print_to(out, "i:{}", value.integer);
      break;
    case ScalarOperand::Kind::Pointer:
      print(out, value.pointer);
      break;
  }
}

void print(std::string& out, const RegisterOperand& value) {
  if (value.reg == kNoRegister) {
    print_to(out, "{}", value.constant);
  } else {
    print_register(out, value.reg);
  }
}

void print(std::string& out, const DmaCompletion& value) {
  print_to(out, "S[{}]+={}", value.semaphore, value.increment);
}

void print(std::string& out, const RankGroup& value) {
  print_to(out, "{}:{}:{}", value.size, value.stride, value.offset);
}

void print(std::string& out, const PeTile& value) {
  print_to(out, "{}:{}:{}:{}", value.row, value.column, value.rows, value.columns);
}

void print(std::string& out, const ShuffleMask& value) {
  for (std::size_t i = 0; i < value.source.size(); ++i) {
    print_to(out, "{}{}", i == 0 ? '[' : ',', value.source[i]);
  }
  out += ']';
}

void print(std::string& out, const IndexPattern& value) {
  print_to(out, "{}{:+}*p", value.base, value.channel);
  print_pattern(out, value.steps, value.dims, [](const FreeDim& dim) { return dim.stride; });
}

template <class T>
  requires std::is_integral_v<T> || NamedEnum<T>
void print(std::string& out, T value) {
  if constexpr (NamedEnum<T>) {
    out += name_of(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    out += value ? "true" : "false";
  } else {
    print_to(out, "{}", value);
  }
}

void print_operands(std::string& out, const Instr& instr) {
  std::visit(
      [&]<class T>(const T& op) {
        const T initial{};
        for_each_operand<T>([&](const auto& operand) {
          const auto& value = op.*operand.member;
          // A loop shows all of itself: an absent distance is one that the parser finds.
          constexpr bool kShowAll = std::is_same_v<T, Loop> || std::is_same_v<T, EndLoop>;
          if (!kShowAll && is_default(value, initial.*operand.member)) return;
          print_to(out, " {}=", operand.name);
          print(out, value);
        });
      },
      instr.op);
}

void print_semaphore(std::string& out, SemaphoreId id) {
  if (id >= kFirstEvent) {
    print_to(out, "E[{}]", id - kFirstEvent);
  } else {
    print_to(out, "S[{}]", id);
  }
}

void print_sync(std::string& out, const Sync& sync) {
  if (sync.wait.present()) {
    out += " wait ";
    print_semaphore(out, sync.wait.semaphore);
    out += name_of(sync.wait.condition);
    print(out, sync.wait.value, Base::Decimal);
  }
  if (sync.update.present()) {
    out += " update ";
    print_semaphore(out, sync.update.semaphore);
    out += name_of(sync.update.kind);
    if (sync.update.kind >= UpdateKind::Add) print_to(out, "{}", sync.update.value);
    print_to(out, "@{}", name_of(sync.update.when));
  }
}

std::string without_leading_space(std::string text) {
  if (!text.empty()) text.erase(0, 1);
  return text;
}

void print_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      print_to(out, "\\x{:02x}", byte);
    } else {
      out += c;
    }
  }
  out += '"';
}

bool is_file_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '+' || c == '.' || c == '/';
}

void print_location(std::string& out, const SourceLocation& location) {
  if (!location.file.empty() &&
      std::all_of(location.file.begin(), location.file.end(), is_file_character)) {
    out += location.file;
  } else {
    print_quoted(out, location.file);
  }
  print_to(out, ":{}", location.line);
}

std::string location_key(const SourceLocation& location) {
  return fmt::format("{}:{}", location.line, location.file);
}

/// For each entry of a table, whether it is the first with its text: only those can be named by it.
template <class T, class Key>
std::vector<bool> first_of_its_kind(const std::vector<T>& table, Key key) {
  std::unordered_map<std::string, std::size_t> seen;
  std::vector<bool> first(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) first[i] = seen.emplace(key(table[i]), i).second;
  return first;
}

class Printer {
 public:
  explicit Printer(const TraceInfo& info)
      : info_(info),
        named_location_(first_of_its_kind(info.locations, location_key)),
        named_label_(first_of_its_kind(info.labels, [](const std::string& l) { return l; })) {}

  void print_at(std::string& out, std::uint32_t location) const {
    if (location == 0) return;
    out += " at ";
    if (named_location_.at(location)) {
      print_location(out, info_.locations[location]);
    } else {
      print_to(out, "%{}", location);
    }
  }

  void print_label(std::string& out, std::uint32_t label) const {
    if (label == 0) return;
    out += " label ";
    if (named_label_.at(label)) {
      print_quoted(out, info_.labels[label]);
    } else {
      print_to(out, "%{}", label);
    }
  }

  void print_info(std::string& out) const {
    print_to(out, ".trace {}\n.name ", kTextVersion);
    print_quoted(out, info_.name);
    print_to(out, "\n.target {}\n", name_of(info_.target));
    for (const Work& work : info_.work) {
      print_to(out, ".work {} ", work.amount);
      print_quoted(out, work.unit);
      out += '\n';
    }
    for (const std::string& warning : info_.warnings) {
      out += ".warning ";
      print_quoted(out, warning);
      out += '\n';
    }
    for (std::size_t i = 1; i < info_.locations.size(); ++i) {
      out += ".location ";
      print_location(out, info_.locations[i]);
      out += '\n';
    }
    for (std::size_t i = 1; i < info_.labels.size(); ++i) {
      out += ".label ";
      print_quoted(out, info_.labels[i]);
      out += '\n';
    }
    for (const Tensor& tensor : info_.tensors) {
      out += ".tensor ";
      print_quoted(out, tensor.name);
      print_to(out, " {} {} {} [{}] address=0x{:x} bytes={}", name_of(tensor.kind),
               name_of(tensor.memory), name_of(tensor.dtype), fmt::join(tensor.shape, ","),
               tensor.address, tensor.bytes);
      print_at(out, tensor.location);
      out += '\n';
    }
    for (const CoreBinding& core : info_.cores) {
      print_to(out, ".core {} program={} rank={}\n", core.core, core.program, core.rank);
    }
  }

 private:
  const TraceInfo& info_;
  std::vector<bool> named_location_;
  std::vector<bool> named_label_;
};

}  // namespace

std::string operands_text(const Instr& instr) {
  std::string out;
  print_operands(out, instr);
  return without_leading_space(std::move(out));
}

std::string sync_text(const Instr& instr) {
  std::string out;
  print_sync(out, instr.sync);
  return without_leading_space(std::move(out));
}

std::string instruction_text(const Instr& instr) {
  std::string out(mnemonic(instr));
  print_operands(out, instr);
  print_sync(out, instr.sync);
  return out;
}

void write_text(const Code& code, std::ostream& out) {
  const Printer printer(code.info());
  std::string text;
  printer.print_info(text);
  std::vector<Instr> block;
  for (std::uint32_t program = 0; program < code.programs(); ++program) {
    print_to(text, ".program {}\n", program);
    for (Engine engine : kAllEngines) {
      const std::uint64_t size = code.size(program, engine);
      if (size > 0) print_to(text, ".engine {}\n", name_of(engine));
      for (std::uint64_t at = 0; at * kBlockInstructions < size; ++at) {
        code.read(program, engine, at, block);
        for (const Instr& instr : block) {
          text += instruction_text(instr);
          printer.print_at(text, instr.at.location);
          printer.print_label(text, instr.at.label);
          text += '\n';
        }
        out << text;
        text.clear();
      }
    }
  }
  out << text;
}

std::string trace_text(const Code& code) {
  std::ostringstream out;
  write_text(code, out);
  return out.str();
}

}  // namespace trn::isa
