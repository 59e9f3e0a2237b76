#include "isa/import/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "isa/import/operand_text.h"

namespace trn::isa {
namespace {

// Bus addresses, as DMA operands give them. Source: docs/sources.md#profiles-import.
constexpr std::int64_t kHbmBase = 0x800000000000;
constexpr std::int64_t kSbufBase = 0x802000000000;
constexpr std::int64_t kSbufEnd = kSbufBase + kPartitions * kSbufPartitionStride;
// Arguments of the kernel have no address in a profile: each gets the first free place so aligned.
constexpr std::int64_t kArgumentAlignment = 64 * 1024;
constexpr std::int64_t kMaxElementBytes = std::int64_t{1} << 30U;
constexpr std::int64_t kMaxTable = 65535;
constexpr std::int64_t kMaxTableOffset = std::int64_t{1} << 40U;

// ---- reading the export ----

struct InstructionRow {
  KernelRow place;
  std::string opcode;
  std::string operands;
  std::string label;
  std::string source;
};

struct Export {
  std::vector<InstructionRow> rows;
  std::map<std::string, std::uint8_t, std::less<>> queues;  ///< name to ring
  std::string network;
  std::string instance;
};

constexpr std::string_view kUnknown = "Unknown";  // what the profiler prints for a missing name

std::string label_of(const ProfileRow& row) {
  std::string label;
  for (std::string_view key : {"layer", "bir_instruction_name"}) {
    const auto part = row.text_if(key);
    if (!part || *part == kUnknown) continue;
    if (!label.empty()) label += '/';
    label += *part;
  }
  return label;
}

Export read_export(std::string_view json, const std::string& file, const ImportOptions& options) {
  static constexpr std::array<std::string_view, 9> kInstructionKeys = {
      "subgraph", "compiler_pc",          "subgroup",           "pc", "opcode", "operands",
      "layer",    "bir_instruction_name", "nki_source_location"};
  static constexpr std::array<std::string_view, 3> kQueueKeys = {"subgraph", "q_name", "q_idx"};
  static constexpr std::array<std::string_view, 1> kHeaderKeys = {"network_name"};
  static constexpr std::array<std::string_view, 1> kSummaryKeys = {"instance_type"};
  static constexpr std::array<ProfileSection, 4> kSections = {
      ProfileSection{"instruction", kInstructionKeys},
      ProfileSection{"dma_queues_info", kQueueKeys}, ProfileSection{"neff_header", kHeaderKeys},
      ProfileSection{"summary", kSummaryKeys}};

  Export result;
  read_profile(json, file, kSections, [&](const ProfileRow& row) {
    if (row.section() == "instruction") {
      const auto place = kernel_row(row, options.subgraph);
      if (!place) return;
      result.rows.push_back({*place, std::string(row.text("opcode")),
                             std::string(row.text_if("operands").value_or("")), label_of(row),
                             std::string(row.text_if("nki_source_location").value_or(""))});
    } else if (row.section() == "dma_queues_info") {
      if (row.text("subgraph") != options.subgraph) return;
      const std::int64_t ring = row.whole("q_idx", 0, kDmaQueues - 1);
      result.queues.emplace(row.text("q_name"), static_cast<std::uint8_t>(ring));
    } else if (row.section() == "neff_header") {
      if (result.network.empty()) result.network = row.text_if("network_name").value_or("");
    } else if (result.instance.empty()) {
      result.instance = row.text_if("instance_type").value_or("");
    }
  });
  return result;
}

// ---- HBM regions ----

struct Region {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max();
  std::int64_t end = 0;
  std::uint32_t row_bytes = 0;
  Dtype dtype = Dtype::Uint8;
  bool loaded = false;
  bool stored = false;

