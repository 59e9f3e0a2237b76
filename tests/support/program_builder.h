#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "isa/program.h"
#include "tests/support/instructions.h"

namespace trn::test {

/// Writes the program of one core, stream by stream:
///   ProgramBuilder().on(Engine::Vector).add(copy()).updates(0)
///                   .on(Engine::Scalar).add(copy()).waits(0, 1).trace()
class ProgramBuilder {
 public:
  ProgramBuilder() {
    trace_.header.name = "test";
    trace_.header.cores = {{0, 0, 0}};
    trace_.code.resize(1);
  }

  /// What follows goes to this engine's stream.
  ProgramBuilder& on(isa::Engine engine) {
    engine_ = engine;
    return *this;
  }
  ProgramBuilder& add(const isa::Op& op) {
    isa::Instr instr;
    instr.op = op;
    instr.at.location = location_;
    stream().push_back(instr);
    return *this;
  }
  ProgramBuilder& add(std::size_t times, const isa::Op& op) {
    for (std::size_t i = 0; i < times; ++i) add(op);
    return *this;
  }

  /// Of the instruction added last.
  ProgramBuilder& waits(isa::SemaphoreId semaphore, const isa::Affine& value,
                        isa::WaitCondition condition = isa::WaitCondition::GreaterEqual) {
    stream().back().sync.wait = {semaphore, condition, value};
    return *this;
  }
  ProgramBuilder& updates(isa::SemaphoreId semaphore,
                          isa::UpdateKind kind = isa::UpdateKind::Increment,
                          std::uint32_t value = 1) {
    stream().back().sync.update = {semaphore, kind, isa::UpdateWhen::Complete, value};
    return *this;
  }

  /// LOOP ... END_LOOP around what is added between.
  ProgramBuilder& loop(isa::Register counter, const isa::RegisterOperand& count) {
    loops_.push_back(stream().size());
    return add(isa::Loop{counter, count, 0});
  }
  ProgramBuilder& end_loop() {
    const std::size_t begin = loops_.back();
    loops_.pop_back();
    const auto length = static_cast<std::int64_t>(stream().size() - begin);
    auto& loop = std::get<isa::Loop>(stream()[begin].op);
    loop.end = length;
    return add(isa::EndLoop{loop.counter, loop.count, -length});
  }

  /// Instructions from now on come from this line.
  ProgramBuilder& at(std::string file, std::uint32_t line) {
    trace_.header.locations.push_back({std::move(file), line});
    location_ = static_cast<std::uint32_t>(trace_.header.locations.size() - 1);
    return *this;
  }
  ProgramBuilder& core(std::uint32_t number, std::uint32_t rank = 0) {
    trace_.header.cores = {{number, 0, rank}};
    return *this;
  }

  [[nodiscard]] const isa::Trace& trace() const { return trace_; }

 private:
  std::vector<isa::Instr>& stream() { return trace_.code[0].streams[isa::index(engine_)]; }

  isa::Trace trace_;
  isa::Engine engine_ = isa::Engine::Sync;
  std::uint32_t location_ = 0;
  std::vector<std::size_t> loops_;
};

}  // namespace trn::test
