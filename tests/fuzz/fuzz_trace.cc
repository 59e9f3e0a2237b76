// Bytes as a trace: read, decode, validate, print, and write again. Bytes that do not begin like a
// trace are taken as the instructions of one block, so that inserting and removing bytes reaches
// the decoder too.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "isa/codec.h"
#include "isa/text.h"
#include "isa/trace.h"
#include "isa/validate.h"

namespace {

using namespace trn;       // NOLINT(google-build-using-namespace)
using namespace trn::isa;  // NOLINT(google-build-using-namespace)

/// Written and read again, as bytes and as text, a trace stays what it is.
void check_round_trips(const Trace& trace) {
  const std::vector<std::uint8_t> bytes = trace_bytes(trace);
  TRN_CHECK(trace_bytes(load(TraceReader(bytes, "again"))) == bytes, "the bytes do not come back");
  const Trace parsed = parse_text(trace_text(trace), "text");
  TRN_CHECK(trace_bytes(parsed) == bytes, "the text does not come back");
}

void use(const Trace& trace) {
  check_round_trips(trace);
  try {
    validate(trace, {}, "trace");
  } catch (const InputError&) {
  }
}

void read_as_trace(const std::vector<std::uint8_t>& bytes) {
  // Damage is what checksums find; without them it reaches the decoder.
  use(load(TraceReader(bytes, "input", {.verify_checksums = false})));
}

void read_as_instructions(const std::vector<std::uint8_t>& bytes) {
  Trace trace;
  trace.header.cores = {{0, 0, 3}};
  trace.header.locations.resize(8);
  trace.header.labels.resize(8);
  trace.code.resize(1);
  ByteReader in(bytes, "input");
  const auto engine = static_cast<std::size_t>(in.u8()) % kEngines;
  const SourceTables tables{trace.header.locations.size(), trace.header.labels.size()};
  SourceRef last;
  try {
    while (!in.done()) {
      Instr instr;
      decode(in, last, tables, instr);
      trace.code[0].streams[engine].push_back(instr);
    }
  } catch (const InputError&) {
  }
  use(trace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> bytes(data, data + size);
  try {
    if (!bytes.empty() && bytes[0] < kEngines) {
      read_as_instructions(bytes);
    } else {
      read_as_trace(bytes);
    }
  } catch (const InputError&) {
  }
  return 0;
}
