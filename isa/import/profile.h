#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "isa/import/profile_json.h"
#include "isa/program.h"

namespace trn::isa {

struct ImportOptions {
  std::string subgraph = "sg00";  ///< the physical core whose kernel is taken
  std::string name;               ///< of the trace; empty: the network's name in the profile
};

/// Turns the JSON export of AWS's profiler into a trace: the kernel's instructions of one core, as
/// docs/concepts/replay.md says. `file` is what messages call the profile.
/// Reads no time: not the fields `timestamp` and `duration`, nor a section that holds times only.
/// Throws InputError with file and row for anything that it cannot take over faithfully.
/// Source of the forms: docs/sources.md#profiles-import.
Trace import_profile(std::string_view json, const std::string& file,
                     const ImportOptions& options = {});

/// Where the windows of the Tensor engine's clock lie: the timestamp of the core's first `ham` row
/// modulo the window, in ns from the start of the profile (the kernel starts a prologue later).
/// Nothing else is read. Absent when the profile has no such row: its clock never changed.
/// window_ns is positive. Source: docs/sources.md#profiles-ham.
std::optional<double> activity_window_phase_ns(std::string_view json, const std::string& file,
                                               double window_ns, const ImportOptions& options = {});

/// An instruction row of the kernel: where it stands in the export and in the core's code.
struct KernelRow {
  std::uint64_t number = 0;  ///< in the list `instruction`
  Engine engine = Engine::Tensor;
  std::int64_t pc = 0;
};

/// The fields that kernel_row() needs: `subgraph`, `compiler_pc`, `subgroup`, `pc`.
inline constexpr std::array<std::string_view, 4> kKernelRowKeys = {"subgraph", "compiler_pc",
                                                                   "subgroup", "pc"};

/// A row of `instruction`, when it is the kernel's: it belongs to the subgraph and has a
/// `compiler_pc`; the rest is the runtime's prologue and epilogue.
std::optional<KernelRow> kernel_row(const ProfileRow& row, std::string_view subgraph);

/// For each engine the indices into `rows` in program order, which is that of `pc`.
/// Throws InputError for a repeated or missing pc (a loop, or lost rows), and when rows is empty.
std::array<std::vector<std::size_t>, kEngines> program_order(std::span<const KernelRow> rows,
                                                             const std::string& file);

}  // namespace trn::isa
