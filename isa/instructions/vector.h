#pragma once

#include "isa/instructions/common.h"
#include "isa/operand.h"

namespace trn::isa {

inline constexpr DtypeSet kFloats = {Dtype::Fp32,    Dtype::Tf32,    Dtype::Bf16,   Dtype::Fp16,
                                     Dtype::Fp8E3m4, Dtype::Fp8E4m3, Dtype::Fp8E5m2};
inline constexpr DtypeSet kIntegers = {Dtype::Int32,  Dtype::Uint32, Dtype::Int16,
                                       Dtype::Uint16, Dtype::Int8,   Dtype::Uint8};
inline constexpr DtypeSet k32Bit = {Dtype::Fp32, Dtype::Int32, Dtype::Uint32};
inline constexpr DtypeSet kNotInt32 = {Dtype::Fp32,    Dtype::Bf16,    Dtype::Fp16,  Dtype::Fp8E3m4,
                                       Dtype::Fp8E4m3, Dtype::Fp8E5m2, Dtype::Int16, Dtype::Uint16,
                                       Dtype::Int8,    Dtype::Uint8};
inline constexpr DtypeSet kNotTf32OrInt32 = kNotInt32;

/// The free dimensions that a reduction removes: X is the innermost.
enum class ReduceDims : std::uint8_t { X, Xy, Xyz, Xyzw };

/// For each partition of a quadrant, the partition of the same quadrant that it copies.
struct ShuffleMask {
  static constexpr std::uint8_t kKeep = 255;
  std::array<std::uint8_t, 32> source{};
  friend bool operator==(const ShuffleMask&, const ShuffleMask&) = default;
};

struct Copy {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x40;
  static constexpr std::string_view kName = "COPY";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::Scalar, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Copy;
  static constexpr std::string_view kDoc =
      "Copies elements within the on-chip memories; types are equal.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &Copy::src, Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
        Operand{"dst", &Copy::dst, Limits{.partitions_max = 128, .memories = kOnChip}, "result"}};
  }
};

struct Cast {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x41;
  static constexpr std::string_view kName = "CAST";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::Scalar, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Copy;
  static constexpr std::string_view kDoc = "Copies and converts elements, through fp32.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &Cast::src, Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
        Operand{"dst", &Cast::dst, Limits{.partitions_max = 128, .memories = kOnChip}, "result"}};
  }
};

struct Memset {
  Access dst{};
  ScalarOperand value{};

  static constexpr std::uint8_t kOpcode = 0x42;
  static constexpr std::string_view kName = "MEMSET";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Fill;
  static constexpr std::string_view kDoc = "Fills with a constant.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"dst", &Memset::dst, Limits{.partitions_max = 128, .memories = kOnChip}, "result"},
        Operand{"value", &Memset::value, Limits{}, "the constant"}};
  }
};

struct TensorCopyPredicated {
  Access src{};
  ScalarOperand scalar{};
  Access predicate{};
  Access dst{};
  bool reverse = false;

  static constexpr std::uint8_t kOpcode = 0x43;
  static constexpr std::string_view kName = "TENSOR_COPY_PREDICATED";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Predicated;
  static constexpr std::string_view kDoc = "Overwrites the result where the predicate is true.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &TensorCopyPredicated::src,
                              Limits{.partitions_max = 128, .memories = kOnChip, .optional = true},
                              "input; absent when `scalar` is given"},
                      Operand{"scalar", &TensorCopyPredicated::scalar, Limits{.optional = true},
                              "one value in place of a tile"},
                      Operand{"predicate", &TensorCopyPredicated::predicate,
                              Limits{.partitions_max = 128,
                                     .memories = kOnChip,
                                     .dtypes = {Dtype::Uint8, Dtype::Uint16, Dtype::Uint32}},
                              "true where not 0"},
                      Operand{"dst", &TensorCopyPredicated::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "result"},
                      Operand{"reverse", &TensorCopyPredicated::reverse, Limits{.optional = true},
                              "overwrites where false"}};
  }
};

