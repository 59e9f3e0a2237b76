// Semaphores of finished programs: enough, few, and each of them needed.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "isa/base/error.h"
#include "isa/frontend/check_order.h"
#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"
#include "isa/frontend/place.h"
#include "isa/frontend/schedule.h"
#include "isa/frontend/synchronise.h"
#include "isa/text.h"
#include "tests/isa/frontend_kernel.h"
#include "tests/support/instructions.h"

namespace trn::isa::frontend {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using trn::test::columns;
using trn::test::Kernel;
using trn::test::rows;

// ---- an execution with times at random ----

/// A place in memory of two bytes: memory, partition, byte.
using Cell = std::uint64_t;
constexpr std::int64_t kCellBytes = 2;

void cells_of(const Access& operand, std::vector<Cell>& cells) {
  const std::int64_t bytes = bytes_of(operand.dtype);
  std::array<std::uint32_t, kFreeDims> at{};
  for (std::uint64_t i = 0; i < operand.elements(); ++i) {
    std::int64_t byte = operand.offset.base;
    for (std::size_t d = 0; d < operand.dims; ++d) {
      byte += std::int64_t{operand.free[d].stride} * at[d] * bytes;
    }
    for (std::uint64_t p = 0; p < operand.partitions; ++p) {
      for (std::int64_t b = byte; b < byte + bytes; b += kCellBytes) {
        cells.push_back((static_cast<Cell>(operand.memory) << 60U) +
                        ((operand.start_partition + p) << 48U) + static_cast<Cell>(b));
      }
    }
    for (std::size_t d = 0; d < operand.dims && ++at[d] == operand.free[d].size; ++d) at[d] = 0;
  }
}
void cells_of(const DmaSide& operand, std::vector<Cell>& cells) {
  std::array<std::uint32_t, kFreeDims> at{};
  for (std::uint64_t i = 0; i < operand.elements(); ++i) {
    std::int64_t address = operand.address.base;
    for (std::size_t d = 0; d < operand.dims; ++d) {
      address += operand.pattern[d].stride_bytes * at[d];
    }
    std::int64_t partition = 0;
    if (operand.memory == Memory::Sbuf) {
      partition = address / kSbufPartitionStride;
      address %= kSbufPartitionStride;
    }
    for (std::int64_t b = address; b < address + operand.element_bytes; b += kCellBytes) {
      cells.push_back((static_cast<Cell>(operand.memory) << 60U) +
                      (static_cast<Cell>(partition) << 48U) + static_cast<Cell>(b));
    }
    for (std::size_t d = 0; d < operand.dims && ++at[d] == operand.pattern[d].size; ++d) at[d] = 0;
  }
}

DmaCompletion completion_of(const Op& op) {
  return std::visit(
      [](const auto& it) {
        if constexpr (requires { it.completion; }) {
          return it.completion;
        } else {
          return DmaCompletion{};
        }
      },
      op);
}

/// The call that made a transfer, in a dimension of its `index` that none has.
void tag(DmaDirect2d& transfer, int call) {
  transfer.index.free.back().size = static_cast<std::uint32_t>(call);
}
std::uint32_t tag_of(const DmaDirect2d& transfer) { return transfer.index.free.back().size; }

/// Which call made each instruction. A transfer's is in its `index`, which it has no other use for
/// (see tag); all others of an engine keep the kernel's order.
using Calls = std::array<std::vector<std::uint32_t>, kEngines>;

/// The streams of a program, run with times at random: an engine issues in order and completes in
/// order, transfers complete whenever.
class Execution {
 public:
  Execution(const Trace& trace, const Calls& calls) {
    std::array<std::size_t, kEngines> seen{};
    for (std::size_t e = 0; e < kEngines; ++e) {
      streams_[e] = unroll(trace.code[0].streams[e]);
      for (std::uint32_t i = 0; i < streams_[e].size(); ++i) {
        const Instr& instr = streams_[e][i];
        Item item{e, i, 0, is_transfer(instr.op)};
        for_each_memory_operand(instr.op, [&](std::string_view name, const auto& operand) {
          cells_of(operand, is_result(name) ? item.written : item.read);
        });
        for (auto* cells : {&item.written, &item.read}) {
          std::sort(cells->begin(), cells->end());
        }
        if (item.transfer) {
          item.call = tag_of(std::get<DmaDirect2d>(instr.op));
        } else if (!item.written.empty() || !item.read.empty()) {
          item.call = calls[e].at(seen[e]++);
        }
        items_.push_back(std::move(item));
      }
    }
    find_conflicts();
  }

