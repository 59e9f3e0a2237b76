#include "isa/program.h"

#include <algorithm>

#include "isa/base/check.h"

namespace trn::isa {

std::uint64_t Trace::size(std::uint32_t program, Engine engine) const {
  return code.at(program).streams[index(engine)].size();
}

void Trace::read(std::uint32_t program, Engine engine, std::uint64_t block,
                 std::vector<Instr>& out) const {
  const std::vector<Instr>& stream = code.at(program).streams[index(engine)];
  const std::uint64_t begin = block * kBlockInstructions;
  TRN_CHECK(begin < stream.size(), "block {} of a stream of {}", block, stream.size());
  const std::uint64_t end = std::min<std::uint64_t>(stream.size(), begin + kBlockInstructions);
  out.assign(stream.begin() + static_cast<std::ptrdiff_t>(begin),
             stream.begin() + static_cast<std::ptrdiff_t>(end));
}

}  // namespace trn::isa
