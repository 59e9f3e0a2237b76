// The kernel builder as the Python module trnsim._frontend; its interface is
// isa/python/trnsim/_frontend.pyi.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "isa/base/error.h"
#include "isa/frontend/builder.h"
#include "isa/frontend/finish.h"
#include "isa/trace.h"
#include "trn_version.h"

namespace py = pybind11;

namespace trn::isa::frontend {
namespace {

// ---- places ----

/// Finds the line of the kernel that a call comes from: the innermost frame whose file is not under
/// a hidden folder. Lines are kept by (code, instruction), since the table of lines is slow.
class Frames {
 public:
  void hide(std::string folder) { hidden_.push_back(std::move(folder)); }

  struct Where {
    std::string file;
    std::uint32_t line = 0;
  };

  /// None when no frame is the kernel's. The pointer lives as long as this.
  const Where* here() {
    PyFrameObject* frame = PyEval_GetFrame();
    Py_XINCREF(frame);
    const Where* result = nullptr;
    while (frame != nullptr && result == nullptr) {
      PyCodeObject* code = PyFrame_GetCode(frame);
      if (!hides(code)) {
        const Key key{code, PyFrame_GetLasti(frame)};
        auto known = lines_.find(key);
        if (known == lines_.end()) {
          Py_INCREF(code);  // a freed code's address would name another
          known = lines_
                      .emplace(key, Where{files_.at(code),
                                          static_cast<std::uint32_t>(PyFrame_GetLineNumber(frame))})
                      .first;
        }
        result = &known->second;
      }
      PyFrameObject* back = PyFrame_GetBack(frame);
      Py_DECREF(code);
      Py_DECREF(frame);
      frame = back;
    }
    Py_XDECREF(frame);
    return result;
  }

 private:
  struct Key {
    PyCodeObject* code;
    int instruction;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return std::hash<const void*>()(key.code) * 31U + static_cast<std::size_t>(key.instruction);
    }
  };

  bool hides(PyCodeObject* code) {
    const auto known = is_hidden_.find(code);
    if (known != is_hidden_.end()) return known->second;
    const auto file = py::reinterpret_borrow<py::str>(code->co_filename).cast<std::string>();
    bool hidden = file.starts_with("<");
    for (const std::string& folder : hidden_) hidden = hidden || file.starts_with(folder);
    Py_INCREF(code);
    is_hidden_.emplace(code, hidden);
    files_.emplace(code, file);
    return hidden;
  }

  std::vector<std::string> hidden_{};
  std::unordered_map<PyCodeObject*, bool> is_hidden_{};
  std::unordered_map<PyCodeObject*, std::string> files_{};
  std::unordered_map<Key, Where, Hash> lines_{};
};

/// Lives as long as the interpreter: it holds references to code objects.
Frames& frames() {
  static Frames* const kFrames = new Frames;  // NOLINT: for as long as the interpreter
  return *kFrames;
}

/// A builder that asks the interpreter where it is.
class PyBuilder : public Builder {
 public:
  using Builder::Builder;

  /// Names the calls' place until the next call of this; an empty file asks the frames again.
  void say(const std::string& file, std::uint32_t line) {
    said_ = !file.empty();
    if (said_) at(locate(file, line));
  }

  Builder& here() {
    if (said_) return *this;
    if (const Frames::Where* where = frames().here()) {
      const auto [known, added] = known_.emplace(where, 0);
      if (added) known->second = locate(where->file, where->line);
      at(known->second);
    }
    return *this;
  }

 private:
  std::unordered_map<const Frames::Where*, std::uint32_t> known_{};
  bool said_ = false;
};

// ---- names and numbers ----

template <NamedEnum E>
E named(std::string_view text, std::string_view what) {
  constexpr auto& names = EnumNames<E>::value;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == text) return static_cast<E>(i);
  }
  throw TraceError(fmt::format("{}: expected one of {}, got '{}'{}", what, fmt::join(names, ", "),
                               text, did_you_mean(text, {names.begin(), names.end()})));
}

std::optional<Engine> engine_of(const std::optional<std::string>& name) {
  if (!name) return std::nullopt;
  if (*name == "tensor") return Engine::Tensor;
  if (*name == "vector") return Engine::Vector;
  if (*name == "scalar") return Engine::Scalar;
  if (*name == "gpsimd") return Engine::GpSimd;
  if (*name == "sync") return Engine::Sync;
  throw TraceError(
      fmt::format("engine: expected tensor, vector, scalar, gpsimd or sync, got '{}'", *name));
}

struct PySlice {
  std::int64_t start = 0;
  std::int64_t size = 1;
  std::int64_t step = 1;
};

