#include "sim/report/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "perfetto_trace.pb.h"
#include "sim/report/live_bytes.h"
#include "sim/report/time_bins.h"
#include "tests/support/paths.h"
#include "tests/support/program_builder.h"
#include "tests/support/random_program.h"
#include "tests/support/recorder.h"
#include "tests/support/scratch.h"

namespace trn::sim {
namespace {

using isa::Engine;
using test::ns;
using test::round_machine;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

namespace proto = perfetto::protos;

/// A slice of a thread, as protobuf's parser and Perfetto's rules for nesting give it.
struct Slice {
  std::string name;
  std::string category;
  std::int64_t start = 0;  // ns
  std::int64_t end = 0;
  std::size_t depth = 0;
  friend bool operator==(const Slice&, const Slice&) = default;
};
[[maybe_unused]] void PrintTo(const Slice& slice, std::ostream* out) {
  *out << slice.category << " " << slice.name << " " << slice.start << " to " << slice.end
       << " at depth " << slice.depth;
}

struct Parsed {
  std::map<std::string, std::vector<Slice>> threads;  // by name
  std::map<std::uint64_t, int> flows;                 // beginnings and ends
  std::map<std::string, std::uint64_t> about;

  /// Time of the outer slices of a category.
  [[nodiscard]] double outer(const std::string& thread, const std::string& category,
                             const std::string& name = {}) const {
    std::int64_t sum = 0;
    for (const Slice& slice : threads.at(thread)) {
      if (slice.depth == 0 && slice.category == category && (name.empty() || slice.name == name))
        sum += slice.end - slice.start;
    }
    return static_cast<double>(sum);
  }
};

std::filesystem::path file() { return test::scratch_folder() / "timeline.pftrace"; }

Parsed parse() {
  proto::Trace trace;
  std::ifstream in(file(), std::ios::binary);
  EXPECT_TRUE(trace.ParseFromIstream(&in));
  std::map<std::uint64_t, std::string> names;
  std::map<std::uint64_t, std::string> categories;
  std::map<std::uint64_t, std::string> arguments;
  std::map<std::uint64_t, std::string> threads;
  std::map<std::uint64_t, std::vector<const proto::TracePacket*>> events;
  Parsed parsed;
  for (const proto::TracePacket& packet : trace.packet()) {
    for (const auto& entry : packet.interned_data().event_names())
      names[entry.iid()] = entry.name();
    for (const auto& entry : packet.interned_data().event_categories())
      categories[entry.iid()] = entry.name();
    for (const auto& entry : packet.interned_data().debug_annotation_names())
      arguments[entry.iid()] = entry.name();
    const proto::TrackDescriptor& track = packet.track_descriptor();
    if (track.has_thread()) {
      threads[track.uuid()] = track.thread().thread_name();
      parsed.threads[track.thread().thread_name()];
    }
    if (!packet.has_track_event()) continue;
    const proto::TrackEvent& event = packet.track_event();
    events[event.track_uuid()].push_back(&packet);
    for (std::uint64_t flow : event.flow_ids()) parsed.flows[flow] += 1;
    for (std::uint64_t flow : event.terminating_flow_ids()) parsed.flows[flow] += 100;
    if (event.type() == proto::TrackEvent::TYPE_INSTANT) {
      for (const proto::DebugAnnotation& entry : event.debug_annotations())
        parsed.about[arguments.at(entry.name_iid())] = entry.uint_value();
    }
  }
  for (auto& [track, packets] : events) {
    if (!threads.contains(track)) continue;
    std::stable_sort(packets.begin(), packets.end(),
                     [](const auto* a, const auto* b) { return a->timestamp() < b->timestamp(); });
    std::vector<Slice>& slices = parsed.threads[threads[track]];
    std::vector<std::size_t> open;
    for (const proto::TracePacket* packet : packets) {
      const proto::TrackEvent& event = packet->track_event();
      const auto at = static_cast<std::int64_t>(packet->timestamp());
      if (event.type() == proto::TrackEvent::TYPE_SLICE_BEGIN) {
        slices.push_back({names.at(event.name_iid()), categories.at(event.category_iids(0)), at, at,
                          open.size()});
        open.push_back(slices.size() - 1);
      } else {
        EXPECT_FALSE(open.empty()) << threads[track] << " at " << at;
        if (open.empty()) break;
        slices[open.back()].end = at;
        open.pop_back();
      }
    }
    EXPECT_TRUE(open.empty()) << threads[track];
  }
  return parsed;
}

/// Tells a timeline of instructions of one engine.
class Teller {
 public:
  explicit Teller(const TimelineOptions& options = {})
      : machine_(round_machine().config), timeline_(file(), options, info_, machine_) {}

