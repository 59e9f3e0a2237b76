#pragma once

#include "isa/operand.h"

namespace trn::isa {

/// The passes of an fp32 product; LDWEIGHTS carries LOW or HIGH, MATMUL LowHigh.
enum class Fp32Pass : std::uint8_t { None, Low, High, LowHigh };
enum class PerformanceMode : std::uint8_t { None, DoubleRow };
/// Structured sparsity of the stationary tile, M of N. Source: docs/sources.md#a2-sparsity.
enum class Sparsity : std::uint8_t { None, S4of16, S4of12, S4of8, S2of8, S2of4, S1of4, S1of2 };

/// The part of the PE array that an instruction uses (row tiling 2 x 64 or 4 x 32).
struct PeTile {
  std::uint8_t row = 0;
  std::uint8_t column = 0;
  std::uint8_t rows = 128;
  std::uint8_t columns = 128;
  friend bool operator==(const PeTile&, const PeTile&) = default;
};

struct LdWeights {
  Access src{};
  bool transpose = false;
  Fp32Pass pass = Fp32Pass::None;
  PerformanceMode mode = PerformanceMode::None;
  Sparsity sparsity = Sparsity::None;
  bool one_zero = false;
  PeTile tile{};

  static constexpr std::uint8_t kOpcode = 0x10;
  static constexpr std::string_view kName = "LDWEIGHTS";
  static constexpr EngineSet kEngines = {Engine::Tensor};
  static constexpr CostClass kCost = CostClass::LoadWeights;
  static constexpr std::string_view kDoc =
      "Loads the stationary tile; in the background while a MATMUL runs.";
  static constexpr std::string_view kSource = "docs/sources.md#a1-tensor";
  static constexpr auto operands() {
    return std::tuple{
        Operand{
            "src", &LdWeights::src,
            Limits{
                .free_max = 256, .partitions_max = 128, .memories = kSbuf, .dtypes = kMatmulDtypes},
            "stationary tile [K, M]; 2 x M elements in double-row mode"},
        Operand{"transpose", &LdWeights::transpose, Limits{.optional = true}, "transpose mode"},
        Operand{"pass", &LdWeights::pass, Limits{.optional = true}, "LOW or HIGH half of fp32"},
        Operand{"mode", &LdWeights::mode, Limits{.optional = true}, "double-row fp8"},
        Operand{"sparsity", &LdWeights::sparsity, Limits{.optional = true}, "structured sparsity"},
        Operand{"one_zero", &LdWeights::one_zero, Limits{.optional = true},
                "an fp32 tile of ones and zeros only"},
        Operand{"tile", &LdWeights::tile, Limits{.optional = true}, "PE tile"}};
  }
};

struct Matmul {
  Access src{};
  Access dst{};
  bool start = true;
  bool stop = true;
  bool transpose = false;
  Fp32Pass pass = Fp32Pass::None;
  PerformanceMode mode = PerformanceMode::None;
  Sparsity sparsity = Sparsity::None;
  bool one_zero = false;
  PeTile tile{};

  static constexpr std::uint8_t kOpcode = 0x11;
  static constexpr std::string_view kName = "MATMUL";
  static constexpr EngineSet kEngines = {Engine::Tensor};
  static constexpr CostClass kCost = CostClass::Matmul;
  static constexpr std::string_view kDoc =
      "Streams the moving tile past the stationary one and adds the product into PSUM.";
  static constexpr std::string_view kSource = "docs/sources.md#a1-tensor";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &Matmul::src,
                Limits{.free_max = 1024,
                       .partitions_max = 128,
                       .memories = kSbuf,
                       .dtypes = kMatmulDtypes},
                "moving tile [K, N]; 2 x N elements in double-row mode"},
        Operand{"dst", &Matmul::dst,
                Limits{.free_max = 512, .partitions_max = 128, .memories = kPsum}, "result [M, N]"},
        Operand{"start", &Matmul::start, Limits{.optional = true},
                "overwrites PSUM instead of adding to it"},
        Operand{"stop", &Matmul::stop, Limits{.optional = true}, "last of an accumulation"},
        Operand{"transpose", &Matmul::transpose, Limits{.optional = true}, "transpose mode"},
        Operand{"pass", &Matmul::pass, Limits{.optional = true}, "an fp32 pass"},
        Operand{"mode", &Matmul::mode, Limits{.optional = true}, "double-row fp8"},
        Operand{"sparsity", &Matmul::sparsity, Limits{.optional = true}, "structured sparsity"},
        Operand{"one_zero", &Matmul::one_zero, Limits{.optional = true},
                "an fp32 tile of ones and zeros only"},
        Operand{"tile", &Matmul::tile, Limits{.optional = true}, "PE tile"}};
  }
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::Fp32Pass> {
  static constexpr std::array<std::string_view, 4> value = {"NONE", "LOW", "HIGH", "LOW_HIGH"};
};
template <>
struct EnumNames<isa::PerformanceMode> {
  static constexpr std::array<std::string_view, 2> value = {"NONE", "DOUBLE_ROW"};
};
template <>
struct EnumNames<isa::Sparsity> {
  static constexpr std::array<std::string_view, 8> value = {"NONE", "4:16", "4:12", "4:8",
                                                            "2:8",  "2:4",  "1:4",  "1:2"};
};
}  // namespace trn
