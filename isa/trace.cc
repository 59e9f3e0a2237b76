#include "isa/trace.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <fstream>
#include <ostream>
#include <sstream>
#include <system_error>

#include "isa/base/check.h"
#include "isa/base/error.h"

namespace trn::isa {
namespace {

// The first byte is no text, the line ends show a transfer in text mode, 0x1a ends a file of old.
constexpr std::array<std::uint8_t, 8> kMagic = {0x93, 'T', 'R', 'N', '\r', '\n', 0x1a, '\n'};
constexpr std::array<std::uint8_t, 4> kEndMagic = {'T', 'R', 'N', 'E'};
constexpr std::uint64_t kHeaderBytes = 20;       // magic, version, target, flags, block size, CRC
constexpr std::uint64_t kChunkHeaderBytes = 12;  // kind, three zeros, payload bytes, CRC
constexpr std::uint64_t kFooterBytes = 32;       // directory, info, file size, end magic, CRC

constexpr std::uint8_t kCodeChunk = 'C';
constexpr std::uint8_t kInfoChunk = 'I';
constexpr std::uint8_t kDirectoryChunk = 'D';

constexpr std::uint64_t kMinInstrBytes = 2;
constexpr std::uint64_t kMinBlockBytes = kChunkHeaderBytes + 4 + kMinInstrBytes;

void put(ByteWriter& out, const TraceInfo& info) {
  out.string(info.name);
  out.varint(info.work.size());
  for (const Work& work : info.work) {
    out.f64(work.amount);
    out.string(work.unit);
  }
  out.varint(info.warnings.size());
  for (const std::string& warning : info.warnings) out.string(warning);
  out.varint(info.tensors.size());
  for (const Tensor& tensor : info.tensors) {
    out.string(tensor.name);
    out.u8(static_cast<std::uint8_t>(tensor.kind));
    out.u8(static_cast<std::uint8_t>(tensor.memory));
    out.u8(static_cast<std::uint8_t>(tensor.dtype));
    out.varint(tensor.shape.size());
    for (std::uint64_t size : tensor.shape) out.varint(size);
    out.varint(tensor.address);
    out.varint(tensor.bytes);
    out.varint(tensor.location);
  }
  // Entry 0 of both tables is the unknown place and is not written.
  out.varint(info.locations.size() - 1);
  std::string_view file;
  for (const SourceLocation& location : std::span(info.locations).subspan(1)) {
    // A run of lines of one file names it once.
    const bool same = location.file == file;
    out.varint(std::uint64_t{location.line} << 1U | (same ? 1U : 0U));
    if (!same) out.string(location.file);
    file = location.file;
  }
  out.varint(info.labels.size() - 1);
  for (const std::string& label : std::span(info.labels).subspan(1)) out.string(label);
  out.varint(info.cores.size());
  for (const CoreBinding& core : info.cores) {
    out.varint(core.core);
    out.varint(core.program);
    out.varint(core.rank);
  }
}

/// A count of things of at least `bytes` bytes each: no more than what follows can hold.
std::uint64_t read_count(ByteReader& in, std::uint64_t bytes, std::string_view what) {
  const std::uint64_t count = in.varint();
  if (count > in.remaining() / bytes) {
    in.fail(
        fmt::format("{} {} do not fit in the {} bytes that follow", count, what, in.remaining()));
  }
  return count;
}

template <class E>
E read_enum(ByteReader& in, std::string_view what) {
  const std::uint8_t value = in.u8();
  if (value >= EnumNames<E>::value.size()) {
    in.fail(fmt::format("{}: expected a value under {}, got {}", what, EnumNames<E>::value.size(),
                        value),
            1);
  }
  return static_cast<E>(value);
}

std::uint32_t read_u32(ByteReader& in, std::string_view what) {
  return static_cast<std::uint32_t>(in.varint(std::numeric_limits<std::uint32_t>::max(), what));
}

Tensor read_tensor(ByteReader& in) {
  Tensor tensor;
  tensor.name = in.string();
  tensor.kind = read_enum<TensorKind>(in, "tensor kind");
  tensor.memory = read_enum<Memory>(in, "tensor memory");
  tensor.dtype = read_enum<Dtype>(in, "tensor dtype");
  tensor.shape.resize(read_count(in, 1, "dimensions"));
  for (std::uint64_t& size : tensor.shape) size = in.varint();
  tensor.address = in.varint();
  tensor.bytes = in.varint();
  tensor.location = read_u32(in, "tensor location");
  return tensor;
}

TraceInfo parse_info(ByteReader& in, std::uint32_t programs) {
  TraceInfo info;
  info.name = in.string();
  info.work.resize(read_count(in, 9, "work entries"));
  for (Work& work : info.work) {
    work.amount = in.f64();
    if (!std::isfinite(work.amount)) in.fail("expected an amount of work, got infinity or NaN", 8);
    work.unit = in.string();
  }
  info.warnings.resize(read_count(in, 1, "warnings"));
  for (std::string& warning : info.warnings) warning = in.string();
  const std::uint64_t tensors = read_count(in, 8, "tensors");
  for (std::uint64_t i = 0; i < tensors; ++i) info.tensors.push_back(read_tensor(in));

  const std::uint64_t locations = read_count(in, 1, "source locations");
  std::string file;
  for (std::uint64_t i = 0; i < locations; ++i) {
    const std::uint64_t head =
        in.varint(std::uint64_t{std::numeric_limits<std::uint32_t>::max()} << 1U | 1U, "line");
    if ((head & 1U) == 0) file = in.string();
    info.locations.push_back({file, static_cast<std::uint32_t>(head >> 1U)});
  }
  const std::uint64_t labels = read_count(in, 1, "labels");
  for (std::uint64_t i = 0; i < labels; ++i) info.labels.push_back(in.string());

  const std::uint64_t cores = read_count(in, 3, "cores");
  for (std::uint64_t i = 0; i < cores; ++i) {
    CoreBinding core;
    core.core = read_u32(in, "core");
    core.program = read_u32(in, "program of a core");
    core.rank = read_u32(in, "rank of a core");
    if (core.program >= programs) {
      in.fail(fmt::format("core {} runs program {} of {}", core.core, core.program, programs));
    }
    info.cores.push_back(core);
  }
  for (const Tensor& tensor : info.tensors) {
    if (tensor.location >= info.locations.size()) {
      in.fail(fmt::format("tensor '{}' is from source location {} of {}", tensor.name,
                          tensor.location, info.locations.size()));
    }
  }
  if (!in.done()) in.fail(fmt::format("{} bytes too many", in.remaining()));
  return info;
}

std::size_t stream_index(std::uint32_t program, Engine engine) {
  return std::size_t{program} * kEngines + index(engine);
}

}  // namespace

// ---- writer ----

TraceWriter::TraceWriter(std::ostream& out, std::string name, Target target)
    : out_(out), name_(std::move(name)), target_(target) {
  ByteWriter header;
  header.raw(kMagic);
  header.u16(kTraceVersion);
  header.u8(static_cast<std::uint8_t>(target));
  header.u8(0);
  header.u32(kBlockInstructions);
  header.u32(crc32(header.bytes()));
  write(header.bytes());
}

void TraceWriter::append(std::uint32_t program, Engine engine, const Instr& instr) {
  const std::size_t index = stream_index(program, engine);
  if (index >= streams_.size()) streams_.resize((std::size_t{program} + 1) * kEngines);
  Stream& stream = streams_[index];
  encode(instr, stream.last, stream.buffer);
  if (++stream.pending == kBlockInstructions) flush(index);
}

void TraceWriter::flush(std::size_t stream) {
  Stream& from = streams_[stream];
  if (from.pending == 0) return;
  scratch_.clear();
  scratch_.varint(stream);
  scratch_.varint(from.blocks.size());
  scratch_.varint(from.pending);
  scratch_.raw(from.buffer.bytes());
  from.blocks.push_back(write_chunk(kCodeChunk, scratch_.bytes()));
  from.instructions += from.pending;
  from.pending = 0;
  from.last = {};
  from.buffer.clear();
}

void TraceWriter::finish(const TraceInfo& info) {
  TRN_CHECK(info.target == target_, "the trace began with another target");
  TRN_CHECK(!info.locations.empty() && !info.labels.empty(), "a table lacks its entry 0");
  for (std::size_t i = 0; i < streams_.size(); ++i) flush(i);

  ByteWriter payload;
  put(payload, info);
  const Block info_chunk = write_chunk(kInfoChunk, payload.bytes());

  payload.clear();
  payload.varint(streams_.size() / kEngines);
  for (const Stream& stream : streams_) {
    payload.varint(stream.instructions);
    std::uint64_t last = 0;
    for (const Block& block : stream.blocks) {
      payload.varint(block.offset - last);
      payload.varint(block.bytes);
      last = block.offset;
    }
  }
  const Block directory = write_chunk(kDirectoryChunk, payload.bytes());

  ByteWriter footer;
  footer.u64(directory.offset);
  footer.u64(info_chunk.offset);
  footer.u64(offset_ + kFooterBytes);
  footer.raw(kEndMagic);
  footer.u32(crc32(footer.bytes()));
  write(footer.bytes());
  out_.flush();
  if (!out_) throw InputError(Place{.file = name_}, "", "cannot write the trace");
}

TraceWriter::Block TraceWriter::write_chunk(std::uint8_t kind,
                                            std::span<const std::uint8_t> payload) {
  if (payload.size() > std::numeric_limits<std::uint32_t>::max()) {
    throw InputError(Place{.file = name_}, "", "a table of the trace has 4 GiB or more");
  }
  const Block block{offset_, static_cast<std::uint32_t>(payload.size())};
  ByteWriter header;
  header.u8(kind);
  header.u8(0);
  header.u16(0);
  header.u32(block.bytes);
  header.u32(crc32(payload, crc32(header.bytes())));
  write(header.bytes());
  write(payload);
  return block;
}

void TraceWriter::write(std::span<const std::uint8_t> bytes) {
  out_.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  offset_ += bytes.size();
}

void write_trace(const Code& code, std::ostream& out, std::string_view name) {
  TraceWriter writer(out, std::string(name), code.info().target);
  std::vector<Instr> block;
  for (std::uint32_t program = 0; program < code.programs(); ++program) {
    for (Engine engine : kAllEngines) {
      const std::uint64_t size = code.size(program, engine);
      for (std::uint64_t at = 0; at * kBlockInstructions < size; ++at) {
        code.read(program, engine, at, block);
        for (const Instr& instr : block) writer.append(program, engine, instr);
      }
    }
  }
  writer.finish(code.info());
}

void write_trace(const Code& code, const std::filesystem::path& path) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  if (!out) {
    throw InputError(Place{.file = path.string()}, "",
                     fmt::format("cannot write: {}", std::generic_category().message(errno)));
  }
  write_trace(code, out, path.string());
}

