#pragma once

#include <cstdint>
#include <tuple>

#include "isa/base/describe.h"

namespace trn::sim {

/// Rates of packets as shares of an engine's bandwidth, and when the first of them moves.
struct DmaDirectionConfig {
  double efficiency = 0;
  double start = 0;
  double stagger = 0;
  double completion = 0;
  static constexpr auto fields() {
    return std::tuple{
        Field{"efficiency", &DmaDirectionConfig::efficiency, "",
              "share of the engine's bandwidth that packets reach"},
        Field{"start", &DmaDirectionConfig::start, "ns",
              "from the end of the trigger (hardware, static) or its start (software) to the first "
              "packet"},
        Field{"stagger", &DmaDirectionConfig::stagger, "ns",
              "from one DMA engine's first packet to the next one's"},
        Field{"completion", &DmaDirectionConfig::completion, "ns",
              "from an engine's semaphore packet to its increment being counted"}};
  }
};

/// Descriptor generation in hardware: a DGE each for Sync and Scalar; and the descriptors that the
/// runtime wrote when it loaded the program, which need no generation.
struct HardwareDgeConfig {
  double trigger_hold = 0;
  double trigger_two_dimensional = 0;
  double trigger_close = 0;
  double close_gap = 0;
  double gap_to_data = 0;
  double gap_to_control = 0;
  double read_restart = 0;
  double read_spread = 0;
  std::uint64_t packet_size = 0;
  DmaDirectionConfig read{};
  DmaDirectionConfig write{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"trigger_hold", &HardwareDgeConfig::trigger_hold, "ns",
              "a trigger holds its engine's sequencer"},
        Field{"trigger_two_dimensional", &HardwareDgeConfig::trigger_two_dimensional, "ns",
              "longer when the pattern has two dimensions"},
        Field{"trigger_close", &HardwareDgeConfig::trigger_close, "ns",
              "longer when the last trigger ended less than close_gap before"},
        Field{"close_gap", &HardwareDgeConfig::close_gap, "ns", "see trigger_close"},
        Field{"gap_to_data", &HardwareDgeConfig::gap_to_data, "ns",
              "from a trigger's end to the next instruction for the engine"},
        Field{"gap_to_control", &HardwareDgeConfig::gap_to_control, "ns",
              "and to the next one that the sequencer executes itself"},
        Field{
            "read_restart", &HardwareDgeConfig::read_restart, "ns",
            "from the end of a transfer on all its engines to the first packet of a read behind it "
            "in its ring, at the least; 0: the read follows at once"},
        Field{"read_spread", &HardwareDgeConfig::read_spread, "ns",
              "within which the engines then start, each in its turn"},
        Field{"packet_size", &HardwareDgeConfig::packet_size, "bytes", "most bytes of a packet"},
        Field{"read", &HardwareDgeConfig::read, "", "HBM to SBUF, or HBM to HBM"},
        Field{"write", &HardwareDgeConfig::write, "", "SBUF to HBM, or SBUF to SBUF"}};
  }
};