  /// Runs once; the first thing that went wrong, or nothing.
  std::string run(std::uint32_t seed) {
    std::mt19937 random(seed);
    // Some things are slow throughout, others now and then.
    std::array<double, kEngines> slow{};
    for (double& factor : slow) factor = std::exp2(static_cast<double>(random() % 8));
    const auto time = [&](double factor) {
      return factor * std::exp2(static_cast<double>(random() % 6));
    };
    std::vector<double> begin(items_.size(), kNever);
    std::vector<double> end(items_.size(), kNever);
    std::array<double, kEngines> free{};
    std::array<double, kEngines> last_end{};
    std::array<std::uint32_t, kEngines> next{};
    struct Change {
      double at;
      SemaphoreId semaphore;
      std::int64_t by;
    };
    std::vector<Change> pending;
    std::vector<std::int64_t> value(kSemaphores, 0);
    double now = 0;
    for (;;) {
      // What has begun to hold by now is seen by all; then time goes on to the next change.
      bool progress = true;
      while (progress) {
        progress = false;
        for (std::size_t e = 0; e < kEngines; ++e) {
          if (next[e] >= streams_[e].size() || free[e] > now) continue;
          const std::uint32_t i = next[e];
          const Instr& instr = streams_[e][i];
          if (instr.sync.wait.present() &&
              value[instr.sync.wait.semaphore] < instr.sync.wait.value.base) {
            continue;
          }
          const std::size_t item = first_[e] + i;
          begin[item] = now;
          double done = now;
          if (items_[item].transfer) {
            done = now + time(8);
            end[item] = done + time(8);
            free[e] = now + time(0.1);
            const DmaCompletion completion = completion_of(instr.op);
            for (int part = 0; part < 16; ++part) {  // each engine in its own time
              const double share = static_cast<double>(random() % 100) / 100.0;
              pending.push_back({part == 0 ? end[item] : now + (end[item] - now) * share,
                                 completion.semaphore, completion.increment / 16});
            }
            if (instr.sync.update.present()) {
              last_end[e] = std::max(last_end[e], free[e]);
              pending.push_back({last_end[e], instr.sync.update.semaphore, 1});
            }
          } else {
            // The next may begin before this one has completed.
            free[e] = now + time(0.1);
            last_end[e] = std::max({last_end[e], free[e], now + time(slow[e])});
            end[item] = last_end[e];
            if (instr.sync.update.present()) {
              pending.push_back({end[item], instr.sync.update.semaphore, 1});
            }
          }
          ++next[e];
          progress = true;
        }
      }
      double soonest = kNever;
      for (const Change& change : pending) soonest = std::min(soonest, change.at);
      for (const double at : free) {
        if (at > now) soonest = std::min(soonest, at);
      }
      if (soonest == kNever) break;
      now = soonest;
      std::erase_if(pending, [&](const Change& change) {
        if (change.at > now) return false;
        value[change.semaphore] += change.by;
        return true;
      });
    }
    for (std::size_t e = 0; e < kEngines; ++e) {
      if (next[e] < streams_[e].size()) {
        return fmt::format("{} #{} never begins", name_of(kAllEngines[e]), next[e]);
      }
    }
    for (const auto& [first, second] : conflicts_) {
      if (begin[second] < end[first]) {
        return fmt::format("call {} begins at {:.1f}, before call {} is over at {:.1f}",
                           items_[second].call, begin[second], items_[first].call, end[first]);
      }
    }
    return {};
  }

  [[nodiscard]] std::size_t conflicts() const { return conflicts_.size(); }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Item {
    std::size_t engine = 0;
    std::uint32_t index = 0;
    std::uint32_t call = 0;
    bool transfer = false;
    std::vector<Cell> written{};
    std::vector<Cell> read{};
  };

  static bool meet(const std::vector<Cell>& a, const std::vector<Cell>& b) {
    for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end();) {
      if (*i == *j) return true;
      *i < *j ? ++i : ++j;
    }
    return false;
  }

  void find_conflicts() {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (items_[i].index == 0) first_[items_[i].engine] = i;
    }
    for (std::size_t i = 0; i < items_.size(); ++i) {
      for (std::size_t j = 0; j < items_.size(); ++j) {
        const Item& a = items_[i];
        const Item& b = items_[j];
        if (a.call > b.call || (a.call == b.call && i >= j) || i == j) continue;
        // Within an engine results are written in order, and operands are read before.
        const bool in_order = a.engine == b.engine && !a.transfer && !b.transfer;
        if (meet(a.written, b.read) ||
            (!in_order && (meet(a.written, b.written) || meet(a.read, b.written)))) {
          conflicts_.emplace_back(i, j);
        }
      }
    }
  }

  std::array<std::vector<Instr>, kEngines> streams_{};
  std::array<std::size_t, kEngines> first_{};
  std::vector<Item> items_{};
  std::vector<std::pair<std::size_t, std::size_t>> conflicts_{};
};

// ---- programs at random ----