  void join(const Region& other) {
    begin = std::min(begin, other.begin);
    end = std::max(end, other.end);
    if (row_bytes == 0) row_bytes = other.row_bytes;
    if (dtype == Dtype::Uint8) dtype = other.dtype;
    loaded |= other.loaded;
    stored |= other.stored;
  }
};

/// The bytes that one side of a DMA touches.
Region region_of(const DmaSide& side, bool is_source) {
  Region region{side.address.base, side.address.base, side.element_bytes,
                side.dtype,        is_source,         !is_source};
  for (std::size_t i = 0; i < side.dims; ++i) {
    const std::int64_t reach = side.pattern[i].stride_bytes * (side.pattern[i].size - 1);
    (reach < 0 ? region.begin : region.end) += reach;
  }
  region.end += side.element_bytes;
  return region;
}

/// Joins regions that overlap, and neighbours with rows of one length: the parts of a tensor.
std::vector<Region> grouped(std::vector<Region> regions) {
  std::sort(regions.begin(), regions.end(), [](const Region& a, const Region& b) {
    return std::pair{a.begin, a.end} < std::pair{b.begin, b.end};
  });
  std::vector<Region> groups;
  for (const Region& region : regions) {
    const bool joins =
        !groups.empty() &&
        (region.begin < groups.back().end ||
         (region.begin == groups.back().end && region.row_bytes == groups.back().row_bytes));
    if (joins)
      groups.back().join(region);
    else
      groups.push_back(region);
  }
  return groups;
}

Tensor tensor_of(const Region& region, std::string name, TensorKind kind) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.kind = kind;
  tensor.memory = Memory::Hbm;
  tensor.dtype = region.dtype;
  tensor.address = static_cast<std::uint64_t>(region.begin);
  tensor.bytes = static_cast<std::uint64_t>(region.end - region.begin);
  const std::uint64_t element = bytes_of(region.dtype);
  if (tensor.bytes % region.row_bytes == 0 && region.row_bytes % element == 0) {
    tensor.shape = {tensor.bytes / region.row_bytes, region.row_bytes / element};
  } else {
    tensor.dtype = Dtype::Uint8;
    tensor.shape = {tensor.bytes};
  }
  return tensor;
}

// ---- instructions ----

class Importer {
 public:
  Importer(const Export& profile, const std::string& file, const ImportOptions& options)
      : profile_(profile), file_(file), options_(options) {}

  Trace run() {
    trace_.header.name = options_.name.empty() ? profile_.network : options_.name;
    trace_.header.target = target();
    trace_.header.cores = {CoreBinding{}};
    trace_.code.resize(1);
    std::vector<KernelRow> places;
    places.reserve(profile_.rows.size());
    for (const InstructionRow& row : profile_.rows) places.push_back(row.place);
    const auto order = program_order(places, file_);
    for (Engine engine : kAllEngines) {
      for (std::size_t row : order[index(engine)]) import_row(profile_.rows[row]);
    }
    place_tensors();
    return std::move(trace_);
  }

 private:
  /// A side of a DMA whose address is an argument's: offset until its tensor is placed.
  struct Argument {
    Engine engine;
    std::size_t instruction;
    bool is_source;
    std::int64_t table;
  };

  [[nodiscard]] Target target() const {
    for (std::string_view family : {"trn1", "inf2"}) {
      if (profile_.instance.starts_with(family)) return Target::NeuronCoreV2;
    }
    if (profile_.instance.empty() || profile_.instance.starts_with("trn2")) {
      return Target::NeuronCoreV3;
    }
    throw InputError({file_}, "summary[0].instance_type",
                     fmt::format("expected trn2, trn1 or inf2, got '{}'", profile_.instance));
  }

  [[noreturn]] void fail(std::string_view key, std::string_view message) const {
    throw InputError({file_}, fmt::format("instruction[{}].{}", row_->place.number, key), message);
  }

  void import_row(const InstructionRow& row) {
    row_ = &row;
    OperandText text(row.operands, [this](const std::string& m) { fail("operands", m); });
    Instr instr;
    instr.sync = text.sync();
    instr.at = {location(row.source), intern(labels_, trace_.header.labels, row.label)};
    instr.op = operation(text);
    text.finish();
    trace_.code[0].streams[index(row.place.engine)].push_back(instr);
  }

