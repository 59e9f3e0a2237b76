#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "isa/types.h"

namespace trn::isa {

/// A register of the executing sequencer, 0..63, or the pseudo-register that holds the rank.
using Register = std::uint8_t;
inline constexpr Register kRankRegister = 64;
inline constexpr Register kNoRegister = 255;

/// `base + sum(coefficient * register)`: how an address or count follows loop counters and the
/// rank, so that a loop stays a loop and one program serves many cores.
struct Affine {
  static constexpr std::size_t kMaxTerms = 3;
  struct Term {
    Register reg = kNoRegister;
    std::int64_t coefficient = 0;
    friend bool operator==(const Term&, const Term&) = default;
  };
  std::int64_t base = 0;
  std::uint8_t term_count = 0;
  std::array<Term, kMaxTerms> terms{};

  constexpr Affine() = default;
  constexpr Affine(std::int64_t constant) : base(constant) {}  // NOLINT: a number is an Affine
  [[nodiscard]] constexpr bool constant() const { return term_count == 0; }
  friend bool operator==(const Affine&, const Affine&) = default;
};

/// One free dimension of an access pattern; innermost first.
struct FreeDim {
  std::int32_t stride = 1;  ///< elements; may be 0 (broadcast) or negative
  std::uint32_t size = 1;
  friend bool operator==(const FreeDim&, const FreeDim&) = default;
};

/// What an engine reads or writes in SBUF or PSUM: the same pattern in each of `partitions`
/// consecutive partitions. Up to four free dimensions. Source: docs/sources.md#a1-access-pattern.
struct Access {
  Memory memory = Memory::Sbuf;
  Dtype dtype = Dtype::Fp32;
  std::uint8_t start_partition = 0;
  std::uint8_t partitions = 0;  ///< 0: the operand is absent
  std::uint8_t dims = 0;        ///< free dimensions in use, 0..4; 0 is one element
  Affine offset{};              ///< byte offset of the first element within a partition
  std::array<FreeDim, kFreeDims> free{};

  [[nodiscard]] constexpr bool present() const { return partitions != 0; }
  /// Elements per partition.
  [[nodiscard]] constexpr std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < dims; ++i) count *= free[i].size;
    return count;
  }
  friend bool operator==(const Access&, const Access&) = default;
};

/// A number that an instruction carries itself or reads through a pointer, one per partition.
struct ScalarOperand {
  enum class Kind : std::uint8_t { None, Immediate, Pointer, Integer };
  Kind kind = Kind::None;
  float immediate = 0;
  std::int32_t integer = 0;  ///< of Kind::Integer: for operations on bit patterns
  Access pointer{};
  friend bool operator==(const ScalarOperand&, const ScalarOperand&) = default;
};

/// A 32-bit sequencer operand: a constant or a register.
struct RegisterOperand {
  Register reg = kNoRegister;  ///< kNoRegister: the constant
  std::int32_t constant = 0;
  friend bool operator==(const RegisterOperand&, const RegisterOperand&) = default;
};

/// One dimension of a DMA pattern; innermost first.
struct DmaDim {
  std::int64_t stride_bytes = 0;
  std::uint32_t size = 1;
  friend bool operator==(const DmaDim&, const DmaDim&) = default;
};

/// One side of a DMA: `size`-fold repetitions of an element of `element_bytes` contiguous bytes.
/// In SBUF the address is partition * kSbufPartitionStride + byte, in HBM a byte address.
struct DmaSide {
  Memory memory = Memory::Hbm;
  Dtype dtype = Dtype::Uint8;       ///< when both sides differ the engine casts, through fp32
  std::uint8_t dims = 0;            ///< dimensions in use, 0..4
  std::uint32_t element_bytes = 0;  ///< 0: the side is absent
  Affine address{};
  std::array<DmaDim, kFreeDims> pattern{};

  [[nodiscard]] constexpr bool present() const { return element_bytes != 0; }
  [[nodiscard]] constexpr std::uint64_t elements() const {
    std::uint64_t count = 1;
    for (std::size_t i = 0; i < dims; ++i) count *= pattern[i].size;
    return count;
  }
  [[nodiscard]] constexpr std::uint64_t bytes() const { return elements() * element_bytes; }
  friend bool operator==(const DmaSide&, const DmaSide&) = default;
};

/// Who writes the descriptors of a DMA. Source: docs/sources.md#nki-dge.
enum class DescriptorMode : std::uint8_t { Static, SoftwareDge, HardwareDge };

/// The completion semaphore of a DMA: the engines that take part add up to `increment`.
struct DmaCompletion {
  std::uint16_t semaphore = 0;
  std::uint16_t increment = 0;  ///< 0: none
  friend bool operator==(const DmaCompletion&, const DmaCompletion&) = default;
};

/// How the members of a collective are grouped. Ranks `offset + i * stride`, i < size.
struct RankGroup {
  std::uint32_t size = 1;
  std::uint32_t stride = 1;
  std::uint32_t offset = 0;
  friend bool operator==(const RankGroup&, const RankGroup&) = default;
};

