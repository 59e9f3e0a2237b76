#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/crc.hpp>
#include <cstdint>
#include <string>

#include "tests/support/paths.h"
#include "tests/support/run_cli.h"
#include "tests/support/scratch.h"

namespace trn::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

constexpr int kBadInput = 2;
constexpr int kDeadlock = 3;
constexpr int kDoesNotFit = 4;

/// A program that runs: what the bad inputs below are made of.
constexpr std::string_view kGood = R"(.trace 1
.name "good"
.target NeuronCore-v3
.core 0 program=0 rank=0
.program 0
.engine Tensor
MATMUL src=bf16@sbuf:0x0[1][512] dst=fp32@psum:0x0[1][512] update S[1]++@complete at good.py:3
.engine Vector
CAST src=fp32@psum:0x0[1][512] dst=bf16@sbuf:0x1000[1][512] wait S[1]>=1 at good.py:4
)";

/// A trace with other instructions of these engines, as text.
std::string with(std::string_view streams) {
  return std::string(kGood.substr(0, kGood.find(".engine"))) + std::string(streams);
}

/// Assembles text into scratch_folder()/name.
std::filesystem::path assemble(std::string_view text, const std::string& name = "trace.bin") {
  const std::filesystem::path source = write_text(scratch_folder() / "program.trn", text);
  const std::filesystem::path trace = scratch_folder() / name;
  const CliResult result = run_cli({"asm", source.string(), "-o", trace.string()});
  EXPECT_EQ(result.code, 0) << result.err;
  return trace;
}

CliResult run(const std::filesystem::path& trace, std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"--config", "trn2.3xlarge", trace.string()});
  return run_cli(more);
}

/// Refused with a message that names the file, and nothing on standard output.
void expect_refused(const CliResult& result, int code,
                    const testing::Matcher<std::string>& message) {
  EXPECT_EQ(result.code, code) << result.err;
  EXPECT_THAT(result.out, IsEmpty());
  EXPECT_THAT(result.err, AllOf(StartsWith("trn-sim: "), message));
}

std::filesystem::path file_with(std::string_view content, const std::string& name = "trace.bin") {
  return write_text(scratch_folder() / name, content);
}

TEST(BadInput, TheGoodOneRuns) {
  const CliResult result = run(assemble(kGood));
  EXPECT_EQ(result.code, 0) << result.err;
  EXPECT_THAT(result.err, IsEmpty());
}

// ---- files that are no trace ----

TEST(BadInput, Truncated) {
  const std::string whole = read_text(assemble(kGood));
  for (std::size_t size = 1; size < whole.size(); size += 7) {
    SCOPED_TRACE(size);
    expect_refused(run(file_with(whole.substr(0, size), "short.bin")), kBadInput,
                   AllOf(HasSubstr("short.bin"), HasSubstr("byte")));
  }
}

TEST(BadInput, BitFlipped) {
  const std::string whole = read_text(assemble(kGood));
  for (std::size_t at = 0; at < whole.size(); at += 5) {
    SCOPED_TRACE(at);
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1 << at % 8);
    expect_refused(run(file_with(damaged, "flipped.bin")), kBadInput, HasSubstr("flipped.bin"));
  }
}

TEST(BadInput, WrongVersion) {
  std::string trace = read_text(assemble(kGood));
  trace[8] = 77;  // docs/reference/trace-format.md: u16 version at 8
  boost::crc_32_type crc;
  crc.process_bytes(trace.data(), 16);
  for (unsigned i = 0; i < 4; ++i) trace[16 + i] = static_cast<char>(crc.checksum() >> 8 * i);
  expect_refused(run(file_with(trace)), kBadInput,
                 AllOf(HasSubstr("trace.bin"), HasSubstr("version"), HasSubstr("77")));
}

