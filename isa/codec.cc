#include "isa/codec.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <type_traits>

#include "isa/base/check.h"

// Without it gcc makes calls of what is used twice, and the reader's place goes through memory.
#define TRN_INLINE [[gnu::always_inline]] inline

namespace trn::isa {
namespace {

// The second byte of an instruction says which of these follow it.
constexpr std::uint8_t kHasWait = 1;
constexpr std::uint8_t kHasUpdate = 2;
constexpr std::uint8_t kNewLocation = 4;
constexpr std::uint8_t kNewLabel = 8;
constexpr std::uint8_t kAllFlags = kHasWait | kHasUpdate | kNewLocation | kNewLabel;

constexpr std::uint8_t kAllPartitions = 0x80;  // in the first byte of an access: 0, 128
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 32U;
constexpr std::uint32_t kMaxElementBytes = 1U << 30U;
constexpr SemaphoreId kSemaphoreIds = kFirstEvent + kEvents;

/// What is being read, for messages.
struct Where {
  std::string_view instruction;
  std::string_view operand;
};

[[noreturn]] void fail(const ByteReader& in, const Where& where, std::string_view message) {
  in.fail(fmt::format("{} {}: {}", where.instruction, where.operand, message), 1);
}

/// Reads without looking for the end: for operands of bounded size, when enough bytes are left. A
/// local copy stays in a register, where a ByteReader's place would be stored and loaded again
/// around every byte that is written to an operand.
class FastReader {
 public:
  explicit FastReader(const ByteReader& from) : at_(from.position()), from_(&from) {}

  std::uint8_t u8() { return *at_++; }
  std::uint64_t varint() {
    std::uint64_t value = *at_ & 0x7fU;
    unsigned shift = 7;
    while ((*at_++ & 0x80U) != 0) {
      if (shift > 63) [[unlikely]]
        fail_here(at_, *from_, "a number has more than 64 bits");
      value |= static_cast<std::uint64_t>(*at_ & 0x7fU) << shift;
      shift += 7;
    }
    return value;
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }
  [[nodiscard]] const std::uint8_t* position() const { return at_; }

  [[noreturn]] static void fail_here(const std::uint8_t* at, ByteReader from,
                                     std::string_view message) {
    from.set_position(at);
    from.fail(message, 1);
  }
  [[nodiscard]] const ByteReader& from() const { return *from_; }

 private:
  const std::uint8_t* at_;
  const ByteReader* from_;
};

[[noreturn]] void fail_fast(const std::uint8_t* at, const ByteReader& from, const Where& where,
                            std::string_view message) {
  FastReader::fail_here(at, from,
                        fmt::format("{} {}: {}", where.instruction, where.operand, message));
}
[[noreturn]] void fail(const FastReader& in, const Where& where, std::string_view message) {
  fail_fast(in.position(), in.from(), where, message);
}

/// Most bytes of an access or a DMA pattern: every number in it has at most ten.
constexpr std::uint64_t kMaxPatternBytes = 4 + 10 + 10 + Affine::kMaxTerms * 11 + kFreeDims * 20;

/// Calls `read(in)` with the reader that suits what is left.
template <class Read>
void read_pattern(ByteReader& in, Read&& read) {
  if (in.remaining() >= kMaxPatternBytes) [[likely]] {
    FastReader fast(in);
    read(fast);
    in.set_position(fast.position());
  } else {
    read(in);
  }
}

// ---- encode ----

void put(ByteWriter& out, const Affine& value) {
  out.signed_varint(value.base);
  for (std::size_t i = 0; i < value.term_count; ++i) {
    out.u8(value.terms[i].reg);
    out.signed_varint(value.terms[i].coefficient);
  }
}

void put(ByteWriter& out, const Access& value) {
  TRN_CHECK(value.dims <= kFreeDims && value.offset.term_count <= Affine::kMaxTerms &&
                value.start_partition + value.partitions <= static_cast<int>(kPartitions),
            "access with {} dimensions, {} terms, partitions {}+{}", value.dims,
            value.offset.term_count, value.start_partition, value.partitions);
  const bool all = value.start_partition == 0 && value.partitions == kPartitions;
  out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(value.memory) | value.dims << 2U |
                                   value.offset.term_count << 5U | (all ? kAllPartitions : 0U)));
  out.u8(static_cast<std::uint8_t>(value.dtype));
  if (!all) {
    out.u8(value.start_partition);
    out.u8(value.partitions);
  }
  put(out, value.offset);
  for (std::size_t i = 0; i < value.dims; ++i) {
    out.signed_varint(value.free[i].stride);
    out.varint(value.free[i].size);
  }
}