/// A register of the sequencers. Its value is known while tracing, or follows a loop's counter.
struct PyRegister {
  std::int64_t value = 0;
  int loop = -1;  ///< value + coefficient * counter of this loop
  std::int64_t coefficient = 0;
};

PyRegister register_from(py::handle value) {
  if (py::isinstance<PyRegister>(value)) return value.cast<PyRegister>();
  return {value.is_none() ? 0 : value.cast<std::int64_t>()};
}

ScalarOperand scalar_operand(const Builder& builder, const Call& call, std::string_view name,
                             py::handle value, bool integer) {
  ScalarOperand operand;
  if (value.is_none()) return operand;
  if (py::isinstance<View>(value)) {
    operand.kind = ScalarOperand::Kind::Pointer;
    operand.pointer = builder.access(value.cast<const View&>(), call, name);
    return operand;
  }
  if (integer && PyLong_Check(value.ptr())) {
    operand.kind = ScalarOperand::Kind::Integer;
    operand.integer = static_cast<std::int32_t>(value.cast<std::int64_t>());
    return operand;
  }
  const double number = PyFloat_AsDouble(value.ptr());
  if (number == -1.0 && PyErr_Occurred() != nullptr) {
    PyErr_Clear();
    builder.fail(call, name,
                 fmt::format("expected a number or a tile, got {}",
                             py::str(py::type::of(value)).cast<std::string>()));
  }
  operand.kind = ScalarOperand::Kind::Immediate;
  operand.immediate = static_cast<float>(number);
  return operand;
}

/// Sets an operand from what Python gave.
template <class Instruction, class Member>
void convert(const Builder& builder, const Call& call, std::string_view name, py::handle value,
             bool integer, Member& out) {
  if constexpr (std::is_same_v<Member, Access>) {
    if (value.is_none()) return;
    if (!py::isinstance<View>(value)) {
      builder.fail(
          call, name,
          fmt::format("expected a tile, got {}", py::str(py::type::of(value)).cast<std::string>()));
    }
    constexpr bool kAsIs = std::is_same_v<Instruction, TensorReduce>;  // counts its dimensions
    out = builder.access(value.cast<const View&>(), call, name, kAsIs && name == "src");
  } else if constexpr (std::is_same_v<Member, ScalarOperand>) {
    out = scalar_operand(builder, call, name, value, integer);
  } else if constexpr (NamedEnum<Member>) {
    out = named<Member>(value.cast<std::string_view>(), name);
  } else if constexpr (std::is_same_v<Member, ShuffleMask>) {
    const auto mask = value.cast<std::vector<int>>();
    if (mask.size() != out.source.size()) {
      builder.fail(call, name, fmt::format("expected 32 partitions, got {}", mask.size()));
    }
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] != ShuffleMask::kKeep && (mask[i] < 0 || mask[i] > 31)) {
        builder.fail(call, name, fmt::format("expected 0..31, or 255 to keep, got {}", mask[i]));
      }
      out.source[i] = static_cast<std::uint8_t>(mask[i]);
    }
  } else if constexpr (std::is_same_v<Member, IndexPattern>) {
    const auto [base, channel, steps] =
        value.cast<std::tuple<std::int32_t, std::int32_t,
                              std::vector<std::pair<std::int32_t, std::uint32_t>>>>();
    out.base = base;
    out.channel = channel;
    if (steps.size() > kFreeDims) {
      builder.fail(call, name,
                   fmt::format("expected at most {} dimensions, got {}", kFreeDims, steps.size()));
    }
    out.dims = static_cast<std::uint8_t>(steps.size());
    for (std::size_t i = 0; i < steps.size(); ++i) out.steps[i] = {steps[i].first, steps[i].second};
  } else if constexpr (std::is_same_v<Member, DmaSide>) {
    out = builder.pattern(value.cast<const View&>(), call, name);
  } else if constexpr (std::is_same_v<Member, RankGroup>) {
    const auto groups = value.cast<std::vector<std::vector<std::uint32_t>>>();
    if (groups.empty() || groups[0].empty()) builder.fail(call, name, "expected ranks, got none");
    const std::vector<std::uint32_t>& ranks = groups[0];
    out = {static_cast<std::uint32_t>(ranks.size()), ranks.size() > 1 ? ranks[1] - ranks[0] : 1,
           ranks[0]};
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] != out.offset + i * out.stride) {
        builder.fail(
            call, name,
            fmt::format("expected ranks at a fixed distance, got [{}]", fmt::join(ranks, ", ")));
      }
    }
  } else if constexpr (std::is_same_v<Member, RegisterOperand>) {
    out.constant = static_cast<std::int32_t>(register_from(value).value);
  } else if constexpr (std::is_same_v<Member, Register>) {
    // A byte is a small number or a register; registers have no numbers while tracing.
    if (!py::isinstance<PyRegister>(value)) out = value.cast<Member>();
  } else if constexpr (std::is_same_v<Member, bool>) {
    out = value.cast<bool>();
  } else if constexpr (std::is_arithmetic_v<Member>) {
    out = value.cast<Member>();
  } else {
    builder.fail(call, name, "this operand is set by a call of its own");
  }
}