std::vector<std::uint8_t> trace_bytes(const Code& code) {
  std::ostringstream out;
  write_trace(code, out, "trace");
  const std::string_view bytes = out.view();
  return {bytes.begin(), bytes.end()};
}

// ---- reader ----

class TraceReader::Source {
 public:
  virtual ~Source() = default;
  [[nodiscard]] virtual std::uint64_t size() const = 0;
  /// Fills `out` from `offset` on; false when the bytes are not there.
  [[nodiscard]] virtual bool read(std::uint64_t offset, std::span<std::uint8_t> out) const = 0;
};

class TraceReader::MemorySource final : public Source {
 public:
  explicit MemorySource(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] std::uint64_t size() const override { return bytes_.size(); }
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::uint8_t> out) const override {
    if (offset > bytes_.size() || out.size() > bytes_.size() - offset) return false;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
    return true;
  }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Reads with pread: pages that were read stay in the kernel's cache, not in our memory.
class TraceReader::FileSource final : public Source {
 public:
  explicit FileSource(const std::filesystem::path& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    struct stat status {};
    std::string problem;
    if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
      problem = fmt::format("cannot read: {}", std::generic_category().message(errno));
    } else if (S_ISDIR(status.st_mode)) {
      problem = "is a directory, expected a trace file";
    } else if (!S_ISREG(status.st_mode)) {
      problem = "is not a regular file, which a trace must be";
    }
    if (!problem.empty()) {
      if (descriptor_ >= 0) ::close(descriptor_);
      throw InputError(Place{.file = path.string()}, "", problem);
    }
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~FileSource() override { ::close(descriptor_); }
  FileSource(const FileSource&) = delete;
  FileSource& operator=(const FileSource&) = delete;

  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::uint8_t> out) const override {
    while (!out.empty()) {
      const ssize_t count =
          ::pread(descriptor_, out.data(), out.size(), static_cast<off_t>(offset));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return false;
      out = out.subspan(static_cast<std::size_t>(count));
      offset += static_cast<std::uint64_t>(count);
    }
    return true;
  }

 private:
  int descriptor_;
  std::uint64_t size_ = 0;
};