struct Transpose {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x44;
  static constexpr std::string_view kName = "TRANSPOSE";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Transpose;
  static constexpr std::string_view kDoc = "Transposes blocks of 32 partitions by 32 elements.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &Transpose::src,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
                      Operand{"dst", &Transpose::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "result"}};
  }
};

struct TensorTensor {
  Access src0{};
  Access src1{};
  Access dst{};
  AluOp op = AluOp::Bypass;

  static constexpr std::uint8_t kOpcode = 0x45;
  static constexpr std::string_view kName = "TENSOR_TENSOR";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::TwoInput;
  static constexpr std::string_view kDoc = "src0 op src1, element by element.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src0", &TensorTensor::src0,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "left"},
                      Operand{"src1", &TensorTensor::src1,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "right"},
                      Operand{"dst", &TensorTensor::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "result"},
                      Operand{"op", &TensorTensor::op, Limits{}, "operation"}};
  }
};

struct TensorScalar {
  Access src{};
  Access dst{};
  AluOp op0 = AluOp::Bypass;
  AluOp op1 = AluOp::Bypass;
  ScalarOperand operand0{};
  ScalarOperand operand1{};
  bool reverse0 = false;
  bool reverse1 = false;

  static constexpr std::uint8_t kOpcode = 0x46;
  static constexpr std::string_view kName = "TENSOR_SCALAR";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::Scalar, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::OneInput;
  static constexpr std::string_view kDoc =
      "(src op0 operand0) op1 operand1, each order reversible.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &TensorScalar::src, Limits{.partitions_max = 128, .memories = kOnChip},
                "input"},
        Operand{"dst", &TensorScalar::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"op0", &TensorScalar::op0, Limits{}, "first operation"},
        Operand{"op1", &TensorScalar::op1, Limits{.optional = true}, "second operation"},
        Operand{"operand0", &TensorScalar::operand0, Limits{.optional = true},
                "one value per partition"},
        Operand{"operand1", &TensorScalar::operand1, Limits{.optional = true},
                "one value per partition"},
        Operand{"reverse0", &TensorScalar::reverse0, Limits{.optional = true},
                "operand0 is the left side of op0"},
        Operand{"reverse1", &TensorScalar::reverse1, Limits{.optional = true},
                "the second operand is the left side of op1"}};
  }
};

struct TensorReduce {
  Access src{};
  Access dst{};
  AluOp op = AluOp::Bypass;
  ReduceDims dims = ReduceDims::X;
  bool negate = false;

  static constexpr std::uint8_t kOpcode = 0x47;
  static constexpr std::string_view kName = "TENSOR_REDUCE";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Reduce;
  static constexpr std::string_view kDoc = "Reduces the innermost free dimensions.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &TensorReduce::src, Limits{.partitions_max = 128, .memories = kOnChip},
                "input"},
        Operand{"dst", &TensorReduce::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"op", &TensorReduce::op, Limits{}, "operation"},
        Operand{"dims", &TensorReduce::dims, Limits{.optional = true}, "dimensions reduced"},
        Operand{"negate", &TensorReduce::negate, Limits{.optional = true}, "negates the result"}};
  }
};

struct TensorPartitionReduce {
  Access src{};
  Access dst{};
  AluOp op = AluOp::Bypass;

  static constexpr std::uint8_t kOpcode = 0x48;
  static constexpr std::string_view kName = "TENSOR_PARTITION_REDUCE";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::PartitionReduce;
  static constexpr std::string_view kDoc = "Reduces across partitions.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &TensorPartitionReduce::src,
                              Limits{.partitions_max = 128, .memories = kSbuf}, "input"},
                      Operand{"dst", &TensorPartitionReduce::dst,
                              Limits{.partitions_max = 128, .memories = kSbuf}, "result"},
                      Operand{"op", &TensorPartitionReduce::op, Limits{}, "operation"}};
  }
};

struct TensorScalarCumulative {
  Access src{};
  Access dst{};
  AluOp op0 = AluOp::Bypass;
  AluOp op1 = AluOp::Bypass;
  ScalarOperand operand0{};
  ScalarOperand operand1{};
  AccumulatorCommand command = AccumulatorCommand::ResetReduce;

