#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "isa/program.h"

namespace trn::isa::frontend {

/// Proves that a program's semaphores order all accesses to the same bytes, whatever the times are;
/// it looks at nothing but the program itself. Each finding names two instructions that may run in
/// either order, a semaphore whose value does not tell what has happened, or a wait that nothing
/// meets. At most `most` findings; none: proved. An engine's instructions are in
/// order by themselves, but for reading what it has just written.
/// For programs without branches whose addresses do not follow registers, loops aside. Takes time
/// in the square of the program's length: for tests.
std::vector<std::string> check_order(const Program& program, std::size_t most = 20);

}  // namespace trn::isa::frontend
