#pragma once

#include "isa/instructions/common.h"
#include "isa/operand.h"

namespace trn::isa {

struct Iota {
  Access dst{};
  IndexPattern pattern{};

  static constexpr std::uint8_t kOpcode = 0x70;
  static constexpr std::string_view kName = "IOTA";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Iota;
  static constexpr std::string_view kDoc = "Writes an index pattern.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"dst", &Iota::dst, Limits{.partitions_max = 128, .memories = kSbuf}, "result"},
        Operand{"pattern", &Iota::pattern, Limits{}, "value of each element"}};
  }
};

struct AffineSelect {
  Access src{};
  Access dst{};
  IndexPattern pattern{};
  AluOp compare = AluOp::Bypass;
  float on_false = 0;

  static constexpr std::uint8_t kOpcode = 0x71;
  static constexpr std::string_view kName = "AFFINE_SELECT";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::AffineSelect;
  static constexpr std::string_view kDoc = "src where (pattern compare 0), else on_false.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &AffineSelect::src,
                              Limits{.partitions_max = 128, .memories = kSbuf}, "input"},
                      Operand{"dst", &AffineSelect::dst,
                              Limits{.partitions_max = 128, .memories = kSbuf}, "result"},
                      Operand{"pattern", &AffineSelect::pattern, Limits{}, "value of each element"},
                      Operand{"compare", &AffineSelect::compare, Limits{}, "comparison with 0"},
                      Operand{"on_false", &AffineSelect::on_false, Limits{}, "elsewhere"}};
  }
};

struct LocalGather {
  Access src{};
  Access index{};
  Access dst{};
  std::uint32_t elements_per_index = 1;
  std::uint32_t indices = 0;

  static constexpr std::uint8_t kOpcode = 0x72;
  static constexpr std::string_view kName = "LOCAL_GATHER";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::LocalGather;
  static constexpr std::string_view kDoc = "Gathers by index within each group of 16 partitions.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &LocalGather::src,
                Limits{.partitions_max = 128, .partitions_multiple = 16, .memories = kSbuf},
                "table"},
        Operand{"index", &LocalGather::index,
                Limits{.partitions_max = 128,
                       .partitions_multiple = 16,
                       .memories = kSbuf,
                       .dtypes = {Dtype::Uint16}},
                "indices"},
        Operand{"dst", &LocalGather::dst,
                Limits{.partitions_max = 128, .partitions_multiple = 16, .memories = kSbuf},
                "result"},
        Operand{"elements_per_index", &LocalGather::elements_per_index, Limits{.min = 1, .max = 32},
                "1, 2, 4, 8, 16 or 32"},
        Operand{"indices", &LocalGather::indices, Limits{.max = 4096}, "valid indices of a group"}};
  }
};

struct NcNGather {
  Access src{};
  Access index{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x73;
  static constexpr std::string_view kName = "NC_N_GATHER";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Gather;
  static constexpr std::string_view kDoc = "Gathers by index within each partition.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &NcNGather::src, Limits{.partitions_max = 128, .memories = kSbuf}, "table"},
        Operand{"index", &NcNGather::index,
                Limits{.partitions_max = 128, .memories = kSbuf, .dtypes = {Dtype::Uint32}},
                "indices"},
        Operand{"dst", &NcNGather::dst, Limits{.partitions_max = 128, .memories = kSbuf},
                "result"}};
  }
};

struct NonzeroWithCount {
  Access src{};
  Access dst{};
  std::int32_t index_offset = 0;
  std::int32_t padding = -1;

  static constexpr std::uint8_t kOpcode = 0x74;
  static constexpr std::string_view kName = "NONZERO_WITH_COUNT";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::Nonzero;
  static constexpr std::string_view kDoc =
      "Indices of the elements that are not 0, padding, then their count.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{
            "src", &NonzeroWithCount::src,
            Limits{.partitions_max = 128, .memories = kSbuf, .dtypes = {Dtype::Fp32, Dtype::Int32}},
            "input"},
        Operand{"dst", &NonzeroWithCount::dst,
                Limits{.partitions_max = 128, .memories = kSbuf, .dtypes = {Dtype::Int32}},
                "one element more than src"},
        Operand{"index_offset", &NonzeroWithCount::index_offset, Limits{.optional = true},
                "added to each index"},
        Operand{"padding", &NonzeroWithCount::padding, Limits{.optional = true},
                "after the last index"}};
  }
};