/// A small program: loads, stores, copies, sums, products, in place and through aliases. Without
/// the calls in `left_out`, to find the smallest program that fails.
Calls write_random(Kernel& kernel, std::uint32_t seed, const std::set<int>& left_out) {
  Calls calls;
  std::mt19937 random(seed);
  constexpr std::array<std::uint32_t, 3> kLines = {1, 4, 1000};  // few: the calls are in loops
  const std::uint32_t lines = kLines[random() % kLines.size()];
  const auto pick = [&](std::uint32_t n) { return static_cast<std::size_t>(random() % n); };
  const View input = kernel.hbm({64, 64}, Dtype::Fp32, "in", TensorKind::Input);
  const View output = kernel.hbm({64, 64}, Dtype::Fp32, "out", TensorKind::Output);
  const View scratch = kernel.hbm({64, 64});
  const View table = kernel.hbm({64, 32});  // all of it is picked: the checker knows no extents
  std::vector<View> tiles;
  for (int i = 0; i < 3; ++i) tiles.push_back(kernel.sbuf({64, 32}));
  tiles.push_back(kernel.sbuf_at(8192, {64, 32}));
  tiles.push_back(kernel.sbuf_at(8192 + 64, {64, 32}));  // from the other's middle
  const View weights = kernel.sbuf({64, 64}, Dtype::Bf16);
  const View one = kernel.sbuf({64, 1});
  const View picks = kernel.sbuf({64, 1}, Dtype::Int32);
  const std::array<View, 2> banks = {kernel.psum({64, 32}), kernel.psum({64, 32})};
  const auto part = [&](const View& view) {  // some rows and columns
    const View some = rows(view, pick(2) != 0 ? 32 : 0, 32);
    const std::int64_t half = some.dims[1].size / 2;
    const auto start = static_cast<std::int64_t>(pick(2));
    return pick(2) != 0 ? columns(some, start * half, half) : columns(some, start, half, 2);
  };
  const auto tile = [&] { return tiles[pick(5)]; };
  const auto half = [&](const View& view) { return columns(view, pick(2) != 0 ? 32 : 0, 32); };
  const Call product{.name = "nisa.nc_matmul"};
  constexpr std::array<Engine, 2> kAdders = {Engine::Vector, Engine::GpSimd};
  constexpr std::array<Engine, 3> kCopiers = {Engine::Vector, Engine::Scalar, Engine::GpSimd};
  std::size_t tagged = 0;
  const int length = 10 + static_cast<int>(pick(30));
  for (int i = 0; i < length; ++i) {
    kernel.line(2 + static_cast<std::uint32_t>(i) % lines);
    // All is picked, also for what is left out.
    const std::size_t kind = pick(15);
    const View a = tile();
    const View b = tile();
    const View c = tile();
    const View a_part = part(a);
    const View b_part = part(b);
    const View from = half(pick(2) != 0 ? input : scratch);
    const View to = half(pick(2) != 0 ? output : scratch);
    const View moving = half(weights);
    const View& bank = banks[pick(2)];
    const Engine adder = kAdders[pick(2)];
    const Engine copier = kCopiers[pick(3)];
    if (left_out.contains(i)) continue;
    switch (kind) {
      case 0:
      case 1:
        kernel.load(a, from);
        break;
      case 2:
        kernel.load(to, a);
        break;
      case 3:
        kernel.copy(a_part, b_part, copier);
        break;
      case 4:
        kernel.add(a, b, c, adder);
        break;
      case 5:
        kernel.add(a, a, a, adder);
        break;
      case 6:
        kernel.copy(moving, a, copier);
        break;
      case 7:
        kernel.builder().matmul(product, bank, weights, moving);
        break;
      case 8:
        kernel.copy(a, bank, copier == Engine::GpSimd ? Engine::Vector : copier);
        break;
      case 9:
        kernel.fill(a_part, adder);
        break;
      case 10:
        kernel.builder().activation({.name = "nisa.activation"}, a, ActivationFunction::Exp, b,
                                    {.reduce_result = one});
        break;
      case 11:
        kernel.builder().transpose({.name = "nisa.nc_transpose"}, rows(a, 0, 32), rows(b, 32, 32));
        break;
      case 13:
        kernel.load(table, a);
        break;
      case 12:
        kernel.builder().dma_copy({.name = "nisa.dma_copy"}, a, table, {.index = picks});
        break;
      default:
        kernel.load(a_part, b_part);
    }
    std::vector<Node>& nodes = kernel.builder().nodes();
    for (; tagged < nodes.size(); ++tagged) {
      if (auto* transfer = std::get_if<DmaDirect2d>(&nodes[tagged].op)) {
        tag(*transfer, i);
      } else {
        calls[index(nodes[tagged].engine)].push_back(static_cast<std::uint32_t>(i));
      }
    }
  }
  return calls;
}

Options random_options(std::uint32_t seed) {
  constexpr std::array<std::uint32_t, 4> kMaxima = {16, 32, 48, 65535};
  Options options;
  options.semaphore_max = kMaxima[seed % 4];
  options.roll = seed % 3 != 0;
  options.waits_at_weights = seed % 5 != 0;
  options.dma_lookahead = seed % 2 == 0 ? 64 : 0;
  return options;
}

