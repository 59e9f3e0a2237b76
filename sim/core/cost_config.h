#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "isa/base/describe.h"
#include "isa/base/yaml_load.h"

namespace trn::sim {

/// One row of a cost table, as text. Formulas are in cycles of the engine's own clock.
struct CostRowConfig {
  std::optional<std::string> when{};
  std::string ii_cycles;
  std::optional<std::string> occupancy_cycles{};
  std::string latency_cycles;
  std::optional<std::string> restart_cycles{};
  Status status = Status::Estimated;
  std::string source;
  static constexpr auto fields() {
    return std::tuple{
        Field{"when", &CostRowConfig::when, "", "condition; absent in the last row of a list"},
        Field{"ii_cycles", &CostRowConfig::ii_cycles, "",
              "from the start of the instruction to that of the next one on its engine"},
        Field{"occupancy_cycles", &CostRowConfig::occupancy_cycles, "",
              "the unit is held; ii_cycles when absent"},
        Field{"latency_cycles", &CostRowConfig::latency_cycles, "",
              "from the start to the result, as the profiler's duration has it"},
        Field{"restart_cycles", &CostRowConfig::restart_cycles, "",
              "added to the latency when the unit stood idle before; 0 when absent"},
        Field{"status", &CostRowConfig::status, "", "how well the row is known"},
        Field{"source", &CostRowConfig::source, "", "where it comes from"}};
  }
};

/// The rows of one cost class: one list for every engine that executes it, or one list for each.
struct CostRowsConfig {
  static constexpr const char* kEveryEngine = "";
  std::map<std::string, std::vector<CostRowConfig>> by_engine{};
};

/// A cost table as its file has it.
struct CostTableConfig {
  std::map<std::string, double> constants{};
  std::map<std::string, CostRowsConfig> rows{};
  static constexpr auto fields() {
    return std::tuple{
        Field{"constants", &CostTableConfig::constants, "cycles", "names that formulas use"},
        Field{"rows", &CostTableConfig::rows, "",
              "by cost class: a list of rows, or one for each engine; the first row "
              "whose `when` holds counts"}};
  }
};

}  // namespace trn::sim

namespace trn {
template <>
struct YamlForm<sim::CostRowsConfig> {
  static void read(YamlReader& reader, const YamlNode& node, const std::string& path,
                   const YamlReader::Inherited& inherited, sim::CostRowsConfig& out);
  static void write(YamlWriter& writer, const sim::CostRowsConfig& rows, const std::string& path);
};
}  // namespace trn