  static constexpr std::uint8_t kOpcode = 0x49;
  static constexpr std::string_view kName = "TENSOR_SCALAR_CUMULATIVE";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Cumulative;
  static constexpr std::string_view kDoc = "Runs op1 over (src op0 operand0) along the free axis.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &TensorScalarCumulative::src,
                Limits{.partitions_max = 128, .memories = kOnChip, .dtypes = kNotInt32}, "input"},
        Operand{"dst", &TensorScalarCumulative::dst,
                Limits{.partitions_max = 128, .memories = kOnChip, .dtypes = kNotInt32}, "result"},
        Operand{"op0", &TensorScalarCumulative::op0, Limits{}, "element by element"},
        Operand{"op1", &TensorScalarCumulative::op1, Limits{}, "running"},
        Operand{"operand0", &TensorScalarCumulative::operand0, Limits{}, "of op0"},
        Operand{"operand1", &TensorScalarCumulative::operand1, Limits{.optional = true},
                "initial value"},
        Operand{"command", &TensorScalarCumulative::command, Limits{.optional = true},
                "what becomes of the accumulator"}};
  }
};

struct TensorScalarReduce {
  Access src{};
  Access dst{};
  AluOp op0 = AluOp::Bypass;
  ScalarOperand operand0{};
  bool reverse0 = false;
  AluOp reduce_op = AluOp::Bypass;
  Access result{};

  static constexpr std::uint8_t kOpcode = 0x4a;
  static constexpr std::string_view kName = "TENSOR_SCALAR_REDUCE";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::ScalarReduce;
  static constexpr std::string_view kDoc =
      "src op0 operand0, and its reduction over the free axis.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &TensorScalarReduce::src, Limits{.partitions_max = 128, .memories = kOnChip},
                "input"},
        Operand{"dst", &TensorScalarReduce::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"op0", &TensorScalarReduce::op0, Limits{}, "element by element"},
        Operand{"operand0", &TensorScalarReduce::operand0, Limits{}, "of op0"},
        Operand{"reverse0", &TensorScalarReduce::reverse0, Limits{.optional = true},
                "operand0 is the left side"},
        Operand{"reduce_op", &TensorScalarReduce::reduce_op, Limits{}, "of the reduction"},
        Operand{"result", &TensorScalarReduce::result,
                Limits{.free_max = 1, .partitions_max = 128, .memories = kOnChip, .optional = true},
                "the reduction, one per partition"}};
  }
};

struct ScalarTensorTensor {
  Access src0{};
  Access src1{};
  Access dst{};
  AluOp op0 = AluOp::Bypass;
  AluOp op1 = AluOp::Bypass;
  ScalarOperand operand0{};
  bool reverse0 = false;
  bool reverse1 = false;

  static constexpr std::uint8_t kOpcode = 0x4b;
  static constexpr std::string_view kName = "SCALAR_TENSOR_TENSOR";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::TwoInputScalar;
  static constexpr std::string_view kDoc = "(src0 op0 operand0) op1 src1.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src0", &ScalarTensorTensor::src0,
                Limits{.partitions_max = 128, .memories = kOnChip}, "input of op0"},
        Operand{"src1", &ScalarTensorTensor::src1,
                Limits{.partitions_max = 128, .memories = kOnChip}, "second input of op1"},
        Operand{"dst", &ScalarTensorTensor::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"op0", &ScalarTensorTensor::op0, Limits{}, "first operation"},
        Operand{"op1", &ScalarTensorTensor::op1, Limits{}, "second operation"},
        Operand{"operand0", &ScalarTensorTensor::operand0, Limits{}, "one value per partition"},
        Operand{"reverse0", &ScalarTensorTensor::reverse0, Limits{.optional = true},
                "operand0 is the left side of op0"},
        Operand{"reverse1", &ScalarTensorTensor::reverse1, Limits{.optional = true},
                "the second operand is the left side of op1"}};
  }
};

struct TensorTensorScan {
  Access src0{};
  Access src1{};
  Access dst{};
  AluOp op0 = AluOp::Bypass;
  AluOp op1 = AluOp::Bypass;
  ScalarOperand initial{};
  bool reverse0 = false;
  bool reverse1 = false;