Finished random_program(std::uint32_t seed, std::int64_t drop = -1,
                        const std::set<int>& left_out = {}) {
  Kernel kernel(random_options(seed));
  write_random(kernel, seed, left_out);
  return kernel.finish(drop);
}

std::string streams_text(const Program& program) {
  std::string text;
  for (std::size_t e = 0; e < kEngines; ++e) {
    for (const Instr& instr : program.streams[e]) {
      text += fmt::format("\n  {} {}", name_of(kAllEngines[e]), instruction_text(instr));
    }
  }
  return text;
}

/// The streams of the program of a seed, with as few calls as still fail.
template <class Fails>
std::string smallest(std::uint32_t seed, const Fails& fails) {
  std::set<int> left_out;
  for (int i = 39; i >= 0; --i) {
    left_out.insert(i);
    if (!fails(left_out)) left_out.erase(i);
  }
  return streams_text(random_program(seed, -1, left_out).trace.code[0]);
}

TEST(CheckOrder, ProvesProgramsAtRandom) {
  const auto finding = [](std::uint32_t seed, const std::set<int>& left_out) {
    const auto found = check_order(random_program(seed, -1, left_out).trace.code[0], 1);
    return found.empty() ? std::string() : found[0];
  };
  for (std::uint32_t seed = 0; seed < 400; ++seed) {
    const std::string found = finding(seed, {});
    if (found.empty()) continue;
    FAIL() << "seed " << seed << ": " << found << smallest(seed, [&](const std::set<int>& without) {
      return !finding(seed, without).empty();
    });
  }
}

TEST(Synchronise, OrdersAllThatMeetsWhateverTheTimes) {
  const auto wrong = [](std::uint32_t seed, const std::set<int>& left_out) {
    Options options = random_options(seed);
    options.sink_memsets = false;  // calls keep their places
    Kernel kernel(options);
    const Calls calls = write_random(kernel, seed, left_out);
    Execution execution(kernel.finish().trace, calls);
    for (std::uint32_t run = 0; run < 10; ++run) {
      std::string found = execution.run(1000 * seed + run);
      if (!found.empty()) return found;
    }
    return std::string();
  };
  for (std::uint32_t seed = 0; seed < 200; ++seed) {
    const std::string found = wrong(seed, {});
    if (found.empty()) continue;
    FAIL() << "seed " << seed << ": " << found << smallest(seed, [&](const std::set<int>& without) {
      return !wrong(seed, without).empty();
    });
  }
}

TEST(CheckOrder, FindsEachWaitThatIsLeftOut) {
  // The n-th wait of a program without some calls that goes without being noticed, if any.
  const auto unnoticed = [](std::uint32_t seed, const std::set<int>& left_out) {
    const std::uint64_t waits = random_program(seed, -1, left_out).sync[0].waits;
    for (std::uint64_t n = 0; n < waits; ++n) {
      const Finished made = random_program(seed, static_cast<std::int64_t>(n), left_out);
      if (check_order(made.trace.code[0], 1).empty()) return static_cast<int>(n);
    }
    return -1;
  };
  for (std::uint32_t seed = 0; seed < 150; ++seed) {
    const int wait = unnoticed(seed, {});
    if (wait < 0) continue;
    FAIL() << "seed " << seed << " without wait " << wait
           << ", smallest:" << smallest(seed, [&](const std::set<int>& without) {
                return unnoticed(seed, without) >= 0;
              });
  }
}

/// A loop that loads a tile and works on it: its loads take turns with 32 semaphores.
Calls write_loop(Kernel& kernel, int iterations, bool tagged = true) {
  Calls calls;
  const View input = kernel.hbm({32, 16}, Dtype::Fp32);
  const View sum = kernel.sbuf({32, 16});
  kernel.fill(sum);
  calls[index(Engine::Vector)].push_back(0);
  for (int i = 1; i <= 2 * iterations; i += 2) {
    kernel.line(2);
    const View tile = kernel.sbuf({32, 16});
    kernel.load(tile, input);
    auto& transfer = std::get<DmaDirect2d>(kernel.builder().nodes().back().op);
    if (tagged) tag(transfer, i);
    kernel.line(3);
    kernel.add(sum, sum, tile);
    calls[index(Engine::Vector)].push_back(static_cast<std::uint32_t>(i + 1));
  }
  return calls;
}