template <class T>
void emit_one(Builder& builder, const Call& call, const std::optional<Engine>& engine,
              const py::args& values) {
  T op{};
  std::size_t position = 0;
  bool integer = false;
  // Bit patterns take integers as they are, whatever comes first in the operands' order.
  for (const py::handle value : values) {
    if (!py::isinstance<py::str>(value)) continue;
    const auto text = value.cast<std::string_view>();
    integer = integer || text.starts_with("BITWISE") || text.find("SHIFT") != text.npos;
  }
  for_each_operand<T>([&](const auto& operand) {
    if (position >= values.size()) return;
    const py::handle value = values[position++];
    if (value.is_none()) return;
    convert<T>(builder, call, operand.name, value, integer, op.*operand.member);
  });
  if (position < values.size()) {
    builder.fail(call, "",
                 fmt::format("expected at most {} operands of {}, got {}", position, T::kName,
                             values.size()));
  }
  builder.emit(call, op, engine);
}

using Emit = void (*)(Builder&, const Call&, const std::optional<Engine>&, const py::args&);
const std::unordered_map<std::string_view, Emit>& emitters() {
  static const auto kTable = [] {
    std::unordered_map<std::string_view, Emit> table;
    for_each_instruction([&]<class T>() { table.emplace(T::kName, &emit_one<T>); });
    return table;
  }();
  return kTable;
}

// ---- views ----

py::tuple shape_of(const View& view) {
  py::tuple shape(view.dims.size());
  for (std::size_t i = 0; i < view.dims.size(); ++i) shape[i] = view.dims[i].size;
  return shape;
}

View subscript(const View& view, const py::object& key) {
  const bool many = PyTuple_Check(key.ptr());
  const std::size_t count = many ? PyTuple_GET_SIZE(key.ptr()) : 1;
  const auto item = [&](std::size_t i) {
    return many ? py::handle(PyTuple_GET_ITEM(key.ptr(), static_cast<Py_ssize_t>(i)))
                : py::handle(key);
  };
  std::size_t given = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (!item(i).is_none() && item(i).ptr() != Py_Ellipsis) ++given;
  }
  if (given > view.ndim()) {
    throw TraceError(fmt::format("index: expected at most {} dimensions of {}, got {}", view.ndim(),
                                 shape_text(view), given));
  }
  View result = view;
  std::size_t dim = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const py::handle it = item(i);
    if (it.is_none()) {
      result = result.expanded(dim++);
    } else if (it.ptr() == Py_Ellipsis) {
      dim += view.ndim() - given;
    } else if (PySlice_Check(it.ptr())) {
      Py_ssize_t start = 0;
      Py_ssize_t stop = 0;
      Py_ssize_t step = 1;
      if (PySlice_Unpack(it.ptr(), &start, &stop, &step) != 0) throw py::error_already_set();
      const std::int64_t size = result.dims[dim].size;
      const std::int64_t length = PySlice_AdjustIndices(size, &start, &stop, step);
      if (step < 1)
        throw TraceError(
            fmt::format("index of dimension {}: expected a step of at "
                        "least 1, got {}",
                        dim, step));
      if (length < 1) {
        throw TraceError(fmt::format("index of dimension {}: {}:{} of size {} is empty", dim, start,
                                     stop, size));
      }
      if (length != size || step != 1) result = result.sliced(dim, start, length, step);
      ++dim;
    } else if (py::isinstance<PySlice>(it)) {
      const auto& slice = it.cast<const PySlice&>();
      result = result.sliced(dim++, slice.start, slice.size, slice.step);
    } else {
      const std::int64_t at = PyNumber_AsSsize_t(it.ptr(), PyExc_IndexError);
      if (at == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
      const std::size_t before = result.ndim();
      result = result.selected(dim, at);
      if (result.ndim() == before) ++dim;
    }
  }
  return result;
}

