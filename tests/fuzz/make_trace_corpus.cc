// Writes the seeds of fuzz_trace into a folder: a block of instructions for each mnemonic, and
// whole traces.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "isa/codec.h"
#include "isa/trace.h"
#include "tests/isa/random_instr.h"

namespace {

using namespace trn;       // NOLINT(google-build-using-namespace)
using namespace trn::isa;  // NOLINT(google-build-using-namespace)

void write(const std::filesystem::path& path, std::span<const std::uint8_t> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()),
            static_cast<std::streamsize>(bytes.size()));
}

void make_corpus(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  isa::test::RandomInstr random(2);
  for_each_instruction([&]<class T>() {
    ByteWriter out;
    out.u8(static_cast<std::uint8_t>(T::kOpcode % kEngines));
    SourceRef last;
    Instr instr = random.of<T>();
    instr.at = {instr.at.location % 8, instr.at.label % 8};
    encode(instr, last, out);
    write(folder / ("instr_" + std::string(T::kName.substr(0, 40))), out.bytes());
  });
  write(folder / "trace_empty", trace_bytes(Trace{}));
  for (std::uint32_t seed : isa::test::seeds(3)) {
    write(folder / ("trace_" + std::to_string(seed)),
          trace_bytes(isa::test::RandomInstr(seed).trace(2, 4)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_trace_corpus FOLDER\n");
    return 2;
  }
  make_corpus(argv[1]);
  return 0;
}