  Op operation(OperandText& text) {
    struct Known {
      std::string_view name;
      Op (Importer::*read)(OperandText&);
    };
    static constexpr std::array kKnown = {
        Known{LdWeights::kName, &Importer::ld_weights},
        Known{Matmul::kName, &Importer::matmul},
        Known{Activate::kName, &Importer::activate},
        Known{ActTableLoad::kName, &Importer::act_table_load},
        Known{Copy::kName, &Importer::elementwise<Copy>},
        Known{Cast::kName, &Importer::elementwise<Cast>},
        Known{Reciprocal::kName, &Importer::elementwise<Reciprocal>},
        Known{TensorReduce::kName, &Importer::tensor_reduce},
        Known{TensorScalar::kName, &Importer::tensor_scalar},
        Known{DmaDirect2d::kName, &Importer::dma},
        Known{EventSemaphore::kName, &Importer::event_semaphore},
        Known{SemaphoreRangeClear::kName, &Importer::range_clear},
        Known{SetOrderingMode::kName, &Importer::set_ordering_mode},
        Known{Nop::kName, &Importer::nop},
        Known{Drain::kName, &Importer::drain},
        Known{Notify::kName, &Importer::notify}};
    const auto* known = std::find_if(kKnown.begin(), kKnown.end(),
                                     [&](const Known& k) { return k.name == row_->opcode; });
    if (known == kKnown.end()) {
      std::vector<std::string_view> names;
      names.reserve(kKnown.size());
      for (const Known& k : kKnown) names.push_back(k.name);
      fail("opcode",
           fmt::format("cannot be imported: '{}'{}, with operands '{}'", row_->opcode.substr(0, 40),
                       did_you_mean(row_->opcode, names), row_->operands.substr(0, 120)));
    }
    Op op = (this->*known->read)(text);
    std::visit(
        [&]<class T>(const T& /*op*/) {
          if (!T::kEngines.contains(row_->place.engine)) {
            fail("subgroup", fmt::format("{} does not run on the {} engine", T::kName,
                                         name_of(row_->place.engine)));
          }
        },
        op);
    return op;
  }

  static std::uint32_t channels(OperandText& text) {
    return static_cast<std::uint32_t>(text.take_whole("channels", 1, kPartitions));
  }

  /// `128*128`: rows and columns of the PE array that take part.
  static PeTile pe_tile(OperandText& text) {
    const std::string_view word = text.take_word("a PE tile such as 128*128");
    const std::size_t star = word.find('*');
    if (star == std::string_view::npos) {
      text.fail("",
                fmt::format("expected a PE tile such as 128*128, got '{}'", word.substr(0, 40)));
    }
    const auto side = [&](std::string_view number) {
      const std::int64_t value = text.as_whole("PE tile", number, 32, 128);
      if (value != 32 && value != 64 && value != 128) {
        text.fail("PE tile", fmt::format("expected 32, 64 or 128, got {}", value));
      }
      return static_cast<std::uint8_t>(value);
    };
    PeTile tile;
    tile.rows = side(word.substr(0, star));
    tile.columns = side(word.substr(star + 1));
    return tile;
  }

  static Fp32Pass fp32_pass(OperandText& text) {
    const auto mode = text.take_if("fp32_mode");
    return mode ? text.as_enum<Fp32Pass>("fp32_mode", *mode) : Fp32Pass::None;
  }

  Op ld_weights(OperandText& text) {
    LdWeights op;
    op.pass = fp32_pass(text);
    const std::string_view mode = text.take("transpose_mode");
    if (mode != "ENABLED") {
      if (mode != "DISABLED") text.fail("transpose_mode", "expected ENABLED or DISABLED");
    }
    op.transpose = mode == "ENABLED";
    op.tile = pe_tile(text);
    op.src = text.take_access("src", op.tile.rows);
    op.tile.row = op.src.start_partition;
    // The array is filled from its far column, so the address given is that of the last element and
    // the walk goes backwards. A stationary tile is described in the order of its columns.
    if (op.src.dims > 0 && op.src.free[0].stride < 0) {
      for (std::size_t i = 0; i < op.src.dims; ++i) {
        FreeDim& dim = op.src.free[i];
        op.src.offset.base += std::int64_t{dim.stride} * (dim.size - 1) * bytes_of(op.src.dtype);
        dim.stride = -dim.stride;
      }
      if (op.src.offset.base < 0) text.fail("src", "walks backwards past the partition's start");
    }
    transposes_ = op.transpose;
    return op;
  }