std::vector<std::int64_t> numbers(const py::sequence& sequence) {
  std::vector<std::int64_t> result;
  result.reserve(sequence.size());
  for (const py::handle item : sequence) {
    const std::int64_t value = PyNumber_AsSsize_t(item.ptr(), PyExc_OverflowError);
    if (value == -1 && PyErr_Occurred() != nullptr) throw py::error_already_set();
    result.push_back(value);
  }
  return result;
}

void bind_views(py::module_& module) {
  py::class_<PySlice>(module, "Slice")
      .def(py::init([](std::int64_t start, std::int64_t size, std::int64_t step) {
             return PySlice{start, size, step};
           }),
           py::arg("start"), py::arg("size"), py::arg("step") = 1)
      .def_readonly("start", &PySlice::start)
      .def_readonly("size", &PySlice::size)
      .def_readonly("step", &PySlice::step);
  py::class_<PyRegister>(module, "Register").def_readonly("value", &PyRegister::value);

  py::class_<View>(module, "View")
      .def_property_readonly("shape", &shape_of)
      .def_property_readonly("dtype", [](const View& view) { return name_of(view.dtype); })
      .def_property_readonly("memory", [](const View& view) { return name_of(view.memory); })
      .def_property_readonly("name", [](const View& view) { return *view.name; })
      .def_property_readonly("strides",
                             [](const View& view) {
                               py::tuple strides(view.dims.size());
                               for (std::size_t i = 0; i < view.dims.size(); ++i) {
                                 strides[i] = view.dims[i].step;
                               }
                               return strides;
                             })
      .def_readonly("offset", &View::offset)
      .def_readonly("partition", &View::partition)
      .def_property_readonly("partition_dim",
                             [](const View& view) {
                               const auto dim = view.partition_dim();
                               return dim ? static_cast<std::int64_t>(*dim) : -1;
                             })
      .def_property_readonly("ndim", &View::ndim)
      .def_property_readonly("size", &View::size)
      .def_property_readonly("contiguous", &View::contiguous)
      .def_property_readonly("storage", [](const View& view) { return index(view.storage); })
      .def_readonly("storage_elements", &View::storage_elements)
      .def("__getitem__", &subscript)
      .def("affine",
           [](const View& view, const py::sequence& base, const py::sequence& axes) {
             std::vector<View::Axis> all;
             for (const py::handle axis : axes) {
               const auto pair = axis.cast<py::sequence>();
               all.push_back({pair[0].cast<std::int64_t>(), numbers(pair[1])});
             }
             return view.affine(numbers(base), all);
           })
      .def("reshape", [](const View& view,
                         const py::sequence& shape) { return view.reshaped(numbers(shape)); })
      .def("permute", [](const View& view,
                         const py::sequence& order) { return view.permuted(numbers(order)); })
      .def("broadcast_to", [](const View& view,
                              const py::sequence& shape) { return view.broadcast(numbers(shape)); })
      .def("expand_dim", &View::expanded)
      .def("squeeze_dim", &View::squeezed)
      .def("retype",
           [](const View& view, std::string_view dtype) {
             return view.retyped(named<Dtype>(dtype, "dtype"));
           })
      .def(
          "ap",
          [](const View& view, const py::sequence& pattern, std::optional<std::int64_t> offset,
             const std::optional<std::string>& dtype) {
            std::vector<std::array<std::int64_t, 2>> pairs;
            for (const py::handle pair : pattern) {
              const auto both = numbers(pair.cast<py::sequence>());
              if (both.size() != 2) throw TraceError("ap: expected [stride, count] pairs");
              pairs.push_back({both[0], both[1]});
            }
            return view.pattern(pairs, offset, dtype ? named<Dtype>(*dtype, "dtype") : view.dtype);
          },
          py::arg("pattern"), py::arg("offset") = py::none(), py::arg("dtype") = py::none());
}

// ---- the builder ----

template <class Field>
void set_option(Options& options, const Field& field, py::handle value) {
  auto& member = options.*field.member;
  using Member = std::remove_cvref_t<decltype(member)>;
  try {
    member = value.cast<Member>();
  } catch (const py::cast_error&) {
    throw InputError(fmt::format("option {}", field.name),
                     fmt::format("expected {}, got {}",
                                 std::is_same_v<Member, bool> ? "true or false" : "a number",
                                 py::str(value).cast<std::string>()));
  }
}

Options options_from(const py::dict& given) {
  Options options;
  for (const auto& [key, value] : given) {
    const auto name = key.cast<std::string>();
    bool known = false;
    std::vector<std::string_view> names;
    for_each_field<Options>([&](const auto& field) {
      names.push_back(field.name);
      if (field.name != name) return;
      known = true;
      set_option(options, field, value);
    });
    if (!known) {
      throw InputError("option",
                       fmt::format("expected one of {}, got '{}'{}", fmt::join(names, ", "), name,
                                   did_you_mean(name, names)));
    }
  }
  return options;
}