void put(ByteWriter& out, const DmaSide& value) {
  TRN_CHECK(value.dims <= kFreeDims && value.address.term_count <= Affine::kMaxTerms,
            "DMA pattern with {} dimensions, {} terms", value.dims, value.address.term_count);
  out.u8(static_cast<std::uint8_t>(static_cast<unsigned>(value.memory) | value.dims << 2U |
                                   value.address.term_count << 5U));
  out.u8(static_cast<std::uint8_t>(value.dtype));
  out.varint(value.element_bytes);
  put(out, value.address);
  for (std::size_t i = 0; i < value.dims; ++i) {
    out.signed_varint(value.pattern[i].stride_bytes);
    out.varint(value.pattern[i].size);
  }
}

void put(ByteWriter& out, const ScalarOperand& value) {
  out.u8(static_cast<std::uint8_t>(value.kind));
  switch (value.kind) {
    case ScalarOperand::Kind::None:
      break;
    case ScalarOperand::Kind::Immediate:
      out.f32(value.immediate);
      break;
    case ScalarOperand::Kind::Integer:
      out.signed_varint(value.integer);
      break;
    case ScalarOperand::Kind::Pointer:
      TRN_CHECK(value.pointer.present(), "a pointer without an access");
      put(out, value.pointer);
      break;
  }
}

void put(ByteWriter& out, const RegisterOperand& value) {
  out.u8(value.reg);
  if (value.reg == kNoRegister) out.signed_varint(value.constant);
}

void put(ByteWriter& out, const DmaCompletion& value) {
  out.varint(value.semaphore);
  out.varint(value.increment);
}

void put(ByteWriter& out, const RankGroup& value) {
  out.varint(value.size);
  out.varint(value.stride);
  out.varint(value.offset);
}

void put(ByteWriter& out, const PeTile& value) {
  out.u8(value.row);
  out.u8(value.column);
  out.u8(value.rows);
  out.u8(value.columns);
}

void put(ByteWriter& out, const ShuffleMask& value) { out.raw(value.source); }

void put(ByteWriter& out, const IndexPattern& value) {
  TRN_CHECK(value.dims <= kFreeDims, "index pattern with {} dimensions", value.dims);
  out.u8(value.dims);
  out.signed_varint(value.base);
  out.signed_varint(value.channel);
  for (std::size_t i = 0; i < value.dims; ++i) {
    out.signed_varint(value.steps[i].stride);
    out.varint(value.steps[i].size);
  }
}

template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void put(ByteWriter& out, T value) {
  if constexpr (std::is_same_v<T, bool>) {
    (void)out, (void)value;  // it is not the default: that says all
  } else if constexpr (std::is_enum_v<T>) {
    out.u8(static_cast<std::uint8_t>(value));
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(sizeof(T) == 4);
    out.f32(value);
  } else if constexpr (std::is_signed_v<T>) {
    out.signed_varint(value);
  } else {
    out.varint(value);
  }
}

void put_sync(ByteWriter& out, const Sync& sync) {
  if (sync.wait.present()) {
    const Wait& wait = sync.wait;
    out.varint(static_cast<std::uint64_t>(wait.semaphore) << 4U |
               static_cast<unsigned>(wait.value.term_count) << 2U |
               static_cast<unsigned>(wait.condition));
    put(out, wait.value);
  }
  if (sync.update.present()) {
    const Update& update = sync.update;
    out.varint(static_cast<std::uint64_t>(update.semaphore) << 4U |
               static_cast<unsigned>(update.when) << 3U | static_cast<unsigned>(update.kind));
    if (update.kind >= UpdateKind::Add) out.varint(update.value);
  }
}

