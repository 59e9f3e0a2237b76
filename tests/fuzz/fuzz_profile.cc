// Profiles into traces: any bytes give a trace that can be written, read and checked, or an
// InputError.
//
// An input that does not begin with '{' is taken for instruction rows, `Engine OPCODE operands` a
// line, and wrapped in an export: so changed bytes reach the operands and not only the JSON reader.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "isa/base/check.h"
#include "isa/base/error.h"
#include "isa/import/profile.h"
#include "isa/trace.h"
#include "isa/validate.h"

namespace {

using trn::InputError;
namespace isa = trn::isa;

std::string_view until(std::string_view& text, char end) {
  const std::size_t length = std::min(text.find(end), text.size());
  const std::string_view part = text.substr(0, length);
  text.remove_prefix(std::min(length + 1, text.size()));
  return part;
}

std::string wrapped(std::string_view rows) {
  using Json = nlohmann::json;
  Json profile;
  profile["dma_queues_info"] = {
      Json{{"subgraph", "sg00"}, {"q_name", "qSyncDynamicHW"}, {"q_idx", 1}},
      Json{{"subgraph", "sg00"}, {"q_name", "qGpSimdDynamic"}, {"q_idx", 0}}};
  Json& list = profile["instruction"] = Json::array();
  std::map<std::string, int> next_pc;
  while (!rows.empty()) {
    std::string_view line = until(rows, '\n');
    const std::string_view engine = until(line, ' ');
    const std::string_view opcode = until(line, ' ');
    const int pc = next_pc[std::string(engine)]++;  // one count for all would leave holes in each
    list.push_back(Json{{"subgraph", "sg00"},
                        {"compiler_pc", pc},
                        {"subgroup", engine},
                        {"pc", pc},
                        {"opcode", opcode},
                        {"operands", line}});
  }
  return profile.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string json(reinterpret_cast<const char*>(data), size);
  if (size != 0 && data[0] != '{') json = wrapped(json);
  try {
    const isa::Trace trace = isa::import_profile(json, "fuzz");
    const std::vector<std::uint8_t> bytes = isa::trace_bytes(trace);
    const isa::TraceReader reader(bytes, "fuzz");
    TRN_CHECK(isa::trace_bytes(reader) == bytes, "a trace of {} bytes changed", bytes.size());
    isa::validate(trace, {}, "fuzz");
  } catch (const InputError&) {  // what the importer should say
  }
  try {
    (void)isa::activity_window_phase_ns(json, "fuzz", 3413.25);
  } catch (const InputError&) {
  }
  return 0;
}