DmaOptions dma_options(const std::optional<std::string>& mode,
                       const std::optional<std::string>& engine, const py::object& index) {
  DmaOptions options;
  if (mode) options.mode = named<DescriptorMode>(*mode, "mode");
  options.engine = engine_of(engine);
  if (!index.is_none()) options.index = index.cast<const View&>();
  return options;
}

std::int64_t constant(py::handle value, std::string_view what) {
  const PyRegister it = register_from(value);
  if (it.loop >= 0) {
    throw TraceError(
        fmt::format("{}: a count that follows an outer device loop is not supported", what));
  }
  return it.value;
}

void alu(PyRegister& dst, std::string_view op, const PyRegister& a, const PyRegister& b) {
  if (a.loop < 0 && b.loop < 0) {
    const auto known = named<RegisterOp>(op, "op");
    const std::int64_t x = a.value;
    const std::int64_t y = b.value;
    switch (known) {
      case RegisterOp::Add:
        dst.value = x + y;
        break;
      case RegisterOp::Subtract:
        dst.value = x - y;
        break;
      case RegisterOp::Multiply:
        dst.value = x * y;
        break;
      case RegisterOp::And:
        dst.value = x & y;
        break;
      case RegisterOp::Or:
        dst.value = x | y;
        break;
      case RegisterOp::Xor:
        dst.value = x ^ y;
        break;
      case RegisterOp::ShiftLeft:
        dst.value = x << (y & 31);
        break;
      case RegisterOp::ShiftRight:
        dst.value = x >> (y & 31);
        break;
      case RegisterOp::Minimum:
        dst.value = std::min(x, y);
        break;
      case RegisterOp::Maximum:
        dst.value = std::max(x, y);
        break;
    }
    dst.loop = -1;
    dst.coefficient = 0;
    return;
  }
  // What follows a loop's counter stays a straight line in it.
  if (op == "ADD" || op == "SUB") {
    if (a.loop >= 0 && b.loop >= 0 && a.loop != b.loop) {
      throw TraceError("register_alu: a sum over the counters of two loops is not supported");
    }
    const std::int64_t sign = op == "ADD" ? 1 : -1;
    dst = {a.value + sign * b.value, a.loop >= 0 ? a.loop : b.loop,
           a.coefficient + sign * b.coefficient};
  } else if (op == "MUL" && (a.loop < 0 || b.loop < 0)) {
    const PyRegister& line = a.loop >= 0 ? a : b;
    const std::int64_t factor = a.loop >= 0 ? b.value : a.value;
    dst = {line.value * factor, line.loop, line.coefficient * factor};
  } else {
    throw TraceError(
        fmt::format("register_alu: {} of a device loop's counter is not supported "
                    "while tracing",
                    op));
  }
}

py::dict summary_of(const Builder& builder) {
  std::map<std::string, std::uint64_t> instructions;
  for (const Node& node : builder.nodes()) ++instructions[std::string(mnemonic({.op = node.op}))];
  std::map<std::string, std::uint64_t> tiles;
  for (const Storage& storage : builder.storages()) {
    ++tiles[fmt::format("{} {}[{}]", name_of(storage.memory), name_of(storage.dtype),
                        fmt::join(storage.shape, ","))];
  }
  py::dict result;
  result["instructions"] = instructions;
  result["tiles"] = tiles;
  result["calls"] = builder.calls();
  return result;
}