// ---- decode ----

template <class In>
TRN_INLINE Register read_register(In& in, const Where& where) {
  const Register reg = in.u8();
  if (reg > kRankRegister) [[unlikely]] {
    fail(in, where,
         fmt::format("expected register 0..63 or {} for the rank, got {}", kRankRegister, reg));
  }
  return reg;
}

template <class In>
TRN_INLINE void read_affine(In& in, Affine& value, unsigned terms, const Where& where) {
  value.base = in.signed_varint();
  value.term_count = static_cast<std::uint8_t>(terms);
  for (std::size_t i = 0; i < terms; ++i) {
    value.terms[i].reg = read_register(in, where);
    value.terms[i].coefficient = in.signed_varint();
  }
}

template <class E, class In>
TRN_INLINE E read_enum(In& in, const Where& where) {
  const std::uint8_t value = in.u8();
  if (value >= EnumNames<E>::value.size()) [[unlikely]] {
    fail(in, where,
         fmt::format("expected a value under {}, got {}", EnumNames<E>::value.size(), value));
  }
  return static_cast<E>(value);
}

template <class T, class In>
TRN_INLINE T read_signed(In& in, const Where& where) {
  const std::int64_t value = in.signed_varint();
  if (value < std::numeric_limits<T>::min() || value > std::numeric_limits<T>::max()) [[unlikely]] {
    fail(in, where, fmt::format("{} does not fit in {} bits", value, 8 * sizeof(T)));
  }
  return static_cast<T>(value);
}

template <class T, class In>
TRN_INLINE T read_unsigned(In& in, const Where& where) {
  const std::uint64_t value = in.varint();
  if (value > std::numeric_limits<T>::max()) [[unlikely]] {
    fail(in, where, fmt::format("{} does not fit in {} bits", value, 8 * sizeof(T)));
  }
  return static_cast<T>(value);
}

template <class In>
TRN_INLINE unsigned read_dims(In& in, unsigned dims, const Where& where) {
  if (dims > kFreeDims) [[unlikely]] {
    fail(in, where, fmt::format("expected at most {} dimensions, got {}", kFreeDims, dims));
  }
  return dims;
}

/// A dimension's size; `elements` is the product so far.
template <class In>
TRN_INLINE std::uint32_t read_size(In& in, std::uint64_t& elements, const Where& where) {
  const auto size = read_unsigned<std::uint32_t>(in, where);
  // Both factors are at most 2^32 - 1 and 2^32: the product does not wrap.
  elements *= size;
  if (elements >= kMaxElements) [[unlikely]]
    fail(in, where, "expected fewer than 2^32 elements");
  return size;
}

template <class In>
TRN_INLINE void read_access(In& in, Access& value, const Where& where) {
  const unsigned head = in.u8();
  const unsigned memory = head & 3U;
  if (memory > static_cast<unsigned>(Memory::Psum)) [[unlikely]] {
    fail(in, where, fmt::format("expected sbuf (0) or psum (1), got memory {}", memory));
  }
  value.memory = static_cast<Memory>(memory);
  value.dims = static_cast<std::uint8_t>(read_dims(in, head >> 2U & 7U, where));
  value.dtype = read_enum<Dtype>(in, where);
  if ((head & kAllPartitions) != 0) {
    value.start_partition = 0;
    value.partitions = kPartitions;
  } else {
    value.start_partition = in.u8();
    value.partitions = in.u8();
    if (value.partitions == 0 ||
        value.start_partition + value.partitions > static_cast<int>(kPartitions)) [[unlikely]] {
      fail(in, where,
           fmt::format("expected partitions within 0..127, got {} from {}", value.partitions,
                       value.start_partition));
    }
  }
  read_affine(in, value.offset, head >> 5U & 3U, where);
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < value.dims; ++i) {
    value.free[i].stride = read_signed<std::int32_t>(in, where);
    value.free[i].size = read_size(in, elements, where);
  }
}