TraceReader::TraceReader(const std::filesystem::path& path, TraceReadOptions options)
    : name_(path.string()), options_(options), source_(std::make_unique<FileSource>(path)) {
  open();
}

TraceReader::TraceReader(std::vector<std::uint8_t> bytes, std::string name,
                         TraceReadOptions options)
    : name_(std::move(name)),
      options_(options),
      source_(std::make_unique<MemorySource>(std::move(bytes))) {
  open();
}

TraceReader::~TraceReader() = default;

std::uint64_t TraceReader::bytes() const { return source_->size(); }

void TraceReader::fail(std::uint64_t byte, std::string_view message) const {
  throw InputError(Place{.file = name_, .byte = byte}, "", message);
}

/// Says what a file without the magic seems to be.
void TraceReader::refuse(std::span<const std::uint8_t> start) const {
  const std::string_view text(reinterpret_cast<const char*>(start.data()), start.size());
  if (text.starts_with("version https://git-lfs")) {
    fail(0, "is a Git LFS pointer, not the trace itself: fetch it with `git lfs pull`");
  }
  const bool is_text = std::all_of(text.begin(), text.end(), [](char c) {
    return c == '\n' || c == '\r' || c == '\t' || (c >= ' ' && c <= '~');
  });
  if (is_text && text.starts_with("{")) {
    fail(0, "is JSON, not a trace: turn a profile into one with `trn-sim import`");
  }
  if (is_text) fail(0, "is text, not a trace: turn it into one with `trn-sim asm`");
  fail(0, "is not a trace: its first bytes are not a trace's");
}

