#include "isa/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>

namespace trn::isa {
namespace {

// Sizes and strides of an access pattern are 16-bit numbers; docs/sources.md#a1-access-pattern.
constexpr std::uint32_t kMaxDimSize = 65536;
constexpr std::int32_t kMinStride = -32768;
constexpr std::int32_t kMaxStride = 32767;
constexpr std::uint64_t kMaxSbufElements = 65536;
constexpr std::uint64_t kMaxPsumElements = 4096;

constexpr DtypeSet kDoubleRowDtypes = {Dtype::Fp8E4m3, Dtype::Fp8E5m2};

template <class E>
std::string names_of(EnumSet<E> set) {
  std::string text;
  for (std::size_t i = 0; i < EnumNames<E>::value.size(); ++i) {
    if (!set.contains(static_cast<E>(i))) continue;
    if (!text.empty()) text += " or ";
    text += EnumNames<E>::value[i];
  }
  return text;
}

/// Where an access of `partitions` may start; docs/sources.md#a1-access-pattern.
bool good_start(std::uint32_t start, std::uint32_t partitions) {
  if (partitions > 64) return start == 0;
  if (partitions > 32) return start % 64 == 0;
  return start % 32 == 0;
}

std::string_view good_starts(std::uint32_t partitions) {
  if (partitions > 64) return "0";
  return partitions > 32 ? "0 or 64" : "0, 32, 64 or 96";
}

constexpr bool is_dma(CostClass cost) { return cost == CostClass::DmaTrigger; }

bool is_one_of(AluOp op, std::initializer_list<AluOp> ops) {
  return std::find(ops.begin(), ops.end(), op) != ops.end();
}

/// The tile that an instruction's op works on, if it has one.
template <class T>
const Access* first_input([[maybe_unused]] const T& op) {
  if constexpr (requires { op.src0; }) {
    if constexpr (std::is_same_v<decltype(T::src0), Access>) return &op.src0;
  } else if constexpr (requires { op.src; }) {
    if constexpr (std::is_same_v<decltype(T::src), Access>) return &op.src;
  }
  return nullptr;
}

/// Whether sizes and strides are what the hardware encodes, so that reaches do not overflow.
bool good_dims(const Access& access) {
  return std::all_of(
      access.free.begin(), access.free.begin() + std::min<std::size_t>(access.dims, kFreeDims),
      [](const FreeDim& dim) {
        return dim.size >= 1 && dim.size <= kMaxDimSize &&
               (dim.size == 1 || (dim.stride >= kMinStride && dim.stride <= kMaxStride));
      });
}

}  // namespace

void Findings::add(std::string_view path, std::string_view message) {
  if (!full()) found_.push_back({std::string(path), std::string(message)});
}

void Findings::throw_if_any() const {
  if (found_.empty()) return;
  std::vector<InputError> errors;
  errors.reserve(found_.size());
  for (const Finding& finding : found_) {
    errors.emplace_back(Place{.file = file_}, finding.path, finding.message);
  }
  throw InputError(errors);
}

StreamValidator::StreamValidator(const TraceInfo& info, const ValidateLimits& limits,
                                 std::uint32_t program, Engine engine, std::uint64_t size,
                                 Findings& findings)
    : info_(info),
      limits_(limits),
      program_(program),
      engine_(engine),
      size_(size),
      findings_(findings) {
  for (const CoreBinding& core : info.cores) {
    if (core.program != program) continue;
    if (!ranks_) ranks_ = Interval{core.rank, core.rank};
    ranks_->low = std::min<std::int64_t>(ranks_->low, core.rank);
    ranks_->high = std::max<std::int64_t>(ranks_->high, core.rank);
  }
}

template <class... Args>
void StreamValidator::report(std::string_view operand, std::string_view format,
                             const Args&... args) {
  std::string message = fmt::format(fmt::runtime(format), args...);
  if (instr_->at.location != 0 && instr_->at.location < info_.locations.size()) {
    const SourceLocation& at = info_.locations[instr_->at.location];
    message += fmt::format(" ({}:{})", at.file, at.line);
  }
  findings_.add(fmt::format("program {} {} #{} {}{}{}", program_, name_of(engine_), index_,
                            mnemonic(*instr_), operand.empty() ? "" : ".", operand),
                message);
}

void StreamValidator::check(std::uint64_t index, const Instr& instr) {
  if (findings_.full()) return;
  if (index != next_) {
    loops_known_ = false;
    loops_.clear();
  }
  next_ = index + 1;
  index_ = index;
  instr_ = &instr;
  check_sync(instr.sync);
  std::visit([&](const auto& op) { check_op(op); }, instr.op);
}

void StreamValidator::finish() {
  for (const OpenLoop& open : loops_) {
    const Instr instr{.op = open.loop};
    instr_ = &instr;
    index_ = open.begin;
    report("end", "the stream ends before the loop does, at #{}", open.end);
  }
}

template <class T>
void StreamValidator::check_op(const T& op) {
  if (!T::kEngines.contains(engine_)) [[unlikely]] {
    report("", "expected on {}, found on {}", names_of(T::kEngines), name_of(engine_));
  }
  for_each_operand<T>([&](const auto& operand) {
    check_operand(operand.name, op.*operand.member, operand.limits);
  });
  check_rules(op);
}

/// Rules that tie operands together; an instruction has its own `rule`, or its operands' names say
/// what must match.
template <class T>
void StreamValidator::check_rules(const T& op) {
  if constexpr (requires { this->rule(op); }) rule(op);
  if constexpr (std::is_same_v<T, RegisterMove> || std::is_same_v<T, RegisterAlu> ||
                std::is_same_v<T, RankId> ||
                std::is_same_v<T, CollectivePermuteImplicitCurrentProcessingRankId>) {
    writes_register(op.dst, 1);
  }
  if constexpr (std::is_same_v<T, TensorLoad>) writes_register(op.dst, op.count);

  if constexpr (std::is_same_v<T, Copy> || std::is_same_v<T, Cast> ||
                std::is_same_v<T, TensorCopyDynamicSrc> ||
                std::is_same_v<T, TensorCopyDynamicDst> || std::is_same_v<T, TensorScalar> ||
                std::is_same_v<T, TensorScalarCumulative> ||
                std::is_same_v<T, TensorScalarReduce> || std::is_same_v<T, Reciprocal> ||
                std::is_same_v<T, NcMatchReplace8> || std::is_same_v<T, Dropout> ||
                std::is_same_v<T, RangeSelect> || std::is_same_v<T, SelectReduce> ||
                std::is_same_v<T, Activate> || std::is_same_v<T, AffineSelect>) {
    same_shape("src", op.src, op.dst);
  }
  if constexpr (std::is_same_v<T, TensorTensor> || std::is_same_v<T, ScalarTensorTensor> ||
                std::is_same_v<T, TensorTensorScan>) {
    same_shape("src0", op.src0, op.dst);
    same_shape("src1", op.src1, op.dst);
    not_both_psum("src0 and src1", op.src0, op.src1);
  }
  if constexpr (std::is_same_v<T, TensorCopyPredicated> || std::is_same_v<T, SelectReduce>) {
    same_shape("predicate", op.predicate, op.dst);
    not_both_psum("src and predicate", op.src, op.predicate);
  }
  if constexpr (std::is_same_v<T, TensorCopyPredicated>) {
    if (op.src.present()) same_shape("src", op.src, op.dst);
    if (op.src.present() == (op.scalar.kind != ScalarOperand::Kind::None)) {
      report("src", "expected either src or scalar");
    }
  }
  if constexpr (std::is_same_v<T, NcStreamShuffle> || std::is_same_v<T, Dropout> ||
                std::is_same_v<T, NcNGather>) {
    if (op.src.dtype != op.dst.dtype) {
      report("dst", "expected the dtype of src, {}, got {}", name_of(op.src.dtype),
             name_of(op.dst.dtype));
    }
  }
  if constexpr (requires { op.pattern; }) {
    equal_elements("pattern", op.dst, op.pattern.elements());
  }
  if constexpr (std::is_same_v<T, NcNGather>) {
    equal_elements("dst", op.dst, op.index.elements());
  }
  if constexpr (std::is_same_v<T, NonzeroWithCount>) {
    equal_elements("dst", op.dst, op.src.elements() + 1);
  }
  if constexpr (std::is_same_v<T, SequenceBounds>) {
    equal_elements("dst", op.dst, 2 * op.src.elements());
  }
  if constexpr (std::is_same_v<T, TopK>) {
    if (op.k > op.n) report("k", "expected at most n, {}, got {}", op.n, op.k);
  }
  if constexpr (std::is_same_v<T, LocalGather>) {
    if ((op.elements_per_index & (op.elements_per_index - 1)) != 0) {
      report("elements_per_index", "expected 1, 2, 4, 8, 16 or 32, got {}", op.elements_per_index);
    }
  }
  if constexpr (std::is_same_v<T, TensorScalarReduce>) {
    if (!is_one_of(op.reduce_op, {AluOp::Add, AluOp::Multiply, AluOp::Max, AluOp::Min})) {
      report("reduce_op", "expected ADD, MULTIPLY, MAX or MIN, got {}", name_of(op.reduce_op));
    }
  }
  if constexpr (std::is_same_v<T, AllReduce> || std::is_same_v<T, ReduceScatter> ||
                std::is_same_v<T, CollectivePermuteImplicitReduce>) {
    if (!is_one_of(op.op, {AluOp::Add, AluOp::Max, AluOp::Min})) {
      report("op", "expected ADD, MAX or MIN, got {}", name_of(op.op));
    }
  }
  if constexpr (std::is_same_v<T, Sendrecv>) {
    same_shape("src", op.src, op.dst);
    if (op.src.dtype != op.dst.dtype) {
      report("dst", "expected the dtype of src, {}, got {}", name_of(op.src.dtype),
             name_of(op.dst.dtype));
    }
  }
  if constexpr (requires { op.group; }) {
    if (op.group.size == 0) report("group", "expected at least one rank");
  }
  if (const Access* input = first_input(op)) {
    if constexpr (requires { bitwise_rule("op", op.op, *input); }) {
      bitwise_rule("op", op.op, *input);
    }
    if constexpr (requires { op.op0; }) bitwise_rule("op0", op.op0, *input);
  }
}

// ---- operands ----

template <class Member>
void StreamValidator::check_operand(std::string_view name, const Member& value,
                                    const Limits& limits) {
  if constexpr (std::is_same_v<Member, Access>) {
    if (value.present()) {
      check_access(name, value, limits);
    } else if (!limits.optional) [[unlikely]] {
      report(name, "the operand is missing");
    }
  } else if constexpr (std::is_same_v<Member, DmaSide>) {
    if (value.present()) {
      check_side(name, value, limits);
    } else if (!limits.optional) [[unlikely]] {
      report(name, "the operand is missing");
    }
  } else if constexpr (std::is_same_v<Member, ScalarOperand>) {
    if (value.kind == ScalarOperand::Kind::Pointer) {
      check_access(name, value.pointer, Limits{.free_max = 1, .memories = kOnChip});
    } else if (value.kind == ScalarOperand::Kind::None && !limits.optional) [[unlikely]] {
      report(name, "the operand is missing");
    }
  } else if constexpr (std::is_integral_v<Member> && !std::is_same_v<Member, bool>) {
    const auto number = static_cast<std::int64_t>(value);
    if (limits.min != limits.max && (number < limits.min || number > limits.max)) [[unlikely]] {
      report(name, "expected {}..{}, got {}", limits.min, limits.max, number);
    }
  }
}

void StreamValidator::check_access(std::string_view name, const Access& access,
                                   const Limits& limits) {
  if (!limits.memories.empty() && !limits.memories.contains(access.memory)) [[unlikely]] {
    report(name, "expected in {}, found in {}", names_of(limits.memories), name_of(access.memory));
    return;
  }
  if (engine_ == Engine::GpSimd && access.memory == Memory::Psum) [[unlikely]] {
    report(name, "the GpSimd engine reaches sbuf only, found in psum");
  }
  if (!limits.dtypes.empty() && !limits.dtypes.contains(access.dtype)) [[unlikely]] {
    report(name, "expected dtype {}, got {}", names_of(limits.dtypes), name_of(access.dtype));
  }
  if (limits.partitions_max != 0 && access.partitions > limits.partitions_max) [[unlikely]] {
    report(name, "expected at most {} partitions, got {}", limits.partitions_max,
           access.partitions);
  }
  if (limits.partitions_multiple != 0 && access.partitions % limits.partitions_multiple != 0)
      [[unlikely]] {
    report(name, "expected a multiple of {} partitions, got {}", limits.partitions_multiple,
           access.partitions);
  }
  if (access.start_partition + access.partitions > static_cast<int>(kPartitions)) [[unlikely]] {
    report(name, "expected partitions within 0..{}, got {} from {}", kPartitions - 1,
           access.partitions, access.start_partition);
  }
  if (!is_dma(cost_class(*instr_)) && !good_start(access.start_partition, access.partitions))
      [[unlikely]] {
    report(name, "{} partitions may start at {}, got {}", access.partitions,
           good_starts(access.partitions), access.start_partition);
  }

  std::int64_t low = 0;  // elements from the first one
  std::int64_t high = 0;
  for (std::size_t i = 0; i < access.dims && i < kFreeDims; ++i) {
    const FreeDim& dim = access.free[i];
    if (dim.size == 0 || dim.size > kMaxDimSize) [[unlikely]] {
      report(name, "expected a dimension of 1..{}, got {}", kMaxDimSize, dim.size);
      return;
    }
    if (dim.size > 1 && (dim.stride < kMinStride || dim.stride > kMaxStride)) [[unlikely]] {
      report(name, "expected a stride of {}..{} elements, got {}", kMinStride, kMaxStride,
             dim.stride);
      return;
    }
    const std::int64_t reach = std::int64_t{dim.stride} * (dim.size - 1);
    (reach < 0 ? low : high) += reach;
  }
  const std::uint64_t elements = access.elements();
  const bool psum = access.memory == Memory::Psum;
  const std::uint64_t most = psum ? kMaxPsumElements : kMaxSbufElements;
  if (elements > most) [[unlikely]] {
    report(name, "expected at most {} elements per partition in {}, got {}", most,
           name_of(access.memory), elements);
  }
  if (limits.free_max != 0 && elements > limits.free_max) [[unlikely]] {
    report(name, "expected at most {} elements per partition, got {}", limits.free_max, elements);
  }
  if (elements < limits.free_min) [[unlikely]] {
    report(name, "expected at least {} elements per partition, got {}", limits.free_min, elements);
  }
  if (limits.free_multiple != 0 && elements % limits.free_multiple != 0) [[unlikely]] {
    report(name, "expected a multiple of {} elements per partition, got {}", limits.free_multiple,
           elements);
  }

  const auto offset = range(access.offset);
  if (!offset) return;
  const std::int64_t bytes = bytes_of(access.dtype);
  const std::int64_t capacity = psum ? limits_.psum_partition_bytes : limits_.sbuf_partition_bytes;
  // Far beyond any memory all is one, and sums do not overflow.
  constexpr std::int64_t kFar = std::int64_t{1} << 48U;
  const std::int64_t first = std::max(offset->low, -kFar) + low * bytes;
  const std::int64_t last = std::min(offset->high, kFar) + (high + 1) * bytes - 1;
  if (first < 0 || last >= capacity) [[unlikely]] {
    report(name, "expected bytes 0..{} of a partition of {}, got {}..{}", capacity - 1,
           name_of(access.memory), first, last);
  }
}

void StreamValidator::check_side(std::string_view name, const DmaSide& side, const Limits& limits) {
  if (!limits.memories.empty() && !limits.memories.contains(side.memory)) [[unlikely]] {
    report(name, "expected in {}, found in {}", names_of(limits.memories), name_of(side.memory));
    return;
  }
  if (!limits.dtypes.empty() && !limits.dtypes.contains(side.dtype)) [[unlikely]] {
    report(name, "expected dtype {}, got {}", names_of(limits.dtypes), name_of(side.dtype));
  }
  if (side.element_bytes % bytes_of(side.dtype) != 0) [[unlikely]] {
    report(name, "expected a multiple of the {} bytes of {}, got {}", bytes_of(side.dtype),
           name_of(side.dtype), side.element_bytes);
  }
  for (std::size_t i = 0; i < side.dims; ++i) {
    if (side.pattern[i].size == 0) [[unlikely]] {
      report(name, "expected dimensions of at least 1, got 0");
      return;
    }
  }
  if (side.memory != Memory::Sbuf) return;
  const auto address = range(side.address);
  if (!address) return;
  check_sbuf_side(name, side, address->low);
  if (address->high != address->low) check_sbuf_side(name, side, address->high);
}

void StreamValidator::check_sbuf_side(std::string_view name, const DmaSide& side,
                                      std::int64_t address) {
  constexpr std::int64_t kReach = kSbufPartitionStride * kPartitions;
  if (address < 0 || address >= kReach) [[unlikely]] {
    report(name, "expected an address of sbuf, 0x0..0x{:x}, got {}0x{:x}", kReach - 1,
           address < 0 ? "-" : "", address < 0 ? -(address + 1) + 1ULL : address + 0ULL);
    return;
  }
  // A stride is so many partitions and so many bytes, which may go back a little.
  std::int64_t first_partition = address / kSbufPartitionStride;
  std::int64_t last_partition = first_partition;
  std::int64_t first_byte = address % kSbufPartitionStride;
  std::int64_t last_byte = first_byte + side.element_bytes - 1;
  for (std::size_t i = 0; i < side.dims; ++i) {
    const DmaDim& dim = side.pattern[i];
    if (dim.size == 1) continue;
    if (dim.stride_bytes >= kReach || dim.stride_bytes <= -kReach) [[unlikely]] {
      report(name, "expected a stride within sbuf, got {} bytes", dim.stride_bytes);
      return;
    }
    std::int64_t partitions = dim.stride_bytes / kSbufPartitionStride;
    std::int64_t bytes = dim.stride_bytes % kSbufPartitionStride;
    if (bytes > kSbufPartitionStride / 2) ++partitions, bytes -= kSbufPartitionStride;
    if (bytes < -kSbufPartitionStride / 2) --partitions, bytes += kSbufPartitionStride;
    (partitions < 0 ? first_partition : last_partition) += partitions * (dim.size - 1);
    (bytes < 0 ? first_byte : last_byte) += bytes * (dim.size - 1);
  }
  if (first_partition < 0 || last_partition >= std::int64_t{kPartitions}) [[unlikely]] {
    report(name, "expected partitions within 0..{}, got {}..{}", kPartitions - 1, first_partition,
           last_partition);
  }
  if (first_byte < 0 || last_byte >= limits_.sbuf_partition_bytes) [[unlikely]] {
    report(name, "expected bytes 0..{} of a partition of sbuf, got {}..{}",
           limits_.sbuf_partition_bytes - 1, first_byte, last_byte);
  }
}

void StreamValidator::check_sync(const Sync& sync) {
  const auto max_of = [&](SemaphoreId id) -> std::int64_t {
    return id >= kFirstEvent ? 1 : limits_.semaphore_max;
  };
  if (sync.wait.present()) {
    if (const auto value = range(sync.wait.value)) {
      const std::int64_t max = max_of(sync.wait.semaphore);
      if (value->low < 0 || value->high > max) [[unlikely]] {
        report("wait", "expected a value of 0..{}, got {}", max,
               value->low < 0 ? value->low : value->high);
      }
    }
  }
  if (sync.update.present() && sync.update.value > max_of(sync.update.semaphore)) [[unlikely]] {
    report("update", "expected a value of 0..{}, got {}", max_of(sync.update.semaphore),
           sync.update.value);
  }
}

std::optional<StreamValidator::Interval> StreamValidator::range(Register reg) const {
  if (reg == kRankRegister) return ranks_;
  for (auto open = loops_.rbegin(); open != loops_.rend(); ++open) {
    if (open->loop.counter == reg) return open->counter;
  }
  return std::nullopt;
}

std::optional<StreamValidator::Interval> StreamValidator::range(const Affine& value) const {
  Interval sum{value.base, value.base};
  for (std::size_t i = 0; i < value.term_count; ++i) {
    const auto reg = range(value.terms[i].reg);
    if (!reg) return std::nullopt;
    const std::int64_t coefficient = value.terms[i].coefficient;
    std::int64_t a = 0;
    std::int64_t b = 0;
    // Numbers that do not fit are wrapped by the hardware's address arithmetic; nothing is known.
    if (__builtin_mul_overflow(coefficient, reg->low, &a) ||
        __builtin_mul_overflow(coefficient, reg->high, &b) ||
        __builtin_add_overflow(sum.low, std::min(a, b), &sum.low) ||
        __builtin_add_overflow(sum.high, std::max(a, b), &sum.high)) {
      return std::nullopt;
    }
  }
  return sum;
}

// ---- rules ----

void StreamValidator::equal_elements(std::string_view name, const Access& a,
                                     std::uint64_t expected) {
  if (a.elements() != expected) [[unlikely]] {
    report(name, "expected {} elements per partition, got {}", expected, a.elements());
  }
}

void StreamValidator::same_shape(std::string_view name, const Access& a, const Access& reference) {
  if (!a.present() || !reference.present()) return;  // reported as missing
  if (a.elements() != reference.elements()) [[unlikely]] {
    report(name, "expected as many elements per partition as dst, {}, got {}", reference.elements(),
           a.elements());
  }
  if (a.partitions != reference.partitions) [[unlikely]] {
    report(name, "expected as many partitions as dst, {}, got {}", reference.partitions,
           a.partitions);
  }
}

void StreamValidator::not_both_psum(std::string_view names, const Access& a, const Access& b) {
  if (a.present() && b.present() && a.memory == Memory::Psum && b.memory == Memory::Psum)
      [[unlikely]] {
    report("", "{} are both in psum, expected one in sbuf", names);
  }
}

/// Bit patterns are for integers.
void StreamValidator::bitwise_rule(std::string_view name, AluOp op, const Access& src) {
  if (is_bitwise(op) && is_float(src.dtype)) [[unlikely]] {
    report(name, "expected integers for {}, got {}", name_of(op), name_of(src.dtype));
  }
}

void StreamValidator::array_rule(PerformanceMode mode, Sparsity sparsity, bool transpose,
                                 const Access& src, std::uint32_t free_max, const PeTile& tile) {
  const std::uint64_t elements = src.elements();
  if (mode == PerformanceMode::DoubleRow) {
    if (!kDoubleRowDtypes.contains(src.dtype)) {
      report("mode", "double rows need {}, got {}", names_of(kDoubleRowDtypes), name_of(src.dtype));
    }
    if (sparsity != Sparsity::None || transpose) {
      report("mode", "double rows do not go with sparsity or transposing");
    }
  } else if (elements > free_max && sparsity == Sparsity::None) {
    report("src", "expected at most {} elements per partition, got {}", free_max, elements);
  }
  const auto good = [](std::uint32_t begin, std::uint32_t size) {
    return (size == 32 || size == 64 || size == 128) && begin % size == 0 &&
           begin + size <= kPartitions;
  };
  if (!good(tile.row, tile.rows) || !good(tile.column, tile.columns)) [[unlikely]] {
    report("tile",
           "expected 32, 64 or 128 rows and columns from a multiple of that, got "
           "{} from {} and {} from {}",
           tile.rows, tile.row, tile.columns, tile.column);
  }
}

void StreamValidator::rule(const LdWeights& op) {
  array_rule(op.mode, op.sparsity, op.transpose, op.src, 128, op.tile);
}

void StreamValidator::rule(const Matmul& op) {
  array_rule(op.mode, op.sparsity, op.transpose, op.src, 512, op.tile);
  if (op.sparsity == Sparsity::None && op.src.present() && op.dst.present()) {
    const std::uint64_t rows = op.mode == PerformanceMode::DoubleRow ? 2 : 1;
    equal_elements("src", op.src, rows * op.dst.elements());
  }
  // A transpose keeps the bits, and 8-bit ones come with an upper byte of zeros.
  const bool sixteen_bits =
      op.transpose && bytes_of(op.dst.dtype) == 2 && bytes_of(op.src.dtype) <= 2;
  if (bytes_of(op.dst.dtype) != 4 && !sixteen_bits) {
    report("dst", "expected fp32, or 16 bits of a transpose, got {}", name_of(op.dst.dtype));
  }
  const auto offset = range(op.dst.offset);
  if (!offset || op.dst.memory != Memory::Psum || !good_dims(op.dst) || offset->low < 0 ||
      offset->low >= limits_.psum_partition_bytes) {
    return;  // reported already, or for the run to find
  }
  std::int64_t low = offset->low;
  std::int64_t high = offset->low + bytes_of(op.dst.dtype) - 1;
  for (std::size_t i = 0; i < op.dst.dims; ++i) {
    const std::int64_t reach = std::int64_t{op.dst.free[i].stride} *
                               (std::int64_t{op.dst.free[i].size} - 1) * bytes_of(op.dst.dtype);
    (reach < 0 ? low : high) += reach;
  }
  const std::int64_t bank = limits_.psum_bank_bytes;
  if (low >= 0 && low / bank != high / bank) [[unlikely]] {
    report("dst", "expected within one psum bank of {} bytes, got bytes {}..{}", bank, low, high);
  }
}

void StreamValidator::rule(const Copy& op) {
  if (op.src.present() && op.dst.present() && op.src.dtype != op.dst.dtype) {
    report("dst", "expected the dtype of src, {}, got {}: CAST converts", name_of(op.src.dtype),
           name_of(op.dst.dtype));
  }
}

void StreamValidator::rule(const TensorReduce& op) {
  if (!op.src.present() || !op.dst.present()) return;
  std::uint64_t left = 1;
  for (std::size_t i = static_cast<std::size_t>(op.dims) + 1; i < op.src.dims; ++i) {
    left *= op.src.free[i].size;
  }
  equal_elements("dst", op.dst, left);
  if (op.src.partitions != op.dst.partitions) {
    report("dst", "expected as many partitions as src, {}, got {}", op.src.partitions,
           op.dst.partitions);
  }
}

void StreamValidator::rule(const TensorScalar& op) {
  if (engine_ == Engine::Scalar) {
    const bool good =
        (op.op0 == AluOp::Multiply && (op.op1 == AluOp::Add || op.op1 == AluOp::Bypass)) ||
        (op.op0 == AluOp::Add && op.op1 == AluOp::Bypass);
    if (!good) {
      report("op0", "the Scalar engine knows MULTIPLY then ADD, MULTIPLY, and ADD, got {}, {}",
             name_of(op.op0), name_of(op.op1));
    }
  }
  if (engine_ == Engine::GpSimd && op.op0 != AluOp::Rsqrt && op.op1 != AluOp::Rsqrt) {
    report("op0", "the GpSimd engine knows RSQRT only, got {}, {}", name_of(op.op0),
           name_of(op.op1));
  }
  if (op.op0 != AluOp::Bypass && op.op0 != AluOp::Rsqrt && op.op0 != AluOp::Absolute &&
      op.op0 != AluOp::LogicalNot && op.op0 != AluOp::BitwiseNot &&
      op.operand0.kind == ScalarOperand::Kind::None) {
    report("operand0", "{} needs an operand", name_of(op.op0));
  }
}

void StreamValidator::rule(const TensorPartitionReduce& op) {
  if (!is_one_of(op.op,
                 {AluOp::Add, AluOp::Average, AluOp::Max, AluOp::BitwiseOr, AluOp::BitwiseAnd})) {
    report("op", "expected ADD, AVERAGE, MAX, BITWISE_OR or BITWISE_AND, got {}", name_of(op.op));
  }
  if (op.src.present() && op.dst.present()) equal_elements("dst", op.dst, op.src.elements());
}

void StreamValidator::dma_rule(DescriptorMode mode, const Access& index) {
  if (mode == DescriptorMode::HardwareDge && engine_ != Engine::Sync && engine_ != Engine::Scalar) {
    report("mode", "hardware descriptors are made for Sync or Scalar, found on {}",
           name_of(engine_));
  }
  if (mode == DescriptorMode::SoftwareDge && engine_ != Engine::GpSimd) {
    report("mode", "software descriptors are made by GpSimd, found on {}", name_of(engine_));
  }
  if (index.present() && mode != DescriptorMode::SoftwareDge) {
    report("index", "only software descriptors gather and scatter, got mode {}", name_of(mode));
  }
}

/// A source may be smaller than the result, as long as it has the partitions that are picked.
void StreamValidator::rule(const NcStreamShuffle& op) {
  if (!op.src.present() || !op.dst.present()) return;
  equal_elements("src", op.src, op.dst.elements());
  const std::size_t quadrant = op.mask.source.size();
  for (std::size_t p = 0; p < op.dst.partitions; ++p) {
    const std::uint8_t picked = op.mask.source[p % quadrant];
    if (picked == ShuffleMask::kKeep) continue;
    const std::size_t source = p / quadrant * quadrant + picked;
    if (source >= op.src.partitions) {
      report("mask", "expected partitions that src has, below {}, got {} for partition {}",
             op.src.partitions, source, p);
      return;
    }
  }
}

void StreamValidator::rule(const DmaDirect2d& op) {
  dma_rule(op.mode, op.index);
  const std::uint64_t given = op.src.bytes() / bytes_of(op.src.dtype);
  const std::uint64_t taken = op.dst.bytes() / bytes_of(op.dst.dtype);
  if (op.src.present() && op.dst.present() && given != taken) {
    report("dst", "expected as many elements as src, {}, got {}", given, taken);
  }
  if (op.mode == DescriptorMode::HardwareDge && op.src.dtype != op.dst.dtype) {
    report("dst", "hardware descriptors do not convert: expected {}, got {}", name_of(op.src.dtype),
           name_of(op.dst.dtype));
  }
}

void StreamValidator::rule(const DmaTranspose& op) {
  dma_rule(op.mode, op.index);
  if (op.src.dtype != op.dst.dtype) {
    report("dst", "expected the dtype of src, {}, got {}", name_of(op.src.dtype),
           name_of(op.dst.dtype));
  }
  if (op.src.present() && bytes_of(op.src.dtype) < 2) {
    report("src", "expected elements of 2 or 4 bytes, got {}", name_of(op.src.dtype));
  }
  if (op.src.present() && op.dst.present() && op.src.bytes() != op.dst.bytes()) {
    report("dst", "expected as many bytes as src, {}, got {}", op.src.bytes(), op.dst.bytes());
  }
}

void StreamValidator::rule(const DmaCompute& op) {
  dma_rule(op.mode, op.index);
  if (op.index.present() && op.sources != 2) {
    report("sources", "gather and scatter add exactly 2, got {}", op.sources);
  }
}

void StreamValidator::writes_register(Register reg, std::uint32_t count) {
  for (OpenLoop& open : loops_) {
    if (open.loop.counter >= reg && open.loop.counter < reg + count) open.counter.reset();
  }
}

void StreamValidator::rule(const TensorLoad& op) {
  if (op.dst + op.count > static_cast<int>(kRegisters)) {
    report("count", "expected registers within 0..{}, got {} from {}", kRegisters - 1, op.count,
           op.dst);
  }
}

void StreamValidator::rule(const RegisterStore& op) {
  if (op.dst.present() && op.dst.bytes() != 4) {
    report("dst", "expected one element of 4 bytes, got {} bytes", op.dst.bytes());
  }
}

void StreamValidator::rule(const SemaphoreRangeClear& op) {
  if (op.first > op.last) report("first", "expected at most last, {}, got {}", op.last, op.first);
}

void StreamValidator::rule(const CompareBranch& op) {
  // One past the last instruction is the end of the stream.
  const auto here = static_cast<std::int64_t>(index_);
  const auto size = static_cast<std::int64_t>(size_);
  if (op.target < -here || op.target > size - here) {
    report("target", "expected {}..{} instructions from here, got {}", -here, size - here,
           op.target);
  }
}

void StreamValidator::rule(const Loop& op) {
  const auto left = static_cast<std::int64_t>(size_ - index_);
  if (op.end < 1 || op.end >= left) {
    report("end", "expected 1..{} instructions from here, got {}", left - 1, op.end);
    return;
  }
  OpenLoop open;
  open.begin = index_;
  open.end = index_ + static_cast<std::uint64_t>(op.end);
  open.loop = op;
  if (op.count.reg == kNoRegister) {
    open.counter = Interval{0, std::max<std::int64_t>(std::int64_t{op.count.constant} - 1, 0)};
  }
  if (!loops_.empty() && open.end >= loops_.back().end) {
    report("end", "the loop ends at #{}, past the end of the loop around it, #{}", open.end,
           loops_.back().end);
  }
  loops_.push_back(open);
}

void StreamValidator::rule(const EndLoop& op) {
  const auto here = static_cast<std::int64_t>(index_);
  if (op.begin >= 0 || op.begin < -here) {
    report("begin", "expected {}..-1 instructions from here, got {}", -here, op.begin);
    return;
  }
  if (!loops_known_) return;
  if (loops_.empty()) {
    report("begin", "no LOOP is open here");
    return;
  }
  const OpenLoop open = loops_.back();
  loops_.pop_back();
  if (open.begin != static_cast<std::uint64_t>(here + op.begin) || open.end != index_) {
    report("begin", "the innermost loop goes from #{} to #{}, got #{} to #{}", open.begin, open.end,
           here + op.begin, here);
  } else if (open.loop.counter != op.counter || open.loop.count != op.count) {
    report("counter", "expected counter and count of the LOOP at #{}", open.begin);
  }
}

// ---- the whole ----

void validate_info(const TraceInfo& info, const ValidateLimits& limits, Findings& findings) {
  if (info.target != limits.target) {
    findings.add("target", fmt::format("expected a trace for {}, got one for {}",
                                       name_of(limits.target), name_of(info.target)));
  }
  if (info.cores.empty()) findings.add("cores", "expected at least one core that runs a program");
  std::set<std::uint32_t> cores;
  for (const CoreBinding& core : info.cores) {
    if (!cores.insert(core.core).second) {
      findings.add(fmt::format("core {}", core.core), "the core is bound twice");
    }
  }
  for (const Tensor& tensor : info.tensors) {
    if (tensor.memory == Memory::Hbm) continue;
    const std::uint64_t capacity =
        tensor.memory == Memory::Psum ? limits.psum_partition_bytes : limits.sbuf_partition_bytes;
    if (tensor.address > capacity || tensor.bytes > capacity - tensor.address) {
      findings.add(fmt::format("tensor '{}'", tensor.name),
                   fmt::format("expected within the {} bytes of a partition of {}, got {} from {}",
                               capacity, name_of(tensor.memory), tensor.bytes, tensor.address));
    }
  }
}

void validate(const Code& code, const ValidateLimits& limits, std::string_view file) {
  Findings findings(file);
  validate_info(code.info(), limits, findings);
  std::vector<Instr> block;
  for (std::uint32_t program = 0; program < code.programs(); ++program) {
    for (Engine engine : kAllEngines) {
      const std::uint64_t size = code.size(program, engine);
      StreamValidator stream(code.info(), limits, program, engine, size, findings);
      std::uint64_t index = 0;
      for (std::uint64_t at = 0; at * kBlockInstructions < size && !findings.full(); ++at) {
        code.read(program, engine, at, block);
        for (const Instr& instr : block) stream.check(index++, instr);
      }
      if (!findings.full()) stream.finish();
    }
  }
  findings.throw_if_any();
}

}  // namespace trn::isa