template <class In>
TRN_INLINE void read_side(In& in, DmaSide& value, const Where& where) {
  const unsigned head = in.u8();
  const unsigned memory = head & 3U;
  if (memory > static_cast<unsigned>(Memory::Hbm) || head >= 0x80) [[unlikely]] {
    fail(in, where, fmt::format("expected the head of a DMA pattern, got 0x{:02x}", head));
  }
  value.memory = static_cast<Memory>(memory);
  value.dims = static_cast<std::uint8_t>(read_dims(in, head >> 2U & 7U, where));
  value.dtype = read_enum<Dtype>(in, where);
  value.element_bytes = read_unsigned<std::uint32_t>(in, where);
  if (value.element_bytes == 0 || value.element_bytes > kMaxElementBytes) [[unlikely]] {
    fail(in, where,
         fmt::format("expected an element of 1..2^30 bytes, got {}", value.element_bytes));
  }
  read_affine(in, value.address, head >> 5U & 3U, where);
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < value.dims; ++i) {
    value.pattern[i].stride_bytes = in.signed_varint();
    value.pattern[i].size = read_size(in, elements, where);
  }
}

void read(ByteReader& in, Access& value, const Where& where) {
  read_pattern(in, [&](auto& reader) { read_access(reader, value, where); });
}

void read(ByteReader& in, DmaSide& value, const Where& where) {
  read_pattern(in, [&](auto& reader) { read_side(reader, value, where); });
}

void read(ByteReader& in, ScalarOperand& value, const Where& where) {
  const std::uint8_t kind = in.u8();
  value.kind = static_cast<ScalarOperand::Kind>(kind);
  switch (value.kind) {
    case ScalarOperand::Kind::Immediate:
      value.immediate = in.f32();
      return;
    case ScalarOperand::Kind::Integer:
      value.integer = read_signed<std::int32_t>(in, where);
      return;
    case ScalarOperand::Kind::Pointer:
      read(in, value.pointer, where);
      return;
    case ScalarOperand::Kind::None:
      break;
  }
  fail(in, where, fmt::format("expected a constant (1, 3) or a pointer (2), got {}", kind));
}

void read(ByteReader& in, RegisterOperand& value, const Where& where) {
  value.reg = in.u8();
  if (value.reg == kNoRegister) {
    value.constant = read_signed<std::int32_t>(in, where);
  } else if (value.reg > kRankRegister) [[unlikely]] {
    fail(in, where,
         fmt::format("expected register 0..63, {} for the rank or {} for a constant, "
                     "got {}",
                     kRankRegister, kNoRegister, value.reg));
  }
}

void read(ByteReader& in, DmaCompletion& value, const Where& where) {
  value.semaphore = read_unsigned<std::uint16_t>(in, where);
  value.increment = read_unsigned<std::uint16_t>(in, where);
  if (value.semaphore >= kSemaphores) [[unlikely]] {
    fail(in, where,
         fmt::format("expected a semaphore under {}, got {}", kSemaphores, value.semaphore));
  }
}

void read(ByteReader& in, RankGroup& value, const Where& where) {
  value.size = read_unsigned<std::uint32_t>(in, where);
  value.stride = read_unsigned<std::uint32_t>(in, where);
  value.offset = read_unsigned<std::uint32_t>(in, where);
}

void read(ByteReader& in, PeTile& value, const Where& /*where*/) {
  value.row = in.u8();
  value.column = in.u8();
  value.rows = in.u8();
  value.columns = in.u8();
}

void read(ByteReader& in, ShuffleMask& value, const Where& where) {
  for (std::uint8_t& source : value.source) {
    source = in.u8();
    if (source >= value.source.size() && source != ShuffleMask::kKeep) [[unlikely]] {
      fail(in, where, fmt::format("expected a partition 0..31 or 255, got {}", source));
    }
  }
}