TEST(Synchronise, ASemaphoreThatIsFullIsFollowedByAFreshOne) {
  for (const std::uint32_t max : {16U, 32U, 65535U}) {
    const Options options{.prefetch_tiles = 64, .semaphore_max = max};
    Kernel kernel(options);
    const Calls calls = write_loop(kernel, 120);
    const Finished made = kernel.finish();
    for (const auto& stream : made.trace.code[0].streams) {
      for (const Instr& instr : unroll(stream)) {
        const Wait& wait = instr.sync.wait;
        EXPECT_TRUE(!wait.present() || wait.value.base <= max);
      }
    }
    EXPECT_THAT(check_order(made.trace.code[0], 1), IsEmpty());
    Execution execution(made.trace, calls);
    for (std::uint32_t run = 0; run < 10; ++run) {
      const std::string wrong = execution.run(run);
      ASSERT_EQ(wrong, "") << "run " << run << streams_text(made.trace.code[0]);
    }
  }
}

TEST(CheckOrder, FindsEachWaitThatIsLeftOutOfALoop) {
  const auto made = [](std::int64_t drop) {
    Kernel kernel({.prefetch_tiles = 2});
    write_loop(kernel, 110, false);  // its semaphores come round after 32
    return kernel.finish(drop);
  };
  const Finished whole = made(-1);
  EXPECT_FALSE(whole.loops.empty());
  EXPECT_THAT(check_order(whole.trace.code[0]), IsEmpty());
  for (std::uint64_t n = 0; n < whole.sync[0].waits; ++n) {
    const Finished broken = made(static_cast<std::int64_t>(n));
    EXPECT_FALSE(check_order(broken.trace.code[0], 1).empty()) << "without wait " << n;
  }
}

TEST(Synchronise, RefusesMoreCountsThanSemaphoresHave) {
  Kernel kernel({.prefetch_tiles = 64, .reuse_within_bytes = 0, .semaphore_max = 16});
  write_loop(kernel, 127);
  try {
    for (int again = 0; again < 20; ++again) write_loop(kernel, 127);
    kernel.finish();
    FAIL() << "was not refused";
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("semaphores of 16; trace it in parts"));
  }
}

TEST(Synchronise, AProductOfTwoFreshTilesWaitsTwice) {
  // One wait at LDWEIGHTS and one EVENT_SEMAPHORE before it, as in AWS's own programs: MATMUL, and
  // the product's second half, follow from those.
  constexpr std::uint64_t kProducts = 32;
  Kernel kernel({.roll = false});
  const View lhs = kernel.hbm({128, 128 * 32}, Dtype::Fp32, "lhs", TensorKind::Input);
  const View rhs = kernel.hbm({128, 128 * 32}, Dtype::Fp32, "rhs", TensorKind::Input);
  const View bank = kernel.psum({128, 128});
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(kProducts); ++k) {
    kernel.line(2);
    const View a = kernel.sbuf({128, 128});
    kernel.load(a, columns(lhs, 128 * k, 128));
    kernel.line(3);
    const View b = kernel.sbuf({128, 128});
    kernel.load(b, columns(rhs, 128 * k, 128));
    kernel.line(4).matmul({.name = "nisa.nc_matmul"}, bank, a, b);
  }
  const View sum = kernel.sbuf({128, 128});
  kernel.copy(sum, bank);
  const Finished made = kernel.finish();
  std::uint64_t waits = 0;
  for (const Instr& instr : made.trace.code[0].streams[index(Engine::Tensor)]) {
    waits += instr.sync.wait.present();
  }
  EXPECT_EQ(waits, 2 * kProducts);
  // Once all places have been used, each load waits for the product before in its place.
  const std::uint64_t places = Options{}.prefetch_tiles;
  EXPECT_LE(made.sync[0].waits, 2 * kProducts + 2 * (kProducts - places) + 1);
  EXPECT_THAT(check_order(made.trace.code[0]), IsEmpty());
}

TEST(Synchronise, WhatFollowsFromAnotherWaitNeedsNone) {
  // load -> Vector -> GpSimd: GpSimd reads the loaded tile, too, but Vector had waited for it.
  Kernel kernel({.roll = false});
  const View in = kernel.hbm({128, 64});
  const View tile = kernel.sbuf({128, 64});
  const View twice = kernel.sbuf({128, 64});
  const View sum = kernel.sbuf({128, 64});
  kernel.load(tile, in);
  kernel.add(twice, tile, tile);
  kernel.add(sum, tile, twice, Engine::GpSimd);
  EXPECT_EQ(kernel.finish().sync[0].waits, 2U);
}

/// Where the store stands among the transfers of GpSimd: a load, a store of what becomes of it,
/// maybe a fence, and another load.
std::size_t position_of_store(bool fence) {
  Kernel kernel({.roll = false});
  const View in = kernel.hbm({128, 64}, Dtype::Fp32, "in", TensorKind::Input);
  const View other = kernel.hbm({128, 64}, Dtype::Fp32, "other", TensorKind::Input);
  const View out = kernel.hbm({128, 64}, Dtype::Fp32, "out", TensorKind::Output);
  const View tile = kernel.sbuf({128, 64});
  const View twice = kernel.sbuf({128, 64});
  const View next = kernel.sbuf({128, 64});
  kernel.load(tile, in);
  kernel.add(twice, tile, tile);
  kernel.load(out, twice);
  if (fence) kernel.builder().fence();
  kernel.load(next, other);
  std::size_t transfers = 0;
  for (const Instr& instr : kernel.finish().trace.code[0].streams[index(Engine::GpSimd)]) {
    const auto* copy = std::get_if<DmaDirect2d>(&instr.op);
    if (copy == nullptr) continue;
    if (copy->dst.memory == Memory::Hbm) return transfers;
    ++transfers;
  }
  return transfers;
}

