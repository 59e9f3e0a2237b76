#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "isa/program.h"
#include "sim/core/cost_table.h"
#include "sim/core/uop.h"
#include "sim/dma/dma_plan.h"
#include "sim/machine/machine_config.h"

namespace trn::sim {

/// Makes instructions ready for execution on one chip: looks up their costs and sums up what they
/// touch. Keeps the costs by features, so that a formula is evaluated once.
class Lowering {
 public:
  Lowering(const ChipConfig& chip, const CostTable& costs);

  /// Fills `out`, which refers to `instr`; a DMA's plan is added to `plans`. Throws InputError for
  /// a collective, which needs other cores.
  void lower(const isa::Instr& instr, isa::Engine engine, std::uint64_t index, Uop& out,
             std::vector<std::unique_ptr<DmaPlan>>& plans);

  /// What an ACT_TABLE_LOAD costs.
  [[nodiscard]] PipelineCost table_load();

  /// Descriptions of cost rows that were used and are assumptions.
  [[nodiscard]] std::vector<std::string> assumed_costs() const;

 private:
  /// A looked-up cost in time of the engine's clock.
  struct Known {
    CostFeatures features{};
    bool valid = false;
    double ii_cycles = 0;
    PipelineCost cost{};
    PipelineCost contended{};  ///< Vector, while GpSimd holds the bus
  };

  [[nodiscard]] PipelineCost pipeline_cost(const Cost& cost, isa::Engine engine) const;
  const Known& known_cost(isa::CostClass cost_class, isa::Engine engine,
                          const CostFeatures& features);

  const ChipConfig& chip_;
  CostCache costs_;
  std::array<double, isa::kEngines> clock_hz_;
  /// The last cost of each class and engine: neighbours are mostly alike.
  std::array<Known, isa::kCostClasses * isa::kEngines> last_{};
};

}  // namespace trn::sim