void TraceReader::open() {
  const std::uint64_t size = source_->size();
  if (size == 0) fail(0, "the file is empty, expected a trace");
  std::array<std::uint8_t, 64> start{};
  const std::span<std::uint8_t> head(start.data(), std::min<std::uint64_t>(size, start.size()));
  if (!source_->read(0, head)) fail(0, "cannot read the header");
  if (!std::equal(
          kMagic.begin(),
          kMagic.begin() + static_cast<std::ptrdiff_t>(std::min(kMagic.size(), head.size())),
          head.begin())) {
    refuse(head);
  }
  if (head.size() < kHeaderBytes) {
    fail(size, fmt::format("truncated: a trace's header has {} bytes", kHeaderBytes));
  }
  ByteReader in(head.first(kHeaderBytes), name_);
  static_cast<void>(in.raw(kMagic.size()));
  const std::uint16_t version = in.u16();
  if (version != kTraceVersion) {
    in.fail(
        fmt::format("format version {}, but this program reads version {}", version, kTraceVersion),
        2);
  }
  target_ = read_enum<Target>(in, "target");
  if (in.u8() != 0) in.fail("unknown flags in the header", 1);
  const std::uint32_t block = in.u32();
  if (block != kBlockInstructions) {
    in.fail(fmt::format("expected blocks of {} instructions, got {}", kBlockInstructions, block),
            4);
  }
  if (in.u32() != crc32(head.first(kHeaderBytes - 4)) && options_.verify_checksums) {
    in.fail("the header's checksum does not match: the file is damaged", 4);
  }

  if (size < kHeaderBytes + kFooterBytes) fail(size, "truncated: the file has no footer");
  end_ = size - kFooterBytes;
  std::array<std::uint8_t, kFooterBytes> tail{};
  if (!source_->read(end_, tail)) fail(end_, "cannot read the footer");
  ByteReader footer(tail, name_, end_);
  const std::uint64_t directory = footer.u64();
  const std::uint64_t info = footer.u64();
  const std::uint64_t written = footer.u64();
  const auto magic = footer.raw(kEndMagic.size());
  if (!std::equal(magic.begin(), magic.end(), kEndMagic.begin())) {
    fail(size, "truncated or damaged: the file does not end with a trace's footer");
  }
  if (footer.u32() != crc32(std::span(tail).first(kFooterBytes - 4)) && options_.verify_checksums) {
    footer.fail("the footer's checksum does not match: the file is damaged", 4);
  }
  if (written != size) {
    fail(end_, fmt::format("the trace was written with {} bytes and has {}", written, size));
  }
  read_directory(directory);
  read_info(info);
}

std::vector<std::uint8_t> TraceReader::read_chunk(std::uint64_t offset, std::uint8_t kind,
                                                  std::string_view what) const {
  if (offset < kHeaderBytes || offset > end_ || end_ - offset < kChunkHeaderBytes) {
    fail(offset, fmt::format("the {} would lie outside of the file's {} bytes", what, end_));
  }
  std::array<std::uint8_t, kChunkHeaderBytes> head{};
  if (!source_->read(offset, head)) fail(offset, fmt::format("cannot read the {}", what));
  ByteReader in(head, name_, offset);
  const std::uint8_t found = in.u8();
  const std::uint32_t zeros = in.u8() | static_cast<std::uint32_t>(in.u16()) << 8U;
  const std::uint32_t length = in.u32();
  const std::uint32_t checksum = in.u32();
  if (found != kind || zeros != 0) {
    fail(offset,
         fmt::format("expected the {}, a chunk of kind 0x{:02x}, got 0x{:02x}", what, kind, found));
  }
  if (length > end_ - offset - kChunkHeaderBytes) {
    fail(offset + 4,
         fmt::format("the {} has {} bytes and runs past the end of the file", what, length));
  }
  std::vector<std::uint8_t> payload(length);
  if (!source_->read(offset + kChunkHeaderBytes, payload)) {
    fail(offset, fmt::format("cannot read the {}: the file became shorter", what));
  }
  if (options_.verify_checksums &&
      crc32(payload, crc32(std::span(head).first(kChunkHeaderBytes - 4))) != checksum) {
    fail(offset, fmt::format("the checksum of the {} ({} bytes) does not match: the file is "
                             "damaged",
                             what, length));
  }
  return payload;
}

