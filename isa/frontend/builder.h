#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "isa/frontend/options.h"
#include "isa/frontend/view.h"
#include "isa/instructions.h"
#include "isa/program.h"
#include "isa/validate.h"

namespace trn::isa::frontend {

/// A tensor that a kernel made or was given.
struct Storage {
  std::string name{};
  TensorKind kind = TensorKind::Internal;
  Memory memory = Memory::Hbm;
  Dtype dtype = Dtype::Fp32;
  std::vector<std::int64_t> shape{};
  std::int64_t partitions = 1;        ///< on chip
  std::int64_t first_partition = 0;   ///< of an explicit placement
  std::int64_t bytes = 0;             ///< of one partition on chip, of the whole in HBM
  std::int64_t block_bytes = 0;       ///< of one block (dimensions left of the partitions)
  std::optional<std::int64_t> fixed;  ///< byte within a partition that the kernel asked for
  std::uint32_t location = 0;         ///< where it was made
  bool released = false;
};

/// While a program is built, an address holds the tensor in its upper bits and bytes from the
/// tensor's start below.
inline constexpr unsigned kStorageShift = 40;
constexpr std::int64_t symbolic(StorageId id, std::int64_t bytes) {
  return (std::int64_t{index(id)} << kStorageShift) + bytes;
}
constexpr StorageId storage_of(std::int64_t base) {
  return static_cast<StorageId>(base >> kStorageShift);
}
constexpr std::int64_t bytes_in(std::int64_t base) {
  return base & ((std::int64_t{1} << kStorageShift) - 1);
}

/// One instruction in the kernel's order, its addresses symbolic.
struct Node {
  Op op{};
  Engine engine = Engine::Vector;
  std::uint32_t location = 0;
  std::vector<DmaSide> more_sources{};  ///< of a DMA_COMPUTE, beside its src
  bool waits_for_next = false;          ///< also waits for what the next node needs (LDWEIGHTS)
  bool looped = false;                  ///< a load in a loop that stays one on the device
  bool fence = false;                   ///< no instruction of its engine overtakes it, or it any
};

/// A register of the sequencers, known while tracing: a number, or one that follows a loop counter.
struct TraceRegister {
  std::optional<std::int64_t> value{};  ///< empty: its memory was not given
  std::int32_t loop = -1;               ///< the loop whose counter it follows
  std::int64_t coefficient = 0;         ///< of that counter
};

/// Which parameter of an API call each operand of an instruction comes from.
struct Call {
  std::string name{};
  std::vector<std::pair<std::string, std::string>> operands{};
};

/// An operand of an instruction that has another name in a call of several instructions.
struct Renamed {
  std::string_view operand{};
  std::string_view name{};
};

struct MatmulOptions {
  std::optional<bool> accumulate{};  ///< none: adds unless the region was read since
  bool transpose = false;
  bool one_zero = false;
  bool double_row = false;
  PeTile tile{};
};
struct ActivationOptions {
  ScalarOperand scale{};
  ScalarOperand bias{};
  std::optional<View> reduce_result{};
  AccumulatorCommand command = AccumulatorCommand::Idle;
};
struct DmaOptions {
  std::optional<DescriptorMode> mode{};
  std::optional<Engine> engine{};
  std::optional<View> index{};
  bool index_on_dst = false;
  bool skip_out_of_bounds = false;
};

/// Makes one core's program from calls in program order. Nothing is computed: an instruction has
/// operands and no data. Wrong use throws InputError that names the kernel's line, call, operand,
/// value and limit. `finish` (isa/frontend/finish.h) makes a trace of builders.
class Builder {
 public:
  Builder(std::string name, Options options);

  /// The kernel's line that the next calls come from.
  void at(std::uint32_t location) { location_ = location; }
  std::uint32_t locate(std::string_view file, std::uint32_t line);
  [[noreturn]] void fail(const Call& call, std::string_view operand,
                         std::string_view message) const;

  struct TensorSpec {
    Memory memory = Memory::Sbuf;
    Dtype dtype = Dtype::Fp32;
    std::span<const std::int64_t> shape{};
    std::string name{};
    TensorKind kind = TensorKind::Internal;
    std::size_t partition_dim = 0;  ///< dimensions left of it are blocks along the free axis
    std::optional<std::array<std::int64_t, 2>> address{};  ///< partition and byte
  };
  View tensor(const TensorSpec& spec);
  void release(const View& view);

  /// An operand of an engine. Throws when it needs more than four free dimensions.
  /// as_is keeps its dimensions as they are, also those of size 1: for instructions that count
  /// them.
  Access access(const View& view, const Call& call, std::string_view operand,
                bool as_is = false) const;
  /// A side of a transfer. Throws when it needs more than four dimensions.
  DmaSide pattern(const View& view, const Call& call, std::string_view operand) const;

