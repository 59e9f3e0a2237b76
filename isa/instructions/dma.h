#pragma once

#include "isa/operand.h"

namespace trn::isa {

/// What a DMA does on an address out of bounds (indirect forms). Source: docs/sources.md#nki-isa.
enum class OutOfBounds : std::uint8_t { Error, Skip };

struct DmaDirect2d {
  DmaSide src{};
  DmaSide dst{};
  DescriptorMode mode = DescriptorMode::HardwareDge;
  std::uint8_t queue = 0;
  DmaCompletion completion{};
  bool bound_at_launch = false;
  Access index{};
  OutOfBounds out_of_bounds = OutOfBounds::Error;
  bool spill = false;

  static constexpr std::uint8_t kOpcode = 0x20;
  static constexpr std::string_view kName = "DMA_DIRECT2D";
  static constexpr EngineSet kEngines = {Engine::Tensor, Engine::Vector, Engine::Scalar,
                                         Engine::GpSimd, Engine::Sync};
  static constexpr CostClass kCost = CostClass::DmaTrigger;
  static constexpr std::string_view kDoc =
      "Copies between HBM and SBUF, with strides, casts and gather or scatter.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-dma";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &DmaDirect2d::src, Limits{.memories = kDmaReach}, "source pattern"},
        Operand{"dst", &DmaDirect2d::dst, Limits{.memories = kDmaReach}, "destination pattern"},
        Operand{"mode", &DmaDirect2d::mode, Limits{}, "who writes the descriptors"},
        Operand{"queue", &DmaDirect2d::queue, Limits{.min = 0, .max = 15}, "ring on each engine"},
        Operand{"completion", &DmaDirect2d::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"bound_at_launch", &DmaDirect2d::bound_at_launch, Limits{.optional = true},
                "an address is a kernel argument's"},
        Operand{"index", &DmaDirect2d::index,
                Limits{.free_max = 1, .partitions_max = 128, .memories = kSbuf, .optional = true},
                "one row index per partition: gather or scatter (software descriptors only)"},
        Operand{"out_of_bounds", &DmaDirect2d::out_of_bounds, Limits{.optional = true},
                "on an index past the tensor"},
        Operand{"spill", &DmaDirect2d::spill, Limits{.optional = true},
                "saves or reloads a tile for lack of SBUF"}};
  }
};

struct DmaTranspose {
  DmaSide src{};
  DmaSide dst{};
  DescriptorMode mode = DescriptorMode::HardwareDge;
  std::uint8_t queue = 0;
  DmaCompletion completion{};
  Access index{};

  static constexpr std::uint8_t kOpcode = 0x21;
  static constexpr std::string_view kName = "DMA_TRANSPOSE";
  static constexpr EngineSet kEngines = {Engine::Tensor, Engine::Vector, Engine::Scalar,
                                         Engine::GpSimd, Engine::Sync};
  static constexpr CostClass kCost = CostClass::DmaTrigger;
  static constexpr std::string_view kDoc =
      "Transposes 2- or 4-byte elements while copying to SBUF.";
  static constexpr std::string_view kSource = "docs/sources.md#a2-dma-transpose";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &DmaTranspose::src, Limits{.memories = kDmaReach}, "source pattern"},
        Operand{"dst", &DmaTranspose::dst, Limits{.memories = kSbuf}, "destination pattern"},
        Operand{"mode", &DmaTranspose::mode, Limits{}, "who writes the descriptors"},
        Operand{"queue", &DmaTranspose::queue, Limits{.min = 0, .max = 15}, "ring on each engine"},
        Operand{"completion", &DmaTranspose::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"index", &DmaTranspose::index,
                Limits{.free_max = 1, .partitions_max = 128, .memories = kSbuf, .optional = true},
                "row indices of the gathering form"}};
  }
};

struct DmaCompute {
  DmaSide src{};
  DmaSide dst{};
  std::uint8_t sources = 2;
  DescriptorMode mode = DescriptorMode::Static;
  std::uint8_t queue = 0;
  DmaCompletion completion{};
  Access index{};

  static constexpr std::uint8_t kOpcode = 0x22;
  static constexpr std::string_view kName = "DMA_COMPUTE";
  static constexpr EngineSet kEngines = {Engine::Tensor, Engine::Vector, Engine::Scalar,
                                         Engine::GpSimd, Engine::Sync};
  static constexpr CostClass kCost = CostClass::DmaTrigger;
  static constexpr std::string_view kDoc =
      "Adds up to sixteen equal patterns, in fp32, into the destination.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &DmaCompute::src, Limits{.memories = kDmaReach}, "pattern of each source"},
        Operand{"dst", &DmaCompute::dst, Limits{.memories = kDmaReach}, "destination pattern"},
        Operand{"sources", &DmaCompute::sources, Limits{.min = 1, .max = 16}, "number of sources"},
        Operand{"mode", &DmaCompute::mode, Limits{}, "who writes the descriptors"},
        Operand{"queue", &DmaCompute::queue, Limits{.min = 0, .max = 15}, "ring on each engine"},
        Operand{"completion", &DmaCompute::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"index", &DmaCompute::index,
                Limits{.free_max = 1, .partitions_max = 128, .memories = kSbuf, .optional = true},
                "row indices of the scattering form"}};
  }
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::OutOfBounds> {
  static constexpr std::array<std::string_view, 2> value = {"error", "skip"};
};
}  // namespace trn
