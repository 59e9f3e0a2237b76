#include "isa/frontend/view.h"

#include <fmt/format.h>

#include <algorithm>

namespace trn::isa::frontend {
namespace {

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw TraceError(fmt::format(format, std::forward<Args>(args)...));
}

void check_dim(const View& view, std::size_t dim) {
  if (dim >= view.ndim()) {
    fail("dimension: expected 0..{}, got {}", static_cast<std::int64_t>(view.ndim()) - 1, dim);
  }
}

/// Whether `inner` goes on where one index of `outer` ends, so that both are one dimension.
bool joins(const ViewDim& outer, const ViewDim& inner) {
  return outer.partitions == inner.partitions * inner.size && outer.step == inner.step * inner.size;
}

}  // namespace

std::int64_t View::size() const {
  std::int64_t count = 1;
  for (const ViewDim& dim : dims) count *= dim.size;
  return count;
}

std::optional<std::size_t> View::partition_dim() const {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].partitions != 0) return i;
  }
  return std::nullopt;
}

bool View::contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i].partitions != 0 || dims[i].size == 1) continue;
    if (dims[i].step != expected) return false;
    expected *= dims[i].size;
  }
  return true;
}

View View::sliced(std::size_t dim, std::int64_t start, std::int64_t size, std::int64_t step) const {
  check_dim(*this, dim);
  const std::int64_t last = start + (size - 1) * step;
  const std::int64_t limit = dims[dim].size;
  if (size < 1 || start < 0 || start >= limit || last < 0 || last >= limit) {
    fail("index of dimension {}: expected within 0..{}, got {} from {} in steps of {}", dim,
         limit - 1, size, start, step);
  }
  View result = *this;
  ViewDim& it = result.dims[dim];
  result.offset += start * it.step;
  result.partition += start * it.partitions;
  it.size = size;
  it.step *= step;
  it.partitions *= step;
  return result;
}

View View::selected(std::size_t dim, std::int64_t at) const {
  check_dim(*this, dim);
  if (at < 0) at += dims[dim].size;
  if (at < 0 || at >= dims[dim].size) {
    fail("index of dimension {}: expected {}..{}, got {}", dim, -dims[dim].size, dims[dim].size - 1,
         at);
  }
  View result = sliced(dim, at, 1, 1);
  if (dims[dim].partitions == 0) result.dims.erase(result.dims.begin() + static_cast<long>(dim));
  return result;
}

View View::expanded(std::size_t dim) const {
  if (dim > ndim()) fail("dimension: expected 0..{}, got {}", ndim(), dim);
  View result = *this;
  result.dims.insert(result.dims.begin() + static_cast<long>(dim), ViewDim{});
  return result;
}

View View::squeezed(std::size_t dim) const {
  check_dim(*this, dim);
  if (dims[dim].size != 1) fail("dimension {}: expected size 1, got {}", dim, dims[dim].size);
  View result = *this;
  result.dims.erase(result.dims.begin() + static_cast<long>(dim));
  return result;
}

View View::reshaped(std::span<const std::int64_t> shape) const {
  std::vector<std::int64_t> sizes(shape.begin(), shape.end());
  std::int64_t known = 1;
  for (const std::int64_t size : sizes) known *= size == -1 ? 1 : size;
  for (std::int64_t& size : sizes) {
    if (size == -1 && known > 0) size = this->size() / known;
  }
  std::int64_t count = 1;
  for (const std::int64_t size : sizes) count *= size;
  if (count != this->size()) {
    fail("reshape: expected {} elements as in {}, got [{}]", this->size(), shape_text(*this),
         fmt::join(sizes, ", "));
  }

  // Runs of dimensions that are one dimension in truth, innermost first; each is cut anew.
  ViewDims runs;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i].size == 1 && dims[i].partitions == 0) continue;
    if (!runs.empty() && joins(dims[i], runs.back())) {
      runs.back().size *= dims[i].size;
    } else {
      runs.push_back(dims[i]);
    }
  }
  View result = *this;
  result.dims.assign(sizes.size(), ViewDim{});
  std::size_t run = 0;
  std::int64_t done = 1;  // of the run's size
  for (std::size_t i = sizes.size(); i-- > 0;) {
    ViewDim& dim = result.dims[i];
    dim.size = sizes[i];
    if (run < runs.size() && done == runs[run].size) {
      ++run;
      done = 1;
    }
    if (sizes[i] == 1) continue;
    if (run >= runs.size() || runs[run].size % (done * sizes[i]) != 0) {
      fail("reshape: {} to [{}] would need a copy", shape_text(*this), fmt::join(sizes, ", "));
    }
    dim.step = runs[run].step * done;
    dim.partitions = runs[run].partitions * done;
    done *= sizes[i];
  }
  // A tile of one partition keeps its partition dimension: the first one.
  if (memory != Memory::Hbm && !result.partition_dim() && !result.dims.empty() &&
      result.dims[0].size == 1) {
    result.dims[0].partitions = 1;
  }
  return result;
}

View View::permuted(std::span<const std::int64_t> order) const {
  std::vector<bool> seen(ndim(), false);
  bool good = order.size() == ndim();
  for (const std::int64_t dim : order) {
    const auto at = static_cast<std::size_t>(dim);
    good = good && dim >= 0 && at < ndim() && !seen[at];
    if (good) seen[at] = true;
  }
  if (!good)
    fail("permute: expected an order of {} dimensions, got [{}]", ndim(), fmt::join(order, ", "));
  View result = *this;
  for (std::size_t i = 0; i < ndim(); ++i) {
    result.dims[i] = dims[static_cast<std::size_t>(order[i])];
  }
  return result;
}

