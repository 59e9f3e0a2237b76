#include "isa/reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "isa/instructions.h"
#include "tests/support/paths.h"

namespace trn::isa {
namespace {

std::string content(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST(InstructionReference, ThePageIsUpToDate) {
  const auto file = test::source_path("docs/reference/isa.md");
  const std::string page = instruction_page();
  if (std::getenv("TRN_UPDATE_REFERENCE") != nullptr) std::ofstream(file) << page;
  EXPECT_TRUE(content(file) == page)
      << "stale: run this test with TRN_UPDATE_REFERENCE=1 and commit";
}

TEST(InstructionReference, EverySourceIsAHeadingOrAFile) {
  for_each_instruction([]<class T>() {
    const std::string source(T::kSource);
    const std::size_t hash = source.find('#');
    const auto file = test::source_path(source.substr(0, hash));
    EXPECT_TRUE(std::filesystem::exists(file)) << T::kName << ": " << source;
    if (hash != std::string::npos) {
      EXPECT_NE(content(file).find("\n## " + source.substr(hash + 1) + "\n"), std::string::npos)
          << T::kName << ": " << source;
    }
  });
}

TEST(InstructionReference, EveryInstructionHasOperandNamesThatDiffer) {
  for_each_instruction([]<class T>() {
    std::vector<std::string_view> names;
    for_each_operand<T>([&](const auto& operand) {
      EXPECT_EQ(std::find(names.begin(), names.end(), operand.name), names.end())
          << T::kName << " " << operand.name;
      EXPECT_FALSE(operand.meaning.empty()) << T::kName << " " << operand.name;
      names.push_back(operand.name);
    });
  });
}

}  // namespace
}  // namespace trn::isa
