#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "isa/instructions.h"
#include "isa/program.h"

namespace trn::isa::test {

/// Well-formed instructions of every kind: all that can be encoded, not all that may run.
class RandomInstr {
 public:
  explicit RandomInstr(std::uint32_t seed) : random_(seed) {}

  template <class T>
  Instr of() {
    Instr instr;
    T op;
    for_each_operand<T>([&](const auto& operand) {
      if (chance(0.7)) fill(op.*operand.member, operand.limits);
    });
    instr.op = op;
    if (chance(0.5)) instr.sync.wait = wait();
    if (chance(0.5)) instr.sync.update = update();
    instr.at = {number<std::uint32_t>(0, kTable - 1), number<std::uint32_t>(0, kTable - 1)};
    return instr;
  }

  /// Any instruction of the list.
  Instr any() {
    Instr instr;
    const auto chosen = number<std::size_t>(0, kInstructions - 1);
    std::size_t at = 0;
    for_each_instruction([&]<class T>() {
      if (at++ == chosen) instr = of<T>();
    });
    return instr;
  }

  /// A trace of `programs` programs whose streams have up to `most` instructions.
  Trace trace(std::uint32_t programs, std::size_t most) {
    Trace trace;
    TraceInfo& info = trace.header;
    info.name = "random \"trace\"\n";
    info.work = {{32, "token"}, {0.1, "image"}};
    for (std::uint32_t i = 1; i < kTable; ++i) {
      info.locations.push_back({i % 3 == 0 ? "a file.py" : "kernel.py", i / 2});
      info.labels.push_back(i % 4 == 0 ? "" : "layer" + std::to_string(i / 2));
    }
    info.tensors = {
        {"q", TensorKind::Input, Memory::Hbm, Dtype::Bf16, {512, 128}, 0x1000, 131072, 3},
        {"", TensorKind::Internal, Memory::Sbuf, Dtype::Fp32, {}, 0, 4, 0}};
    trace.code.resize(programs);
    for (std::uint32_t program = 0; program < programs; ++program) {
      info.cores.push_back({program, program, 7 * program});
      for (std::vector<Instr>& stream : trace.code[program].streams) {
        const auto count = number<std::size_t>(0, most);
        for (std::size_t i = 0; i < count; ++i) stream.push_back(any());
      }
    }
    return trace;
  }

  static constexpr std::uint32_t kTable = 9;  ///< entries of the tables that `at` points into

 private:
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }
  template <class T>
  T number(T low, T high) {
    if constexpr (sizeof(T) == 1) {
      return static_cast<T>(std::uniform_int_distribution<int>(low, high)(random_));
    } else {
      return std::uniform_int_distribution<T>(low, high)(random_);
    }
  }
  /// Of any magnitude.
  template <class T>
  T any_number() {
    const auto bits = number<std::uint64_t>(0, ~std::uint64_t{0});
    return static_cast<T>(static_cast<std::int64_t>(bits) >> number(0, 63));
  }
  template <class E>
  E enumerator() {
    return static_cast<E>(number<std::size_t>(0, EnumNames<E>::value.size() - 1));
  }
  Register reg() { return chance(0.2) ? kRankRegister : number<Register>(0, kRegisters - 1); }

  Affine affine() {
    Affine value;
    value.base = any_number<std::int64_t>();
    value.term_count = number<std::uint8_t>(0, chance(0.3) ? Affine::kMaxTerms : 0);
    for (std::size_t i = 0; i < value.term_count; ++i) {
      value.terms[i] = {reg(), any_number<std::int64_t>()};
    }
    return value;
  }
  FreeDim dim() { return {any_number<std::int32_t>(), number<std::uint32_t>(0, 200)}; }