  /// Of the Vector engine; what was before the instruction is a stall. Times in ns.
  Teller& add(const isa::Op& op, std::int64_t start, std::int64_t end, std::int64_t stall = 0) {
    isa::Instr instr;
    instr.op = op;
    timeline_.on_instruction({Engine::Vector, sequence_, sequence_, &instr, ns(start), ns(start),
                              ns(end), StallReason::WaitTensor, ns(stall)});
    ++sequence_;
    return *this;
  }
  std::vector<Slice> slices() {
    timeline_.close();
    return parse().threads.at("Vector");
  }
  Timeline& timeline() { return timeline_; }

 private:
  isa::TraceInfo info_;
  MachineConfig machine_;
  Timeline timeline_;
  std::uint64_t sequence_ = 0;
};

TEST(Timeline, AnOverlappedInstructionIsShownUpToTheNext) {
  Teller teller;
  teller.add(test::copy(8), 100, 300).add(isa::Nop{}, 130, 330).add(test::copy(8), 160, 360);
  EXPECT_THAT(teller.slices(), ElementsAre(Slice{"COPY", "instruction", 100, 130, 0},
                                           Slice{"NOP", "instruction", 130, 160, 0},
                                           Slice{"COPY", "instruction", 160, 360, 0}));
}

TEST(Timeline, OneThatEndsWithinAnotherIsInsideIt) {
  Teller teller;
  teller.add(test::copy(8), 100, 300).add(isa::Nop{}, 130, 170).add(isa::Nop{}, 170, 300);
  EXPECT_THAT(teller.slices(), ElementsAre(Slice{"COPY", "instruction", 100, 300, 0},
                                           Slice{"NOP", "instruction", 130, 170, 1},
                                           Slice{"NOP", "instruction", 170, 300, 1}));
}

TEST(Timeline, AStallStandsBeforeItsInstruction) {
  Teller teller;
  teller.add(test::copy(8), 100, 200, 100).add(isa::Nop{}, 250, 260, 50);
  EXPECT_THAT(teller.slices(), ElementsAre(Slice{"wait_tensor", "stall", 0, 100, 0},
                                           Slice{"COPY", "instruction", 100, 200, 0},
                                           Slice{"wait_tensor", "stall", 200, 250, 0},
                                           Slice{"NOP", "instruction", 250, 260, 0}));
}

/// The account charges the whole gap before the COPY, told first, to its reason.
TEST(Timeline, WhatTheSequencerDoesDuringAStallIsInsideIt) {
  Teller teller;
  teller.add(test::copy(8), 500, 600, 300).add(isa::Nop{}, 300, 310).add(isa::Nop{}, 490, 510);
  EXPECT_THAT(teller.slices(), ElementsAre(Slice{"wait_tensor", "stall", 200, 500, 0},
                                           Slice{"NOP", "instruction", 300, 310, 1},
                                           Slice{"NOP", "instruction", 490, 500, 1},
                                           Slice{"COPY", "instruction", 500, 600, 0}));
}

TEST(Timeline, ASemaphoreInstructionHidesNoActivity) {
  Teller teller;
  teller.add(test::copy(8), 100, 200).add(isa::EventSemaphore{}, 150, 260);
  teller.add(test::copy(8), 240, 300, 40);
  EXPECT_THAT(teller.slices(), ElementsAre(Slice{"COPY", "instruction", 100, 200, 0},
                                           Slice{"EVENT_SEMAPHORE", "semaphore", 150, 200, 1},
                                           Slice{"wait_tensor", "stall", 200, 240, 0},
                                           Slice{"COPY", "instruction", 240, 300, 0}));
}

TEST(Timeline, TheWindowCutsWhatItOverlaps) {
  Teller teller({.from = ns(150), .to = ns(255)});
  teller.add(test::copy(8), 100, 200, 100).add(isa::Nop{}, 250, 260, 50).add(isa::Nop{}, 260, 270);
  EXPECT_THAT(teller.slices(), ElementsAre(Slice{"COPY", "instruction", 150, 200, 0},
                                           Slice{"wait_tensor", "stall", 200, 250, 0},
                                           Slice{"NOP", "instruction", 250, 255, 0}));
  EXPECT_EQ(teller.timeline().dropped(), 0);
}

TEST(Timeline, EventsBeyondTheBoundAreCounted) {
  Teller teller({.events = 3});
  teller.add(test::copy(8), 100, 200, 100).add(isa::Nop{}, 250, 260, 50).add(isa::Nop{}, 260, 270);
  EXPECT_EQ(teller.slices().size(), 3);
  EXPECT_EQ(teller.timeline().kept(), 3);
  EXPECT_EQ(teller.timeline().dropped(), 2);
  EXPECT_EQ(parse().about.at("dropped_events"), 2);
}

TEST(Timeline, AFailedRunLeavesWhatThereIs) {
  Teller().add(test::copy(8), 100, 200);
  EXPECT_THAT(parse().threads.at("Vector"), ElementsAre(Slice{"COPY", "instruction", 100, 200, 0}));
}

TEST(Timeline, SaysWhenItCannotBeWritten) {
  const isa::TraceInfo info;
  const MachineConfig machine = round_machine().config;
  EXPECT_THAT([&] { const Timeline timeline("/no/such/folder/x.pftrace", {}, info, machine); },
              ThrowsMessage<InputError>(HasSubstr("cannot be written")));
}

/// With semaphores that random programs do not overflow.
Machine roomy_machine() {
  Machine machine = round_machine();
  machine.config.chip.semaphores.max_value = 65'535;
  return machine;
}

/// Each thread's outer slices are its account, a rounded ns a stretch apart; flows have both ends.
TEST(Timeline, AgreesWithTheAccountOfRandomPrograms) {
  constexpr std::uint32_t kSeeds = 40;
  const Machine machine = roomy_machine();
  for (std::uint32_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const isa::Trace trace = test::RandomProgramMaker(seed).make().trace;
    CoreResult result;
    {
      Timeline timeline(file(), {}, trace.info(), machine.config);
      result = run_core(trace, machine.config, *machine.costs, {.observer = &timeline});
      timeline.close();
    }
    const Parsed parsed = parse();
    for (Engine engine : isa::kAllEngines) {
      const EngineStats& stats = result.engines[isa::index(engine)];
      const std::string name(name_of(engine));
      const auto slack = static_cast<double>(stats.instructions + 1);
      EXPECT_NEAR(parsed.outer(name, "instruction"), to_ns(stats.active), slack) << name;
      for (std::size_t i = 0; i < kStallReasons; ++i) {
        const std::string reason(name_of(static_cast<StallReason>(i)));
        EXPECT_NEAR(parsed.outer(name, "stall", reason), to_ns(stats.stalled[i]), slack)
            << name << " " << reason;
      }
    }
    for (const auto& [flow, ends] : parsed.flows) EXPECT_EQ(ends, 101) << "flow " << flow;
    EXPECT_GE(parsed.flows.size(), result.dma.transfers);
  }
}

TEST(Timeline, FlowsInAWindowHaveBothEnds) {
  const Machine machine = roomy_machine();
  const isa::Trace trace = test::RandomProgramMaker(7).make().trace;
  std::size_t flows = 0;
  for (std::int64_t from = 0; from < 60'000; from += 5'000) {
    Timeline timeline(file(), {.from = ns(from), .to = ns(from + 5'000)}, trace.info(),
                      machine.config);
    run_core(trace, machine.config, *machine.costs, {.observer = &timeline});
    timeline.close();
    const Parsed parsed = parse();
    for (const auto& [flow, ends] : parsed.flows) EXPECT_EQ(ends, 101) << "flow " << flow;
    flows += parsed.flows.size();
  }
  EXPECT_GT(flows, 10);
}

TEST(TimeBins, KeepTheirSumWhenTheyWiden) {
  TimeBins bins(0, kNever, 10);
  double amount = 0;
  for (Time at = 0; at < 1'000'000; at += 977) {
    bins.add(at, at + 500, 3);
    amount += 500 * 3;
  }
  const std::vector<double> means = bins.means();
  EXPECT_LE(means.size(), TimeBins::kMost);
  EXPECT_EQ(bins.width(), 320);  // the smallest of 10, 20, 40 ... that needs at most 4096
  EXPECT_NEAR(std::accumulate(means.begin(), means.end(), 0.0) * 320, amount, 1e-3);
}

TEST(TimeBins, LeaveOutWhatIsOutside) {
  TimeBins bins(100, 200, 10);
  bins.add(0, 100, 1);
  bins.add(95, 105, 1);
  bins.add(115, 135, 2);
  bins.add(195, 300, 1);
  EXPECT_THAT(bins.means(), ElementsAre(0.5, 1, 2, 1, 0, 0, 0, 0, 0, 0.5));
}

/// A partition has 128 bytes: two blocks.
TEST(LiveBytes, AValueLivesFromItsWriteToItsLastRead) {
  LiveBytes memory(128, TimeBins(0, kNever, 10));
  const LiveBytes::Range low{0, 128, 0, 64};
  memory.write(low, 10, 20);
  memory.read(low, 30, 40);
  memory.write(low, 60, 70);  // a new value, never read
  EXPECT_THAT(memory.percent(), ElementsAre(0, 50, 50, 50, 0, 0, 50));
}

TEST(LiveBytes, AnAccumulatedValueIsOne) {
  LiveBytes memory(128, TimeBins(0, kNever, 10));
  const LiveBytes::Range all{0, 64, 0, 128};  // two of the four partitions looked at
  memory.write(all, 0, 10);
  memory.write(all, 30, 40);
  memory.read(all, 40, 50);
  EXPECT_THAT(memory.percent(), ElementsAre(50, 50, 50, 50, 50));
}

TEST(LiveBytes, PartitionsThatAreNotLookedAtCountForNothing) {
  LiveBytes memory(128, TimeBins(0, kNever, 10));
  memory.write({1, 31, 0, 128}, 0, 10);
  EXPECT_THAT(memory.percent(), IsEmpty());
}

}  // namespace
}  // namespace trn::sim
