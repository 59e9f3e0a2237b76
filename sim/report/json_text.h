#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace trn::sim {

/// JSON as text, two spaces a level, where a list or an object of plain values keeps to one line
/// when it fits in 100 columns. Numbers have the shortest form that reads back as the same double,
/// so that a time of up to a second in ns is exact to the femtosecond. Numbers are finite. Ends
/// with a line feed.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace trn::sim