/// Limits of one operand, as the documents state them; 0 or an empty set: no limit.
struct Limits {
  std::uint32_t free_min = 0;  ///< elements per partition
  std::uint32_t free_max = 0;
  std::uint32_t free_multiple = 0;
  std::uint32_t partitions_max = 0;
  std::uint32_t partitions_multiple = 0;
  MemorySet memories{};
  DtypeSet dtypes{};
  std::int64_t min = 0;  ///< of a number; min == max: no limit
  std::int64_t max = 0;
  bool optional = false;
};

template <class Member>
struct Operand {
  std::string_view name;
  Member member;
  Limits limits;
  std::string_view meaning;
};
template <class Member>
Operand(std::string_view, Member, Limits, std::string_view) -> Operand<Member>;

/// The cost tables have rows per (cost class, engine).
enum class CostClass : std::uint8_t {
  LoadWeights,
  Matmul,
  Copy,
  Fill,
  Predicated,
  Transpose,
  TwoInput,
  OneInput,
  Reduce,
  PartitionReduce,
  Cumulative,
  ScalarReduce,
  TwoInputScalar,
  Scan,
  BnStats,
  BnAggregate,
  Shuffle,
  Reciprocal,
  Max8,
  FindIndex8,
  MatchReplace8,
  Dropout,
  RangeSelect,
  SelectReduce,
  DynamicCopy,
  Random,
  Activate,
  ReadAccumulator,
  LoadTable,
  Iota,
  AffineSelect,
  LocalGather,
  Gather,
  Nonzero,
  SequenceBounds,
  TopK,
  RandomState,
  CustomOp,
  DmaTrigger,
  Control,
  Collective
};
inline constexpr std::size_t kCostClasses = static_cast<std::size_t>(CostClass::Collective) + 1;

// ---- what an instruction waits for and updates ----

/// Semaphores 0..255 and events 256..511 share one index space; an event counts to 1.
using SemaphoreId = std::uint16_t;
inline constexpr SemaphoreId kNoSemaphore = 0xffff;
inline constexpr SemaphoreId kFirstEvent = kSemaphores;

enum class WaitCondition : std::uint8_t { GreaterEqual, Equal, LessEqual };
struct Wait {
  SemaphoreId semaphore = kNoSemaphore;
  WaitCondition condition = WaitCondition::GreaterEqual;
  Affine value{};
  [[nodiscard]] constexpr bool present() const { return semaphore != kNoSemaphore; }
  friend bool operator==(const Wait&, const Wait&) = default;
};

enum class UpdateKind : std::uint8_t { Increment, Decrement, Add, Subtract, Write };
enum class UpdateWhen : std::uint8_t { Complete, OperandsRead };
struct Update {
  SemaphoreId semaphore = kNoSemaphore;
  UpdateKind kind = UpdateKind::Increment;
  UpdateWhen when = UpdateWhen::Complete;
  std::uint32_t value = 1;  ///< of Add, Subtract, Write; 1 otherwise
  [[nodiscard]] constexpr bool present() const { return semaphore != kNoSemaphore; }
  friend bool operator==(const Update&, const Update&) = default;
};

/// At most one wait and one update an instruction, as in the profiles.
struct Sync {
  Wait wait{};
  Update update{};
  friend bool operator==(const Sync&, const Sync&) = default;
};

/// Indices into the trace's tables of source locations and labels; 0 is "unknown" in both.
struct SourceRef {
  std::uint32_t location = 0;
  std::uint32_t label = 0;
  friend bool operator==(const SourceRef&, const SourceRef&) = default;
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::DescriptorMode> {
  static constexpr std::array<std::string_view, 3> value = {"static", "software", "hardware"};
};
template <>
struct EnumNames<isa::WaitCondition> {
  static constexpr std::array<std::string_view, 3> value = {">=", "==", "<="};
};
template <>
struct EnumNames<isa::UpdateKind> {
  static constexpr std::array<std::string_view, 5> value = {"++", "--", "+=", "-=", "="};
};
template <>
struct EnumNames<isa::UpdateWhen> {
  static constexpr std::array<std::string_view, 2> value = {"complete", "read"};
};
template <>
struct EnumNames<isa::CostClass> {
  static constexpr std::array<std::string_view, isa::kCostClasses> value = {"load_weights",
                                                                            "matmul",
                                                                            "copy",
                                                                            "fill",
                                                                            "predicated",
                                                                            "transpose",
                                                                            "two_input",
                                                                            "one_input",
                                                                            "reduce",
                                                                            "partition_reduce",
                                                                            "cumulative",
                                                                            "scalar_reduce",
                                                                            "two_input_scalar",
                                                                            "scan",
                                                                            "bn_stats",
                                                                            "bn_aggregate",
                                                                            "shuffle",
                                                                            "reciprocal",
                                                                            "max8",
                                                                            "find_index8",
                                                                            "match_replace8",
                                                                            "dropout",
                                                                            "range_select",
                                                                            "select_reduce",
                                                                            "dynamic_copy",
                                                                            "random",
                                                                            "activate",
                                                                            "read_accumulator",
                                                                            "load_table",
                                                                            "iota",
                                                                            "affine_select",
                                                                            "local_gather",
                                                                            "gather",
                                                                            "nonzero",
                                                                            "sequence_bounds",
                                                                            "topk",
                                                                            "random_state",
                                                                            "custom_op",
                                                                            "dma_trigger",
                                                                            "control",
                                                                            "collective"};
};
}  // namespace trn
