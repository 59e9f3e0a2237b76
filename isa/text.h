#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "isa/program.h"

namespace trn::isa {

/// Version of the text form.
inline constexpr int kTextVersion = 1;

/// Operands of an instruction as text, `src=bf16@sbuf:0x37600[1][512] op=ADD`, without those that
/// have their default value.
std::string operands_text(const Instr& instr);
/// Its wait and update, `wait S[5]>=4 update S[4]++@complete`; empty when it has neither.
std::string sync_text(const Instr& instr);
/// Mnemonic, operands, wait and update.
std::string instruction_text(const Instr& instr);

/// Writes a trace as text (.trn), block by block. parse_text undoes it exactly. The form is
/// docs/reference/trace-format.md.
void write_text(const Code& code, std::ostream& out);
std::string trace_text(const Code& code);

/// Reads text; `file` is what messages call it. Throws one InputError with all errors found, each
/// with line, column, what was expected, and near misses of names. A LOOP and END_LOOP without
/// distances get them from their nesting; `name:` before an instruction names it for
/// COMPARE_BRANCH's target.
Trace parse_text(std::string_view text, std::string_view file);

}  // namespace trn::isa
