#pragma once

#include "isa/operand.h"

namespace trn::isa {

inline constexpr EngineSet kEverySequencer = {Engine::Tensor, Engine::Vector, Engine::Scalar,
                                              Engine::GpSimd, Engine::Sync};

enum class OrderingMode : std::uint8_t { Strict, Relaxed };
enum class CompareOp : std::uint8_t {
  Always,
  Equal,
  NotEqual,
  Less,
  LessEqual,
  Greater,
  GreaterEqual
};
enum class RegisterOp : std::uint8_t {
  Add,
  Subtract,
  Multiply,
  And,
  Or,
  Xor,
  ShiftLeft,
  ShiftRight,
  Minimum,
  Maximum
};

struct EventSemaphore {
  static constexpr std::uint8_t kOpcode = 0x30;
  static constexpr std::string_view kName = "EVENT_SEMAPHORE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Waits for and updates a semaphore; does nothing else.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() { return std::tuple{}; }
};

struct SemaphoreRangeClear {
  std::uint16_t first = 0;
  std::uint16_t last = 0;

  static constexpr std::uint8_t kOpcode = 0x31;
  static constexpr std::string_view kName = "EVENT_SEMAPHORE_RANGE_CLEAR";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Sets a range of semaphores to zero.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"first", &SemaphoreRangeClear::first, Limits{.min = 0, .max = 511},
                "first cleared"},
        Operand{"last", &SemaphoreRangeClear::last, Limits{.min = 0, .max = 511}, "last cleared"}};
  }
};

struct RegisterMove {
  Register dst = 0;
  RegisterOperand src{};

  static constexpr std::uint8_t kOpcode = 0x32;
  static constexpr std::string_view kName = "REGISTER_MOVE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Register = constant or register.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"dst", &RegisterMove::dst, Limits{.min = 0, .max = 63}, "register written"},
        Operand{"src", &RegisterMove::src, Limits{}, "constant or register"}};
  }
};

struct RegisterAlu {
  RegisterOp op = RegisterOp::Add;
  Register dst = 0;
  RegisterOperand a{};
  RegisterOperand b{};

  static constexpr std::uint8_t kOpcode = 0x33;
  static constexpr std::string_view kName = "REGISTER_ALU";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "32-bit integer arithmetic on registers.";
  static constexpr std::string_view kSource = "docs/sources.md#a1-sequencer";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"op", &RegisterAlu::op, Limits{}, "operation; wraps around at 32 bits"},
        Operand{"dst", &RegisterAlu::dst, Limits{.min = 0, .max = 63}, "register written"},
        Operand{"a", &RegisterAlu::a, Limits{}, "left operand"},
        Operand{"b", &RegisterAlu::b, Limits{}, "right operand"}};
  }
};

struct TensorLoad {
  DmaSide src{};
  Register dst = 0;
  std::uint8_t count = 1;
  std::int32_t value = 0;

  static constexpr std::uint8_t kOpcode = 0x34;
  static constexpr std::string_view kName = "TENSOR_LOAD";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Registers = 32-bit elements of HBM or SBUF.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &TensorLoad::src, Limits{.memories = kDmaReach}, "elements read"},
        Operand{"dst", &TensorLoad::dst, Limits{.min = 0, .max = 63}, "first register written"},
        Operand{"count", &TensorLoad::count, Limits{.min = 1, .max = 64}, "registers written"},
        Operand{"value", &TensorLoad::value, Limits{.optional = true},
                "what a run that knows times and no contents finds there"}};
  }
};

struct RegisterStore {
  Register src = 0;
  DmaSide dst{};

  static constexpr std::uint8_t kOpcode = 0x35;
  static constexpr std::string_view kName = "REGISTER_STORE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "A 32-bit element of HBM or SBUF = register.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"src", &RegisterStore::src, Limits{.min = 0, .max = 63}, "register read"},
        Operand{"dst", &RegisterStore::dst, Limits{.memories = kDmaReach}, "element written"}};
  }
};

struct CompareBranch {
  CompareOp op = CompareOp::Always;
  RegisterOperand a{};
  RegisterOperand b{};
  std::int64_t target = 0;

  static constexpr std::uint8_t kOpcode = 0x36;
  static constexpr std::string_view kName = "COMPARE_BRANCH";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Branches when the signed comparison holds.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{Operand{"op", &CompareBranch::op, Limits{}, "comparison"},
                      Operand{"a", &CompareBranch::a, Limits{.optional = true}, "left operand"},
                      Operand{"b", &CompareBranch::b, Limits{.optional = true}, "right operand"},
                      Operand{"target", &CompareBranch::target, Limits{},
                              "instructions from this one to the next executed"}};
  }
};

struct Loop {
  Register counter = 0;
  RegisterOperand count{};
  std::int64_t end = 0;