void bind_builder(py::module_& module) {
  py::class_<Call>(module, "Call").def_readonly("name", &Call::name);

  py::class_<PyBuilder> builder(module, "Builder");
  builder
      .def(py::init([](std::string name, const py::dict& options) {
             return new PyBuilder(std::move(name), options_from(options));
           }),
           py::arg("name"), py::arg("options") = py::dict())
      .def_static("hide_frames", [](std::string folder) { frames().hide(std::move(folder)); })
      .def_static("call",
                  [](std::string name, const py::kwargs& operands) {
                    Call call{std::move(name), {}};
                    for (const auto& [operand, parameter] : operands) {
                      call.operands.emplace_back(operand.cast<std::string>(),
                                                 parameter.cast<std::string>());
                    }
                    return call;
                  })
      .def(
          "tensor",
          [](PyBuilder& self, std::string_view memory, const py::sequence& shape,
             std::string_view dtype, std::string name, std::string_view kind,
             std::size_t partition_dim, std::optional<std::array<std::int64_t, 2>> address) {
            const std::vector<std::int64_t> sizes = numbers(shape);
            Builder::TensorSpec spec;
            spec.memory = named<Memory>(memory, "memory");
            spec.shape = sizes;
            spec.dtype = named<Dtype>(dtype, "dtype");
            spec.name = std::move(name);
            spec.kind = named<TensorKind>(kind, "kind");
            spec.partition_dim = partition_dim;
            spec.address = address;
            return self.here().tensor(spec);
          },
          py::arg("memory"), py::arg("shape"), py::arg("dtype"), py::kw_only(),
          py::arg("name") = "", py::arg("kind") = "internal", py::arg("partition_dim") = 0,
          py::arg("address") = py::none())
      .def("release", [](PyBuilder& self, const View& view) { self.release(view); })
      .def("rename",
           [](PyBuilder& self, const View& view, std::string name, std::string_view kind) {
             Storage& storage = self.storages()[index(view.storage)];
             storage.name = std::move(name);
             storage.kind = named<TensorKind>(kind, "kind");
           })
      .def("set_kind",
           [](PyBuilder& self, const View& view, std::string_view kind) {
             self.storages()[index(view.storage)].kind = named<TensorKind>(kind, "kind");
           })
      .def("name_of",
           [](PyBuilder& self, const View& view) { return self.storage(view.storage).name; })
      .def("emit",
           [](PyBuilder& self, const Call& call, std::string_view mnemonic,
              const std::optional<std::string>& engine, const py::args& operands) {
             const auto known = emitters().find(mnemonic);
             if (known == emitters().end()) {
               throw TraceError(fmt::format("no instruction is called '{}'", mnemonic));
             }
             known->second(self.here(), call, engine_of(engine), operands);
           })
      .def(
          "matmul",
          [](PyBuilder& self, const Call& call, const View& dst, const View& stationary,
             const View& moving, std::optional<bool> accumulate, bool transpose, bool one_zero,
             bool double_row, std::optional<std::array<int, 4>> tile) {
            MatmulOptions options{accumulate, transpose, one_zero, double_row, {}};
            if (tile) {
              options.tile = {
                  static_cast<std::uint8_t>((*tile)[0]), static_cast<std::uint8_t>((*tile)[1]),
                  static_cast<std::uint8_t>((*tile)[2]), static_cast<std::uint8_t>((*tile)[3])};
            }
            self.here().matmul(call, dst, stationary, moving, options);
          },
          py::arg("call"), py::arg("dst"), py::arg("stationary"), py::arg("moving"), py::kw_only(),
          py::arg("accumulate") = py::none(), py::arg("transpose") = false,
          py::arg("one_zero") = false, py::arg("double_row") = false, py::arg("tile") = py::none())
      .def(
          "transpose",
          [](PyBuilder& self, const Call& call, const View& dst, const View& src,
             const std::optional<std::string>& engine) {
            self.here().transpose(call, dst, src, engine_of(engine));
          },
          py::arg("call"), py::arg("dst"), py::arg("src"), py::arg("engine") = py::none())
      .def(
          "activation",
          [](PyBuilder& self, const Call& call, const View& dst, std::string_view function,
             const View& src, const py::object& bias, const py::object& scale,
             const py::object& reduce_result, std::string_view reduce_command) {
            Builder& here = self.here();
            ActivationOptions options;
            options.scale = scalar_operand(here, call, "scale", scale, false);
            options.bias = scalar_operand(here, call, "bias", bias, false);
            if (!reduce_result.is_none()) options.reduce_result = reduce_result.cast<const View&>();
            options.command = named<AccumulatorCommand>(reduce_command, "reduce_command");
            here.activation(call, dst, named<ActivationFunction>(function, "op"), src, options);
          },
          py::arg("call"), py::arg("dst"), py::arg("function"), py::arg("src"), py::kw_only(),
          py::arg("bias") = py::none(), py::arg("scale") = py::none(),
          py::arg("reduce_result") = py::none(), py::arg("reduce_command") = "IDLE")
      .def(
          "copy",
          [](PyBuilder& self, const Call& call, const View& dst, const View& src,
             const std::optional<std::string>& engine) {
            self.here().copy(call, dst, src, engine_of(engine));
          },
          py::arg("call"), py::arg("dst"), py::arg("src"), py::arg("engine") = py::none())
      .def(
          "dma_copy",
          [](PyBuilder& self, const Call& call, const View& dst, const View& src,
             const std::optional<std::string>& mode, const std::optional<std::string>& engine,
             const py::object& index, std::string_view index_on, bool skip_out_of_bounds) {
            DmaOptions options = dma_options(mode, engine, index);
            options.index_on_dst = index_on == "dst";
            options.skip_out_of_bounds = skip_out_of_bounds;
            self.here().dma_copy(call, dst, src, options);
          },
          py::arg("call"), py::arg("dst"), py::arg("src"), py::kw_only(),
          py::arg("mode") = py::none(), py::arg("engine") = py::none(),
          py::arg("index") = py::none(), py::arg("index_on") = "src",
          py::arg("skip_out_of_bounds") = false)
      .def(
          "dma_transpose",
          [](PyBuilder& self, const Call& call, const View& dst, const View& src,
             const std::optional<std::string>& mode, const std::optional<std::string>& engine,
             const py::object& index) {
            self.here().dma_transpose(call, dst, src, dma_options(mode, engine, index));
          },
          py::arg("call"), py::arg("dst"), py::arg("src"), py::kw_only(),
          py::arg("mode") = py::none(), py::arg("engine") = py::none(),
          py::arg("index") = py::none())
      .def(
          "dma_compute",
          [](PyBuilder& self, const Call& call, const View& dst, const std::vector<View>& sources,
             const py::object& index, const std::optional<std::string>& mode,
             const std::optional<std::string>& engine) {
            self.here().dma_compute(call, dst, sources, dma_options(mode, engine, index));
          },
          py::arg("call"), py::arg("dst"), py::arg("sources"), py::kw_only(),
          py::arg("index") = py::none(), py::arg("mode") = py::none(),
          py::arg("engine") = py::none())
      .def(
          "register",
          [](PyBuilder& /*self*/, const py::object& initial) { return register_from(initial); },
          py::arg("initial") = py::none())
      .def("register_move",
           [](PyBuilder& self, PyRegister& dst, const py::object& src) {
             dst = register_from(src);
             self.here().sequencer(RegisterMove{}, Engine::GpSimd);
           })
      .def("register_alu",
           [](PyBuilder& self, std::string_view op, PyRegister& dst, const py::object& a,
              const py::object& b) {
             alu(dst, op, register_from(a), register_from(b));
             self.here().sequencer(RegisterAlu{}, Engine::GpSimd);
           })
      .def(
          "register_load",
          [](PyBuilder& self, PyRegister& dst, const View& src, std::int64_t value) {
            dst = {value};
            self.here().register_load(src, value);
          },
          py::arg("dst"), py::arg("src"), py::arg("value") = 0)
      .def("register_store", [](PyBuilder& self, const View& dst,
                                const PyRegister& /*src*/) { self.here().register_store(dst); })
      .def(
          "begin_loop",
          [](PyBuilder& self, const py::object& start, const py::object& stop, std::int64_t step) {
            const std::int64_t from = constant(start, "start");
            const int loop = self.here().begin_loop(from, constant(stop, "stop"), step);
            return PyRegister{0, loop, 1};
          },
          py::arg("start"), py::arg("stop"), py::arg("step") = 1)
      .def("end_loop", [](PyBuilder& self) { self.here().end_loop(); })
      .def(
          "dynamic",
          [](PyBuilder& /*self*/, const View& view, const PyRegister& reg,
             const py::sequence& steps) {
            const std::vector<std::int64_t> by_dim = numbers(steps);
            View result = view;
            std::int64_t elements = 0;
            for (std::size_t d = 0; d < by_dim.size() && d < view.ndim(); ++d) {
              if (by_dim[d] != 0 && view.dims[d].partitions != 0) {
                throw TraceError("a register cannot move a tile over partitions");
              }
              elements += by_dim[d] * view.dims[d].step;
            }
            result.offset += elements * reg.value;
            if (reg.loop >= 0) {
              result.terms.push_back({static_cast<Register>(reg.loop), elements * reg.coefficient});
            }
            return result;
          })
      .def(
          "core_barrier",
          [](PyBuilder& self, const Call& call, const std::optional<std::string>& engine) {
            self.here().emit(call, CoreBarrier{}, engine ? engine_of(engine) : Engine::GpSimd);
          },
          py::arg("call"), py::arg("engine") = py::none())
      .def(
          "sendrecv",
          [](PyBuilder& self, const Call& call, const View& dst, const View& src, int peer,
             bool gpsimd) { self.here().sendrecv(call, dst, src, peer, gpsimd); },
          py::arg("call"), py::arg("dst"), py::arg("src"), py::kw_only(), py::arg("peer"),
          py::arg("gpsimd") = false)
      .def("fence", [](PyBuilder& self) { self.fence(); })
      .def("at", [](PyBuilder& self, const std::string& file,
                    std::uint32_t line) { self.say(file, line); })
      .def("summary", [](const PyBuilder& self) { return summary_of(self); })
      .def_property_readonly("instructions", [](PyBuilder& self) { return self.nodes().size(); });
}

