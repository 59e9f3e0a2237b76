#include "isa/frontend/tables.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace trn::isa::frontend {

void load_tables(Builder& builder) {
  std::vector<Node>& nodes = builder.nodes();
  struct Load {
    std::size_t before = 0;  ///< node
    std::uint32_t table = 0;
    std::uint32_t location = 0;
  };
  std::vector<Load> loads;
  std::size_t after_last = 0;  // the earliest place for the next load
  std::uint32_t loaded = 0;
  bool scalar_used = false;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    if (nodes[n].engine != Engine::Scalar) continue;
    const auto* activate = std::get_if<Activate>(&nodes[n].op);
    const CostClass cost = detail::kCosts<Op>[nodes[n].op.index()];
    scalar_used = scalar_used || (cost != CostClass::DmaTrigger && cost != CostClass::Control);
    const std::uint32_t table = activate == nullptr ? 0 : table_of(activate->function);
    if (table == 0) continue;
    if (table != loaded) loads.push_back({after_last, table, nodes[n].location});
    loaded = table;
    after_last = n + 1;
  }
  if (loads.empty() && scalar_used) loads.push_back({0, 0, 0});
  if (loads.empty()) return;
  std::vector<Node> result;
  result.reserve(nodes.size() + loads.size());
  auto next = loads.begin();
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (; next != loads.end() && next->before == n; ++next) {
      ActTableLoad load;
      load.table_sel = next->table;
      result.push_back({.op = load, .engine = Engine::Scalar, .location = next->location});
    }
    result.push_back(std::move(nodes[n]));
  }
  nodes = std::move(result);
}

}  // namespace trn::isa::frontend