  static constexpr std::uint8_t kOpcode = 0x37;
  static constexpr std::string_view kName = "LOOP";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc =
      "Runs the instructions up to its END_LOOP `count` times; the counter goes 0, 1, 2 ...";
  static constexpr std::string_view kSource = "docs/adr/0001-trace-format.md";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"counter", &Loop::counter, Limits{.min = 0, .max = 63}, "register that counts"},
        Operand{"count", &Loop::count, Limits{}, "iterations; none when 0 or less"},
        Operand{"end", &Loop::end, Limits{}, "instructions from this one to its END_LOOP"}};
  }
};

struct EndLoop {
  Register counter = 0;
  RegisterOperand count{};
  std::int64_t begin = 0;

  static constexpr std::uint8_t kOpcode = 0x38;
  static constexpr std::string_view kName = "END_LOOP";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc =
      "Counts one iteration and goes back while some are left.";
  static constexpr std::string_view kSource = "docs/adr/0001-trace-format.md";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"counter", &EndLoop::counter, Limits{.min = 0, .max = 63}, "register that counts"},
        Operand{"count", &EndLoop::count, Limits{}, "iterations"},
        Operand{"begin", &EndLoop::begin, Limits{}, "instructions from this one to its LOOP"}};
  }
};

struct Drain {
  static constexpr std::uint8_t kOpcode = 0x39;
  static constexpr std::string_view kName = "DRAIN";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Waits until the engine has completed all it was given.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() { return std::tuple{}; }
};

struct Notify {
  static constexpr std::uint8_t kOpcode = 0x3a;
  static constexpr std::string_view kName = "NOTIFY";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Writes a notification for the host.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() { return std::tuple{}; }
};

struct Nop {
  std::uint32_t cycles = 0;

  static constexpr std::uint8_t kOpcode = 0x3b;
  static constexpr std::string_view kName = "NOP";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Does nothing; may wait and update as all do.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{Operand{"cycles", &Nop::cycles, Limits{.optional = true}, "time it takes"}};
  }
};

struct Write {
  std::uint32_t data = 0;
  std::int64_t address = 0;

  static constexpr std::uint8_t kOpcode = 0x3c;
  static constexpr std::string_view kName = "WRITE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc =
      "Writes four bytes anywhere in the chip's address space (a peer's semaphore).";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{Operand{"data", &Write::data, Limits{}, "value written"},
                      Operand{"address", &Write::address, Limits{}, "bus address"}};
  }
};

struct SetOrderingMode {
  OrderingMode mode = OrderingMode::Strict;

  static constexpr std::uint8_t kOpcode = 0x3d;
  static constexpr std::string_view kName = "SET_ORDERING_MODE";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc =
      "Strict: instructions of an engine complete in order; relaxed: semaphores order them.";
  static constexpr std::string_view kSource = "docs/sources.md#profiles-opcodes";
  static constexpr auto operands() {
    return std::tuple{Operand{"mode", &SetOrderingMode::mode, Limits{}, "strict or relaxed"}};
  }
};

struct ModifyPoolConfig {
  static constexpr std::uint8_t kOpcode = 0x3e;
  static constexpr std::string_view kName = "MODIFY_POOL_CONFIG";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "A set-up instruction of the runtime.";
  static constexpr std::string_view kSource = "docs/sources.md#profiler-metrics";
  static constexpr auto operands() { return std::tuple{}; }
};

struct RankId {
  Register dst = 0;

  static constexpr std::uint8_t kOpcode = 0x3f;
  static constexpr std::string_view kName = "RANK_ID";
  static constexpr EngineSet kEngines = kEverySequencer;
  static constexpr CostClass kCost = CostClass::Control;
  static constexpr std::string_view kDoc = "Register = own rank.";
  static constexpr std::string_view kSource = "docs/sources.md#nki-isa";
  static constexpr auto operands() {
    return std::tuple{
        Operand{"dst", &RankId::dst, Limits{.min = 0, .max = 63}, "register written"}};
  }
};

}  // namespace trn::isa

namespace trn {
template <>
struct EnumNames<isa::OrderingMode> {
  static constexpr std::array<std::string_view, 2> value = {"strict", "relaxed"};
};
template <>
struct EnumNames<isa::CompareOp> {
  static constexpr std::array<std::string_view, 7> value = {"ALWAYS", "EQ", "NE", "LT",
                                                            "LE",     "GT", "GE"};
};
template <>
struct EnumNames<isa::RegisterOp> {
  static constexpr std::array<std::string_view, 10> value = {"ADD", "SUB", "MUL", "AND", "OR",
                                                             "XOR", "SHL", "SHR", "MIN", "MAX"};
};
}  // namespace trn
