#include "isa/frontend/finish.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "isa/base/error.h"
#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/rewrite.h"
#include "isa/frontend/schedule.h"
#include "isa/frontend/tables.h"

namespace trn::isa::frontend {
namespace {

constexpr std::int64_t kHbmAlignment = 4096;
constexpr std::int64_t kHbmStart = 0x10000;

/// Addresses in HBM, shared by the programs of a trace.
class HbmPlacer {
 public:
  void place(const Builder& builder, Placement& placement) {
    std::map<std::string, std::uint32_t>
        seen;  // tensors of one program are apart, whatever the name
    for (std::size_t s = 0; s < builder.storages().size(); ++s) {
      const Storage& storage = builder.storages()[s];
      if (storage.memory != Memory::Hbm) continue;
      const bool shared = storage.kind != TensorKind::Internal && !storage.name.empty();
      if (shared) {
        const std::pair key(storage.name, seen[storage.name]++);
        const auto [known, added] = shared_.emplace(key, next_);
        placement.address[s] = known->second;
        if (!added) continue;
      } else {
        placement.address[s] = next_;
      }
      next_ = (next_ + storage.bytes + kHbmAlignment - 1) / kHbmAlignment * kHbmAlignment;
    }
  }

 private:
  std::int64_t next_ = kHbmStart;
  std::map<std::pair<std::string, std::uint32_t>, std::int64_t> shared_{};
};

class Locations {
 public:
  explicit Locations(TraceInfo& info) : info_(info) {}
  std::uint32_t map(const SourceLocation& at) {
    if (at.file.empty()) return 0;
    const auto [known, added] = ids_.emplace(std::pair(at.file, at.line),
                                             static_cast<std::uint32_t>(info_.locations.size()));
    if (added) info_.locations.push_back(at);
    return known->second;
  }

 private:
  TraceInfo& info_;
  std::map<std::pair<std::string, std::uint32_t>, std::uint32_t> ids_{};
};

/// A stream as it grows, rolled or not.
class Stream {
 public:
  explicit Stream(bool roll) : roll_(roll) {}
  void push(Instr&& instr) {
    ++count_;
    if (roll_) {
      roller_.push(std::move(instr));
    } else {
      plain_.push_back(std::move(instr));
    }
  }
  std::vector<Instr> finish() { return roll_ ? roller_.finish() : std::move(plain_); }
  [[nodiscard]] const std::vector<RolledLoop>& loops() const { return roller_.summary().loops; }
  [[nodiscard]] std::uint64_t count() const { return count_; }

 private:
  bool roll_;
  Roller roller_{};
  std::vector<Instr> plain_{};
  std::uint64_t count_ = 0;
};

/// Tensors of the trace's table; tiles that take turns in one place are listed once.
void list_tensors(const Builder& builder, const Placement& placement,
                  const std::vector<std::uint32_t>& locations, TraceInfo& info) {
  std::set<std::tuple<Memory, std::int64_t, std::int64_t, std::uint32_t>> listed;
  for (const Tensor& tensor : info.tensors) {
    listed.emplace(tensor.memory, tensor.address, tensor.bytes, tensor.location);
  }
  for (std::size_t s = 0; s < builder.storages().size(); ++s) {
    const Storage& storage = builder.storages()[s];
    const std::uint32_t location = locations[storage.location];
    if (!listed.emplace(storage.memory, placement.address[s], storage.bytes, location).second) {
      continue;
    }
    Tensor tensor;
    tensor.name = storage.name.empty() ? "tile" : storage.name;
    tensor.kind = storage.kind;
    tensor.memory = storage.memory;
    tensor.dtype = storage.dtype;
    tensor.shape.assign(storage.shape.begin(), storage.shape.end());
    tensor.address = static_cast<std::uint64_t>(placement.address[s]);
    tensor.bytes = static_cast<std::uint64_t>(storage.bytes);
    tensor.location = location;
    info.tensors.push_back(std::move(tensor));
  }
}

void relocate(Op& op, const Placement& placement) {
  for_each_memory_operand(op, [&](std::string_view /*name*/, auto& operand) {
    Affine& address = address_of(operand);
    address.base = bytes_in(address.base) + placement.address[index(storage_of(address.base))];
  });
}

/// Numbers the rings of the DMA engines: one for each engine that triggers and way its descriptors
/// come, as in the profiles (docs/concepts/dma.md#packets).
class Queues {
 public:
  std::uint8_t of(Engine engine, DescriptorMode mode) {
    const auto next = static_cast<std::uint8_t>(numbers_.size());
    return numbers_.try_emplace({engine, mode}, next).first->second;
  }