  static constexpr std::uint8_t kOpcode = 0x4c;
  static constexpr std::string_view kName = "TENSOR_TENSOR_SCAN";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Scan;
  static constexpr std::string_view kDoc = "result[i] = (src0[i] op0 result[i - 1]) op1 src1[i].";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src0", &TensorTensorScan::src0, Limits{.partitions_max = 128, .memories = kOnChip},
                "input of op0"},
        Operand{"src1", &TensorTensorScan::src1, Limits{.partitions_max = 128, .memories = kOnChip},
                "input of op1"},
        Operand{"dst", &TensorTensorScan::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"op0", &TensorTensorScan::op0, Limits{}, "first operation"},
        Operand{"op1", &TensorTensorScan::op1, Limits{}, "second operation"},
        Operand{"initial", &TensorTensorScan::initial, Limits{}, "result before the first element"},
        Operand{"reverse0", &TensorTensorScan::reverse0, Limits{.optional = true},
                "operand0 is the left side of op0"},
        Operand{"reverse1", &TensorTensorScan::reverse1, Limits{.optional = true},
                "the second operand is the left side of op1"}};
  }
};

struct BnStats {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x4d;
  static constexpr std::string_view kName = "BN_STATS";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::BnStats;
  static constexpr std::string_view kDoc =
      "Count, mean and variance times count of the even and the odd elements.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &BnStats::src,
                Limits{.free_max = 512, .partitions_max = 128, .memories = kOnChip}, "input"},
        Operand{"dst", &BnStats::dst,
                Limits{.free_min = 6, .free_max = 6, .partitions_max = 128, .memories = kOnChip},
                "two records of three"}};
  }
};

struct BnAggr {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x4e;
  static constexpr std::string_view kName = "BN_AGGR";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::BnAggregate;
  static constexpr std::string_view kDoc = "Joins BN_STATS records into mean and variance.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &BnAggr::src,
                Limits{.free_multiple = 3, .partitions_max = 128, .memories = kOnChip},
                "records of three"},
        Operand{"dst", &BnAggr::dst,
                Limits{.free_min = 2, .free_max = 2, .partitions_max = 128, .memories = kOnChip},
                "mean, variance"}};
  }
};

struct NcStreamShuffle {
  Access src{};
  Access dst{};
  ShuffleMask mask{};

  static constexpr std::uint8_t kOpcode = 0x4f;
  static constexpr std::string_view kName = "NC_STREAM_SHUFFLE";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Shuffle;
  static constexpr std::string_view kDoc =
      "Each partition of a quadrant copies one partition of the same quadrant.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &NcStreamShuffle::src,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
                      Operand{"dst", &NcStreamShuffle::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "result"},
                      Operand{"mask", &NcStreamShuffle::mask, Limits{},
                              "source of each of 32 partitions; 255 keeps the old value"}};
  }
};

struct Reciprocal {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x50;
  static constexpr std::string_view kName = "RECIPROCAL";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Reciprocal;
  static constexpr std::string_view kDoc = "1 / src.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &Reciprocal::src,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
                      Operand{"dst", &Reciprocal::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "result"}};
  }
};

struct Max8 {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x51;
  static constexpr std::string_view kName = "MAX8";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Max8;
  static constexpr std::string_view kDoc =
      "The eight largest elements of a partition, in descending order.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{
            "src", &Max8::src,
            Limits{.free_min = 8, .free_max = 16384, .partitions_max = 128, .memories = kOnChip},
            "input"},
        Operand{"dst", &Max8::dst,
                Limits{.free_min = 8, .free_max = 8, .partitions_max = 128, .memories = kOnChip},
                "result"}};
  }
};

