#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "isa/frontend/builder.h"
#include "isa/frontend/check_order.h"
#include "isa/frontend/finish.h"
#include "isa/frontend/roll.h"

namespace trn::test {

using Shape = std::vector<std::int64_t>;

/// A kernel written call by call; each call that goes through on() has a line of its own.
class Kernel {
 public:
  explicit Kernel(const isa::frontend::Options& options = {}) : builder_("kernel", options) {
    line(1);
  }

  /// The next calls come from this line.
  isa::frontend::Builder& line(std::uint32_t number) {
    line_ = number;
    builder_.at(builder_.locate("kernel.py", number));
    return builder_;
  }
  /// A call on a line of its own.
  isa::frontend::Builder& on() { return line(line_ + 1); }
  isa::frontend::Builder& builder() { return builder_; }

  isa::frontend::View make(isa::Memory memory, const Shape& shape, isa::Dtype dtype,
                           std::string name = {}, isa::TensorKind kind = isa::TensorKind::Internal,
                           std::optional<std::array<std::int64_t, 2>> address = {}) {
    return builder_.tensor({.memory = memory,
                            .dtype = dtype,
                            .shape = shape,
                            .name = std::move(name),
                            .kind = kind,
                            .address = address});
  }
  isa::frontend::View sbuf(const Shape& shape, isa::Dtype dtype = isa::Dtype::Fp32,
                           std::string name = {}) {
    return make(isa::Memory::Sbuf, shape, dtype, std::move(name));
  }
  isa::frontend::View sbuf_at(std::int64_t byte, const Shape& shape,
                              isa::Dtype dtype = isa::Dtype::Fp32, std::int64_t partition = 0) {
    return make(isa::Memory::Sbuf, shape, dtype, {}, isa::TensorKind::Internal,
                std::array<std::int64_t, 2>{partition, byte});
  }
  isa::frontend::View psum(const Shape& shape, isa::Dtype dtype = isa::Dtype::Fp32) {
    return make(isa::Memory::Psum, shape, dtype);
  }
  isa::frontend::View hbm(const Shape& shape, isa::Dtype dtype = isa::Dtype::Fp32,
                          std::string name = {}, isa::TensorKind kind = isa::TensorKind::Internal) {
    return make(isa::Memory::Hbm, shape, dtype, std::move(name), kind);
  }

  // One instruction each, all on the current line.
  void load(const isa::frontend::View& dst, const isa::frontend::View& src) {
    builder_.dma_copy({.name = "nisa.dma_copy"}, dst, src);
  }
  void copy(const isa::frontend::View& dst, const isa::frontend::View& src,
            std::optional<isa::Engine> engine = isa::Engine::Vector) {
    builder_.copy({.name = "nisa.tensor_copy"}, dst, src, engine);
  }
  void fill(const isa::frontend::View& dst, isa::Engine engine = isa::Engine::Vector) {
    static const isa::frontend::Call kCall{.name = "nisa.memset"};
    isa::Memset op;
    op.dst = builder_.access(dst, kCall, "dst");
    op.value.kind = isa::ScalarOperand::Kind::Immediate;
    builder_.emit(kCall, op, engine);
  }
  void add(const isa::frontend::View& dst, const isa::frontend::View& a,
           const isa::frontend::View& b, isa::Engine engine = isa::Engine::Vector) {
    static const isa::frontend::Call kCall{.name = "nisa.tensor_tensor",
                                           .operands = {{"src0", "data1"}, {"src1", "data2"}}};
    isa::TensorTensor op;
    op.src0 = builder_.access(a, kCall, "src0");
    op.src1 = builder_.access(b, kCall, "src1");
    op.dst = builder_.access(dst, kCall, "dst");
    op.op = isa::AluOp::Add;
    builder_.emit(kCall, op, engine);
  }

  isa::frontend::Finished finish(std::int64_t drop_wait = -1) {
    return isa::frontend::finish({&builder_},
                                 {.name = "kernel", .work = {}, .drop_wait = drop_wait});
  }

 private:
  isa::frontend::Builder builder_;
  std::uint32_t line_ = 0;
};

/// The rows or columns [start, start + size) of a view.
inline isa::frontend::View rows(const isa::frontend::View& view, std::int64_t start,
                                std::int64_t size, std::int64_t step = 1) {
  return view.sliced(0, start, size, step);
}
inline isa::frontend::View columns(const isa::frontend::View& view, std::int64_t start,
                                   std::int64_t size, std::int64_t step = 1) {
  return view.sliced(1, start, size, step);
}

}  // namespace trn::test