View View::broadcast(std::span<const std::int64_t> shape) const {
  if (shape.size() < ndim()) {
    fail("broadcast: expected at least {} dimensions, got {}", ndim(), shape.size());
  }
  View result = *this;
  const std::size_t added = shape.size() - ndim();
  result.dims.insert(result.dims.begin(), added, ViewDim{});
  for (std::size_t i = 0; i < shape.size(); ++i) {
    ViewDim& dim = result.dims[i];
    if (dim.size == shape[i]) continue;
    if (dim.size != 1) {
      fail("broadcast: {} does not fit [{}]", shape_text(*this), fmt::join(shape, ", "));
    }
    if (dim.partitions != 0) {
      fail("broadcast: the partition dimension of {} cannot be broadcast without a copy",
           shape_text(*this));
    }
    dim = {shape[i], 0, 0};
  }
  return result;
}

View View::retyped(Dtype other) const {
  const std::int64_t from = bytes_of(dtype);
  const std::int64_t to = bytes_of(other);
  View result = *this;
  result.dtype = other;
  if (from == to) return result;
  // Elements become larger or smaller; the innermost dimension takes up the difference.
  const auto scaled = [&](std::int64_t elements, std::string_view what) {
    if (elements * from % to != 0) {
      fail("view as {}: {} of {} elements of {} bytes is not a multiple of {} bytes",
           name_of(other), what, elements, from, to);
    }
    return elements * from / to;
  };
  result.offset = scaled(offset, "an offset");
  result.storage_elements = storage_elements * from / to;
  if (dims.empty()) fail("view as {}: expected a dimension", name_of(other));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    ViewDim& dim = result.dims[i];
    if (i + 1 == dims.size()) {
      if (dim.step != 1 && dim.size != 1) {
        fail("view as {}: the innermost dimension is not contiguous", name_of(other));
      }
      dim.size = scaled(dim.size, "a dimension");
      dim.step = 1;
    } else {
      dim.step = scaled(dim.step, "a stride");
    }
  }
  return result;
}

View View::affine(std::span<const std::int64_t> base, std::span<const Axis> axes) const {
  if (base.size() != ndim()) fail("index: expected {} dimensions, got {}", ndim(), base.size());
  View result = *this;
  result.dims.clear();
  for (const Axis& axis : axes) {
    ViewDim dim{axis.size, 0, 0};
    for (std::size_t d = 0; d < ndim(); ++d) {
      dim.step += axis.steps[d] * dims[d].step;
      dim.partitions += axis.steps[d] * dims[d].partitions;
    }
    result.dims.push_back(dim);
  }
  for (std::size_t d = 0; d < ndim(); ++d) {
    std::int64_t low = base[d];
    std::int64_t high = base[d];
    for (const Axis& axis : axes) {
      const std::int64_t reach = axis.steps[d] * (axis.size - 1);
      (reach < 0 ? low : high) += reach;
    }
    if (low < 0 || high >= dims[d].size) {
      fail("index of dimension {}: expected within 0..{}, got {}..{}", d, dims[d].size - 1, low,
           high);
    }
    result.offset += base[d] * dims[d].step;
    result.partition += base[d] * dims[d].partitions;
  }
  // An axis of size 1 that goes over partitions is the tile's partition dimension; when no axis
  // does, the first one of size 1 that belongs to nothing else becomes it.
  if (memory != Memory::Hbm && !result.partition_dim()) {
    for (ViewDim& dim : result.dims) {
      if (dim.size == 1) {
        dim = {1, 0, 1};
        break;
      }
    }
  }
  return result;
}

View View::pattern(std::span<const std::array<std::int64_t, 2>> pairs,
                   std::optional<std::int64_t> from, Dtype as) const {
  const std::int64_t have = bytes_of(dtype);
  const std::int64_t want = bytes_of(as);
  View result = *this;
  result.dtype = as;
  result.storage_elements = storage_elements * have / want;
  result.offset = from ? *from : offset * have / want;
  result.dims.clear();
  const bool on_chip = memory != Memory::Hbm;
  if (on_chip && from && result.storage_elements > 0) {
    // An explicit offset counts from the first partition, rows of one partition's elements.
    result.partition = partition + *from / result.storage_elements;
    result.offset = *from % result.storage_elements;
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [stride, count] = pairs[i];
    if (count < 1) fail("ap: expected counts of at least 1, got {}", count);
    if (on_chip && i == 0) {
      if (count > 1 && stride % result.storage_elements != 0) {
        fail("ap: expected the first stride to be one partition's {} elements, got {}",
             result.storage_elements, stride);
      }
      result.dims.push_back(
          {count, 0,
           std::max<std::int64_t>(1, stride / std::max<std::int64_t>(1, result.storage_elements))});
    } else {
      result.dims.push_back({count, stride, 0});
    }
  }
  std::int64_t low = result.offset;
  std::int64_t high = result.offset;
  for (const ViewDim& dim : result.dims) {
    const std::int64_t reach = dim.step * (dim.size - 1);
    (reach < 0 ? low : high) += reach;
  }
  if (low < 0 || high >= result.storage_elements) {
    fail("ap: expected elements within 0..{}, got {}..{}", result.storage_elements - 1, low, high);
  }
  return result;
}

std::string shape_text(const View& view) {
  std::vector<std::int64_t> sizes;
  for (const ViewDim& dim : view.dims) sizes.push_back(dim.size);
  return fmt::format("[{}]", fmt::join(sizes, ", "));
}

}  // namespace trn::isa::frontend
