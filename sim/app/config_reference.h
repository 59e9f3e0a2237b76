#pragma once

#include <string>

namespace trn::app {

/// docs/reference/configuration.md, from the field lists of the config structs.
std::string configuration_page();

}  // namespace trn::app