void read(ByteReader& in, IndexPattern& value, const Where& where) {
  value.dims = static_cast<std::uint8_t>(read_dims(in, in.u8(), where));
  value.base = read_signed<std::int32_t>(in, where);
  value.channel = read_signed<std::int32_t>(in, where);
  std::uint64_t elements = 1;
  for (std::size_t i = 0; i < value.dims; ++i) {
    value.steps[i].stride = read_signed<std::int32_t>(in, where);
    value.steps[i].size = read_size(in, elements, where);
  }
}

template <class T>
  requires std::is_arithmetic_v<T> || std::is_enum_v<T>
void read(ByteReader& in, T& value, const Where& where) {
  if constexpr (std::is_same_v<T, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<T>) {
    value = read_enum<T>(in, where);
  } else if constexpr (std::is_floating_point_v<T>) {
    value = in.f32();
  } else if constexpr (std::is_signed_v<T>) {
    value = read_signed<T>(in, where);
  } else {
    value = read_unsigned<T>(in, where);
  }
}

void read_wait(ByteReader& in, Wait& wait) {
  constexpr Where kWhere{"wait", "semaphore"};
  const std::uint64_t head = in.varint();
  const std::uint64_t semaphore = head >> 4U;
  const unsigned condition = head & 3U;
  if (semaphore >= kSemaphoreIds) [[unlikely]] {
    fail(in, kWhere, fmt::format("expected 0..{}, got {}", kSemaphoreIds - 1, semaphore));
  }
  if (condition > static_cast<unsigned>(WaitCondition::LessEqual)) [[unlikely]] {
    fail(in, kWhere, fmt::format("expected condition 0..2, got {}", condition));
  }
  wait.semaphore = static_cast<SemaphoreId>(semaphore);
  wait.condition = static_cast<WaitCondition>(condition);
  wait.value = {};
  read_affine(in, wait.value, head >> 2U & 3U, kWhere);
}

void read_update(ByteReader& in, Update& update) {
  constexpr Where kWhere{"update", "semaphore"};
  const std::uint64_t head = in.varint();
  const std::uint64_t semaphore = head >> 4U;
  const unsigned kind = head & 7U;
  if (semaphore >= kSemaphoreIds) [[unlikely]] {
    fail(in, kWhere, fmt::format("expected 0..{}, got {}", kSemaphoreIds - 1, semaphore));
  }
  if (kind > static_cast<unsigned>(UpdateKind::Write)) [[unlikely]] {
    fail(in, kWhere, fmt::format("expected kind 0..4, got {}", kind));
  }
  update.semaphore = static_cast<SemaphoreId>(semaphore);
  update.kind = static_cast<UpdateKind>(kind);
  update.when = static_cast<UpdateWhen>(head >> 3U & 1U);
  update.value = update.kind >= UpdateKind::Add ? read_unsigned<std::uint32_t>(in, kWhere) : 1U;
}

std::uint32_t read_index(ByteReader& in, std::uint32_t last, std::uint64_t table,
                         std::string_view what) {
  const std::int64_t delta = in.signed_varint();
  constexpr std::int64_t kMax = std::numeric_limits<std::uint32_t>::max();
  if (delta < -static_cast<std::int64_t>(last) || delta > kMax - last ||
      static_cast<std::uint64_t>(last + delta) >= table) [[unlikely]] {
    in.fail(fmt::format("a {} is not in the trace's table of {}", what, table), 1);
  }
  return static_cast<std::uint32_t>(last + delta);
}

// ---- one instruction ----

template <class T>
inline constexpr std::size_t kOperands = std::tuple_size_v<decltype(T::operands())>;

/// Bytes of the mask that says which operands differ from their defaults.
template <class T>
inline constexpr unsigned kMaskBytes = (kOperands<T> + 7) / 8;

template <class T>
void put_operands(const T& instr, ByteWriter& out) {
  static_assert(kOperands<T> <= 16);
  const T initial{};
  unsigned mask = 0;
  unsigned bit = 1;
  for_each_operand<T>([&](const auto& operand) {
    if (!is_default(instr.*operand.member, initial.*operand.member)) mask |= bit;
    bit <<= 1U;
  });
  if constexpr (kMaskBytes<T> > 0) out.u8(static_cast<std::uint8_t>(mask));
  if constexpr (kMaskBytes<T> > 1) out.u8(static_cast<std::uint8_t>(mask >> 8U));
  bit = 1;
  for_each_operand<T>([&](const auto& operand) {
    if ((mask & bit) != 0) put(out, instr.*operand.member);
    bit <<= 1U;
  });
}

