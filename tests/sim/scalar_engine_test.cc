#include "sim/engine/scalar_engine.h"

#include <gtest/gtest.h>

#include "tests/support/program_builder.h"
#include "tests/support/recorder.h"

namespace trn::sim {
namespace {

using isa::ActivationFunction;
using isa::Engine;
using test::activate;
using test::ns;
using test::Outcome;
using test::ProgramBuilder;
using test::round_machine;
using test::run;

// On round_machine() an ACTIVATE takes 100 ns to the next one and 250 ns to its result, a table
// 1000 ns; EXP is in set 1, LOG in 2, TANH and SIGMOID in 4, the others need no table.

Outcome activations(std::initializer_list<ActivationFunction> functions,
                    const Machine& machine = round_machine()) {
  ProgramBuilder program;
  program.on(Engine::Scalar);
  for (ActivationFunction function : functions) program.add(activate(function));
  return run(program.trace(), machine);
}

TEST(ScalarEngine, TheFirstUseOfAFunctionSetLoadsItsTable) {
  const Outcome done = activations({ActivationFunction::Exp, ActivationFunction::Exp});
  EXPECT_EQ(done.result.scalar.table_loads, 1);
  EXPECT_EQ(done.start(Engine::Scalar), ns(100));
  EXPECT_EQ(done.end(Engine::Scalar), ns(1350));       // 100 + 1000 + 250
  EXPECT_EQ(done.start(Engine::Scalar, 1), ns(1200));  // 100 + 1000 + 100
  EXPECT_EQ(done.end(Engine::Scalar, 1), ns(1450));
}

TEST(ScalarEngine, EachChangeOfTheSetLoadsATable) {
  const Outcome done =
      activations({ActivationFunction::Exp, ActivationFunction::Log, ActivationFunction::Exp});
  EXPECT_EQ(done.result.scalar.table_loads, 3);
  EXPECT_EQ(done.start(Engine::Scalar, 1), ns(1200));
  EXPECT_EQ(done.start(Engine::Scalar, 2), ns(2300));
  EXPECT_EQ(done.end(Engine::Scalar, 2), ns(3550));  // 2300 + 1000 + 250
}

TEST(ScalarEngine, FunctionsOfOneSetShareItsTable) {
  EXPECT_EQ(
      activations({ActivationFunction::Tanh, ActivationFunction::Sigmoid, ActivationFunction::Tanh})
          .result.scalar.table_loads,
      1);
}

TEST(ScalarEngine, AFunctionWithoutATableLeavesTheLoadedOneInPlace) {
  const Outcome done =
      activations({ActivationFunction::Exp, ActivationFunction::Relu, ActivationFunction::Exp});
  EXPECT_EQ(done.result.scalar.table_loads, 1);
  EXPECT_EQ(done.start(Engine::Scalar, 2), ns(1300));
}

TEST(ScalarEngine, WithoutImplicitLoadsTablesAreThere) {
  Machine machine = round_machine();
  machine.config.chip.scalar.implicit_table_load = false;
  const Outcome done = activations({ActivationFunction::Exp, ActivationFunction::Log}, machine);
  EXPECT_EQ(done.result.scalar.table_loads, 0);
  EXPECT_EQ(done.end(Engine::Scalar), ns(360));  // 100 + 10 + 250
}

TEST(ScalarEngine, AProgramThatLoadsATableItselfLooksAfterAll) {
  const Outcome done = run(ProgramBuilder()
                               .on(Engine::Scalar)
                               .add(isa::ActTableLoad{1})
                               .add(activate(ActivationFunction::Exp))
                               .add(activate(ActivationFunction::Log))
                               .trace(),
                           round_machine());
  EXPECT_EQ(done.result.scalar.table_loads, 1);
  EXPECT_EQ(done.end(Engine::Scalar, 0), ns(1100));  // 100 + 1000
  EXPECT_EQ(done.start(Engine::Scalar, 1), ns(1100));
  EXPECT_EQ(done.end(Engine::Scalar, 1), ns(1350));
  EXPECT_EQ(done.start(Engine::Scalar, 2), ns(1200));
}

TEST(ScalarEngine, CopiesNeedNoTable) {
  const Outcome done =
      run(ProgramBuilder().on(Engine::Scalar).add(test::copy()).trace(), round_machine());
  EXPECT_EQ(done.result.scalar.table_loads, 0);
  EXPECT_EQ(done.result.scalar.activates, 0);
  EXPECT_EQ(done.end(Engine::Scalar), ns(360));
}

TEST(ScalarEngine, CountsActivationsAndTheirTime) {
  const Outcome done = activations({ActivationFunction::Relu, ActivationFunction::Relu});
  EXPECT_EQ(done.result.scalar.activates, 2);
  // 100 to 360 with the restart, 210 to 460.
  EXPECT_EQ(done.result.scalar.activate_time, ns(260 + 250));
}

TEST(ScalarEngine, AnOperandReadThroughAPointerIsPriced) {
  Machine machine = round_machine();
  test::set_cost(machine, "activate",
                 {{"140", "140", "300", "10", "pointer > 0"}, {"100", "100", "250", "10"}});
  isa::Activate biased = activate(ActivationFunction::Relu);
  biased.bias.kind = isa::ScalarOperand::Kind::Pointer;
  biased.bias.pointer = test::sbuf(1, isa::Dtype::Fp32, 4096);
  const Outcome done = run(ProgramBuilder().on(Engine::Scalar).add(2, biased).trace(), machine);
  EXPECT_EQ(done.end(Engine::Scalar), ns(410));       // 100 + 10 + 300
  EXPECT_EQ(done.start(Engine::Scalar, 1), ns(250));  // 100 + 10 + 140
}

}  // namespace
}  // namespace trn::sim
