#include "sim/core/lowering.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "isa/base/error.h"
#include "tests/support/instructions.h"
#include "tests/support/machines.h"

namespace trn::sim {
namespace {

using isa::Dtype;
using isa::Engine;
using test::bank;
using test::ns;
using test::psum;
using test::sbuf;

class LoweringTest : public testing::Test {
 protected:
  Uop lowered(const isa::Op& op, Engine engine) {
    instr_.op = op;
    Uop uop;
    lowering_.lower(instr_, engine, 17, uop, plans_);
    return uop;
  }
  Machine machine_ = test::round_machine();
  Lowering lowering_{machine_.config.chip, *machine_.costs};
  isa::Instr instr_;
  std::vector<std::unique_ptr<DmaPlan>> plans_;
};

TEST_F(LoweringTest, KindsFollowTheInstruction) {
  EXPECT_EQ(lowered(isa::Drain{}, Engine::Vector).kind, UopKind::Control);
  EXPECT_EQ(lowered(test::dma_read(8, 512), Engine::Sync).kind, UopKind::Dma);
  EXPECT_EQ(lowered(test::copy(), Engine::Vector).kind, UopKind::Compute);
  EXPECT_EQ(lowered(test::load_weights(), Engine::Tensor).kind, UopKind::LoadWeights);
  EXPECT_EQ(lowered(test::matmul(512), Engine::Tensor).kind, UopKind::Matmul);
  EXPECT_EQ(lowered(isa::ActTableLoad{1}, Engine::Scalar).kind, UopKind::LoadTable);
  EXPECT_EQ(lowered(test::copy(), Engine::Vector).index, 17);
}

TEST_F(LoweringTest, CostsAreTimesOfTheEnginesClock) {
  machine_.config.chip.scalar.clock = 2e9;
  Lowering fast(machine_.config.chip, *machine_.costs);
  Uop uop;
  instr_.op = test::copy();
  fast.lower(instr_, Engine::Scalar, 0, uop, plans_);
  // 100, 100, 250 and 10 cycles of half a nanosecond
  EXPECT_EQ(uop.cost.issue, ns(50));
  EXPECT_EQ(uop.cost.occupancy, ns(50));
  EXPECT_EQ(uop.cost.latency, ns(125));
  EXPECT_EQ(uop.cost.restart, ns(5));
  fast.lower(instr_, Engine::Vector, 0, uop, plans_);
  EXPECT_EQ(uop.cost.issue, ns(100));
}

TEST_F(LoweringTest, ADmaHasAPlan) {
  const Uop uop = lowered(test::dma_read(128, 512), Engine::Sync);
  ASSERT_EQ(plans_.size(), 1);
  EXPECT_EQ(uop.plan, plans_[0].get());
  EXPECT_EQ(uop.plan->elements, 128);
  EXPECT_EQ(lowered(test::copy(), Engine::Vector).plan, nullptr);
}

TEST_F(LoweringTest, CountsTheBytesOfOnePartition) {
  const Uop uop =
      lowered(test::tensor_tensor(sbuf(64), psum(64), sbuf(64, Dtype::Bf16, 4096)), Engine::Vector);
  EXPECT_EQ(uop.sbuf_read, 256);
  EXPECT_EQ(uop.psum_read, 256);
  EXPECT_EQ(uop.sbuf_write, 128);
  EXPECT_EQ(uop.psum_write, 0);
}

TEST_F(LoweringTest, AFootprintSpansAllThatThePatternTouches) {
  // 4 elements backwards by 3 from 4096, in 5 rows of 100 elements forward; 4 bytes each.
  isa::Access src = sbuf(4, Dtype::Fp32, 4096, -3);
  src.dims = 2;
  src.free[1] = {100, 5};
  const Uop uop = lowered(test::copy(src, sbuf(20, Dtype::Fp32, 8192)), Engine::Vector);
  ASSERT_EQ(uop.footprint_count, 2);
  const bool first_reads = !uop.footprints[0].write;
  const Footprint& read = uop.footprints[first_reads ? 0 : 1];
  const Footprint& write = uop.footprints[first_reads ? 1 : 0];
  EXPECT_EQ(read.low, 4096 - 4 * 9);
  EXPECT_EQ(read.high, 4096 + 4 * 400 + 4);
  EXPECT_TRUE(write.write);
  EXPECT_EQ(write.low, 8192);
  EXPECT_EQ(write.high, 8192 + 80);
}

TEST_F(LoweringTest, AMovedAddressIsKeptForTheRun) {
  const Uop uop = lowered(test::copy(test::moved(sbuf(64), {{1, 256}}), sbuf(64)), Engine::Vector);
  EXPECT_TRUE(uop.moves);
  EXPECT_FALSE(lowered(test::copy(), Engine::Vector).moves);
}

TEST_F(LoweringTest, KnowsTheBanksThatAnAccessTouches) {
  const auto banks = [&](const isa::Access& access) {
    return lowered(test::copy(access, sbuf(64)), Engine::Vector).psum_banks;
  };
  EXPECT_EQ(banks(psum(512, Dtype::Fp32, bank(0))), 0b1);
  EXPECT_EQ(banks(psum(512, Dtype::Fp32, bank(3))), 0b1000);
  EXPECT_EQ(banks(psum(1024, Dtype::Fp32, bank(3))), 0b11000);
  EXPECT_EQ(banks(psum(2, Dtype::Fp32, bank(3) - 4)),
            0b1100);  // the last byte of 2, the first of 3
  EXPECT_EQ(banks(psum(1, Dtype::Fp32, bank(8) - 4)), 0b10000000);
  EXPECT_EQ(banks(sbuf(512)), 0);
  EXPECT_EQ(banks(test::moved(psum(512), {{1, 2048}})), 0xff);
}

TEST_F(LoweringTest, InstructionsThatMeetOthersAreKnown) {
  EXPECT_FALSE(lowered(test::copy(), Engine::Vector).shared);
  EXPECT_TRUE(lowered(test::copy_bank(1), Engine::Vector).shared);
  EXPECT_TRUE(lowered(test::copy_bank(1), Engine::Scalar).shared);
  EXPECT_TRUE(lowered(test::copy(), Engine::GpSimd).shared);  // it holds the bus
  // TENSOR_TENSOR is slower while GpSimd holds the bus, on Vector only.
  const isa::TensorTensor add =
      test::tensor_tensor(sbuf(64), sbuf(64, Dtype::Fp32, 4096), sbuf(64));
  const Uop uop = lowered(add, Engine::Vector);
  EXPECT_TRUE(uop.shared);
  EXPECT_EQ(uop.cost.issue, ns(100));
  EXPECT_EQ(uop.contended.issue, ns(200));
}

TEST_F(LoweringTest, KnowsTheFunctionSetOfAnActivation) {
  using isa::ActivationFunction;
  const auto set = [&](ActivationFunction function) {
    return lowered(test::activate(function), Engine::Scalar).function_set;
  };
  EXPECT_EQ(set(ActivationFunction::Exp), 1);
  EXPECT_EQ(set(ActivationFunction::Tanh), 4);
  EXPECT_EQ(set(ActivationFunction::Sigmoid), 4);
  EXPECT_EQ(set(ActivationFunction::Relu), kNoFunctionSet);
}

TEST_F(LoweringTest, CountsTheWorkOfAMatmul) {
  const Uop bf16 = lowered(test::matmul(512), Engine::Tensor);
  EXPECT_EQ(bf16.flops, 2.0 * 128 * 128 * 512);
  EXPECT_EQ(bf16.adjusted_flops, bf16.flops);
  const Uop fp32 = lowered(test::matmul(512, Dtype::Fp32), Engine::Tensor);
  EXPECT_EQ(fp32.adjusted_flops, 4 * fp32.flops);
  const Uop fp8 = lowered(test::matmul(512, Dtype::Fp8E4m3), Engine::Tensor);
  EXPECT_EQ(fp8.adjusted_flops, 0.5 * fp8.flops);
}

TEST_F(LoweringTest, ATableLoadHasItsOwnPrice) {
  EXPECT_EQ(lowering_.table_load().latency, ns(1000));
}

TEST_F(LoweringTest, NamesTheAssumptionsThatWereUsed) {
  const Machine shipped = test::shipped_machine();
  Lowering lowering(shipped.config.chip, *shipped.costs);
  EXPECT_TRUE(lowering.assumed_costs().empty());
  Uop uop;
  isa::Instr instr;
  isa::BuiltinCustomOp custom;
  custom.dst = sbuf(64);
  instr.op = custom;
  lowering.lower(instr, Engine::GpSimd, 0, uop, plans_);
  EXPECT_THAT(lowering.assumed_costs(),
              testing::ElementsAre(testing::HasSubstr("custom_op on GpSimd")));
}

// Exchanging data with nobody would be ignoring what the program asks for.
TEST_F(LoweringTest, RefusesCollectivesByName) {
  try {
    lowered(isa::AllReduce{}, Engine::GpSimd);
    ADD_FAILURE() << "accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "GpSimd #17 ALL_REDUCE: runs use one core so far: there is nobody to "
                 "exchange data with");
  }
}

}  // namespace
}  // namespace trn::sim