struct NcFindIndex8 {
  Access src{};
  Access values{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x52;
  static constexpr std::string_view kName = "NC_FIND_INDEX8";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::FindIndex8;
  static constexpr std::string_view kDoc =
      "The first index of each of eight values; all ones when absent.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{
            "src", &NcFindIndex8::src,
            Limits{.free_min = 8, .free_max = 16384, .partitions_max = 128, .memories = kOnChip},
            "input"},
        Operand{"values", &NcFindIndex8::values,
                Limits{.free_min = 8, .free_max = 8, .partitions_max = 128, .memories = kOnChip},
                "eight values"},
        Operand{"dst", &NcFindIndex8::dst,
                Limits{.free_min = 8,
                       .free_max = 8,
                       .partitions_max = 128,
                       .memories = kOnChip,
                       .dtypes = {Dtype::Uint16, Dtype::Uint32}},
                "indices"}};
  }
};

struct NcMatchReplace8 {
  Access src{};
  Access values{};
  Access dst{};
  Access indices{};
  float replacement = 0;

  static constexpr std::uint8_t kOpcode = 0x53;
  static constexpr std::string_view kName = "NC_MATCH_REPLACE8";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::MatchReplace8;
  static constexpr std::string_view kDoc = "Replaces the first occurrence of each of eight values.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{
            "src", &NcMatchReplace8::src,
            Limits{.free_min = 8, .free_max = 16384, .partitions_max = 128, .memories = kOnChip},
            "input"},
        Operand{"values", &NcMatchReplace8::values,
                Limits{.free_min = 8, .free_max = 8, .partitions_max = 128, .memories = kOnChip},
                "eight values, used from the last to the first"},
        Operand{
            "dst", &NcMatchReplace8::dst,
            Limits{.free_min = 8, .free_max = 16384, .partitions_max = 128, .memories = kOnChip},
            "result"},
        Operand{"indices", &NcMatchReplace8::indices,
                Limits{.free_min = 8,
                       .free_max = 8,
                       .partitions_max = 128,
                       .memories = kOnChip,
                       .optional = true},
                "where they were"},
        Operand{"replacement", &NcMatchReplace8::replacement, Limits{}, "written instead"}};
  }
};

struct Dropout {
  Access src{};
  Access dst{};
  ScalarOperand probability{};

  static constexpr std::uint8_t kOpcode = 0x54;
  static constexpr std::string_view kName = "DROPOUT";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::Dropout;
  static constexpr std::string_view kDoc = "Zeroes elements at random.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &Dropout::src, Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
        Operand{"dst", &Dropout::dst, Limits{.partitions_max = 128, .memories = kOnChip}, "result"},
        Operand{"probability", &Dropout::probability, Limits{}, "of a zero"}};
  }
};

struct RangeSelect {
  Access src{};
  Access dst{};
  Access bound0{};
  Access bound1{};
  AluOp compare0 = AluOp::Bypass;
  AluOp compare1 = AluOp::Bypass;
  std::uint32_t range_start = 0;
  Access result{};
  AccumulatorCommand command = AccumulatorCommand::ResetReduce;

  static constexpr std::uint8_t kOpcode = 0x55;
  static constexpr std::string_view kName = "RANGE_SELECT";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::RangeSelect;
  static constexpr std::string_view kDoc =
      "Keeps elements whose index is within bounds; the rest is the lowest fp32.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &RangeSelect::src,
                Limits{.partitions_max = 128, .memories = kOnChip, .dtypes = kFloats}, "input"},
        Operand{"dst", &RangeSelect::dst,
                Limits{.partitions_max = 128, .memories = kOnChip, .dtypes = kFloats}, "result"},
        Operand{
            "bound0", &RangeSelect::bound0,
            Limits{
                .free_max = 1, .partitions_max = 128, .memories = kOnChip, .dtypes = {Dtype::Fp32}},
            "of compare0"},
        Operand{
            "bound1", &RangeSelect::bound1,
            Limits{
                .free_max = 1, .partitions_max = 128, .memories = kOnChip, .dtypes = {Dtype::Fp32}},
            "of compare1"},
        Operand{"compare0", &RangeSelect::compare0, Limits{}, "index compare0 bound0"},
        Operand{"compare1", &RangeSelect::compare1, Limits{}, "index compare1 bound1"},
        Operand{"range_start", &RangeSelect::range_start, Limits{.max = 16777215, .optional = true},
                "index of the first element"},
        Operand{"result", &RangeSelect::result,
                Limits{.free_max = 1, .partitions_max = 128, .memories = kOnChip, .optional = true},
                "running maximum"},
        Operand{"command", &RangeSelect::command, Limits{.optional = true},
                "what becomes of the accumulator"}};
  }
};