TEST(Schedule, ALoadOvertakesAStoreThatWaits) { EXPECT_EQ(position_of_store(false), 2U); }

TEST(Schedule, NothingOvertakesAFence) { EXPECT_EQ(position_of_store(true), 1U); }

// ---- the checker itself, on programs by hand ----

class Hand {
 public:
  Instr& add(Engine engine, const Op& op) {
    auto& stream = program.streams[index(engine)];
    stream.push_back({.op = op});
    return stream.back();
  }
  Instr& fill(Engine engine, std::int64_t byte) {
    Memset op;
    op.dst = test::sbuf(16, Dtype::Fp32, byte);
    op.value.kind = ScalarOperand::Kind::Immediate;
    return add(engine, op);
  }
  Instr& copy(Engine engine, std::int64_t to, std::int64_t from) {
    return add(engine, Copy{test::sbuf(16, Dtype::Fp32, from), test::sbuf(16, Dtype::Fp32, to)});
  }
  Instr& load(Engine engine, std::int64_t byte, std::uint16_t semaphore) {
    DmaDirect2d op;
    op.dst = {.memory = Memory::Sbuf, .dims = 1, .element_bytes = 64, .address = byte};
    op.dst.pattern[0] = {kSbufPartitionStride, 128};
    op.src = {.memory = Memory::Hbm, .dims = 1, .element_bytes = 64, .address = 0x10000};
    op.src.pattern[0] = {64, 128};
    op.completion = {semaphore, 16};
    return add(engine, op);
  }
  [[nodiscard]] std::vector<std::string> findings() const { return check_order(program); }
  Program program{};
};
Wait at_least(SemaphoreId semaphore, std::int64_t value) {
  return {semaphore, WaitCondition::GreaterEqual, value};
}

TEST(CheckOrder, NamesBothOfARace) {
  Hand hand;
  hand.fill(Engine::Vector, 0);
  hand.copy(Engine::GpSimd, 64, 0);
  EXPECT_THAT(hand.findings(),
              ElementsAre(AllOf(HasSubstr("Vector #0 MEMSET"), HasSubstr("GpSimd #0 COPY"),
                                HasSubstr("in either order"))));
}

TEST(CheckOrder, ASemaphoreOrdersTwoEngines) {
  Hand hand;
  hand.fill(Engine::Vector, 0).sync.update.semaphore = 1;
  hand.copy(Engine::GpSimd, 64, 0).sync.wait = at_least(1, 1);
  EXPECT_THAT(hand.findings(), IsEmpty());
}

TEST(CheckOrder, AnEngineWaitsForItsOwnResultBeforeItReadsIt) {
  Hand hand;
  hand.fill(Engine::Vector, 0);
  hand.copy(Engine::Vector, 64, 0);
  EXPECT_THAT(hand.findings(), SizeIs(1));
}

TEST(CheckOrder, AnEngineOverwritesInOrder) {
  Hand hand;
  hand.fill(Engine::Vector, 0);
  hand.fill(Engine::Vector, 0);
  EXPECT_THAT(hand.findings(), IsEmpty());
}

TEST(CheckOrder, FindsAWaitThatNothingMeets) {
  Hand hand;
  hand.fill(Engine::Vector, 0).sync.wait = at_least(7, 1);
  EXPECT_THAT(hand.findings(), ElementsAre(HasSubstr("waits for what never comes")));
}

TEST(CheckOrder, FindsTwoThatWaitForEachOther) {
  Hand hand;
  Instr& a = hand.fill(Engine::Vector, 0);
  a.sync = {.wait = at_least(2, 1), .update = {.semaphore = 1}};
  Instr& b = hand.fill(Engine::GpSimd, 64);
  b.sync = {.wait = at_least(1, 1), .update = {.semaphore = 2}};
  EXPECT_THAT(hand.findings(), Not(IsEmpty()));
}

TEST(CheckOrder, FindsACountThatTwoTransfersShare) {
  // Either could be the one that is over at 16.
  Hand hand;
  hand.load(Engine::Sync, 0, 5);
  hand.load(Engine::Sync, 64, 5);
  hand.copy(Engine::Vector, 128, 0).sync.wait = at_least(5, 16);
  EXPECT_THAT(hand.findings(), Not(IsEmpty()));
}

