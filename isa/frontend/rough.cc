#include "isa/frontend/rough.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <type_traits>

#include "isa/frontend/hazards.h"
#include "isa/frontend/memory_operands.h"

namespace trn::isa::frontend {
namespace {

constexpr double kMatmulColumnsPerNs = 2.4;
constexpr double kControlNs = 5;
constexpr double kLeastElements = 64;
constexpr double kOverheadCycles = 60;
constexpr double kScalarGhz = 1.2;
constexpr double kOtherGhz = 0.96;

}  // namespace

double rough_ns(const Op& op, Engine engine) {
  double elements = 0;
  double bytes = 0;
  for_each_memory_operand(op, [&](std::string_view /*name*/, const auto& operand) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(operand)>, DmaSide>) {
      bytes = std::max(bytes, static_cast<double>(operand.bytes()));
    } else {
      elements = std::max(elements, static_cast<double>(operand.elements()));
    }
  });
  const CostClass cost = detail::kCosts<Op>[op.index()];
  switch (cost) {
    case CostClass::DmaTrigger:
      return bytes / kRoughTransferBytesPerNs;
    case CostClass::Matmul: {
      const auto& matmul = std::get<Matmul>(op);
      return std::max(elements, kLeastElements) * (matmul.pass == Fp32Pass::None ? 1 : 2) /
             kMatmulColumnsPerNs;
    }
    case CostClass::LoadWeights:
    case CostClass::Control:
      return kControlNs;
    default:
      return (std::max(elements, kLeastElements) + kOverheadCycles) /
             (engine == Engine::Scalar ? kScalarGhz : kOtherGhz);
  }
}

std::size_t worker(const Node& node) {
  return is_transfer(node.op) ? kEngines : index(node.engine);
}

std::vector<double> rough_ends(const Builder& builder) {
  std::vector<double> ends;
  ends.reserve(builder.nodes().size());
  std::vector<double> written(builder.storages().size(), 0);  // by tensor: when it was, last
  std::array<double, kEngines> free{};
  double dma_free = 0;
  for (const Node& node : builder.nodes()) {
    double start = free[index(node.engine)];
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      const auto s = index(storage_of(address_of(operand).base));
      if (!is_result(name)) start = std::max(start, written[s]);
    });
    const double takes = rough_ns(node.op, node.engine);
    double end = start + takes;
    free[index(node.engine)] = end;
    if (is_transfer(node.op)) {
      free[index(node.engine)] = start + kRoughTriggerNs;
      end = dma_free = std::max(dma_free, free[index(node.engine)] + kRoughLatencyNs) + takes;
    }
    for_each_memory_operand_of_node(node, [&](std::string_view name, const auto& operand) {
      if (is_result(name)) written[index(storage_of(address_of(operand).base))] = end;
    });
    ends.push_back(end);
  }
  return ends;
}

}  // namespace trn::isa::frontend
