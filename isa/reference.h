#pragma once

#include <string>

namespace trn::isa {

/// docs/reference/isa.md: every instruction with its operands and limits, from the descriptions.
std::string instruction_page();

}  // namespace trn::isa