void TraceReader::read_directory(std::uint64_t offset) {
  const std::vector<std::uint8_t> payload = read_chunk(offset, kDirectoryChunk, "directory");
  ByteReader in(payload, name_, offset + kChunkHeaderBytes);
  const std::uint64_t programs = read_count(in, kEngines, "programs");
  streams_.resize(programs * kEngines);
  for (Stream& stream : streams_) {
    stream.instructions = in.varint();
    const std::uint64_t blocks = stream.instructions / kBlockInstructions +
                                 (stream.instructions % kBlockInstructions != 0 ? 1 : 0);
    if (blocks > in.remaining() / 2) {
      in.fail(
          fmt::format("{} blocks do not fit in the {} bytes that follow", blocks, in.remaining()));
    }
    stream.blocks.resize(blocks);
    std::uint64_t last = 0;
    for (Block& block : stream.blocks) {
      block.offset = last + in.varint(end_, "distance of two blocks");
      block.bytes = read_u32(in, "size of a block");
      if (block.offset < kHeaderBytes || block.offset > end_ ||
          end_ - block.offset < kMinBlockBytes) {
        in.fail(fmt::format("a block at byte {} would lie outside of the file", block.offset));
      }
      last = block.offset;
    }
  }
  if (!in.done()) in.fail(fmt::format("{} bytes too many", in.remaining()));
}

void TraceReader::read_info(std::uint64_t offset) {
  const std::vector<std::uint8_t> payload = read_chunk(offset, kInfoChunk, "trace information");
  ByteReader in(payload, name_, offset + kChunkHeaderBytes);
  info_ = parse_info(in, programs());
  info_.target = target_;
}

std::uint64_t TraceReader::size(std::uint32_t program, Engine engine) const {
  TRN_CHECK(program < programs(), "program {} of {}", program, programs());
  return streams_[stream_index(program, engine)].instructions;
}

void TraceReader::read(std::uint32_t program, Engine engine, std::uint64_t block,
                       std::vector<Instr>& out) const {
  TRN_CHECK(program < programs(), "program {} of {}", program, programs());
  const std::size_t index = stream_index(program, engine);
  const Stream& stream = streams_[index];
  TRN_CHECK(block < stream.blocks.size(), "block {} of {}", block, stream.blocks.size());
  const std::uint64_t offset = stream.blocks[block].offset;

  const std::vector<std::uint8_t> payload = read_chunk(offset, kCodeChunk, "instruction block");
  if (payload.size() != stream.blocks[block].bytes) {
    fail(offset, fmt::format("the directory gives this block {} bytes, it has {}",
                             stream.blocks[block].bytes, payload.size()));
  }
  ByteReader in(payload, name_, offset + kChunkHeaderBytes);
  const std::uint64_t expected =
      std::min(kBlockInstructions, stream.instructions - block * kBlockInstructions);
  if (in.varint() != index || in.varint() != block || in.varint() != expected) {
    in.fail(fmt::format("expected block {} of program {}, {} Engine, with {} instructions", block,
                        program, name_of(engine), expected));
  }
  const SourceTables tables{info_.locations.size(), info_.labels.size()};
  SourceRef last;
  out.resize(expected);
  for (Instr& instr : out) decode(in, last, tables, instr);
  if (!in.done()) in.fail(fmt::format("{} bytes too many in a block", in.remaining()));
}

Trace load(const Code& code) {
  Trace trace;
  trace.header = code.info();
  trace.code.resize(code.programs());
  std::vector<Instr> block;
  for (std::uint32_t program = 0; program < code.programs(); ++program) {
    for (Engine engine : kAllEngines) {
      const std::uint64_t size = code.size(program, engine);
      std::vector<Instr>& stream = trace.code[program].streams[index(engine)];
      for (std::uint64_t at = 0; at * kBlockInstructions < size; ++at) {
        code.read(program, engine, at, block);
        stream.insert(stream.end(), block.begin(), block.end());
      }
    }
  }
  return trace;
}

}  // namespace trn::isa
