#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/core/time.h"

namespace trn::sim {

/// Writes a trace in Perfetto's protobuf format, packet by packet: memory holds one buffer and the
/// texts that were given numbers. Perfetto sorts events by time, and those of one time as they
/// stand in the file. Source: perfetto.dev/docs/reference/synthetic-track-event.
class PerfettoWriter {
 public:
  /// Names of texts in the file; each kind has its own. 0: none.
  enum class Category : std::uint64_t {};
  enum class Name : std::uint64_t {};
  enum class Argument : std::uint64_t {};
  enum class Text : std::uint64_t {};
  enum class Place : std::uint64_t {};

  /// Throws InputError when the file cannot be written.
  explicit PerfettoWriter(const std::filesystem::path& path);
  ~PerfettoWriter();
  PerfettoWriter(const PerfettoWriter&) = delete;
  PerfettoWriter& operator=(const PerfettoWriter&) = delete;

  // ---- tracks: uuid is any number, in the whole file one track's ----

  struct Process {
    std::uint64_t uuid = 0;
    std::int32_t pid = 0;
    std::string name;
    std::vector<std::string> labels{};
  };
  struct Thread {
    std::uint64_t uuid = 0;
    std::int32_t pid = 0;
    std::int32_t tid = 0;  ///< threads of a process stand in this order
    std::string name;
  };
  struct Counter {
    std::uint64_t uuid = 0;
    std::uint64_t process = 0;  ///< uuid
    std::int32_t rank = 0;      ///< counters of a process stand in this order
    std::string name;
    std::string unit;
  };
  void add(const Process& process);
  void add(const Thread& thread);
  void add(const Counter& counter);

  // ---- texts ----

  Category category(std::string_view text);
  Name name(std::string_view text);
  Argument argument(std::string_view text);
  Text text(std::string_view text);
  /// Of a text that is not expected again: it is not remembered.
  Text new_text(std::string_view text);
  Place place(const std::string& file, std::uint32_t line);

  // ---- events ----

  void begin_slice(std::uint64_t track, Time at, Category category, Name name,
                   Place place = Place{0});
  void instant(std::uint64_t track, Time at, Category category, Name name);
  /// Of the event begun last; write() ends it.
  void add(Argument name, std::uint64_t value);
  void add(Argument name, double value);
  void add(Argument name, Text value);
  void begin_flow(std::uint64_t flow);
  void end_flow(std::uint64_t flow);
  void write();

  void end_slice(std::uint64_t track, Time at);
  void count(std::uint64_t track, Time at, double value);

  /// Writes what is left. Throws InputError when the disk did not take it all.
  void close();

 private:
  struct Messages;
  using Names = std::unordered_map<std::string, std::uint64_t>;

  void begin(int type, std::uint64_t track, Time at);
  void flush();
  void write_texts();

  std::filesystem::path path_;
  std::ofstream file_;
  std::string buffer_;
  std::unique_ptr<Messages> messages_;
  bool first_ = true;
  Names categories_;
  Names names_;
  Names arguments_;
  Names texts_;
  std::uint64_t text_count_ = 0;
  std::map<std::pair<std::string, std::uint32_t>, std::uint64_t> places_;
};

}  // namespace trn::sim