  /// Adds an instruction; no engine: the builder chooses among those that can.
  template <class T>
  void emit(const Call& call, const T& op, std::optional<Engine> engine = {}) {
    ++calls_[call.name];
    const Engine chosen = engine ? *engine : choose(T::kEngines, Op(op));
    add(call, Op(op), chosen, T::kEngines);
  }

  void matmul(const Call& call, const View& dst, const View& stationary, const View& moving,
              const MatmulOptions& options = {});
  void transpose(const Call& call, const View& dst, const View& src,
                 std::optional<Engine> engine = {});
  void activation(const Call& call, const View& dst, ActivationFunction function, const View& src,
                  const ActivationOptions& options = {});
  void copy(const Call& call, const View& dst, const View& src, std::optional<Engine> engine = {});
  void dma_copy(const Call& call, const View& dst, const View& src, const DmaOptions& options = {});
  void dma_transpose(const Call& call, const View& dst, const View& src,
                     const DmaOptions& options = {});
  void dma_compute(const Call& call, const View& dst, std::span<const View> sources,
                   const DmaOptions& options = {});

  /// Swaps tiles with the other core of the logical core.
  void sendrecv(const Call& call, const View& dst, const View& src, std::int32_t peer, bool gpsimd);

  /// An instruction that only the sequencer sees.
  void sequencer(const Op& op, Engine engine);
  /// Reads a register from memory, which holds `value` as far as anybody knows.
  void register_load(const View& src, std::int64_t value);
  void register_store(const View& dst);
  std::int32_t begin_loop(std::int64_t start, std::int64_t stop, std::int64_t step);
  void end_loop();
  /// No DMA trigger moves across this place.
  void fence() { fence_.fill(true); }

  [[nodiscard]] const Options& options() const { return options_; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::vector<Node>& nodes() const { return nodes_; }
  [[nodiscard]] std::vector<Node>& nodes() { return nodes_; }
  [[nodiscard]] const std::vector<Storage>& storages() const { return storages_; }
  [[nodiscard]] std::vector<Storage>& storages() { return storages_; }
  [[nodiscard]] const std::vector<SourceLocation>& locations() const { return info_.locations; }
  [[nodiscard]] const Storage& storage(StorageId id) const { return storages_[index(id)]; }
  /// API calls by name, how often each made instructions.
  [[nodiscard]] std::map<std::string, std::uint64_t> calls() const {
    return {calls_.begin(), calls_.end()};
  }

 private:
  Engine choose(EngineSet engines, const Op& op) const;
  void add(const Call& call, Op op, Engine engine, EngineSet allowed, Renamed renamed = {});
  void check(const Call& call, const Op& op, Engine engine, Renamed renamed);
  void check_live(const Call& call, std::string_view operand, const View& view) const;
  /// The sides of a transfer, which is cut into several when it has more than four dimensions.
  template <class Emit>
  void transfers(const Call& call, const View& dst, const View& src, const Emit& emit) const;
  DmaSide side(const View& view) const;
  struct Trigger {
    DescriptorMode mode;
    Engine engine;
  };
  Trigger trigger(const Call& call, const View& dst, const View& src,
                  const DmaOptions& options) const;
  View identity(Dtype dtype);
  void multiply(const Call& call, const View& dst, const View& stationary, const View& moving,
                const MatmulOptions& options);
  /// The address of the block of a tensor that an operand begins in.
  [[nodiscard]] std::int64_t block_of(std::int64_t address) const;
  /// When an instruction would be done on an engine, roughly.
  double rough_end(const Op& op, Engine engine) const;

  std::string name_;
  Options options_;
  TraceInfo info_{};
  ValidateLimits limits_{};
  std::vector<Node> nodes_{};
  std::vector<Storage> storages_{};
  std::unordered_map<std::string, std::uint32_t> location_ids_{};
  std::uint32_t location_ = 0;
  std::array<bool, kEngines> fence_{};  ///< of each engine, until its next instruction
  // A rough idea of when things happen, for the choice between engines.
  std::array<double, kEngines> free_ns_{};  ///< when each engine has done what it was given
  /// By tensor, or block of one: when what was written last is there.
  std::unordered_map<std::int64_t, double> ready_ns_{};
  std::map<Dtype, View> identities_{};
  std::unordered_map<std::string, std::uint64_t> calls_{};
  std::vector<bool> accumulating_{};  ///< by PSUM tensor: written by a matmul and not read since
  struct OpenLoop {
    std::int64_t start = 0;
    std::int64_t count = 0;
    std::int64_t step = 1;
    std::size_t first_node = 0;
  };
  std::vector<OpenLoop> loops_{};
};

}  // namespace trn::isa::frontend
