#include "isa/frontend/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/rough.h"

namespace trn::isa::frontend {
namespace {

/// The operand of the API call that an operand of the instruction comes from.
std::string_view parameter(const Call& call, std::string_view operand) {
  for (const auto& [name, parameter] : call.operands) {
    if (name == operand) return parameter;
  }
  return operand;
}

void erase_unit_dims(ViewDims& dims) {
  dims.erase(
      std::remove_if(dims.begin(), dims.end(), [](const ViewDim& dim) { return dim.size == 1; }),
      dims.end());
}

/// Joins neighbouring dimensions that are one in both of two equally shaped views.
void join_dims(ViewDims& a, ViewDims& b) {
  for (std::size_t i = a.size() < 2 ? 0 : a.size() - 1; i-- > 0;) {
    const auto joins = [i](const ViewDims& dims) {
      const ViewDim& outer = dims[i];
      const ViewDim& inner = dims[i + 1];
      return outer.step == inner.step * inner.size &&
             outer.partitions == inner.partitions * inner.size;
    };
    if (!joins(a) || !joins(b)) continue;
    for (ViewDims* dims : {&a, &b}) {
      (*dims)[i + 1].size *= (*dims)[i].size;
      dims->erase(dims->begin() + static_cast<long>(i));
    }
  }
}

}  // namespace

Builder::Builder(std::string name, Options options) : name_(std::move(name)), options_(options) {
  limits_.psum_partition_bytes = options.psum_partition_bytes;
  limits_.psum_bank_bytes = options.psum_bank_bytes;
}

std::uint32_t Builder::locate(std::string_view file, std::uint32_t line) {
  const std::string key = fmt::format("{}:{}", file, line);
  const auto [at, inserted] =
      location_ids_.emplace(key, static_cast<std::uint32_t>(info_.locations.size()));
  if (inserted) info_.locations.push_back({std::string(file), line});
  return at->second;
}

void Builder::fail(const Call& call, std::string_view operand, std::string_view message) const {
  const SourceLocation& at = info_.locations[location_];
  std::string path = call.name;
  if (!operand.empty()) path += fmt::format(": {}", parameter(call, operand));
  if (at.file.empty()) throw InputError(path, message);
  throw InputError({.file = at.file, .line = at.line}, path, message);
}

View Builder::tensor(const TensorSpec& spec) {
  Storage storage;
  storage.name = spec.name;
  storage.kind = spec.kind;
  storage.memory = spec.memory;
  storage.dtype = spec.dtype;
  storage.shape.assign(spec.shape.begin(), spec.shape.end());
  storage.location = location_;
  View view;
  view.storage = static_cast<StorageId>(storages_.size());
  view.memory = spec.memory;
  view.dtype = spec.dtype;
  view.name = std::make_shared<const std::string>(spec.name);
  const auto ndim = spec.shape.size();
  view.dims.assign(ndim, ViewDim{});
  const bool on_chip = spec.memory != Memory::Hbm;
  const auto refuse = [&](std::string_view operand, std::string_view message) {
    static const Call kNdarray{.name = "ndarray"};
    fail(kNdarray, operand, message);
  };
  if (on_chip && (spec.partition_dim >= ndim)) {
    refuse("shape", fmt::format("expected a partition dimension in {}, got [{}]",
                                name_of(spec.memory), fmt::join(spec.shape, ", ")));
  }
  std::int64_t step = 1;
  std::int64_t block = 1;  // elements right of the partition dimension
  for (std::size_t i = ndim; i-- > 0;) {
    ViewDim& dim = view.dims[i];
    dim.size = spec.shape[i];
    if (dim.size < 1) {
      refuse("shape",
             fmt::format("expected sizes of at least 1, got [{}]", fmt::join(spec.shape, ", ")));
    }
    if (on_chip && i == spec.partition_dim) {
      dim.partitions = 1;
      storage.partitions = dim.size;
      block = step;
    } else {
      dim.step = step;
      step *= dim.size;
    }
  }
  if (on_chip && storage.partitions > kPartitions) {
    refuse("shape", fmt::format("expected at most {} partitions, got {} in [{}]", kPartitions,
                                storage.partitions, fmt::join(spec.shape, ", ")));
  }
  view.storage_elements = step;
  view.storage_partitions = storage.partitions;
  storage.bytes = step * bytes_of(spec.dtype);
  storage.block_bytes = block * bytes_of(spec.dtype);
  if (spec.address) {
    storage.first_partition = (*spec.address)[0];
    storage.fixed = (*spec.address)[1];
    view.partition = storage.first_partition;
    const std::int64_t capacity =
        spec.memory == Memory::Psum ? options_.psum_partition_bytes : limits_.sbuf_partition_bytes;
    if (*storage.fixed < 0 || *storage.fixed + storage.bytes > capacity) {
      refuse("address",
             fmt::format("expected bytes 0..{} of a partition of {}, got {}..{}", capacity - 1,
                         name_of(spec.memory), *storage.fixed, *storage.fixed + storage.bytes - 1));
    }
    if (storage.first_partition < 0 ||
        storage.first_partition + storage.partitions > std::int64_t{kPartitions}) {
      refuse("address", fmt::format("expected partitions 0..{}, got {}..{}", kPartitions - 1,
                                    storage.first_partition,
                                    storage.first_partition + storage.partitions - 1));
    }
  }
  const std::int64_t room =
      spec.memory == Memory::Psum ? options_.psum_partition_bytes : limits_.sbuf_partition_bytes;
  if (on_chip && storage.bytes > room) {
    refuse("shape", fmt::format("expected at most {} bytes per partition of {}, got {} in {}[{}]",
                                room, name_of(spec.memory), storage.bytes, name_of(spec.dtype),
                                fmt::join(spec.shape, ", ")));
  }
  storages_.push_back(std::move(storage));
  return view;
}

void Builder::release(const View& view) { storages_[index(view.storage)].released = true; }

void Builder::check_live(const Call& call, std::string_view operand, const View& view) const {
  const Storage& storage = storages_[index(view.storage)];
  if (storage.released) {
    fail(call, operand, fmt::format("'{}' was released before this use", storage.name));
  }
}

Access Builder::access(const View& view, const Call& call, std::string_view operand,
                       bool as_is) const {
  Access access;
  access.memory = view.memory;
  access.dtype = view.dtype;
  if (view.memory == Memory::Hbm) {
    fail(call, operand,
         fmt::format("expected a tile in sbuf or psum, found '{}' in hbm",
                     storages_[index(view.storage)].name));
  }
  check_live(call, operand, view);
  std::int64_t partitions = 1;
  ViewDims free;
  for (const ViewDim& dim : view.dims) {
    if (dim.partitions != 0) {
      if (dim.partitions != 1 && dim.size != 1) {
        fail(call, operand,
             fmt::format("expected consecutive partitions, got every {}th", dim.partitions));
      }
      partitions *= dim.size;
    } else if (dim.size != 1 || as_is) {
      free.push_back(dim);
    }
  }
  if (view.partition + partitions > std::int64_t{kPartitions}) {
    fail(call, operand,
         fmt::format("expected at most {} partitions, got {} from {}", kPartitions, partitions,
                     view.partition));
  }
  if (!as_is || free.size() > kFreeDims) {
    ViewDims copy = free;
    join_dims(free, copy);
  }
  if (free.size() > kFreeDims) {
    fail(call, operand,
         fmt::format("expected at most {} free dimensions, got {} in {}", kFreeDims, free.size(),
                     shape_text(view)));
  }
  access.start_partition = static_cast<std::uint8_t>(view.partition);
  access.partitions = static_cast<std::uint8_t>(partitions);
  access.dims = static_cast<std::uint8_t>(free.size());
  for (std::size_t i = 0; i < free.size(); ++i) {
    const ViewDim& dim = free[free.size() - 1 - i];
    access.free[i] = {static_cast<std::int32_t>(dim.step), static_cast<std::uint32_t>(dim.size)};
  }
  const std::int64_t bytes = bytes_of(view.dtype);
  access.offset = symbolic(view.storage, view.offset * bytes);
  for (const ViewTerm& term : view.terms) {
    access.offset.terms[access.offset.term_count++] = {term.reg, term.coefficient * bytes};
  }
  return access;
}

void Builder::check(const Call& call, const Op& op, Engine engine, Renamed renamed) {
  Instr instr{.op = op};
  for_each_memory_operand(instr.op, [](std::string_view /*name*/, auto& operand) {
    Affine& address = address_of(operand);
    address = bytes_in(address.base);
  });
  Findings findings("");
  StreamValidator validator(info_, limits_, 0, engine, std::numeric_limits<std::int32_t>::max(),
                            findings);
  validator.check(0, instr);
  if (findings.empty()) return;
  const auto& [path, message] = findings.first();
  const std::size_t dot = path.rfind('.');
  std::string_view operand = dot == std::string::npos ? "" : std::string_view(path).substr(dot + 1);
  if (operand == renamed.operand) operand = renamed.name;
  fail(call, operand, message);
}

Engine Builder::choose(EngineSet engines, const Op& op) const {
  // GpSimd reaches SBUF only, and is left to DMA descriptors and to filling where another can.
  bool psum = false;
  for_each_memory_operand(op, [&](std::string_view /*name*/, const auto& operand) {
    psum = psum || operand.memory == Memory::Psum;
  });
  std::optional<Engine> best;
  const bool copies = std::holds_alternative<Copy>(op) || std::holds_alternative<Cast>(op);
  const bool fills = std::holds_alternative<Memset>(op);
  for (const Engine engine : kAllEngines) {
    if (!engines.contains(engine)) continue;
    if (engine == Engine::GpSimd && (psum || (best && !fills))) continue;
    const bool better = copies ? rough_end(op, engine) < rough_end(op, best.value_or(engine))
                               : fills && engine == Engine::GpSimd;
    if (!best || better) best = engine;
  }
  return best.value_or(Engine::Vector);
}

std::int64_t Builder::block_of(std::int64_t address) const {
  const StorageId id = storage_of(address);
  const Storage& storage = storages_[index(id)];
  if (storage.memory == Memory::Hbm) return symbolic(id, 0);
  const std::int64_t bytes = bytes_in(address) % kSbufPartitionStride;  // of a transfer's side
  return symbolic(id, bytes / storage.block_bytes);
}

double Builder::rough_end(const Op& op, Engine engine) const {
  double start = free_ns_[index(engine)];
  for_each_memory_operand(op, [&](std::string_view name, const auto& operand) {
    if (is_result(name)) return;
    const auto written = ready_ns_.find(block_of(address_of(operand).base));
    if (written != ready_ns_.end()) start = std::max(start, written->second);
  });
  return start + rough_ns(op, engine);
}

void Builder::add(const Call& call, Op op, Engine engine, EngineSet allowed, Renamed renamed) {
  if (!allowed.contains(engine)) {
    std::vector<std::string_view> names;
    for (const Engine each : kAllEngines) {
      if (allowed.contains(each)) names.push_back(name_of(each));
    }
    fail(call, "engine",
         fmt::format("expected {}, got {}", fmt::join(names, " or "), name_of(engine)));
  }
  check(call, op, engine, renamed);
  if (engine == Engine::GpSimd && detail::kCosts<Op>[op.index()] != CostClass::DmaTrigger) {
    for_each_memory_operand(op, [&](std::string_view name, const auto& operand) {
      if (operand.memory == Memory::Psum) {
        fail(call, name, "expected in sbuf: GpSimd does not reach psum");
      }
    });
  }
  for_each_memory_operand(op, [&](std::string_view name, const auto& operand) {
    if (operand.memory != Memory::Psum || is_result(name)) return;
    const std::uint32_t id = index(storage_of(address_of(operand).base));
    if (id < accumulating_.size()) accumulating_[id] = false;
  });
  double end = rough_end(op, engine);
  if (detail::kCosts<Op>[op.index()] == CostClass::DmaTrigger) {
    free_ns_[index(engine)] += kRoughTriggerNs;
    end += kRoughTriggerNs + kRoughLatencyNs;
  } else {
    free_ns_[index(engine)] = end;
  }
  for_each_memory_operand(op, [&](std::string_view name, const auto& operand) {
    if (is_result(name)) ready_ns_[block_of(address_of(operand).base)] = end;
  });
  nodes_.push_back({.op = std::move(op),
                    .engine = engine,
                    .location = location_,
                    .fence = std::exchange(fence_[index(engine)], false)});
}

void Builder::sequencer(const Op& op, Engine engine) {
  nodes_.push_back({.op = op,
                    .engine = engine,
                    .location = location_,
                    .fence = std::exchange(fence_[index(engine)], false)});
}

void Builder::matmul(const Call& call, const View& dst, const View& stationary, const View& moving,
                     const MatmulOptions& options) {
  ++calls_[call.name];
  multiply(call, dst, stationary, moving, options);
}

void Builder::multiply(const Call& call, const View& dst, const View& stationary,
                       const View& moving, const MatmulOptions& options) {
  LdWeights weights;
  weights.src = access(stationary, call, "stationary");
  weights.transpose = options.transpose;
  weights.one_zero = options.one_zero;
  weights.tile = options.tile;
  Matmul product;
  product.src = access(moving, call, "moving");
  product.dst = access(dst, call, "dst");
  product.transpose = options.transpose;
  product.one_zero = options.one_zero;
  product.tile = options.tile;
  if (options.double_row) {
    weights.mode = product.mode = PerformanceMode::DoubleRow;
  }
  if (weights.src.partitions != product.src.partitions) {
    fail(call, "moving",
         fmt::format("expected the {} partitions of stationary, got {}", weights.src.partitions,
                     product.src.partitions));
  }
  const std::uint64_t rows = options.double_row ? 2 : 1;
  if (weights.src.elements() != rows * product.dst.partitions) {
    fail(call, "dst",
         fmt::format("expected as many partitions as stationary has columns, {}, got {}",
                     weights.src.elements() / rows, product.dst.partitions));
  }
  const bool fp32 = stationary.dtype == Dtype::Fp32 || moving.dtype == Dtype::Fp32;
  if (fp32 && stationary.dtype != moving.dtype) {
    fail(call, "moving",
         fmt::format("expected {} as stationary: fp32 does not mix, got {}",
                     name_of(stationary.dtype), name_of(moving.dtype)));
  }
  const std::uint32_t id = index(dst.storage);
  if (accumulating_.size() <= id) accumulating_.resize(id + 1, false);
  product.start = options.accumulate ? !*options.accumulate : !accumulating_[id];
  accumulating_[id] = true;

  const auto pass = [&](Fp32Pass load, Fp32Pass stream, bool first) {
    weights.pass = load;
    product.pass = stream;
    if (!first) product.start = false;
    add(call, weights, Engine::Tensor, LdWeights::kEngines, {"src", "stationary"});
    nodes_.back().waits_for_next = options_.waits_at_weights;
    add(call, product, Engine::Tensor, Matmul::kEngines);
    accumulating_[id] = true;
  };
  if (!fp32) {
    pass(Fp32Pass::None, Fp32Pass::None, true);
  } else if (options.transpose || options.one_zero) {
    pass(Fp32Pass::Low, Fp32Pass::LowHigh, true);
  } else {
    pass(Fp32Pass::Low, Fp32Pass::LowHigh, true);
    pass(Fp32Pass::High, Fp32Pass::LowHigh, false);
  }
}

View Builder::identity(Dtype dtype) {
  const auto known = identities_.find(dtype);
  if (known != identities_.end()) return known->second;
  static const Call kLoad{.name = "identity"};
  const std::array<std::int64_t, 2> shape = {kPartitions, kPartitions};
  const View constant = tensor({.memory = Memory::Hbm,
                                .dtype = dtype,
                                .shape = shape,
                                .name = fmt::format("identity_{}", name_of(dtype)),
                                .kind = TensorKind::Constant});
  View tile = tensor({.memory = Memory::Sbuf,
                      .dtype = dtype,
                      .shape = shape,
                      .name = fmt::format("identity_{}_tile", name_of(dtype))});
  dma_copy(kLoad, tile, constant);
  identities_.emplace(dtype, tile);
  return tile;
}

void Builder::transpose(const Call& call, const View& dst, const View& src,
                        std::optional<Engine> engine) {
  ++calls_[call.name];
  const Access from = access(src, call, "src");
  const std::uint64_t rows = from.partitions;
  const std::uint64_t columns = from.elements();
  const bool blocks = rows <= 32 && columns <= 32;
  const Engine chosen = engine.value_or(
      src.memory == Memory::Psum || (blocks && dst.memory == Memory::Sbuf) ? Engine::Vector
                                                                           : Engine::Tensor);
  if (chosen == Engine::Vector) {
    if (!blocks) {
      fail(call, "src",
           fmt::format("the Vector engine transposes at most 32 x 32, got {} x {}", rows, columns));
    }
    Transpose op;
    op.src = from;
    op.dst = access(dst, call, "dst");
    add(call, op, Engine::Vector, Transpose::kEngines);
    return;
  }
  if (chosen != Engine::Tensor) {
    fail(call, "engine", fmt::format("expected Tensor or Vector, got {}", name_of(chosen)));
  }
  if (rows > 128 || columns > 128) {
    fail(call, "src",
         fmt::format("the Tensor engine transposes at most 128 x 128, got {} x {}", rows, columns));
  }
  // The tile is the weights, the identity streams past it: [K, M] gives [M, K].
  const View unit = identity(src.dtype)
                        .sliced(0, 0, static_cast<std::int64_t>(rows), 1)
                        .sliced(1, 0, static_cast<std::int64_t>(rows), 1);
  multiply(call, dst, src, unit, {.accumulate = false, .transpose = true});
}

void Builder::activation(const Call& call, const View& dst, ActivationFunction function,
                         const View& src, const ActivationOptions& options) {
  ++calls_[call.name];
  Activate op;
  op.src = access(src, call, "src");
  op.dst = access(dst, call, "dst");
  op.function = function;
  op.scale = options.scale;
  op.bias = options.bias;
  op.accumulator_cmd = options.command;
  if (options.reduce_result && op.accumulator_cmd == AccumulatorCommand::Idle) {
    op.accumulator_cmd = AccumulatorCommand::ResetReduce;
  }
  add(call, op, Engine::Scalar, Activate::kEngines);
  if (options.reduce_result) {
    ActReadAccumulator read;
    read.dst = access(*options.reduce_result, call, "reduce_result");
    add(call, read, Engine::Scalar, ActReadAccumulator::kEngines, {"dst", "reduce_result"});
  }
}

void Builder::copy(const Call& call, const View& dst, const View& src,
                   std::optional<Engine> engine) {
  if (dst.dtype == src.dtype) {
    Copy op;
    op.src = access(src, call, "src");
    op.dst = access(dst, call, "dst");
    emit(call, op, engine);
  } else {
    Cast op;
    op.src = access(src, call, "src");
    op.dst = access(dst, call, "dst");
    emit(call, op, engine);
  }
}

// ---- transfers ----

DmaSide Builder::side(const View& view) const {
  const std::int64_t bytes = bytes_of(view.dtype);
  DmaSide side;
  side.memory = view.memory;
  side.dtype = view.dtype;
  side.element_bytes = static_cast<std::uint32_t>(bytes);
  std::size_t end = view.dims.size();
  while (end > 0 && view.dims[end - 1].partitions == 0 &&
         view.dims[end - 1].step * bytes == std::int64_t{side.element_bytes}) {
    side.element_bytes = static_cast<std::uint32_t>(side.element_bytes * view.dims[end - 1].size);
    --end;
  }
  for (std::size_t i = end; i-- > 0;) {
    const ViewDim& dim = view.dims[i];
    if (side.dims == kFreeDims) return {};  // does not fit
    side.pattern[side.dims++] = {
        dim.step * bytes +
            (view.memory == Memory::Sbuf ? dim.partitions * kSbufPartitionStride : 0),
        static_cast<std::uint32_t>(dim.size)};
  }
  const std::int64_t partition =
      view.memory == Memory::Sbuf ? view.partition * kSbufPartitionStride : 0;
  side.address = symbolic(view.storage, partition + view.offset * bytes);
  for (const ViewTerm& term : view.terms) {
    side.address.terms[side.address.term_count++] = {term.reg, term.coefficient * bytes};
  }
  return side;
}

DmaSide Builder::pattern(const View& view, const Call& call, std::string_view operand) const {
  View compact = view;
  erase_unit_dims(compact.dims);
  ViewDims copy = compact.dims;
  join_dims(compact.dims, copy);
  const DmaSide made = side(compact);
  if (!made.present()) {
    fail(call, operand,
         fmt::format("expected at most {} dimensions of a pattern, got {}", kFreeDims,
                     shape_text(view)));
  }
  return made;
}

template <class Emit>
void Builder::transfers(const Call& call, const View& dst, const View& src,
                        const Emit& emit) const {
  if (dst.size() != src.size()) {
    fail(call, "dst",
         fmt::format("expected the {} elements of src {}, got {} in {}", src.size(),
                     shape_text(src), dst.size(), shape_text(dst)));
  }
  View to = dst;
  View from = src;
  erase_unit_dims(to.dims);
  erase_unit_dims(from.dims);
  const auto same_shape =
      std::equal(to.dims.begin(), to.dims.end(), from.dims.begin(), from.dims.end(),
                 [](const ViewDim& a, const ViewDim& b) { return a.size == b.size; });
  if (same_shape) {
    join_dims(to.dims, from.dims);
  } else {  // shapes may differ as long as the elements' order agrees: each side for itself
    ViewDims copy = to.dims;
    join_dims(to.dims, copy);
    copy = from.dims;
    join_dims(from.dims, copy);
  }
  const auto cut = [&](const auto& self, const View& to_part, const View& from_part) -> void {
    const DmaSide to_side = side(to_part);
    const DmaSide from_side = side(from_part);
    if (to_side.present() && from_side.present()) {
      emit(to_side, from_side);
      return;
    }
    if (!same_shape) {
      fail(call, "dst",
           fmt::format("expected at most {} dimensions of a pattern, got {} and {}", kFreeDims,
                       shape_text(dst), shape_text(src)));
    }
    for (std::int64_t i = 0; i < to_part.dims[0].size; ++i) {
      View a = to_part.sliced(0, i, 1, 1);
      View b = from_part.sliced(0, i, 1, 1);
      erase_unit_dims(a.dims);
      erase_unit_dims(b.dims);
      self(self, a, b);
    }
  };
  cut(cut, to, from);
}

Builder::Trigger Builder::trigger(const Call& call, const View& dst, const View& src,
                                  const DmaOptions& options) const {
  const auto is_argument = [&](const View& view) {
    const TensorKind kind = storages_[index(view.storage)].kind;
    return view.memory == Memory::Hbm && kind != TensorKind::Internal &&
           kind != TensorKind::Constant;
  };
  const DescriptorMode plain =
      options_.hardware_descriptors ? DescriptorMode::HardwareDge : DescriptorMode::Static;
  DescriptorMode mode = plain;
  if (options.mode) {
    mode = *options.mode;
    if (mode == DescriptorMode::HardwareDge && !options_.hardware_descriptors) {
      fail(call, "mode", "expected static or software descriptors, this core has no others");
    }
  } else if (options.index || src.dtype != dst.dtype ||
             (options_.inputs_by_software && (is_argument(dst) || is_argument(src)))) {
    mode = DescriptorMode::SoftwareDge;
  }
  Engine engine = Engine::GpSimd;
  if (options.engine) {
    engine = *options.engine;
  } else if (mode != DescriptorMode::SoftwareDge) {
    engine = dst.memory == Memory::Hbm ? Engine::Scalar : Engine::Sync;
  }
  if (mode == DescriptorMode::HardwareDge && engine != Engine::Sync && engine != Engine::Scalar) {
    // The kernel's own engine counts; the descriptors then come from where it can have them.
    mode = engine == Engine::GpSimd ? DescriptorMode::SoftwareDge : DescriptorMode::Static;
    if (options.mode) {
      fail(call, "engine",
           fmt::format("hardware descriptors are triggered by Sync or Scalar, got {}",
                       name_of(engine)));
    }
  }
  if (mode == DescriptorMode::SoftwareDge && engine != Engine::GpSimd) {
    if (options.mode || options.index) {
      fail(call, "engine",
           fmt::format("software descriptors are triggered by GpSimd, got {}", name_of(engine)));
    }
    mode = engine == Engine::Sync || engine == Engine::Scalar
               ? (src.dtype == dst.dtype ? plain : DescriptorMode::Static)
               : DescriptorMode::Static;
  }
  return {mode, engine};
}

void Builder::dma_copy(const Call& call, const View& dst, const View& src,
                       const DmaOptions& options) {
  ++calls_[call.name];
  check_live(call, "dst", dst);
  check_live(call, "src", src);
  if (src.memory == Memory::Psum || dst.memory == Memory::Psum) {
    fail(call, src.memory == Memory::Psum ? "src" : "dst",
         "expected in sbuf or hbm: a DMA does not reach psum");
  }
  const Trigger by = trigger(call, dst, src, options);
  DmaDirect2d op;
  op.mode = by.mode;
  op.bound_at_launch = by.mode == DescriptorMode::SoftwareDge;
  op.out_of_bounds = options.skip_out_of_bounds ? OutOfBounds::Skip : OutOfBounds::Error;
  View to_view = dst;
  View from_view = src;
  if (options.index) {
    op.index = access(*options.index, call, "index");
    // The indexed side is the whole table, of which as many rows move as the other side has.
    View& table = options.index_on_dst ? to_view : from_view;
    const View& rows = options.index_on_dst ? src : dst;
    if (table.dims.empty() || rows.dims.empty()) fail(call, "index", "expected rows to index");
    table.dims[0].size = rows.dims[0].size;
  }
  transfers(call, to_view, from_view, [&](const DmaSide& to, const DmaSide& from) {
    op.dst = to;
    op.src = from;
    add(call, op, by.engine, DmaDirect2d::kEngines);
  });
}

void Builder::dma_transpose(const Call& call, const View& dst, const View& src,
                            const DmaOptions& options) {
  ++calls_[call.name];
  check_live(call, "dst", dst);
  check_live(call, "src", src);
  DmaOptions chosen = options;
  if (!chosen.mode && !chosen.index) {
    chosen.mode =
        options_.hardware_descriptors ? DescriptorMode::HardwareDge : DescriptorMode::Static;
  }
  if (chosen.mode == DescriptorMode::HardwareDge && !chosen.engine) chosen.engine = Engine::Sync;
  const Trigger by = trigger(call, dst, src, chosen);
  if (dst.size() != src.size()) {
    fail(call, "dst",
         fmt::format("expected the {} elements of src {}, got {} in {}", src.size(),
                     shape_text(src), dst.size(), shape_text(dst)));
  }
  DmaTranspose op;
  op.mode = by.mode;
  if (options.index) op.index = access(*options.index, call, "index");
  op.dst = pattern(dst, call, "dst");
  op.src = pattern(src, call, "src");
  add(call, op, by.engine, DmaTranspose::kEngines);
}

void Builder::dma_compute(const Call& call, const View& dst, std::span<const View> sources,
                          const DmaOptions& options) {
  ++calls_[call.name];
  if (sources.empty() || sources.size() > 16) {
    fail(call, "srcs", fmt::format("expected 1..16 sources, got {}", sources.size()));
  }
  check_live(call, "dst", dst);
  for (const View& source : sources) check_live(call, "srcs", source);
  const Trigger by = trigger(call, dst, sources[0], options);
  DmaCompute op;
  op.sources = static_cast<std::uint8_t>(sources.size());
  op.mode = by.mode;
  // Of an indexed side, which is the whole table, as many rows move as there are indices.
  const auto rows = [&](View view) {
    if (options.index && !view.dims.empty()) view.dims[0].size = op.index.partitions;
    return view;
  };
  if (options.index) op.index = access(*options.index, call, "index");
  std::vector<DmaSide> more;
  for (const View& source : sources.subspan(1)) more.push_back(pattern(rows(source), call, "srcs"));
  transfers(call, rows(dst), rows(sources[0]), [&](const DmaSide& to, const DmaSide& from) {
    op.dst = to;
    op.src = from;
    add(call, op, by.engine, DmaCompute::kEngines);
    nodes_.back().more_sources = more;
  });
}

// ---- the other core ----

void Builder::sendrecv(const Call& call, const View& dst, const View& src, std::int32_t peer,
                       bool gpsimd) {
  ++calls_[call.name];
  Sendrecv op;
  op.src = access(src, call, "src");
  op.dst = access(dst, call, "dst");
  op.engine = gpsimd ? SendrecvEngine::GpSimdDma : SendrecvEngine::Dma;
  op.send_to.constant = peer;
  op.receive_from.constant = peer;
  add(call, op, Engine::GpSimd, Sendrecv::kEngines);
}

// ---- registers and device loops ----

void Builder::register_load(const View& src, std::int64_t value) {
  static const Call kLoad{.name = "register_load"};
  TensorLoad op;
  op.src = pattern(src, kLoad, "src");
  op.value = static_cast<std::int32_t>(value);
  sequencer(op, Engine::GpSimd);
}

void Builder::register_store(const View& dst) {
  static const Call kStore{.name = "register_store"};
  RegisterStore op;
  op.dst = pattern(dst, kStore, "dst");
  sequencer(op, Engine::GpSimd);
}

std::int32_t Builder::begin_loop(std::int64_t start, std::int64_t stop, std::int64_t step) {
  OpenLoop loop;
  loop.start = start;
  loop.step = step;
  loop.count = step > 0 ? std::max<std::int64_t>(0, (stop - start + step - 1) / step) : 0;
  loop.first_node = nodes_.size();
  loops_.push_back(loop);
  return static_cast<std::int32_t>(loops_.size() - 1);
}

void Builder::end_loop() {
  TRN_CHECK(!loops_.empty(), "end_loop without begin_loop");
  const OpenLoop loop = loops_.back();
  loops_.pop_back();
  const auto reg = static_cast<Register>(loops_.size());
  // Each iteration once: the counter's terms become numbers, and each sequencer that takes part
  // counts and branches.
  std::vector<Node> body(nodes_.begin() + static_cast<long>(loop.first_node), nodes_.end());
  nodes_.resize(loop.first_node);
  std::array<bool, kEngines> takes_part{};
  for (const Node& node : body) takes_part[index(node.engine)] = true;
  for (std::int64_t i = 0; i < loop.count; ++i) {
    const std::int64_t counter = loop.start + i * loop.step;
    for (Node node : body) {
      for_each_memory_operand_of_node(node, [&](std::string_view /*name*/, auto& operand) {
        Affine& address = address_of(operand);
        Affine left = address.base;
        for (std::size_t t = 0; t < address.term_count; ++t) {
          const Affine::Term& term = address.terms[t];
          if (term.reg == reg) {
            left.base += term.coefficient * counter;
          } else {
            left.terms[left.term_count++] = term;
          }
        }
        address = left;
      });
      nodes_.push_back(std::move(node));
    }
    for (const Engine engine : kAllEngines) {
      if (!takes_part[index(engine)]) continue;
      RegisterAlu count;
      count.dst = reg;
      count.a.reg = reg;
      count.b.constant = static_cast<std::int32_t>(loop.step);
      sequencer(count, engine);
      CompareBranch branch;
      branch.target = 1;
      sequencer(branch, engine);
    }
  }
}

}  // namespace trn::isa::frontend
