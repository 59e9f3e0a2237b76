#include "isa/trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "isa/base/error.h"
#include "tests/isa/random_instr.h"

namespace trn::isa {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;
using Bytes = std::vector<std::uint8_t>;

/// Reads all of a trace and gives its canonical bytes.
Bytes read_all(const Bytes& bytes, TraceReadOptions options = {}) {
  return trace_bytes(load(TraceReader(bytes, "test.bin", options)));
}

/// A program of a few instructions, with everything that a trace may hold.
Trace small_trace() { return test::RandomInstr(3).trace(2, 6); }

class TemporaryFile {
 public:
  explicit TemporaryFile(std::string_view content)
      : path_(std::filesystem::temp_directory_path() /
              ("trn_trace_test." + std::to_string(::getpid()))) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() { std::filesystem::remove_all(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void expect_refused(std::string_view content, std::string_view message) {
  const TemporaryFile file(content);
  EXPECT_THAT([&] { TraceReader reader(file.path()); },
              ThrowsMessage<InputError>(
                  AllOf(HasSubstr(file.path().string()), HasSubstr(std::string(message)))));
}

TEST(Trace, ReadingUndoesWriting) {
  for (std::uint32_t seed : test::seeds(20)) {
    SCOPED_TRACE(seed);
    const Trace trace = test::RandomInstr(seed).trace(3, 40);
    const Bytes bytes = trace_bytes(trace);
    const TraceReader reader(bytes, "test.bin");
    EXPECT_EQ(reader.info(), trace.header);
    ASSERT_EQ(reader.programs(), trace.programs());
    for (std::uint32_t program = 0; program < trace.programs(); ++program) {
      for (Engine engine : kAllEngines) {
        EXPECT_EQ(reader.size(program, engine), trace.size(program, engine));
      }
    }
    EXPECT_TRUE(trace_bytes(load(reader)) == bytes);
  }
}

TEST(Trace, ALongStreamIsReadBlockByBlockInAnyOrder) {
  Trace trace;
  trace.code.resize(1);
  for (std::uint32_t i = 0; i < 2 * kBlockInstructions + 5; ++i) {
    trace.code[0].streams[index(Engine::Vector)].push_back({.op = Nop{.cycles = i}});
  }
  const TraceReader reader(trace_bytes(trace), "test.bin");
  EXPECT_EQ(reader.size(0, Engine::Vector), 2 * kBlockInstructions + 5);
  EXPECT_EQ(reader.size(0, Engine::Tensor), 0U);
  std::vector<Instr> block;
  for (std::uint64_t at : {2U, 0U, 1U, 0U}) {
    reader.read(0, Engine::Vector, at, block);
    ASSERT_EQ(block.size(), at == 2 ? 5 : kBlockInstructions);
    EXPECT_EQ(std::get<Nop>(block.back().op).cycles, at * kBlockInstructions + block.size() - 1);
  }
}

TEST(Trace, AFileReadsLikeMemory) {
  const Trace trace = small_trace();
  const TemporaryFile file("");
  write_trace(trace, file.path());
  const TraceReader reader(file.path());
  EXPECT_EQ(trace_bytes(load(reader)), trace_bytes(trace));
  EXPECT_EQ(reader.bytes(), std::filesystem::file_size(file.path()));
}

TEST(Trace, WritingAsAStreamInAnyOrderHoldsTheSame) {
  const Trace trace = small_trace();
  std::ostringstream out;
  TraceWriter writer(out, "test.bin", trace.header.target);
  for (std::uint32_t program = trace.programs(); program-- > 0;) {
    for (Engine engine : kAllEngines) {
      for (const Instr& instr : trace.code[program].streams[index(engine)]) {
        writer.append(program, engine, instr);
      }
    }
  }
  writer.finish(trace.header);
  const std::string text = out.str();
  EXPECT_EQ(read_all({text.begin(), text.end()}), trace_bytes(trace));
}

TEST(Trace, AnEmptyTraceIsATrace) {
  const Bytes bytes = trace_bytes(Trace{});
  EXPECT_EQ(read_all(bytes), bytes);
}

TEST(Trace, EveryTruncationIsAnInputErrorThatNamesTheFile) {
  const Bytes bytes = trace_bytes(small_trace());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THAT([&] { read_all(cut); }, ThrowsMessage<InputError>(HasSubstr("test.bin: byte ")))
        << length;
  }
}

TEST(Trace, EveryFlippedBitIsFound) {
  const Bytes right = trace_bytes(small_trace());
  Bytes bytes = right;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      bytes[i] = static_cast<std::uint8_t>(right[i] ^ (1U << bit));
      EXPECT_THAT([&] { read_all(bytes); }, ThrowsMessage<InputError>(HasSubstr("test.bin: byte ")))
          << "byte " << i;
    }
    bytes[i] = right[i];
  }
}

TEST(Trace, ADamagedBlockIsNamedByKindAndByte) {
  Bytes bytes = trace_bytes(small_trace());
  bytes[20 + 12 + 5] ^= 0x40;  // within the first block: it follows header and chunk header
  EXPECT_THAT([&] { read_all(bytes); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("byte 20"), HasSubstr("checksum"),
                                              HasSubstr("instruction block"))));
}

