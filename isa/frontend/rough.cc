#include "isa/frontend/rough.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "isa/frontend/memory_operands.h"

namespace trn::isa::frontend {
namespace {

constexpr double kTransferBytesPerNs = 300;  // sixteen engines, software descriptors
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
      return bytes / kTransferBytesPerNs;
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

}  // namespace trn::isa::frontend