TEST(BadInput, UnknownOpcode) {
  std::string trace = read_text(assemble(kGood));
  constexpr std::size_t kChunk = 20;    // the first block follows the header
  constexpr std::size_t kPayload = 32;  // kind, size, CRC of both and of the payload
  const auto byte = [&](std::size_t at) { return static_cast<std::uint8_t>(trace[at]); };
  const std::size_t size = byte(kChunk + 4) | byte(kChunk + 5) << 8;
  trace[kPayload + 3] = static_cast<char>(0xfe);  // behind stream, block and count, a byte each
  boost::crc_32_type crc;
  crc.process_bytes(trace.data() + kChunk, 8);
  crc.process_bytes(trace.data() + kPayload, size);
  for (unsigned i = 0; i < 4; ++i)
    trace[kChunk + 8 + i] = static_cast<char>(crc.checksum() >> 8 * i);
  expect_refused(run(file_with(trace)), kBadInput,
                 AllOf(HasSubstr("trace.bin"), HasSubstr("byte"), HasSubstr("opcode")));
}

TEST(BadInput, Empty) {
  expect_refused(run(file_with("")), kBadInput, AllOf(HasSubstr("trace.bin"), HasSubstr("empty")));
}

TEST(BadInput, TextInsteadOfATrace) {
  expect_refused(run(file_with(kGood, "program.trn")), kBadInput,
                 AllOf(HasSubstr("program.trn"), HasSubstr("asm")));
}

TEST(BadInput, Directory) {
  expect_refused(run(scratch_folder()), kBadInput, HasSubstr("directory"));
}

TEST(BadInput, Missing) {
  expect_refused(run(scratch_folder() / "not_there.bin"), kBadInput, HasSubstr("not_there.bin"));
}

TEST(BadInput, Unreadable) {
  // Root may read any file; reading the memory of a process at 0 fails for everyone.
  expect_refused(run("/proc/self/mem"), kBadInput, HasSubstr("/proc/self/mem"));
  expect_refused(run_cli({"import", "/proc/self/mem", "-o", "/dev/null"}), kBadInput,
                 HasSubstr("/proc/self/mem: cannot be read"));
}

TEST(BadInput, GitLfsPointer) {
  std::string pointer =
      "version https://git-lfs.github.com/spec/v1\n"
      "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
      "size 12345\n";
  pointer.resize(130, '\n');
  expect_refused(run(file_with(pointer)), kBadInput,
                 AllOf(HasSubstr("trace.bin"), HasSubstr("Git LFS")));
}

TEST(BadInput, ProfileThatIsNoJson) {
  expect_refused(run_cli({"replay", file_with("{\"instruction\": [", "p.json").string(), "--config",
                          "trn2.3xlarge"}),
                 kBadInput, HasSubstr("p.json"));
  expect_refused(run_cli({"import", file_with("", "p.json").string(), "-o",
                          (scratch_folder() / "t").string()}),
                 kBadInput, HasSubstr("p.json"));
}

TEST(BadInput, TextThatDoesNotAssemble) {
  const CliResult result = run_cli({"asm", file_with(".engine Tensor\nMATMULL\n", "p.trn").string(),
                                    "-o", (scratch_folder() / "t.bin").string()});
  expect_refused(result, kBadInput,
                 AllOf(HasSubstr("p.trn:2"), HasSubstr("did you mean 'MATMUL'")));
  EXPECT_FALSE(std::filesystem::exists(scratch_folder() / "t.bin"));
}

// ---- programs that cannot run ----

TEST(BadInput, ProgramThatWaitsForEver) {
  const auto trace =
      assemble(with(".engine Vector\nEVENT_SEMAPHORE wait S[7]>=3 at wait.py:9\n"
                    ".engine Scalar\nEVENT_SEMAPHORE update S[7]++@complete\n"));
  expect_refused(run(trace), kDeadlock,
                 AllOf(HasSubstr("vector #0 EVENT_SEMAPHORE (wait.py:9)"),
                       HasSubstr("semaphore 7 >= 3, is 1")));
}

TEST(BadInput, AccessPastSbuf) {
  const auto trace =
      assemble(with(".engine Vector\nMEMSET dst=fp32@sbuf:0x40000[1][512] value=0 at far.py:1\n"));
  expect_refused(run(trace), kBadInput,
                 AllOf(HasSubstr("MEMSET"), HasSubstr("sbuf"), HasSubstr("far.py:1")));
}