template <class T>
void read_operands(ByteReader& in, Op& op) {
  T& instr = op.emplace<T>();
  if constexpr (kMaskBytes<T> > 0) {
    unsigned mask = in.u8();
    if constexpr (kMaskBytes<T> > 1) mask |= static_cast<unsigned>(in.u8()) << 8U;
    if (mask >> kOperands<T> != 0) [[unlikely]] {
      fail(in, {T::kName, "operands"},
           fmt::format("expected a mask of {} bits, got 0x{:x}", kOperands<T>, mask));
    }
    unsigned bit = 1;
    for_each_operand<T>([&](const auto& operand) {
      if ((mask & bit) != 0) {
        const Where where{T::kName, operand.name};
        auto& member = instr.*operand.member;
        using Member = std::remove_reference_t<decltype(member)>;
        read(in, member, where);
        if constexpr (std::is_integral_v<Member> && !std::is_same_v<Member, bool>) {
          const Limits& limits = operand.limits;
          const auto value = static_cast<std::int64_t>(member);
          if (limits.min != limits.max && (value < limits.min || value > limits.max)) [[unlikely]] {
            fail(in, where, fmt::format("expected {}..{}, got {}", limits.min, limits.max, value));
          }
        }
      }
      bit <<= 1U;
    });
  }
}

using ReadOperands = void (*)(ByteReader&, Op&);

constexpr std::array<ReadOperands, 256> make_readers() {
  std::array<ReadOperands, 256> readers{};
  for_each_instruction([&]<class T>() { readers[T::kOpcode] = &read_operands<T>; });
  return readers;
}
constexpr std::array<ReadOperands, 256> kReaders = make_readers();

}  // namespace

void encode(const Instr& instr, SourceRef& last, ByteWriter& out) {
  std::visit([&]<class T>(const T& /*op*/) { out.u8(T::kOpcode); }, instr.op);
  const bool new_location = instr.at.location != last.location;
  const bool new_label = instr.at.label != last.label;
  out.u8(static_cast<std::uint8_t>(
      (instr.sync.wait.present() ? kHasWait : 0) | (instr.sync.update.present() ? kHasUpdate : 0) |
      (new_location ? kNewLocation : 0) | (new_label ? kNewLabel : 0)));
  put_sync(out, instr.sync);
  if (new_location) out.signed_varint(std::int64_t{instr.at.location} - last.location);
  if (new_label) out.signed_varint(std::int64_t{instr.at.label} - last.label);
  last = instr.at;
  std::visit([&](const auto& op) { put_operands(op, out); }, instr.op);
}

void decode(ByteReader& in, SourceRef& last, const SourceTables& tables, Instr& instr) {
  const std::uint8_t opcode = in.u8();
  const ReadOperands read_op = kReaders[opcode];
  if (read_op == nullptr) [[unlikely]]
    in.fail(fmt::format("unknown opcode 0x{:02x}", opcode), 1);
  const std::uint8_t flags = in.u8();
  if ((flags & ~kAllFlags) != 0) [[unlikely]] {
    in.fail(fmt::format("expected flags 0x00..0x{:02x}, got 0x{:02x}", kAllFlags, flags), 1);
  }
  instr.sync = {};
  if ((flags & kHasWait) != 0) read_wait(in, instr.sync.wait);
  if ((flags & kHasUpdate) != 0) read_update(in, instr.sync.update);
  if ((flags & kNewLocation) != 0) {
    last.location = read_index(in, last.location, tables.locations, "source location");
  }
  if ((flags & kNewLabel) != 0) last.label = read_index(in, last.label, tables.labels, "label");
  instr.at = last;
  read_op(in, instr.op);
}

}  // namespace trn::isa