TEST(Trace, DamageThatChecksumsDoNotSeeIsAnInputErrorOrHarmless) {
  const Bytes right = trace_bytes(test::RandomInstr(5).trace(1, 12));
  Bytes bytes = right;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (unsigned value : {0U, 1U, 0x7fU, 0x80U, 0xffU, right[i] ^ 0x10U}) {
      bytes[i] = static_cast<std::uint8_t>(value);
      try {
        read_all(bytes, {.verify_checksums = false});
      } catch (const InputError&) {
      }
    }
    bytes[i] = right[i];
  }
}

TEST(Trace, AnotherVersionIsNamedBesideOurs) {
  Bytes bytes = trace_bytes(small_trace());
  bytes[8] = 7;
  EXPECT_THAT([&] { read_all(bytes); },
              ThrowsMessage<InputError>(AllOf(HasSubstr("byte 8"), HasSubstr("format version 7"),
                                              HasSubstr("reads version 2"))));
}

TEST(Trace, ATraceWithSomethingBehindItIsRefused) {
  Bytes bytes = trace_bytes(small_trace());
  bytes.push_back(0);
  EXPECT_THROW(read_all(bytes), InputError);
}

TEST(Trace, AnEmptyFileIsCalledEmpty) { expect_refused("", "the file is empty"); }

TEST(Trace, ATextFileGetsTheHintToAssembleIt) {
  expect_refused(".trace 1\n.engine Tensor\n", "trn-sim asm");
}

TEST(Trace, AProfileGetsTheHintToImportIt) {
  expect_refused("{\"instruction\": []}", "trn-sim import");
}

TEST(Trace, ALfsPointerIsCalledOne) {
  expect_refused(
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
      "size 12345\n",
      "git lfs pull");
}

TEST(Trace, OtherBytesAreNoTrace) {
  expect_refused(std::string_view("\x7f"
                                  "ELF\0\0\0",
                                  7),
                 "is not a trace");
}

TEST(Trace, ADirectoryIsCalledOne) {
  const std::filesystem::path path = std::filesystem::temp_directory_path();
  EXPECT_THAT([&] { TraceReader reader(path); },
              ThrowsMessage<InputError>(AllOf(HasSubstr(path.string()), HasSubstr("directory"))));
}

TEST(Trace, AMissingFileIsNamedWithTheSystemsReason) {
  EXPECT_THAT(
      [] { TraceReader reader("/nowhere/trace.bin"); },
      ThrowsMessage<InputError>(AllOf(HasSubstr("/nowhere/trace.bin"), HasSubstr("No such file"))));
}

TEST(Trace, ADeviceIsNoTrace) {
  EXPECT_THAT([] { TraceReader reader("/dev/zero"); },
              ThrowsMessage<InputError>(HasSubstr("not a regular file")));
}

TEST(Trace, AFileThatCannotBeWrittenIsNamed) {
  EXPECT_THAT(
      [] { write_trace(Trace{}, "/nowhere/trace.bin"); },
      ThrowsMessage<InputError>(AllOf(HasSubstr("/nowhere/trace.bin"), HasSubstr("cannot write"))));
}

TEST(Trace, AFullDiskIsAnInputError) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP();
  EXPECT_THAT([] { write_trace(small_trace(), "/dev/full"); },
              ThrowsMessage<InputError>(HasSubstr("cannot write the trace")));
}

}  // namespace
}  // namespace trn::isa