  Op matmul(OperandText& text) {
    Matmul op;
    const std::int64_t flags = text.take_whole("acc_flags", 0, 3);
    op.start = (flags & 1) != 0;
    op.stop = (flags & 2) != 0;
    op.pass = fp32_pass(text);
    op.transpose = transposes_;  // a MATMUL row does not repeat the mode of its weights
    op.tile = pe_tile(text);
    op.src = text.take_access("src", op.tile.rows);
    // Products are accumulated in fp32; a transpose hands its elements through.
    op.dst = text.take_access("dst", op.tile.columns, op.transpose ? op.src.dtype : Dtype::Fp32);
    op.tile.row = op.src.start_partition;
    op.tile.column = op.dst.start_partition;
    return op;
  }

  template <class T>
  Op elementwise(OperandText& text) {
    T op;
    const std::uint32_t partitions = channels(text);
    op.src = text.take_access("src", partitions);
    op.dst = text.take_access("dst", partitions);
    return op;
  }

  Op activate(OperandText& text) {
    Activate op;
    op.function = text.as_enum<ActivationFunction>("function", text.take_word("a function"));
    const std::uint32_t partitions = channels(text);
    op.src = text.take_access("src", partitions);
    op.dst = text.take_access("dst", partitions);
    op.bias.kind = ScalarOperand::Kind::Pointer;
    op.bias.pointer = text.take_access("bias_ptr", partitions);
    op.scale.kind = ScalarOperand::Kind::Immediate;
    op.scale.immediate = static_cast<float>(text.as_real("scale", text.take("scale")));
    op.imm = static_cast<float>(text.as_real("imm", text.take("imm")));
    op.accumulator_cmd = text.take_enum<AccumulatorCommand>("accumulator_cmd");
    return op;
  }

  Op act_table_load(OperandText& text) {
    ActTableLoad op;
    op.table_sel = static_cast<std::uint32_t>(text.take_whole("table_sel", 0, 255));
    return op;
  }

  Op tensor_reduce(OperandText& text) {
    TensorReduce op;
    op.op = text.take_enum<AluOp>("op");
    op.dims = text.take_enum<ReduceDims>("dim");
    if (const auto negated = text.take_if("negated")) {
      op.negate = text.as_whole("negated", *negated, 0, 1) != 0;
    }
    const std::uint32_t partitions = channels(text);
    op.src = text.take_access("src", partitions);
    op.dst = text.take_access("dst", partitions);
    return op;
  }

  /// `ops=A,B imm=X,Y imm_src=PTR,INSTRUCTION`: each number is an address or stands there itself.
  Op tensor_scalar(OperandText& text) {
    const auto pair = [&](std::string_view key) {
      const std::string_view both = text.take(key);
      const std::size_t comma = both.find(',');
      if (comma == std::string_view::npos) text.fail(key, "expected two values with a comma");
      return std::array{both.substr(0, comma), both.substr(comma + 1)};
    };
    TensorScalar op;
    const auto ops = pair("ops");
    const auto numbers = pair("imm");
    const auto places = pair("imm_src");
    op.op0 = text.as_enum<AluOp>("ops", ops[0]);
    op.op1 = text.as_enum<AluOp>("ops", ops[1]);
    const std::uint32_t partitions = channels(text);
    for (std::size_t i = 0; i < 2; ++i) {
      ScalarOperand& operand = i == 0 ? op.operand0 : op.operand1;
      if (places[i] == "PTR") {
        operand.kind = ScalarOperand::Kind::Pointer;
        operand.pointer = text.element_at("imm", numbers[i], Dtype::Fp32, partitions);
      } else if (places[i] != "INSTRUCTION") {
        text.fail("imm_src", "expected PTR or INSTRUCTION");
      } else if (const double value = text.as_real("imm", numbers[i]);
                 (i == 0 ? op.op0 : op.op1) != AluOp::Bypass) {
        operand.kind = ScalarOperand::Kind::Immediate;
        operand.immediate = static_cast<float>(value);
      }
    }
    op.src = text.take_access("src", partitions);
    op.dst = text.take_access("dst", partitions);
    return op;
  }

  Op event_semaphore(OperandText& text) {
    text.expect("setter", "0");
    return EventSemaphore{};
  }