/// Descriptors written by GpSimd into rings that the DMA engines fetch.
struct SoftwareDgeConfig {
  double latency = 0;
  double interval = 0;
  double per_element = 0;
  double first_use = 0;
  double hold = 0;
  double hold_write = 0;
  double hold_behind = 0;
  std::uint32_t hold_behind_most = 0;
  std::uint64_t packet_size = 0;
  double cast_overhead = 0;
  double row_overhead = 0;
  double fetch = 0;
  double fetch_per_packet = 0;
  double fetch_restart = 0;
  double fetch_covers = 0;
  double fetch_hidden_by = 0;
  DmaDirectionConfig read{};
  DmaDirectionConfig write{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"latency", &SoftwareDgeConfig::latency, "ns",
              "GpSimd works from the satisfied wait to the trigger, without elements"},
        Field{"interval", &SoftwareDgeConfig::interval, "ns",
              "between triggers that wait for nothing, without elements"},
        Field{"per_element", &SoftwareDgeConfig::per_element, "ns",
              "beside both, each element of the pattern"},
        Field{"first_use", &SoftwareDgeConfig::first_use, "ns",
              "beside the latency, for the first trigger of a kernel"},
        Field{"hold", &SoftwareDgeConfig::hold, "ns", "duration of a read's trigger"},
        Field{"hold_write", &SoftwareDgeConfig::hold_write, "ns", "duration of a write's trigger"},
        Field{"hold_behind", &SoftwareDgeConfig::hold_behind, "ns",
              "longer for each trigger before it in a row"},
        Field{"hold_behind_most", &SoftwareDgeConfig::hold_behind_most, "count",
              "as many of them count"},
        Field{"packet_size", &SoftwareDgeConfig::packet_size, "bytes",
              "elements are joined to packets of at most this"},
        Field{"cast_overhead", &SoftwareDgeConfig::cast_overhead, "ns",
              "each packet of a transfer that converts types"},
        Field{"row_overhead", &SoftwareDgeConfig::row_overhead, "ns",
              "each partition row beyond the first in a write's packet"},
        Field{"fetch", &SoftwareDgeConfig::fetch, "ns",
              "a read whose ring is empty fetches descriptors before its first packet"},
        Field{"fetch_per_packet", &SoftwareDgeConfig::fetch_per_packet, "ns",
              "and each of its packets waits for its descriptor"},
        Field{"fetch_restart", &SoftwareDgeConfig::fetch_restart, "ns",
              "a ring that ran dry is fetched from again no sooner than this"},
        Field{"fetch_covers", &SoftwareDgeConfig::fetch_covers, "ns",
              "transfers that arrive within this of a fetch are part of it"},
        Field{"fetch_hidden_by", &SoftwareDgeConfig::fetch_hidden_by, "ns",
              "a ring with at least this much work ahead hides the fetch"},
        Field{"read", &SoftwareDgeConfig::read, "", "HBM to SBUF, or HBM to HBM"},
        Field{"write", &SoftwareDgeConfig::write, "", "SBUF to HBM, or SBUF to SBUF"}};
  }
};

/// The DMA engines of one core. Source of the figures: docs/sources.md#profiles-dma.
struct DmaConfig {
  std::uint32_t engines = 0;
  std::uint32_t queues = 0;
  double bandwidth_per_engine = 0;
  std::uint32_t partitions_per_engine = 0;
  double packet_overhead = 0;
  double packet_overlap = 0;
  double transpose_efficiency = 0;
  double transpose_on_chip_efficiency = 0;
  double compute_efficiency = 0;
  HardwareDgeConfig hardware{};
  HardwareDgeConfig fixed{};
  SoftwareDgeConfig software{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"engines", &DmaConfig::engines, "count", "DMA engines of a core"},
        Field{"queues", &DmaConfig::queues, "count", "rings of an engine, served in turn"},
        Field{"bandwidth_per_engine", &DmaConfig::bandwidth_per_engine, "B/s",
              "bytes of one engine, reads and writes together"},
        Field{"partitions_per_engine", &DmaConfig::partitions_per_engine, "count",
              "partitions of SBUF that an engine serves"},
        Field{"packet_overhead", &DmaConfig::packet_overhead, "ns", "each packet"},
        Field{"packet_overlap", &DmaConfig::packet_overlap, "ns",
              "a packet's duration, as the profiler has it, reaches into the next"},
        Field{"transpose_efficiency", &DmaConfig::transpose_efficiency, "",
              "share of the copy rate of a transpose from HBM"},
        Field{"transpose_on_chip_efficiency", &DmaConfig::transpose_on_chip_efficiency, "",
              "and of one from SBUF"},
        Field{"compute_efficiency", &DmaConfig::compute_efficiency, "",
              "share of the copy rate of a DMA that adds"},
        Field{"hardware", &DmaConfig::hardware, "", "descriptors made by hardware"},
        Field{"static", &DmaConfig::fixed, "", "descriptors written when the program was loaded"},
        Field{"software", &DmaConfig::software, "", "descriptors made by GpSimd"}};
  }
};

}  // namespace trn::sim
