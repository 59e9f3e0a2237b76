#include <benchmark/benchmark.h>

// The packaged SystemC's own main calls this; ours wins, and the library only needs the symbol.
extern "C" int sc_main(int /*argc*/, char** /*argv*/) { return 1; }

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