  Op range_clear(OperandText& text) {
    text.expect("mode", "SEMAPHORE_ZERO");
    SemaphoreRangeClear op;
    op.first = static_cast<std::uint16_t>(text.take_whole("first", 0, kSemaphores - 1));
    op.last = static_cast<std::uint16_t>(text.take_whole("last", op.first, kSemaphores - 1));
    return op;
  }

  Op set_ordering_mode(OperandText& text) {
    return SetOrderingMode{text.take_enum<OrderingMode>("ordering_mode")};
  }

  Op nop(OperandText& text) {
    return Nop{static_cast<std::uint32_t>(text.take_whole("cycle", 0, INT32_MAX))};
  }

  Op drain(OperandText& /*text*/) { return Drain{}; }

  Op notify(OperandText& text) {  // what it tells the host does not matter here
    for (std::string_view key : {"hint", "notification", "trace"}) (void)text.take_if(key);
    return Notify{};
  }

  Op dma(OperandText& text) {
    DmaDirect2d op;
    op.completion.semaphore =
        static_cast<std::uint16_t>(text.take_whole("semaphore", 0, kSemaphores - 1));
    op.completion.increment =
        static_cast<std::uint16_t>(text.take_whole("sem_increment", 0, 32767));
    text.expect("compute_op", "NONE");
    const bool src_bound = dma_side(text, true, op.src);
    const bool dst_bound = dma_side(text, false, op.dst);
    op.bound_at_launch = src_bound || dst_bound;
    const auto in = text.take_if("in_dtype");
    const auto out = text.take_if("out_dtype");
    if (in.has_value() != out.has_value()) {
      text.fail("in_dtype", "expected in_dtype and out_dtype together");
    }
    if (in) {
      op.src.dtype = text.as_dtype("in_dtype", *in);
      op.dst.dtype = text.as_dtype("out_dtype", *out);
    }
    const std::uint64_t read = op.src.bytes() / bytes_of(op.src.dtype);
    const std::uint64_t written = op.dst.bytes() / bytes_of(op.dst.dtype);
    if (read != written) {
      text.fail("dst_pattern", fmt::format("{} elements are read, but {} written", read, written));
    }
    note_region(op.src, true, src_bound);
    note_region(op.dst, false, dst_bound);
    choose_queue(op);
    return op;
  }

  /// True when the address is known at launch only.
  bool dma_side(OperandText& text, bool is_source, DmaSide& side) {
    const std::string prefix = is_source ? "src_" : "dst_";
    side.element_bytes =
        static_cast<std::uint32_t>(text.take_whole(prefix + "elem_size", 1, kMaxElementBytes));
    text.take_pattern(prefix + "pattern", side);
    text.expect(prefix + "shape_reg", "0");
    const std::string table_key = prefix + "table_index";
    if (const auto table = text.take_if(table_key)) {
      side.memory = Memory::Hbm;
      side.address = text.take_whole(prefix + "table_offset_imm", 0, kMaxTableOffset);
      table_of_[is_source ? 0 : 1] = text.as_whole(table_key, *table, 0, kMaxTable);
      return true;
    }
    const std::string address_key = prefix + "addr_imm";
    const std::int64_t address =
        text.take_whole(address_key, 0, std::numeric_limits<std::int64_t>::max() / 2);
    if (address >= kHbmBase && address < kSbufBase) {
      side.memory = Memory::Hbm;
      side.address = address - kHbmBase;
    } else if (address >= kSbufBase && address < kSbufEnd) {
      side.memory = Memory::Sbuf;
      side.address = address - kSbufBase;
    } else {
      text.fail(address_key,
                fmt::format("{:#x} is neither in HBM ({:#x}..) nor in SBUF ({:#x}..{:#x})", address,
                            kHbmBase, kSbufBase, kSbufEnd - 1));
    }
    return false;
  }

  void note_region(const DmaSide& side, bool is_source, bool bound) {
    if (side.memory != Memory::Hbm) return;
    const Region region = region_of(side, is_source);
    if (region.begin < 0) fail("operands", "a DMA reaches below the start of its memory");
    if (!bound) {
      regions_.push_back(region);
      return;
    }
    const Engine engine = row_->place.engine;
    const std::int64_t table = table_of_[is_source ? 0 : 1];
    arguments_.push_back({engine, trace_.code[0].streams[index(engine)].size(), is_source, table});
    argument_regions_[table].join(region);
  }

