#pragma once

#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/bytes.h"
#include "isa/codec.h"
#include "isa/program.h"

namespace trn::isa {

/// Version of the trace format that is written, and the only one that is read.
inline constexpr std::uint16_t kTraceVersion = 2;

/// Writes a trace as a stream: memory holds one unfinished block a stream and the directory
/// (16 bytes a block), never the trace. The form is
/// docs/reference/trace-format.md.
class TraceWriter {
 public:
  /// out: binary, outlives the writer; `name` is what messages call it.
  TraceWriter(std::ostream& out, std::string name, Target target);

  /// Adds an instruction to the end of a stream; programs count from 0 without gaps.
  void append(std::uint32_t program, Engine engine, const Instr& instr);
  /// Writes what is left, and all that is not instructions; the last call. info.target is the
  /// target given before. Throws InputError when `out` has failed (a full disk).
  void finish(const TraceInfo& info);

 private:
  struct Block {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct Stream {
    std::uint64_t instructions = 0;
    std::uint32_t pending = 0;  ///< instructions in `buffer`
    SourceRef last{};
    ByteWriter buffer;
    std::vector<Block> blocks;
  };

  void flush(std::size_t stream);
  Block write_chunk(std::uint8_t kind, std::span<const std::uint8_t> payload);
  void write(std::span<const std::uint8_t> bytes);

  std::ostream& out_;
  std::string name_;
  Target target_;
  std::uint64_t offset_ = 0;
  std::vector<Stream> streams_;  ///< program * kEngines + engine
  ByteWriter scratch_;
};

/// Writes program after program, engine after engine: equal traces give equal bytes.
void write_trace(const Code& code, std::ostream& out, std::string_view name);
/// Throws InputError when the file cannot be written.
void write_trace(const Code& code, const std::filesystem::path& path);
std::vector<std::uint8_t> trace_bytes(const Code& code);

struct TraceReadOptions {
  /// Off in fuzzing only, so that changed bytes reach the decoder.
  bool verify_checksums = true;
};

/// A trace file, read block by block as asked: memory holds the directory (16 bytes a block) and
/// TraceInfo. Every error is an InputError that names file and byte.
class TraceReader final : public Code {
 public:
  /// Opens a file: reads its header, directory and info, no instructions.
  explicit TraceReader(const std::filesystem::path& path, TraceReadOptions options = {});
  /// Reads from memory; `name` is what messages call it.
  TraceReader(std::vector<std::uint8_t> bytes, std::string name, TraceReadOptions options = {});
  ~TraceReader() override;
  TraceReader(const TraceReader&) = delete;
  TraceReader& operator=(const TraceReader&) = delete;

  [[nodiscard]] const TraceInfo& info() const override { return info_; }
  [[nodiscard]] std::uint32_t programs() const override {
    return static_cast<std::uint32_t>(streams_.size() / kEngines);
  }
  [[nodiscard]] std::uint64_t size(std::uint32_t program, Engine engine) const override;
  void read(std::uint32_t program, Engine engine, std::uint64_t block,
            std::vector<Instr>& out) const override;
  /// Bytes of the file.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  class Source;
  class FileSource;
  class MemorySource;
  struct Block {
    std::uint64_t offset = 0;
    std::uint32_t bytes = 0;
  };
  struct Stream {
    std::uint64_t instructions = 0;
    std::vector<Block> blocks;
  };

  void open();
  void read_directory(std::uint64_t offset);
  void read_info(std::uint64_t offset);
  /// The payload of the chunk at `offset`, checked.
  std::vector<std::uint8_t> read_chunk(std::uint64_t offset, std::uint8_t kind,
                                       std::string_view what) const;
  [[noreturn]] void fail(std::uint64_t byte, std::string_view message) const;
  [[noreturn]] void refuse(std::span<const std::uint8_t> start) const;

  std::string name_;
  TraceReadOptions options_;
  std::unique_ptr<const Source> source_;
  std::uint64_t end_ = 0;  ///< where the footer begins
  Target target_ = Target::NeuronCoreV3;
  TraceInfo info_;
  std::vector<Stream> streams_;
};

/// A copy of `code` in memory.
Trace load(const Code& code);

}  // namespace trn::isa