  void fill(Access& value, const Limits& /*limits*/) {
    value.memory = chance(0.5) ? Memory::Sbuf : Memory::Psum;
    value.dtype = enumerator<Dtype>();
    value.partitions = chance(0.5) ? kPartitions : number<std::uint8_t>(1, kPartitions);
    value.start_partition =
        number<std::uint8_t>(0, static_cast<std::uint8_t>(kPartitions - value.partitions));
    value.offset = affine();
    value.dims = number<std::uint8_t>(0, kFreeDims);
    for (std::size_t i = 0; i < value.dims; ++i) value.free[i] = dim();
  }
  void fill(DmaSide& value, const Limits& /*limits*/) {
    value.memory = enumerator<Memory>();
    value.dtype = enumerator<Dtype>();
    value.element_bytes = number<std::uint32_t>(1, 1U << 30U);
    value.address = affine();
    value.dims = number<std::uint8_t>(0, kFreeDims);
    for (std::size_t i = 0; i < value.dims; ++i) {
      value.pattern[i] = {any_number<std::int64_t>(), number<std::uint32_t>(0, 200)};
    }
  }
  void fill(ScalarOperand& value, const Limits& limits) {
    switch (number(0, 2)) {
      case 0:
        value.kind = ScalarOperand::Kind::Immediate;
        fill(value.immediate, limits);
        break;
      case 1:
        value.kind = ScalarOperand::Kind::Integer;
        value.integer = any_number<std::int32_t>();
        break;
      default:
        value.kind = ScalarOperand::Kind::Pointer;
        fill(value.pointer, limits);
    }
  }
  void fill(RegisterOperand& value, const Limits& /*limits*/) {
    if (chance(0.5)) {
      value.reg = reg();
    } else {
      value.constant = any_number<std::int32_t>();
    }
  }
  void fill(DmaCompletion& value, const Limits& /*limits*/) {
    value = {number<std::uint16_t>(0, kSemaphores - 1), any_number<std::uint16_t>()};
  }
  void fill(RankGroup& value, const Limits& /*limits*/) {
    value = {any_number<std::uint32_t>(), any_number<std::uint32_t>(), any_number<std::uint32_t>()};
  }
  void fill(PeTile& value, const Limits& /*limits*/) {
    value = {any_number<std::uint8_t>(), any_number<std::uint8_t>(), any_number<std::uint8_t>(),
             any_number<std::uint8_t>()};
  }
  void fill(ShuffleMask& value, const Limits& /*limits*/) {
    for (std::uint8_t& source : value.source) {
      source = chance(0.2) ? ShuffleMask::kKeep : number<std::uint8_t>(0, 31);
    }
  }
  void fill(IndexPattern& value, const Limits& /*limits*/) {
    value.base = any_number<std::int32_t>();
    value.channel = any_number<std::int32_t>();
    value.dims = number<std::uint8_t>(0, kFreeDims);
    for (std::size_t i = 0; i < value.dims; ++i) value.steps[i] = dim();
  }
  void fill(bool& value, const Limits& /*limits*/) { value = chance(0.5); }
  void fill(float& value, const Limits& /*limits*/) {
    // Any bits: NaNs, infinities, minus zero and denormal numbers among them.
    value = std::bit_cast<float>(any_number<std::uint32_t>());
  }
  template <class T>
    requires std::is_integral_v<T> || NamedEnum<T>
  void fill(T& value, const Limits& limits) {
    if constexpr (NamedEnum<T>) {
      value = enumerator<T>();
    } else if (limits.min != limits.max) {
      value = static_cast<T>(number(limits.min, limits.max));
    } else {
      value = any_number<T>();
    }
  }

  SemaphoreId semaphore() { return number<SemaphoreId>(0, kFirstEvent + kEvents - 1); }
  Wait wait() { return {semaphore(), enumerator<WaitCondition>(), affine()}; }
  Update update() {
    Update value{semaphore(), enumerator<UpdateKind>(), enumerator<UpdateWhen>()};
    if (value.kind >= UpdateKind::Add) value.value = any_number<std::uint32_t>();
    return value;
  }

  std::mt19937 random_;
};

/// Seeds of a property test, which prints the one that fails: SCOPED_TRACE(seed).
inline std::vector<std::uint32_t> seeds(std::uint32_t count) {
  std::vector<std::uint32_t> all(count);
  for (std::uint32_t i = 0; i < count; ++i) all[i] = 1000 + i;
  return all;
}

}  // namespace trn::isa::test
