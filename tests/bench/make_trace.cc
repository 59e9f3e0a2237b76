// Writes a trace of any length, for measuring how memory and time follow it.
#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>

#include "isa/trace.h"
#include "tests/bench/busy_core.h"

namespace {

constexpr const char* kUsage =
    "usage: make_trace ROUNDS FILE\n\n"
    "Writes a trace of six instructions a round, on all engines.\n\n"
    "Example: make_trace 1000000 busy.bin\n";

int run(std::uint64_t rounds, const char* path) {
  std::ofstream out(path, std::ios::binary);
  trn::isa::TraceInfo info;
  info.name = "busy core";
  info.cores = {{0, 0, 0}};
  trn::isa::TraceWriter writer(out, path, info.target);
  trn::bench::busy_core(rounds, [&](trn::isa::Engine engine, const trn::isa::Instr& instr) {
    writer.append(0, engine, instr);
  });
  writer.finish(info);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t rounds = 0;
  if (argc != 3 ||
      std::from_chars(argv[1], argv[1] + std::strlen(argv[1]), rounds).ec != std::errc{}) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    return run(rounds, argv[2]);
  } catch (const std::exception& error) {
    std::cerr << "make_trace: " << error.what() << '\n';
    return 2;
  }
}
