#include "host_tensor.hpp"

#include <cstddef>
#include <utility>

#include "prefill_tensors.hpp"
#include "random_tokens.hpp"

namespace attnjit::contract {

std::size_t row_offset(const TensorView& view, const RowIndex& index) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i + 1 < static_cast<std::size_t>(view.rank); ++i) {
    offset += index.at(i) * view.strides.at(i);
  }
  return static_cast<std::size_t>(offset);
}

HostTensor poisoned_tensor(DataType dtype, std::initializer_list<std::int64_t> shape) {
  return filled_tensor(dtype, shape, poison_bits);
}

void for_each_row(const TensorView& view, const std::function<void(const RowIndex&)>& visit) {
  std::int64_t rows = 1;
  const auto outer = static_cast<std::size_t>(view.rank - 1);
  for (std::size_t i = 0; i < outer; ++i) {
    rows *= view.shape.at(i);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    RowIndex index = {};
    std::int64_t rest = row;
    for (std::size_t i = outer; i-- > 0;) {
      index.at(i) = rest % view.shape.at(i);
      rest /= view.shape.at(i);
    }
    visit(index);
  }
}

TensorView CallMemory::keep(TensorView view, DeviceBuffer buffer) {
  buffers_.push_back(std::move(buffer));
  view.data = buffers_.back().data();
  return view;
}

TensorView CallMemory::upload(const std::vector<int>& values,
                              std::initializer_list<std::int64_t> shape) {
  return keep(contiguous_view(nullptr, DataType::int32, shape),
              make_device_buffer<int>(stream_.device(), values, stream_.handle()));
}

TensorView CallMemory::poisoned(const TensorView& view) {
  return keep(view, check::poisoned_buffer(stream_, check::span_bytes(view)));
}

std::vector<unsigned char> download_bytes(const TensorView& view, const DeviceStream& stream) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(check::span_bytes(view)));
  download_device_memory(view.data, bytes.data(), bytes.size(), stream);
  return bytes;
}

std::vector<int> download_ids(const TensorView& block_table, const DeviceStream& stream) {
  std::vector<int> ids(static_cast<std::size_t>(block_table.shape[0] * block_table.shape[1]));
  download_device_memory(block_table.data, ids.data(), ids.size() * sizeof(int), stream);
  return ids;
}

}  // namespace attnjit::contract