struct SequenceBounds {
  Access src{};
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x75;
  static constexpr std::string_view kName = "SEQUENCE_BOUNDS";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::SequenceBounds;
  static constexpr std::string_view kDoc = "Start and end of the segment of each element.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{
            "src", &SequenceBounds::src,
            Limits{.partitions_max = 1, .memories = kSbuf, .dtypes = {Dtype::Fp32, Dtype::Int32}},
            "segment of each element"},
        Operand{
            "dst", &SequenceBounds::dst,
            Limits{.partitions_max = 1, .memories = kSbuf, .dtypes = {Dtype::Fp32, Dtype::Int32}},
            "starts, then ends"}};
  }
};

struct TopK {
  Access src{};
  Access dst{};
  Access indices{};
  std::uint32_t n = 8;
  std::uint32_t k = 1;

  static constexpr std::uint8_t kOpcode = 0x76;
  static constexpr std::string_view kName = "TOPK";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::TopK;
  static constexpr std::string_view kDoc =
      "The k largest elements of each group of 16 partitions, with their indices.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &TopK::src,
                              Limits{.partitions_max = 128,
                                     .partitions_multiple = 16,
                                     .memories = kSbuf,
                                     .dtypes = {Dtype::Bf16}},
                              "input"},
                      Operand{"dst", &TopK::dst,
                              Limits{.partitions_max = 128,
                                     .partitions_multiple = 16,
                                     .memories = kSbuf,
                                     .dtypes = {Dtype::Bf16}},
                              "values"},
                      Operand{"indices", &TopK::indices,
                              Limits{.partitions_max = 128,
                                     .partitions_multiple = 16,
                                     .memories = kSbuf,
                                     .dtypes = {Dtype::Uint32}},
                              "indices"},
                      Operand{"n", &TopK::n, Limits{.min = 8, .max = 65535}, "elements of a group"},
                      Operand{"k", &TopK::k, Limits{.min = 1, .max = 32767}, "elements found"}};
  }
};

struct RandSetState {
  Access src{};

  static constexpr std::uint8_t kOpcode = 0x77;
  static constexpr std::string_view kName = "RAND_SET_STATE";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::RandomState;
  static constexpr std::string_view kDoc = "Loads the generator's state.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"src", &RandSetState::src,
                              Limits{.free_min = 6,
                                     .free_max = 6,
                                     .partitions_max = 128,
                                     .memories = kSbuf,
                                     .dtypes = {Dtype::Uint32}},
                              "six words per partition"}};
  }
};

struct RandGetState {
  Access dst{};

  static constexpr std::uint8_t kOpcode = 0x78;
  static constexpr std::string_view kName = "RAND_GET_STATE";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::RandomState;
  static constexpr std::string_view kDoc = "Stores the generator's state.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"dst", &RandGetState::dst,
                              Limits{.free_min = 6,
                                     .free_max = 6,
                                     .partitions_max = 128,
                                     .memories = kSbuf,
                                     .dtypes = {Dtype::Uint32}},
                              "six words per partition"}};
  }
};

struct BuiltinCustomOp {
  Access src0{};
  Access src1{};
  Access dst{};
  std::uint32_t function = 0;

  static constexpr std::uint8_t kOpcode = 0x79;
  static constexpr std::string_view kName = "BUILTIN_CUSTOM_OP";
  static constexpr EngineSet kEngines = {Engine::GpSimd};
  static constexpr CostClass kCost = CostClass::CustomOp;
  static constexpr std::string_view kDoc = "Calls a function of the GpSimd library.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src0", &BuiltinCustomOp::src0,
                Limits{.partitions_max = 128, .memories = kOnChip, .optional = true},
                "first input"},
        Operand{"src1", &BuiltinCustomOp::src1,
                Limits{.partitions_max = 128, .memories = kOnChip, .optional = true},
                "second input"},
        Operand{"dst", &BuiltinCustomOp::dst, Limits{.partitions_max = 128, .memories = kOnChip},
                "result"},
        Operand{"function", &BuiltinCustomOp::function, Limits{}, "number of the function"}};
  }
};

}  // namespace trn::isa
