#pragma once

#include <boost/container/small_vector.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "isa/operand.h"
#include "isa/program.h"

namespace trn::isa::frontend {

/// A kernel uses a call wrongly. The builder adds the place; views do not know it.
class TraceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Index of a tensor in its builder.
enum class StorageId : std::uint32_t {};
constexpr std::uint32_t index(StorageId id) { return static_cast<std::uint32_t>(id); }

/// One dimension of a view. Its step goes over elements of the storage, or over partitions.
struct ViewDim {
  std::int64_t size = 1;
  std::int64_t step = 0;        ///< elements of the view's dtype
  std::int64_t partitions = 0;  ///< partitions from one index to the next; 0 but for one dimension
};
using ViewDims = boost::container::small_vector<ViewDim, 6>;

/// A register that moves a view: `coefficient` elements for each unit.
struct ViewTerm {
  Register reg = kNoRegister;
  std::int64_t coefficient = 0;
};

/// A part of a tensor: dimensions with steps over its storage, outermost first. On chip an address
/// is a partition and an element within it; in HBM all is elements. Making one costs no
/// instruction. All functions throw TraceError on a wrong argument.
struct View {
  StorageId storage{};
  Memory memory = Memory::Hbm;
  Dtype dtype = Dtype::Fp32;
  std::int64_t partition = 0;         ///< first partition
  std::int64_t offset = 0;            ///< elements from the storage's (or partition's) start
  std::int64_t storage_elements = 0;  ///< of the whole tensor, or of one partition of it
  std::int64_t storage_partitions = 0;
  ViewDims dims{};
  boost::container::small_vector<ViewTerm, 1> terms{};
  std::shared_ptr<const std::string> name{};  ///< of the tensor

  [[nodiscard]] std::size_t ndim() const { return dims.size(); }
  [[nodiscard]] std::int64_t size() const;
  /// Index of the dimension that goes over partitions, if any.
  [[nodiscard]] std::optional<std::size_t> partition_dim() const;
  /// Whether the elements follow each other without a gap (in each partition).
  [[nodiscard]] bool contiguous() const;

  /// Restricts a dimension to `size` elements from `start`, every `step`th.
  [[nodiscard]] View sliced(std::size_t dim, std::int64_t start, std::int64_t size,
                            std::int64_t step) const;
  /// Fixes a dimension at an index; drops it, unless it is the partition dimension of a tile.
  [[nodiscard]] View selected(std::size_t dim, std::int64_t at) const;
  [[nodiscard]] View expanded(std::size_t dim) const;  ///< inserts a dimension of size 1
  [[nodiscard]] View squeezed(std::size_t dim) const;  ///< removes a dimension of size 1
  /// One size may be -1. Fails when the elements' order needs a copy.
  [[nodiscard]] View reshaped(std::span<const std::int64_t> shape) const;
  [[nodiscard]] View permuted(std::span<const std::int64_t> order) const;
  [[nodiscard]] View broadcast(std::span<const std::int64_t> shape) const;
  /// The same bits as another dtype; the innermost dimension is rescaled.
  [[nodiscard]] View retyped(Dtype other) const;

  /// element[i0, i1 ...] is at index base[d] + sum(i_a * axes[a].steps[d]) of dimension d.
  struct Axis {
    std::int64_t size = 1;
    std::vector<std::int64_t> steps;
  };
  [[nodiscard]] View affine(std::span<const std::int64_t> base, std::span<const Axis> axes) const;

  /// [stride, count] pairs in elements of `as`, outermost first, over the whole storage; on chip
  /// the first goes over partitions. Without an offset, that of this view.
  [[nodiscard]] View pattern(std::span<const std::array<std::int64_t, 2>> pairs,
                             std::optional<std::int64_t> from, Dtype as) const;
};

/// The sizes as `[128, 512]`.
std::string shape_text(const View& view);

}  // namespace trn::isa::frontend