TEST(CheckOrder, TransfersInTurnMayShareACount) {
  Hand hand;
  hand.load(Engine::Sync, 0, 5);
  hand.load(Engine::Sync, 64, 5).sync.wait = at_least(5, 16);
  hand.copy(Engine::Vector, 128, 0).sync.wait = at_least(5, 16);
  EXPECT_THAT(hand.findings(), IsEmpty());
}

TEST(CheckOrder, ATriggerThatIsOverIsNoTransferThatIsOver) {
  Hand hand;
  hand.load(Engine::Sync, 0, 5).sync.update.semaphore = 1;
  hand.copy(Engine::Vector, 64, 0).sync.wait = at_least(1, 1);
  EXPECT_THAT(hand.findings(), SizeIs(1));
}

TEST(CheckOrder, ReportsAsMuchAsAskedFor) {
  Hand hand;
  for (int i = 0; i < 5; ++i) {
    hand.fill(Engine::Vector, 0);
    hand.fill(Engine::GpSimd, 0);
  }
  EXPECT_THAT(check_order(hand.program, 3), SizeIs(3));
}

// ---- products that overtake ----

/// What the cells of memory hold after nodes in their order: what made it, of what.
class Meaning {
 public:
  Meaning(const Builder& builder, const Placement& placement) {
    for (const Node& node : builder.nodes()) run(node, placement);
  }
  /// Of results in HBM, by address.
  [[nodiscard]] const std::map<std::int64_t, std::size_t>& results() const { return results_; }

 private:
  static constexpr std::int64_t kBytes = 128;  // tiles of this test are multiples of it

  static void mix(std::size_t& hash, std::size_t more) {
    hash = (hash ^ more) * 0x9e3779b97f4a7c15ULL + 1;
  }

  void run(const Node& node, const Placement& placement) {
    std::size_t hash = node.op.index();
    std::vector<std::pair<int, std::int64_t>> written;
    const auto* product = std::get_if<Matmul>(&node.op);
    if (product != nullptr) mix(hash, weights_);
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      const std::int64_t base = address_of(operand).base;
      if (operand.memory == Memory::Hbm) {
        if (is_result(name)) {
          written.emplace_back(-1, base);
        } else {
          mix(hash, static_cast<std::size_t>(base));
        }
        return;
      }
      const std::int64_t at = bytes_in(base) + placement.address[index(storage_of(base))];
      Region region;
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand)>, DmaSide>) {
        region = region_of(operand, at, 0);
      } else {
        region = region_of(operand, at);
      }
      const bool result = is_result(name);
      for (std::int64_t b = region.begin / kBytes; b < region.end / kBytes; ++b) {
        const std::pair cell(static_cast<int>(operand.memory), b);
        if (result) written.push_back(cell);
        if (!result || (product != nullptr && !product->start)) mix(hash, cells_[cell]);
      }
    });
    if (std::holds_alternative<LdWeights>(node.op)) weights_ = hash;
    for (const auto& [memory, at] : written)
      (memory < 0 ? results_[at] : cells_[{memory, at}]) = hash;
  }

  std::size_t weights_ = 0;
  std::map<std::pair<int, std::int64_t>, std::size_t> cells_{};
  std::map<std::int64_t, std::size_t> results_{};
};

constexpr std::int64_t kBlockTiles = 8;
constexpr std::int64_t kChains = 2;

/// Two blocks of products, [128, 2 x 512], whose tiles take nearly all of 20 KiB: the second
/// block's come into the places of the first's. Further chains make the same results again.
Kernel two_blocks(std::uint32_t lookahead, Dtype dtype = Dtype::Bf16,
                  std::int64_t chains = kChains) {
  Kernel kernel({.sbuf_partition_bytes = 20 * 1024 * bytes_of(dtype) / 2,
                 .lookahead = lookahead,
                 .roll = false});
  const View lhs = kernel.hbm({2 * kBlockTiles * 128, 128}, dtype, "lhs", TensorKind::Input);
  const View rhs = kernel.hbm({2 * kBlockTiles * 128, 1024}, dtype, "rhs", TensorKind::Input);
  const View out = kernel.hbm({128, 2 * chains * 512}, dtype, "out", TensorKind::Output);
  const Call call{.name = "nisa.nc_matmul"};
  for (std::int64_t block = 0; block < 2; ++block) {
    std::vector<View> wide;
    std::vector<View> narrow;
    for (std::int64_t k = 0; k < kBlockTiles; ++k) {
      const std::int64_t row = (block * kBlockTiles + k) * 128;
      kernel.line(2);
      wide.push_back(kernel.sbuf({128, 1024}, dtype));
      kernel.load(wide.back(), rows(rhs, row, 128));
      kernel.line(3);
      narrow.push_back(kernel.sbuf({128, 128}, dtype));
      kernel.load(narrow.back(), rows(lhs, row, 128));
    }
    for (std::int64_t chain = 0; chain < chains; ++chain) {
      kernel.line(4);
      const View bank = kernel.psum({128, 512});
      for (std::int64_t k = 0; k < kBlockTiles; ++k)
        kernel.builder().matmul(
            call, bank, narrow[static_cast<std::size_t>(k)],
            columns(wide[static_cast<std::size_t>(k)], chain % kChains * 512, 512));
      kernel.line(5);
      const View result = kernel.sbuf({128, 512}, dtype);
      kernel.copy(result, bank);
      kernel.builder().activation({.name = "nisa.activation"}, result, ActivationFunction::Exp,
                                  result);
      kernel.load(columns(out, (block * chains + chain) * 512, 512), result);
    }
  }
  return kernel;
}