  /// The queue is that of the engine that triggers: `qSyncDynamicHW`, `qGpSimdDynamic`.
  void choose_queue(DmaDirect2d& op) const {
    const std::string software = fmt::format("q{}Dynamic", name_of(row_->place.engine));
    const std::string hardware = software + "HW";
    const auto soft = profile_.queues.find(software);
    const auto hard = profile_.queues.find(hardware);
    // Addresses that are known at launch only go through software descriptors.
    const bool prefers_soft = hard == profile_.queues.end() || op.bound_at_launch;
    if (soft != profile_.queues.end() && prefers_soft) {
      op.mode = DescriptorMode::SoftwareDge;
      op.queue = soft->second;
    } else if (hard != profile_.queues.end()) {
      op.mode = DescriptorMode::HardwareDge;
      op.queue = hard->second;
    } else {
      fail("subgroup", fmt::format("this engine triggers a DMA, but dma_queues_info has neither {} "
                                   "nor {}",
                                   hardware, software));
    }
  }

  std::uint32_t location(const std::string& text) {
    if (text.empty() || text == kUnknown) return 0;
    const auto [at, is_new] =
        locations_.emplace(text, static_cast<std::uint32_t>(trace_.header.locations.size()));
    if (!is_new) return at->second;
    SourceLocation place{text, 0};
    const std::size_t colon = text.rfind(':');
    if (colon != std::string::npos && colon != 0) {
      std::uint32_t line = 0;
      const char* last = text.data() + text.size();
      const auto [end, error] = std::from_chars(text.data() + colon + 1, last, line);
      if (error == std::errc{} && end == last) place = {text.substr(0, colon), line};
    }
    trace_.header.locations.push_back(std::move(place));
    return at->second;
  }

  static std::uint32_t intern(std::map<std::string, std::uint32_t>& known,
                              std::vector<std::string>& table, const std::string& text) {
    if (text.empty()) return 0;
    const auto [at, is_new] = known.emplace(text, static_cast<std::uint32_t>(table.size()));
    if (is_new) table.push_back(text);
    return at->second;
  }

  void place_tensors() {
    std::vector<Tensor>& tensors = trace_.header.tensors;
    std::vector<std::pair<std::int64_t, std::int64_t>> taken;  // begin, end; sorted
    std::size_t constants = 0;
    std::size_t internals = 0;
    for (const Region& region : grouped(regions_)) {
      taken.emplace_back(region.begin, region.end);
      const bool constant = !region.stored;
      std::string name = constant ? fmt::format("constant{}", constants++)
                                  : fmt::format("internal{}", internals++);
      tensors.push_back(tensor_of(region, std::move(name),
                                  constant ? TensorKind::Constant : TensorKind::Internal));
    }
    std::map<std::int64_t, std::int64_t> bases;
    for (auto& [table, region] : argument_regions_) {
      // A tensor starts where its table says, whichever part of it is used.
      const std::int64_t base = first_free(taken, region.end);
      bases[table] = base;
      taken.emplace_back(base, base + region.end);
      std::sort(taken.begin(), taken.end());
      Region placed = region;
      placed.begin = base;
      placed.end = base + region.end;
      tensors.push_back(tensor_of(placed, fmt::format("argument{}", table),
                                  region.stored ? TensorKind::Output : TensorKind::Input));
    }
    for (const Argument& argument : arguments_) {
      Instr& instr = trace_.code[0].streams[index(argument.engine)][argument.instruction];
      auto* op = std::get_if<DmaDirect2d>(&instr.op);
      TRN_CHECK(op != nullptr, "an argument of {}", mnemonic(instr));
      (argument.is_source ? op->src : op->dst).address.base += bases[argument.table];
    }
  }