 private:
  std::map<std::pair<Engine, DescriptorMode>, std::uint8_t> numbers_{};
};

void write_program(Builder& builder, const Placement& placement,
                   const std::vector<std::uint32_t>& order, std::vector<NodeSync>& sync,
                   const std::vector<std::uint32_t>& locations, std::uint32_t number,
                   Finished& result) {
  std::vector<Stream> streams(kEngines, Stream(builder.options().roll));
  std::vector<Node>& nodes = builder.nodes();
  std::array<bool, kEngines> begun{};
  std::array<std::uint32_t, kEngines> looped{};
  Queues queues;
  for (const std::uint32_t node : order) {
    Node& it = nodes[node];
    Stream& stream = streams[index(it.engine)];
    const SourceRef at{locations[it.location], 0};
    if (!begun[index(it.engine)] && builder.options().relaxed_ordering) {
      stream.push({.op = SetOrderingMode{OrderingMode::Relaxed}});
    }
    begun[index(it.engine)] = true;
    NodeSync& own = sync[node];
    const std::size_t before = std::max<std::size_t>(own.waits.size(), 1) - 1;
    for (std::size_t i = 0; i < before; ++i) {
      stream.push({.sync = {.wait = own.waits[i]}, .at = at, .op = EventSemaphore{}});
    }
    Instr instr{.at = at, .op = std::move(it.op)};
    if (before < own.waits.size()) instr.sync.wait = own.waits[before];
    instr.sync.update = own.update;
    std::visit(
        [&](auto& op) {
          if constexpr (requires { op.completion; }) op.completion = own.completion;
          if constexpr (requires { op.queue; }) op.queue = queues.of(it.engine, op.mode);
        },
        instr.op);
    relocate(instr.op, placement);
    stream.push(std::move(instr));
    if (it.looped && ++looped[index(it.engine)] % builder.options().merge_tiles == 0) {
      stream.push({.at = at, .op = CompareBranch{.target = 1}});
    }
  }
  Program program;
  for (std::size_t e = 0; e < kEngines; ++e) {
    program.streams[e] = streams[e].finish();
    result.instructions += streams[e].count();
    for (const RolledLoop& loop : streams[e].loops()) {
      result.loops.push_back({number, kAllEngines[e], loop});
    }
  }
  result.trace.code.push_back(std::move(program));
}

/// One warning for each line of the kernel whose tiles spilled.
void warn_of_spills(const Builder& builder, const std::vector<Spill>& spills,
                    std::vector<std::string>& warnings) {
  struct Sum {
    std::uint64_t tiles = 0;
    std::int64_t saved = 0;
    std::int64_t reloaded = 0;
    const Spill* one = nullptr;
  };
  std::map<std::uint32_t, Sum> by_line;
  for (const Spill& spill : spills) {
    Sum& sum = by_line[spill.location];
    ++sum.tiles;
    sum.saved += spill.bytes * spill.saves;
    sum.reloaded += spill.bytes * spill.reloads;
    sum.one = &spill;
  }
  for (const auto& [line, sum] : by_line) {
    const SourceLocation& at = builder.locations()[line];
    warnings.push_back(fmt::format(
        "{}:{}: {} tiles of {} bytes ({}) do not fit in sbuf: {} bytes "
        "went to hbm, {} came back",
        at.file, at.line, sum.tiles, sum.one->bytes, sum.one->name, sum.saved, sum.reloaded));
  }
}

}  // namespace

Finished finish(std::vector<Builder*> builders, const FinishOptions& options) {
  Finished result;
  TraceInfo& info = result.trace.header;
  info.name = options.name;
  info.target = options.target;
  info.work = options.work;
  Locations locations(info);
  HbmPlacer hbm;
  for (std::uint32_t number = 0; number < builders.size(); ++number) {
    Builder& builder = *builders[number];
    if (builder.options().reuse_loads_bytes != 0) result.loads_left_out += reuse_loads(builder);
    if (builder.options().reuse_within_bytes != 0)
      result.loads_left_out += reuse_recent_loads(builder);
    if (builder.options().merge_loads_bytes != 0) merge_loads(builder);
    if (builder.options().merge_stores) merge_stores(builder);
    if (builder.options().sink_memsets) sink_memsets(builder);
    if (builder.options().tables_ahead) load_tables(builder);
    Placement placement = place(builder);
    hbm.place(builder, placement);
    interleave(builder, placement);
    const Dependences dependences = find_dependences(builder, placement);
    const std::vector<std::uint32_t> order = schedule(builder, dependences);
    SyncStats& stats = result.sync.emplace_back();
    std::vector<NodeSync> sync = synchronise(builder, dependences, order, stats, options.drop_wait);
    std::vector<std::uint32_t> mapped;
    for (const SourceLocation& at : builder.locations()) mapped.push_back(locations.map(at));
    list_tensors(builder, placement, mapped, info);
    write_program(builder, placement, order, sync, mapped, number, result);
    info.cores.push_back({number, number, number});
    warn_of_spills(builder, placement.spills, result.warnings);
    for (Spill& spill : placement.spills) {
      spill.location = mapped[spill.location];
      result.spills.push_back(spill);
    }
    result.sbuf_peak_bytes = std::max(result.sbuf_peak_bytes, placement.sbuf_peak_bytes);
    result.psum_peak_bytes = std::max(result.psum_peak_bytes, placement.psum_peak_bytes);
  }
  info.warnings = options.warnings;
  info.warnings.insert(info.warnings.end(), result.warnings.begin(), result.warnings.end());
  return result;
}

}  // namespace trn::isa::frontend