/// The PSUM banks of the products, in the order of the Tensor engine.
std::vector<std::int64_t> banks_of_products(Kernel kernel) {
  const Finished made = kernel.finish();
  EXPECT_THAT(check_order(made.trace.code[0]), IsEmpty());
  std::vector<std::int64_t> banks;
  for (const Instr& instr : made.trace.code[0].streams[index(Engine::Tensor)]) {
    if (const auto* product = std::get_if<Matmul>(&instr.op)) {
      banks.push_back(product->dst.offset.base / 2048);
    }
  }
  return banks;
}

/// Of the second block.
std::vector<std::int64_t> banks_of_second_block(std::uint32_t lookahead) {
  std::vector<std::int64_t> banks = banks_of_products(two_blocks(lookahead));
  EXPECT_EQ(banks.size(), 2U * kChains * kBlockTiles);
  banks.erase(banks.begin(), banks.begin() + kChains * kBlockTiles);
  return banks;
}

TEST(Interleave, AProductWhoseTilesAreThereOvertakesOnesThatWait) {
  const std::vector<std::int64_t> banks = banks_of_second_block(512);
  // Both chains use a tile as it comes; the kernel has them one after the other.
  EXPECT_NE(banks[0], banks[1]);
  const std::vector<std::int64_t> in_order = banks_of_second_block(0);
  EXPECT_THAT(std::vector(in_order.begin(), in_order.begin() + kBlockTiles), testing::Each(2));
}

TEST(Interleave, TilesWhosePlacesAreWantedAreUsedUpFirst) {
  // Eight chains keep the Tensor engine longer than a tile takes to come. Chain by chain, the first
  // tile's place would come free when the last chain begins.
  std::vector<std::int64_t> banks = banks_of_products(two_blocks(512, Dtype::Fp32, 8));
  banks.resize(banks.size() / 2);
  const auto first_of_last = std::find(banks.begin(), banks.end(), 7);
  EXPECT_NE(std::find(first_of_last, banks.end(), 5), banks.end());
  EXPECT_EQ(banks[0], banks[1]);  // both passes
}

TEST(Interleave, EachResultIsMadeOfTheSame) {
  for (const Dtype dtype : {Dtype::Bf16, Dtype::Fp32}) {
    for (const std::uint32_t lookahead : {4U, 16U, 512U}) {
      Kernel kernel = two_blocks(lookahead, dtype);
      const Placement placement = place(kernel.builder());
      EXPECT_TRUE(placement.by_lifetime);
      const Meaning before(kernel.builder(), placement);
      const std::size_t nodes = kernel.builder().nodes().size();
      interleave(kernel.builder(), placement);
      const Meaning after(kernel.builder(), placement);
      EXPECT_EQ(kernel.builder().nodes().size(), nodes);
      EXPECT_EQ(before.results().size(), 2U * kChains);
      EXPECT_EQ(after.results(), before.results());
    }
  }
}

TEST(Interleave, ActivationsKeepTheirOrder) {
  // They share tables and accumulators.
  const auto activated = [](const Builder& builder) {
    std::vector<std::int64_t> results;
    for (const Node& node : builder.nodes()) {
      if (const auto* it = std::get_if<Activate>(&node.op)) results.push_back(it->dst.offset.base);
    }
    return results;
  };
  Kernel kernel = two_blocks(512);
  const Placement placement = place(kernel.builder());
  const std::vector<std::int64_t> before = activated(kernel.builder());
  EXPECT_THAT(before, SizeIs(2 * kChains));
  interleave(kernel.builder(), placement);
  EXPECT_EQ(activated(kernel.builder()), before);
}

TEST(Interleave, NotOverAFence) {
  Kernel kernel = two_blocks(512);
  kernel.builder().fence();
  const View tile = kernel.sbuf({128, 64});
  kernel.fill(tile);
  const Placement placement = place(kernel.builder());
  std::vector<std::size_t> before;
  for (const Node& node : kernel.builder().nodes()) before.push_back(node.op.index());
  interleave(kernel.builder(), placement);
  std::vector<std::size_t> after;
  for (const Node& node : kernel.builder().nodes()) after.push_back(node.op.index());
  EXPECT_EQ(after, before);
}

}  // namespace
}  // namespace trn::isa::frontend