struct SelectReduce {
  Access predicate{};
  Access src{};
  ScalarOperand on_false{};
  Access dst{};
  bool reverse = false;
  AluOp reduce_op = AluOp::Bypass;
  Access result{};
  AccumulatorCommand command = AccumulatorCommand::Idle;

  static constexpr std::uint8_t kOpcode = 0x56;
  static constexpr std::string_view kName = "SELECT_REDUCE";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::SelectReduce;
  static constexpr std::string_view kDoc =
      "src where the predicate is true, else on_false; may reduce by max.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"predicate", &SelectReduce::predicate,
                Limits{.partitions_max = 128,
                       .memories = kOnChip,
                       .dtypes = {Dtype::Uint8, Dtype::Int8, Dtype::Uint16, Dtype::Int16}},
                "true where not 0"},
        Operand{"src", &SelectReduce::src,
                Limits{.partitions_max = 128, .memories = kOnChip, .dtypes = kNotTf32OrInt32},
                "input"},
        Operand{"on_false", &SelectReduce::on_false, Limits{}, "elsewhere"},
        Operand{"dst", &SelectReduce::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"reverse", &SelectReduce::reverse, Limits{.optional = true}, "selects where false"},
        Operand{"reduce_op", &SelectReduce::reduce_op, Limits{.optional = true}, "MAX or none"},
        Operand{"result", &SelectReduce::result,
                Limits{.free_max = 1, .partitions_max = 128, .memories = kOnChip, .optional = true},
                "the reduction, one per partition"},
        Operand{"command", &SelectReduce::command, Limits{.optional = true},
                "what becomes of the accumulator"}};
  }
};

struct TensorCopyDynamicSrc {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x57;
  static constexpr std::string_view kName = "TENSOR_COPY_DYNAMIC_SRC";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::Scalar, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::DynamicCopy;
  static constexpr std::string_view kDoc = "Copies from an address that a register gives.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &TensorCopyDynamicSrc::src,
                              Limits{.partitions_max = 128, .memories = kOnChip},
                              "input, its offset in a register"},
                      Operand{"dst", &TensorCopyDynamicSrc::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "result"}};
  }
};

struct TensorCopyDynamicDst {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x58;
  static constexpr std::string_view kName = "TENSOR_COPY_DYNAMIC_DST";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::Scalar, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::DynamicCopy;
  static constexpr std::string_view kDoc = "Copies to an address that a register gives.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &TensorCopyDynamicDst::src,
                              Limits{.partitions_max = 128, .memories = kOnChip}, "input"},
                      Operand{"dst", &TensorCopyDynamicDst::dst,
                              Limits{.partitions_max = 128, .memories = kOnChip},
                              "result, its offset in a register"}};
  }
};

struct Rng {
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x59;
  static constexpr std::string_view kName = "RNG";
  static constexpr EngineSet kEngines = {Engine::Vector, Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Random;
  static constexpr std::string_view kDoc = "32 random bits an element, cut to its size.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"dst", &Rng::dst,
                Limits{.partitions_max = 128, .memories = kOnChip, .dtypes = kIntegers}, "result"}};
  }
};

struct SetRngSeed {
  Access src{};

  static constexpr std::uint8_t kOpcode = 0x5a;
  static constexpr std::string_view kName = "SET_RNG_SEED";
  static constexpr EngineSet kEngines = {Engine::Vector};
  static constexpr CostClass kCost = CostClass::RandomState;
  static constexpr std::string_view kDoc = "Seeds the engine's generator.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &SetRngSeed::src,
                Limits{.free_max = 1, .partitions_max = 1, .memories = kOnChip, .dtypes = k32Bit},
                "one seed"}};
  }
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::ReduceDims> {
  static constexpr std::array<std::string_view, 4> value = {"X", "XY", "XYZ", "XYZW"};
};
}  // namespace trn