TEST(BadInput, AccessPastPsum) {
  const auto trace = assemble(with(
      ".engine Vector\nCOPY src=fp32@psum:0x3f00[1][512] dst=fp32@sbuf:0x0[1][512] at far.py:2\n"));
  expect_refused(run(trace), kBadInput,
                 AllOf(HasSubstr("COPY"), HasSubstr("psum"), HasSubstr("far.py:2")));
}

TEST(BadInput, AccessPastSbufInALoopOfUnknownLength) {
  const auto trace = assemble(with(R"(.engine Vector
REGISTER_MOVE dst=1 src=300
LOOP counter=2 count=r1
MEMSET dst=fp32@sbuf:0x0+4096*r2[1][512] value=0 at far.py:3
END_LOOP counter=2 count=r1
)"));
  expect_refused(run(trace), kBadInput,
                 AllOf(HasSubstr("MEMSET"), HasSubstr("sbuf"), HasSubstr("far.py:3")));
}

TEST(BadInput, MatmulIntoSbuf) {
  const auto trace = assemble(
      with(".engine Tensor\n"
           "MATMUL src=bf16@sbuf:0x0[1][512] dst=fp32@sbuf:0x1000[1][512] at good.py:3\n"));
  expect_refused(
      run(trace), kBadInput,
      AllOf(HasSubstr("MATMUL"), HasSubstr("dst"), HasSubstr("psum"), HasSubstr("good.py:3")));
}

TEST(BadInput, SemaphoreThatOverflows) {
  const auto trace =
      assemble(with(".engine Vector\nEVENT_SEMAPHORE update S[9]+=65000@complete at over.py:1\n"
                    "EVENT_SEMAPHORE update S[9]+=65000@complete at over.py:2\n"));
  expect_refused(run(trace), kBadInput,
                 AllOf(HasSubstr("semaphore 9"), HasSubstr("over.py:2"), HasSubstr("130000")));
}

TEST(BadInput, EndlessLoop) {
  const auto trace =
      assemble(with(".engine Vector\nNOP cycles=1000000\nCOMPARE_BRANCH op=ALWAYS target=-1\n"));
  const CliResult result = run(trace);
  EXPECT_EQ(result.code, kBadInput) << result.err;
}

TEST(BadInput, TensorsThatDoNotFit) {
  const auto trace = assemble(
      ".trace 1\n.name \"big\"\n.target NeuronCore-v3\n"
      ".tensor \"kv_cache\" input hbm bf16 [1024,1024] address=0x0 bytes=200000000000\n"
      ".core 0 program=0 rank=0\n.program 0\n.engine Vector\nNOP\n");
  expect_refused(run(trace), kDoesNotFit, AllOf(HasSubstr("hbm"), HasSubstr("kv_cache")));
}

TEST(BadInput, MoreThanOneCore) {
  const auto trace = assemble(
      ".trace 1\n.name \"two\"\n.target NeuronCore-v3\n.core 0 program=0 rank=0\n"
      ".core 1 program=0 rank=1\n.program 0\n.engine Vector\nNOP\n");
  expect_refused(run(trace), kBadInput,
                 HasSubstr("runs use one core so far: the trace binds 2 cores: nc0, nc1"));
}

TEST(BadInput, CoreThatTheMachineDoesNotHave) {
  const auto trace = assemble(
      ".trace 1\n.name \"far\"\n.target NeuronCore-v3\n.core 8 program=0 rank=0\n"
      ".program 0\n.engine Vector\nNOP\n");
  expect_refused(run(trace), kBadInput, HasSubstr("binds nc8, trn2.3xlarge has nc0 to nc7"));
}

TEST(BadInput, OtherTarget) {
  const auto trace = assemble(
      ".trace 1\n.name \"old\"\n.target NeuronCore-v2\n.core 0 program=0 rank=0\n"
      ".program 0\n.engine Vector\nNOP\n");
  expect_refused(run(trace), kBadInput,
                 AllOf(HasSubstr("NeuronCore-v2"), HasSubstr("NeuronCore-v3")));
}

// ---- options ----

TEST(BadInput, SetOfAnUnknownKey) {
  expect_refused(run(assemble(kGood), {"--set", "chip.tensor.clok=2 GHz"}), kBadInput,
                 AllOf(HasSubstr("chip.tensor.clok"), HasSubstr("did you mean"),
                       HasSubstr("chip.tensor.clock")));
  expect_refused(run(assemble(kGood), {"--set", "chip.tensor.clock"}), kBadInput, HasSubstr("="));
  expect_refused(run(assemble(kGood), {"--set", "chip.tensor.clock=2"}), kBadInput,
                 AllOf(HasSubstr("chip.tensor.clock"), HasSubstr("GHz")));
}

TEST(BadInput, UnknownMachine) {
  expect_refused(run_cli({"--config", "trn2.3xlagre", assemble(kGood).string()}), kBadInput,
                 AllOf(HasSubstr("did you mean 'trn2.3xlarge'"), HasSubstr("trn2u.48xlarge")));
}

TEST(BadInput, UnknownCommand) {
  expect_refused(run_cli({"repaly", "x.json"}), kBadInput, HasSubstr("did you mean 'replay'"));
  expect_refused(run_cli({"sweep", "x.yaml"}), kBadInput, HasSubstr("no command 'sweep'"));
}

TEST(BadInput, UnknownOption) {
  expect_refused(run_cli({"run", "--confgi", "trn2.3xlarge", "x.bin"}), kBadInput,
                 HasSubstr("--config"));
  expect_refused(run(assemble(kGood), {"--repotr", "json"}), kBadInput,
                 HasSubstr("did you mean '--report'"));
}

TEST(BadInput, MissingArguments) {
  expect_refused(run_cli({"--config", "trn2.3xlarge"}), kBadInput, HasSubstr("TRACE"));
  expect_refused(run_cli({"run", "x.bin"}), kBadInput, HasSubstr("--config"));
  expect_refused(run_cli({"replay", "--config", "trn2.3xlarge"}), kBadInput,
                 HasSubstr("PROFILE.json"));
  expect_refused(run_cli({"asm", "x.trn"}), kBadInput, HasSubstr("--output"));
}

TEST(BadInput, ReportFormatThatIsNone) {
  expect_refused(run(assemble(kGood), {"--report", "yaml"}), kBadInput, HasSubstr("yaml"));
}

TEST(BadInput, Prices) {
  const auto trace = assemble(kGood);
  expect_refused(run(trace, {"--price", "ondemand"}), kBadInput,
                 AllOf(HasSubstr("--price"), HasSubstr("did you mean 'on_demand'")));
  expect_refused(run(trace, {"--usd-per-hour", "0"}), kBadInput, HasSubstr("--usd-per-hour"));
  expect_refused(run(trace, {"--usd-per-hour", "cheap"}), kBadInput, HasSubstr("--usd-per-hour"));
}

TEST(BadInput, OutputThatCannotBeWritten) {
  const auto trace = assemble(kGood);
  expect_refused(run(trace, {"-o", "/nowhere/report.json"}), kBadInput,
                 HasSubstr("/nowhere/report.json"));
  expect_refused(run(trace, {"--instructions", "/nowhere/rows.csv"}), kBadInput,
                 HasSubstr("/nowhere/rows.csv"));
  expect_refused(run_cli({"dump", trace.string(), "-o", "/nowhere/x.trn"}), kBadInput,
                 HasSubstr("/nowhere/x.trn"));
}

TEST(BadInput, WhatWasWrittenBeforeADeadlockStays) {
  const auto trace = assemble(with(".engine Vector\nNOP\nNOP\nEVENT_SEMAPHORE wait S[7]>=3\n"));
  const std::filesystem::path rows = scratch_folder() / "rows.csv";
  const std::filesystem::path report = scratch_folder() / "report.json";
  const CliResult result =
      run(trace, {"--instructions", rows.string(), "--report", "json", "-o", report.string()});
  EXPECT_EQ(result.code, kDeadlock);
  EXPECT_THAT(read_text(rows), HasSubstr("NOP"));
  EXPECT_FALSE(std::filesystem::exists(report));  // no report of a run that did not end
}

}  // namespace
}  // namespace trn::test
