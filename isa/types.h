#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "isa/base/describe.h"

namespace trn::isa {

/// The five instruction streams of a NeuronCore-v3. Source: docs/sources.md#a1-engines.
enum class Engine : std::uint8_t { Tensor, Vector, Scalar, GpSimd, Sync };
inline constexpr std::size_t kEngines = 5;
inline constexpr std::array<Engine, kEngines> kAllEngines = {
    Engine::Tensor, Engine::Vector, Engine::Scalar, Engine::GpSimd, Engine::Sync};
constexpr std::size_t index(Engine engine) { return static_cast<std::size_t>(engine); }

/// A set of small enumerators, usable in constant expressions.
template <class E>
struct EnumSet {
  std::uint32_t bits = 0;
  constexpr EnumSet() = default;
  constexpr EnumSet(std::initializer_list<E> members) {
    for (E member : members) bits |= 1U << static_cast<unsigned>(member);
  }
  [[nodiscard]] constexpr bool contains(E member) const {
    return (bits >> static_cast<unsigned>(member) & 1U) != 0;
  }
  [[nodiscard]] constexpr bool empty() const { return bits == 0; }
};
using EngineSet = EnumSet<Engine>;

enum class Memory : std::uint8_t { Sbuf, Psum, Hbm };
using MemorySet = EnumSet<Memory>;
inline constexpr MemorySet kSbuf = {Memory::Sbuf};
inline constexpr MemorySet kPsum = {Memory::Psum};
inline constexpr MemorySet kHbm = {Memory::Hbm};
inline constexpr MemorySet kOnChip = {Memory::Sbuf, Memory::Psum};
inline constexpr MemorySet kDmaReach = {Memory::Sbuf, Memory::Hbm};

/// Element types.
enum class Dtype : std::uint8_t {
  Fp32,
  Tf32,
  Bf16,
  Fp16,
  Fp8E3m4,
  Fp8E4m3,
  Fp8E5m2,
  Int32,
  Uint32,
  Int16,
  Uint16,
  Int8,
  Uint8
};
using DtypeSet = EnumSet<Dtype>;

/// Bytes of one element in memory: 1, 2 or 4 (tf32 is held in four).
constexpr std::uint32_t bytes_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::Fp32:
    case Dtype::Tf32:
    case Dtype::Int32:
    case Dtype::Uint32:
      return 4;
    case Dtype::Bf16:
    case Dtype::Fp16:
    case Dtype::Int16:
    case Dtype::Uint16:
      return 2;
    default:
      return 1;
  }
}
constexpr bool is_float(Dtype dtype) { return dtype < Dtype::Int32; }

inline constexpr DtypeSet kAnyDtype{};  // an empty set limits nothing
inline constexpr DtypeSet kMatmulDtypes = {Dtype::Fp32,   Dtype::Tf32,    Dtype::Bf16,
                                           Dtype::Fp16,   Dtype::Fp8E3m4, Dtype::Fp8E4m3,
                                           Dtype::Fp8E5m2};

/// Architectural sizes that the encoding itself depends on. What may differ between chips of one
/// generation (capacities, clocks, rates) is configuration, not here.
inline constexpr std::uint32_t kPartitions = 128;  ///< docs/sources.md#a2-sbuf
inline constexpr std::uint32_t kFreeDims = 4;      ///< docs/sources.md#a1-access-pattern
inline constexpr std::uint32_t kRegisters = 64;    ///< per sequencer; docs/sources.md#nki-isa
inline constexpr std::uint32_t kSemaphores = 256;  ///< docs/sources.md#driver-address-map
inline constexpr std::uint32_t kEvents = 256;      ///< ditto
inline constexpr std::uint32_t kDmaQueues = 16;    ///< rings per DMA engine; ditto
/// Distance between partitions of SBUF in DMA addresses. Source: docs/sources.md#profiles-dma.
inline constexpr std::int64_t kSbufPartitionStride = 0x40000;

/// The processor that a trace was made for.
enum class Target : std::uint8_t { NeuronCoreV2, NeuronCoreV3 };

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::Engine> {
  static constexpr std::array<std::string_view, 5> value = {"Tensor", "Vector", "Scalar", "GpSimd",
                                                            "Sync"};
};
template <>
struct EnumNames<isa::Memory> {
  static constexpr std::array<std::string_view, 3> value = {"sbuf", "psum", "hbm"};
};
template <>
struct EnumNames<isa::Dtype> {
  static constexpr std::array<std::string_view, 13> value = {
      "fp32",  "tf32",   "bf16",  "fp16",   "fp8_e3m4", "fp8_e4m3", "fp8_e5m2",
      "int32", "uint32", "int16", "uint16", "int8",     "uint8"};
};
template <>
struct EnumNames<isa::Target> {
  static constexpr std::array<std::string_view, 2> value = {"NeuronCore-v2", "NeuronCore-v3"};
};
}  // namespace trn
