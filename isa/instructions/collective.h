#pragma once

#include "isa/instructions/common.h"
#include "isa/instructions/sequencer.h"
#include "isa/operand.h"

namespace trn::isa {

/// Who moves the bytes of a SENDRECV. Source: docs/sources.md#nki-isa.
enum class SendrecvEngine : std::uint8_t { Dma, GpSimdDma };

/// A CollectivePermute's partner: the one that `shift` gives, or nobody.
inline constexpr std::int32_t kByShift = -1;
inline constexpr std::int32_t kNobody = -2;

struct AllReduce {
  DmaSide src{};
  DmaSide dst{};
  AluOp op = AluOp::Bypass;
  RankGroup group{};
  DmaCompletion completion{};
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x80;
  static constexpr std::string_view kName = "ALL_REDUCE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "Every rank gets the reduction of all.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &AllReduce::src, Limits{.memories = kDmaReach}, "what this rank gives"},
        Operand{"dst", &AllReduce::dst, Limits{.memories = kDmaReach}, "what this rank gets"},
        Operand{"op", &AllReduce::op, Limits{}, "ADD, MAX or MIN"},
        Operand{"group", &AllReduce::group, Limits{}, "ranks that take part"},
        Operand{"completion", &AllReduce::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"stream", &AllReduce::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct AllGather {
  DmaSide src{};
  DmaSide dst{};
  RankGroup group{};
  DmaCompletion completion{};
  std::uint8_t dimension = 0;
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x81;
  static constexpr std::string_view kName = "ALL_GATHER";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "Every rank gets the parts of all.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &AllGather::src, Limits{.memories = kDmaReach}, "what this rank gives"},
        Operand{"dst", &AllGather::dst, Limits{.memories = kDmaReach}, "what this rank gets"},
        Operand{"group", &AllGather::group, Limits{}, "ranks that take part"},
        Operand{"completion", &AllGather::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"dimension", &AllGather::dimension, Limits{.max = 1, .optional = true},
                "dimension along which the parts lie"},
        Operand{"stream", &AllGather::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct AllGatherV {
  DmaSide src{};
  DmaSide dst{};
  DmaSide metadata{};
  RankGroup group{};
  DmaCompletion completion{};
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x82;
  static constexpr std::string_view kName = "ALL_GATHER_V";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "ALL_GATHER of parts that differ in size.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &AllGatherV::src, Limits{.memories = kHbm}, "what this rank gives"},
        Operand{"dst", &AllGatherV::dst, Limits{.memories = kHbm}, "what this rank gets"},
        Operand{"metadata", &AllGatherV::metadata, Limits{.memories = kHbm},
                "sizes and offsets, rows of uint32"},
        Operand{"group", &AllGatherV::group, Limits{}, "ranks that take part"},
        Operand{"completion", &AllGatherV::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"stream", &AllGatherV::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct ReduceScatter {
  DmaSide src{};
  DmaSide dst{};
  AluOp op = AluOp::Bypass;
  RankGroup group{};
  DmaCompletion completion{};
  std::uint8_t dimension = 0;
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x83;
  static constexpr std::string_view kName = "REDUCE_SCATTER";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "Every rank gets its part of the reduction of all.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &ReduceScatter::src, Limits{.memories = kDmaReach}, "what this rank gives"},
        Operand{"dst", &ReduceScatter::dst, Limits{.memories = kDmaReach}, "what this rank gets"},
        Operand{"op", &ReduceScatter::op, Limits{}, "ADD, MAX or MIN"},
        Operand{"group", &ReduceScatter::group, Limits{}, "ranks that take part"},
        Operand{"completion", &ReduceScatter::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"dimension", &ReduceScatter::dimension, Limits{.max = 1, .optional = true},
                "dimension along which the parts lie"},
        Operand{"stream", &ReduceScatter::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct AllToAll {
  DmaSide src{};
  DmaSide dst{};
  RankGroup group{};
  DmaCompletion completion{};
  std::uint8_t dimension = 0;
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x84;
  static constexpr std::string_view kName = "ALL_TO_ALL";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "Every rank gives each rank one part.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &AllToAll::src, Limits{.memories = kHbm}, "what this rank gives"},
        Operand{"dst", &AllToAll::dst, Limits{.memories = kHbm}, "what this rank gets"},
        Operand{"group", &AllToAll::group, Limits{}, "ranks that take part"},
        Operand{"completion", &AllToAll::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"dimension", &AllToAll::dimension, Limits{.max = 1, .optional = true},
                "dimension along which the parts lie"},
        Operand{"stream", &AllToAll::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct AllToAllV {
  DmaSide src{};
  DmaSide dst{};
  DmaSide metadata{};
  RankGroup group{};
  DmaCompletion completion{};
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x85;
  static constexpr std::string_view kName = "ALL_TO_ALL_V";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "ALL_TO_ALL of parts that differ in size.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &AllToAllV::src, Limits{.memories = kHbm}, "what this rank gives"},
        Operand{"dst", &AllToAllV::dst, Limits{.memories = kHbm}, "what this rank gets"},
        Operand{"metadata", &AllToAllV::metadata, Limits{.memories = kHbm},
                "sizes and offsets, rows of uint32"},
        Operand{"group", &AllToAllV::group, Limits{}, "ranks that take part"},
        Operand{"completion", &AllToAllV::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"stream", &AllToAllV::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct CollectivePermute {
  DmaSide src{};
  DmaSide dst{};
  RankGroup group{};
  std::int32_t shift = 1;
  std::int32_t target = kByShift;
  std::int32_t source = kByShift;
  DmaCompletion completion{};
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x86;
  static constexpr std::string_view kName = "COLLECTIVE_PERMUTE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc =
      "Every rank gives one rank its tensor and gets that of another.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &CollectivePermute::src, Limits{.memories = kHbm}, "what this rank gives"},
        Operand{"dst", &CollectivePermute::dst, Limits{.memories = kHbm}, "what this rank gets"},
        Operand{"group", &CollectivePermute::group, Limits{}, "ranks that take part"},
        Operand{"shift", &CollectivePermute::shift, Limits{.optional = true},
                "position p gives to (p + shift) modulo the group's size"},
        Operand{"target", &CollectivePermute::target,
                Limits{.min = -2, .max = 1048575, .optional = true},
                "position given to: -1 follows shift, -2 is nobody"},
        Operand{"source", &CollectivePermute::source,
                Limits{.min = -2, .max = 1048575, .optional = true},
                "position got from: -1 follows shift, -2 is nobody"},
        Operand{"completion", &CollectivePermute::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"stream", &CollectivePermute::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct CollectivePermuteImplicit {
  DmaSide src{};
  DmaSide dst{};
  RankGroup group{};
  std::uint8_t channels = 1;
  DmaCompletion completion{};
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x87;
  static constexpr std::string_view kName = "COLLECTIVE_PERMUTE_IMPLICIT";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "One step of a ring whose order is chosen at run time.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &CollectivePermuteImplicit::src, Limits{.memories = kDmaReach},
                "what this rank gives"},
        Operand{"dst", &CollectivePermuteImplicit::dst, Limits{.memories = kDmaReach},
                "what this rank gets"},
        Operand{"group", &CollectivePermuteImplicit::group, Limits{}, "ranks that take part"},
        Operand{"channels", &CollectivePermuteImplicit::channels,
                Limits{.min = 1, .max = 4, .optional = true}, "rings used at once"},
        Operand{"completion", &CollectivePermuteImplicit::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"},
        Operand{"stream", &CollectivePermuteImplicit::stream, Limits{.max = 3, .optional = true},
                "stream of collectives that run in order"}};
  }
};

struct CollectivePermuteImplicitReduce {
  DmaSide src0{};
  DmaSide src1{};
  DmaSide dst{};
  AluOp op = AluOp::Bypass;
  RankGroup group{};
  std::uint8_t channels = 1;
  DmaCompletion completion{};
  std::uint8_t stream = 0;

  static constexpr std::uint8_t kOpcode = 0x88;
  static constexpr std::string_view kName = "COLLECTIVE_PERMUTE_IMPLICIT_REDUCE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc =
      "One step of a ring that gives on the reduction of two tensors.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src0", &CollectivePermuteImplicitReduce::src0, Limits{.memories = kDmaReach},
                "first summand"},
        Operand{"src1", &CollectivePermuteImplicitReduce::src1, Limits{.memories = kDmaReach},
                "second summand"},
        Operand{"dst", &CollectivePermuteImplicitReduce::dst, Limits{.memories = kDmaReach},
                "what this rank gets"},
        Operand{"op", &CollectivePermuteImplicitReduce::op, Limits{}, "ADD, MAX or MIN"},
        Operand{"group", &CollectivePermuteImplicitReduce::group, Limits{}, "ranks that take part"},
        Operand{"channels", &CollectivePermuteImplicitReduce::channels,
                Limits{.min = 1, .max = 4, .optional = true}, "rings used at once"},
        Operand{"completion", &CollectivePermuteImplicitReduce::completion,
                Limits{.optional = true}, "semaphore raised when the data has arrived"},
        Operand{"stream", &CollectivePermuteImplicitReduce::stream,
                Limits{.max = 3, .optional = true}, "stream of collectives that run in order"}};
  }
};

struct CollectivePermuteImplicitCurrentProcessingRankId {
  Register dst = 0;
  RegisterOperand iteration{};
  std::uint8_t channel = 0;
  RankGroup group{};

  static constexpr std::uint8_t kOpcode = 0x89;
  static constexpr std::string_view kName =
      "COLLECTIVE_PERMUTE_IMPLICIT_CURRENT_PROCESSING_RANK_ID";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc =
      "Register = rank whose data this step of the ring holds.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-collectives";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"dst", &CollectivePermuteImplicitCurrentProcessingRankId::dst,
                Limits{.min = 0, .max = 63}, "register written"},
        Operand{"iteration", &CollectivePermuteImplicitCurrentProcessingRankId::iteration, Limits{},
                "step of the ring"},
        Operand{"channel", &CollectivePermuteImplicitCurrentProcessingRankId::channel,
                Limits{.max = 3, .optional = true}, "ring"},
        Operand{"group", &CollectivePermuteImplicitCurrentProcessingRankId::group, Limits{},
                "ranks that take part"}};
  }
};

struct CoreBarrier {
  RankGroup group{};
  std::uint16_t semaphore = 0;

  static constexpr std::uint8_t kOpcode = 0x8a;
  static constexpr std::string_view kName = "CORE_BARRIER";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc = "Waits until both cores of a logical core are here.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{Operand{"group", &CoreBarrier::group, Limits{}, "ranks that take part"},
                      Operand{"semaphore", &CoreBarrier::semaphore, Limits{.max = 255},
                              "raised on the peer, awaited here"}};
  }
};

struct Sendrecv {
  Access src{};
  Access dst{};
  SendrecvEngine engine = SendrecvEngine::Dma;
  RegisterOperand send_to{};
  RegisterOperand receive_from{};
  std::uint8_t pipe = 0;
  DmaCompletion completion{};

  static constexpr std::uint8_t kOpcode = 0x8b;
  static constexpr std::string_view kName = "SENDRECV";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Collective;
  static constexpr std::string_view kDoc =
      "Swaps SBUF tiles with the other core of a logical core.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &Sendrecv::src, Limits{.partitions_max = 128, .memories = kSbuf},
                "tile given"},
        Operand{"dst", &Sendrecv::dst, Limits{.partitions_max = 128, .memories = kSbuf},
                "tile got"},
        Operand{"engine", &Sendrecv::engine, Limits{.optional = true}, "who moves the bytes"},
        Operand{"send_to", &Sendrecv::send_to, Limits{}, "rank given to"},
        Operand{"receive_from", &Sendrecv::receive_from, Limits{}, "rank got from"},
        Operand{"pipe", &Sendrecv::pipe, Limits{.optional = true},
                "instructions of one pipe match in order"},
        Operand{"completion", &Sendrecv::completion, Limits{.optional = true},
                "semaphore raised when the data has arrived"}};
  }
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::SendrecvEngine> {
  static constexpr std::array<std::string_view, 2> value = {"dma", "gpsimd_dma"};
};
}  // namespace trn
