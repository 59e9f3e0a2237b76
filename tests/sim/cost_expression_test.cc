#include "sim/core/cost_expression.h"

#include <gtest/gtest.h>

#include <cmath>

#include "isa/base/error.h"

namespace trn::sim {
namespace {

using Kind = CostExpression::Kind;

ExpressionScope scope() {
  return {.engine = isa::Engine::Vector,
          .clock_hz = 0.96e9,
          .constant = [](std::string_view name) -> std::optional<double> {
            if (name == "min_ii") return 64;
            if (name == "dma.hardware.trigger_hold") return 590;
            return std::nullopt;
          },
          .constant_names = {"min_ii", "dma.hardware.trigger_hold"},
          .results = {"ii_cycles"}};
}

CostFeatures features() {
  CostFeatures f;
  f.elements = 512;
  f.dtype = isa::Dtype::Bf16;
  f.src_memory = isa::Memory::Psum;
  f.pointer = 1;
  f.sparsity = isa::Sparsity::S4of16;
  f.pass = isa::Fp32Pass::Low;
  f.opcode = static_cast<OpcodeNumber>(isa::Drain::kOpcode);
  return f;
}

double number(std::string_view text) {
  return CostExpression::parse(text, Kind::Number, scope())
      .evaluate(pack(features()), std::array{100.0});
}

bool holds(std::string_view text) {
  return CostExpression::parse(text, Kind::Condition, scope()).evaluate(pack(features())) != 0;
}

std::string error(std::string_view text, Kind kind = Kind::Number) {
  try {
    static_cast<void>(CostExpression::parse(text, kind, scope()));
  } catch (const InputError& caught) {
    return caught.what();
  }
  return "no error";
}

TEST(CostExpression, Calculates) {
  EXPECT_EQ(number("1 + 2 * 3 - 4 / 2"), 5);
  EXPECT_EQ(number("(1 + 2) * 3"), 9);
  EXPECT_EQ(number("-2 - -3"), 1);
  EXPECT_EQ(number("10 - 3 - 2"), 5);
  EXPECT_EQ(number("2.5e1"), 25);
  EXPECT_EQ(number("max(64, 2 * elements) + 4"), 1028);
  EXPECT_EQ(number("min(3, 1, 2)"), 1);
  EXPECT_EQ(number("ceil(elements / 100) + floor(2.9)"), 8);
  EXPECT_EQ(number("max(min_ii, elements / 16)"), 64);
  EXPECT_EQ(number("ii_cycles + 390"), 490);
  EXPECT_EQ(number("if(pointer > 0, 57, 0)"), 57);
  EXPECT_EQ(number("dma.hardware.trigger_hold"), 590);
}

TEST(CostExpression, NanosecondsBecomeCyclesOfTheEngine) {
  EXPECT_DOUBLE_EQ(number("ns(100)"), 96);
  EXPECT_DOUBLE_EQ(number("ii_cycles + ns(dma.hardware.trigger_hold)"), 100 + 590 * 0.96);
}

TEST(CostExpression, Decides) {
  EXPECT_TRUE(holds("elements >= 512 and elements < 513"));
  EXPECT_TRUE(holds("dtype == bf16"));
  EXPECT_TRUE(holds("fp32 != dtype"));
  EXPECT_TRUE(holds("src.memory == PSUM and src1.memory == none"));
  EXPECT_TRUE(holds("pass == low"));
  EXPECT_TRUE(holds("sparsity == '4:16'"));
  EXPECT_TRUE(holds("opcode == DRAIN"));
  EXPECT_TRUE(holds("engine == vector"));
  EXPECT_FALSE(holds("engine == tensor"));
  EXPECT_TRUE(holds("contiguous and not transpose"));
  EXPECT_TRUE(holds("not (contiguous and transpose) or dynamic"));
  EXPECT_TRUE(holds("src.dtype == dst.dtype"));
  EXPECT_TRUE(holds("transpose or elements > 1 and pointer == 1"));
}

TEST(CostExpression, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(error("elements + elemnts"),
            "column 12: unknown name 'elemnts' (did you mean 'elements'?)");
  EXPECT_EQ(error("dtype == fp23", Kind::Condition),
            "column 10: unknown name 'fp23' (did you mean 'fp32'?)");
  EXPECT_EQ(error("mx(1, 2)"), "column 1: unknown function 'mx' (did you mean 'max'?)");
  EXPECT_EQ(error("1 +"), "column 4: the formula ends too early");
  EXPECT_EQ(error(""), "column 1: the formula ends too early");
  EXPECT_EQ(error("(1 + 2"), "column 7: expected ')'");
  EXPECT_EQ(error("1 2"), "column 3: unexpected '2'");
  EXPECT_EQ(error("1 $ 2"), "column 3: unexpected '$'");
  EXPECT_EQ(error("2x"), "column 1: not a number");
  EXPECT_EQ(error("dtype + 1"), "column 1: expected a number; names only compare with == and !=");
  EXPECT_EQ(error("dtype < fp32", Kind::Condition), "column 1: names only compare with == and !=");
  EXPECT_EQ(error("dtype == 3", Kind::Condition), "column 10: expected a name such as fp32");
  EXPECT_EQ(error("dtype == src.memory", Kind::Condition), "column 10: these two do not compare");
  EXPECT_EQ(error("transpose"), "column 1: expected a number, got a condition");
  EXPECT_EQ(error("elements", Kind::Condition), "column 1: expected a condition, got a number");
  EXPECT_EQ(error("1 and transpose", Kind::Condition),
            "column 1: expected a condition, got a number");
  EXPECT_EQ(error("max(1)"), "column 1: max needs two numbers or more");
  EXPECT_EQ(error("sparsity == '4:16", Kind::Condition), "column 13: a quote is not closed");
  EXPECT_EQ(error("occupancy_cycles"), "column 1: unknown name 'occupancy_cycles'");
}

TEST(CostExpression, NoTextOverrunsTheStack) {
  for (const std::string_view part : {"(", "-", "not ", "max(1,", "if("}) {
    std::string text;
    while (text.size() + part.size() < CostExpression::kMaxLength) text += part;
    EXPECT_NE(error(text), "no error");
  }
  EXPECT_EQ(error(std::string(501, '1')), "column 500: longer than 500 characters");
  std::string sum = "1";
  for (int i = 0; i < 200; ++i) sum += "+1";
  EXPECT_EQ(number(sum), 201);
}

TEST(CostExpression, DivisionByZeroIsNotFinite) {
  EXPECT_FALSE(std::isfinite(number("1 / (elements - 512)")));
}

TEST(CostExpression, KnowsTheShapesThatItPins) {
  const auto pinned = [](std::string_view text) {
    return CostExpression::parse(text, Kind::Condition, scope()).pinned();
  };
  EXPECT_TRUE(pinned("dtype == fp32 and elements == 512").contains("elements"));
  EXPECT_TRUE(pinned("8 * min_ii == partitions").contains("partitions"));
  EXPECT_TRUE(pinned("elements >= 512 and pointer > 0").empty());
}

}  // namespace
}  // namespace trn::sim
