#include "isa/reference.h"

#include <fmt/format.h>

#include <iterator>
#include <string_view>
#include <type_traits>
#include <vector>

#include "isa/instructions.h"

namespace trn::isa {
namespace {

template <class... Args>
void print_to(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

template <class E>
std::string names_of(EnumSet<E> set) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < EnumNames<E>::value.size(); ++i) {
    if (set.contains(static_cast<E>(i))) names.push_back(EnumNames<E>::value[i]);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

/// How an operand of a type is written in text.
template <class T>
std::string form_of() {
  if constexpr (std::is_same_v<T, Access>) {
    return "access";
  } else if constexpr (std::is_same_v<T, DmaSide>) {
    return "DMA pattern";
  } else if constexpr (std::is_same_v<T, ScalarOperand>) {
    return "constant or access";
  } else if constexpr (std::is_same_v<T, RegisterOperand>) {
    return "constant or register";
  } else if constexpr (std::is_same_v<T, DmaCompletion>) {
    return "`S[n]+=k`";
  } else if constexpr (std::is_same_v<T, RankGroup>) {
    return "`size:stride:offset`";
  } else if constexpr (std::is_same_v<T, PeTile>) {
    return "`row:column:rows:columns`";
  } else if constexpr (std::is_same_v<T, ShuffleMask>) {
    return "32 partitions";
  } else if constexpr (std::is_same_v<T, IndexPattern>) {
    return "`base+channel*p[steps][sizes]`";
  } else if constexpr (std::is_same_v<T, bool>) {
    return "`true`, `false`";
  } else if constexpr (std::is_same_v<T, float>) {
    return "fp32 number";
  } else if constexpr (std::is_integral_v<T>) {
    return "integer";
  } else if constexpr (EnumNames<T>::value.size() > 10) {
    return std::is_same_v<T, ActivationFunction> ? "[function](#functions)"
                                                 : "[operation](#operations)";
  } else {
    return fmt::format("`{}`", fmt::join(EnumNames<T>::value, "`, `"));
  }
}

std::string limits_text(const Limits& limits) {
  std::vector<std::string> parts;
  if (!limits.memories.empty()) parts.push_back(names_of(limits.memories));
  if (!limits.dtypes.empty()) parts.push_back(names_of(limits.dtypes));
  if (limits.partitions_max != 0)
    parts.push_back(fmt::format("at most {} partitions", limits.partitions_max));
  if (limits.partitions_multiple != 0) {
    parts.push_back(fmt::format("multiples of {} partitions", limits.partitions_multiple));
  }
  if (limits.free_min != 0 && limits.free_min == limits.free_max) {
    parts.push_back(fmt::format("{} elements", limits.free_max));
  } else if (limits.free_min != 0) {
    parts.push_back(fmt::format("{}..{} elements", limits.free_min, limits.free_max));
  } else if (limits.free_max != 0) {
    parts.push_back(fmt::format("at most {} elements", limits.free_max));
  }
  if (limits.free_multiple != 0) {
    parts.push_back(fmt::format("multiples of {} elements", limits.free_multiple));
  }
  if (limits.min != limits.max) parts.push_back(fmt::format("{}..{}", limits.min, limits.max));
  if (limits.optional) parts.emplace_back("optional");
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// `docs/sources.md#x` as a link from docs/reference/.
std::string link(std::string_view source) {
  constexpr std::string_view kDocs = "docs/";
  const std::string_view path = source.substr(kDocs.size());
  return fmt::format("[{}](../{})", path, path);
}

template <class T>
void print_instruction(std::string& out) {
  print_to(out, "\n## {}\n\n{}\n\nOpcode 0x{:02x}; {}; cost class `{}`; {}.\n", T::kName, T::kDoc,
           T::kOpcode, names_of(T::kEngines), name_of(T::kCost), link(T::kSource));
  if constexpr (std::tuple_size_v<decltype(T::operands())> > 0) {
    out += "\n| operand | form | limits | meaning |\n|---|---|---|---|\n";
    for_each_operand<T>([&](const auto& operand) {
      using Member = std::remove_cvref_t<decltype(T{}.*operand.member)>;
      print_to(out, "| `{}` | {} | {} | {} |\n", operand.name, form_of<Member>(),
               limits_text(operand.limits), operand.meaning);
    });
  }
}

template <class E>
void print_names(std::string& out, std::string_view title, std::string_view text) {
  print_to(out, "\n## {}\n\n{} `{}`.\n", title, text, fmt::join(EnumNames<E>::value, "`, `"));
}

}  // namespace

std::string instruction_page() {
  std::string out =
      "# Instructions\n\n"
      "Written by the test `InstructionReference` from the descriptions in `isa/instructions/`; "
      "edit "
      "those. How operands are written, and\n"
      "how an instruction is encoded, is in [trace-format.md](trace-format.md). Limits that tie "
      "operands together are in `isa/validate.cc`.\n\n"
      "Every instruction may wait for one semaphore or event and update one. An access has at most "
      "65536 elements per partition in sbuf\n"
      "and 4096 in psum, unless a lower limit stands here.\n";
  for_each_instruction([&]<class T>() { print_instruction<T>(out); });
  print_names<AluOp>(out, "Operations",
                     "Arithmetic is fp32 inside, whatever the operands' types; comparisons and "
                     "logical operations give 1 or 0.\nOperations on bits are for integers:");
  print_names<ActivationFunction>(out, "Functions", "Of the Scalar engine:");
  return out;
}

}  // namespace trn::isa