  static std::int64_t first_free(const std::vector<std::pair<std::int64_t, std::int64_t>>& taken,
                                 std::int64_t bytes) {
    std::int64_t base = kArgumentAlignment;
    for (const auto& [begin, end] : taken) {
      if (base + bytes <= begin) break;
      const std::int64_t behind = (end + kArgumentAlignment - 1) / kArgumentAlignment;
      base = std::max(base, behind * kArgumentAlignment);
    }
    return base;
  }

  const Export& profile_;
  const std::string& file_;
  const ImportOptions& options_;
  const InstructionRow* row_ = nullptr;
  bool transposes_ = false;  ///< the mode of the last LDWEIGHTS
  std::array<std::int64_t, 2> table_of_{};
  std::map<std::string, std::uint32_t> labels_;
  std::map<std::string, std::uint32_t> locations_;
  std::vector<Region> regions_;
  std::map<std::int64_t, Region> argument_regions_;
  std::vector<Argument> arguments_;
  Trace trace_;
};

}  // namespace

Trace import_profile(std::string_view json, const std::string& file, const ImportOptions& options) {
  const Export profile = read_export(json, file, options);
  return Importer(profile, file, options).run();
}

std::optional<double> activity_window_phase_ns(std::string_view json, const std::string& file,
                                               double window_ns, const ImportOptions& options) {
  TRN_CHECK(window_ns > 0, "a window of {} ns", window_ns);
  static constexpr std::array<std::string_view, 2> kKeys = {"subgraph", "timestamp"};
  static constexpr std::array<ProfileSection, 1> kSections = {ProfileSection{"ham", kKeys}};
  std::optional<double> phase;
  read_profile(json, file, kSections, [&](const ProfileRow& row) {
    if (phase || row.text("subgraph") != options.subgraph) return;
    constexpr std::int64_t kLongest = std::int64_t{1} << 53U;  // what a double holds exactly
    phase = std::fmod(static_cast<double>(row.whole("timestamp", 0, kLongest)), window_ns);
  });
  return phase;
}

std::optional<KernelRow> kernel_row(const ProfileRow& row, std::string_view subgraph) {
  if (row.text("subgraph") != subgraph || !row.has("compiler_pc")) return std::nullopt;
  KernelRow result{row.number()};
  const std::string_view name = row.text("subgroup");
  std::vector<std::string_view> names(EnumNames<Engine>::value.begin(),
                                      EnumNames<Engine>::value.end());
  const auto at = std::find(names.begin(), names.end(), name);
  if (at == names.end()) {
    row.fail("subgroup", fmt::format("expected an engine, got '{}'{}", name.substr(0, 40),
                                     did_you_mean(name, names)));
  }
  result.engine = static_cast<Engine>(at - names.begin());
  result.pc = row.whole("pc", 0, std::int64_t{1} << 40U);
  return result;
}

std::array<std::vector<std::size_t>, kEngines> program_order(std::span<const KernelRow> rows,
                                                             const std::string& file) {
  if (rows.empty()) {
    throw InputError(
        {file}, "instruction",
        "expected rows of a kernel (with compiler_pc) in the chosen subgraph, got none");
  }
  std::array<std::vector<std::size_t>, kEngines> order;
  for (std::size_t i = 0; i < rows.size(); ++i) order[index(rows[i].engine)].push_back(i);
  for (std::vector<std::size_t>& stream : order) {
    std::sort(stream.begin(), stream.end(), [&](std::size_t a, std::size_t b) {
      return std::pair{rows[a].pc, rows[a].number} < std::pair{rows[b].pc, rows[b].number};
    });
    for (std::size_t i = 1; i < stream.size(); ++i) {
      const KernelRow& before = rows[stream[i - 1]];
      const KernelRow& row = rows[stream[i]];
      if (row.pc == before.pc + 1) continue;
      const std::string path = fmt::format("instruction[{}].pc", row.number);
      if (row.pc == before.pc) {
        throw InputError({file}, path,
                         fmt::format("{} is instruction[{}]'s already; a kernel that runs one "
                                     "instruction twice (a loop) cannot be imported",
                                     row.pc, before.number));
      }
      throw InputError({file}, path,
                       fmt::format("expected {} on the {} engine, got {}: rows are missing",
                                   before.pc + 1, name_of(row.engine), row.pc));
    }
  }
  return order;
}

}  // namespace trn::isa