py::dict finish_all(const std::vector<PyBuilder*>& builders, std::string name,
                    const std::string& target,
                    const std::vector<std::pair<double, std::string>>& work,
                    std::vector<std::string> warnings, std::int64_t drop_wait) {
  FinishOptions options;
  options.name = std::move(name);
  options.target = named<Target>(target, "target");
  options.drop_wait = drop_wait;
  options.warnings = std::move(warnings);
  for (const auto& [amount, unit] : work) options.work.push_back({amount, unit});
  const Finished finished = finish({builders.begin(), builders.end()}, options);
  const std::vector<std::uint8_t> bytes = trace_bytes(finished.trace);
  const auto place = [&](std::uint32_t location) {
    const SourceLocation& at = finished.trace.header.locations[location];
    return fmt::format("{}:{}", at.file, at.line);
  };
  py::list loops;
  for (const KeptLoop& kept : finished.loops) {
    py::dict loop;
    loop["program"] = kept.program;
    loop["engine"] = name_of(kept.engine);
    loop["at"] = place(kept.loop.location);
    loop["instructions"] = kept.loop.instructions;
    loop["iterations"] = kept.loop.iterations;
    loop["depth"] = kept.loop.depth;
    loops.append(loop);
  }
  py::list spills;
  for (const Spill& spill : finished.spills) {
    py::dict one;
    one["name"] = spill.name;
    one["at"] = place(spill.location);
    one["bytes"] = spill.bytes;
    one["saves"] = spill.saves;
    one["reloads"] = spill.reloads;
    spills.append(one);
  }
  std::uint64_t written = 0;
  for (const Program& program : finished.trace.code) {
    for (const auto& stream : program.streams) written += stream.size();
  }
  SyncStats sync;
  for (const SyncStats& one : finished.sync) {
    sync.dependences += one.dependences;
    sync.waits += one.waits;
    sync.event_semaphores += one.event_semaphores;
    sync.semaphores = std::max(sync.semaphores, one.semaphores);
  }
  py::dict result;
  result["bytes"] = py::bytes(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  result["loops"] = loops;
  result["spills"] = spills;
  result["warnings"] = finished.warnings;
  result["instructions"] = finished.instructions;
  result["written"] = written;
  result["dependences"] = sync.dependences;
  result["waits"] = sync.waits;
  result["event_semaphores"] = sync.event_semaphores;
  result["semaphores"] = sync.semaphores;
  result["loads_left_out"] = finished.loads_left_out;
  result["sbuf_peak_bytes"] = finished.sbuf_peak_bytes;
  result["psum_peak_bytes"] = finished.psum_peak_bytes;
  return result;
}

py::dict options_table() {
  py::dict table;
  const Options options;
  for_each_field<Options>([&](const auto& field) {
    table[py::str(std::string(field.name))] =
        py::make_tuple(options.*field.member, std::string(field.unit), std::string(field.meaning));
  });
  return table;
}

void define(py::module_& module) {
  static py::handle trace_error =
      py::exception<InputError>(module, "TraceError", PyExc_ValueError).release();
  static py::handle capacity_error =
      py::exception<CapacityError>(module, "CapacityError", trace_error).release();
  py::register_exception_translator([](std::exception_ptr error) {  // NOLINT: as pybind11 asks
    try {
      if (error) std::rethrow_exception(error);
    } catch (const TraceError& it) {
      const Frames::Where* where = frames().here();
      const std::string text = where != nullptr
                                   ? fmt::format("{}:{}: {}", where->file, where->line, it.what())
                                   : std::string(it.what());
      PyErr_SetString(trace_error.ptr(), text.c_str());
    } catch (const CapacityError& it) {
      PyErr_SetString(capacity_error.ptr(), it.what());
    } catch (const InputError& it) {
      PyErr_SetString(trace_error.ptr(), it.what());
    }
  });
  bind_views(module);
  bind_builder(module);
  module.def("finish", &finish_all, py::arg("builders"), py::kw_only(), py::arg("name"),
             py::arg("target") = "NeuronCore-v3",
             py::arg("work") = std::vector<std::pair<double, std::string>>{},
             py::arg("warnings") = std::vector<std::string>{}, py::arg("drop_wait") = -1);
  module.def("options", &options_table);
  module.attr("version") = kVersion;
}

}  // namespace
}  // namespace trn::isa::frontend

PYBIND11_MODULE(_frontend, module) { trn::isa::frontend::define(module); }
