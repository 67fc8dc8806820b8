// Copies of a call's tensors on the host, row by row: for cases that give a kernel other
// memory than the problem's. One thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/tensor_view.hpp"
#include "prefill_tensors.hpp"

namespace attnjit::contract {

constexpr std::uint16_t poison_bits = 0xffff;  // NaN in bf16 and fp16: what problems poison with
constexpr std::uint8_t poison_byte = 0xff;     // the same in fp8

// All indices of a row of a tensor but the column; those past its rank are 0.
using RowIndex = std::array<std::int64_t, TensorView::max_rank>;

// Where a row begins, in elements.
std::size_t row_offset(const TensorView& view, const RowIndex& index);

// Elements of fp8 as bytes, of 16 bits as such, of fp32 as float.
template <typename Element>
struct HostElements {
  TensorView view;  // of no memory
  std::vector<Element> elements;

  Element* row(const RowIndex& index) { return elements.data() + row_offset(view, index); }
  std::int64_t columns() const { return view.shape.at(static_cast<std::size_t>(view.rank - 1)); }
};

using HostTensor = HostElements<std::uint16_t>;

// What `view` spans in device memory. Throws CudaError.
template <typename Element = std::uint16_t>
HostElements<Element> download(const TensorView& view, const DeviceStream& stream) {
  HostElements<Element> tensor = {view, {}};
  const auto bytes = static_cast<std::size_t>(check::span_bytes(view));
  tensor.elements.resize(bytes / sizeof(Element));
  download_device_memory(view.data, tensor.elements.data(), bytes, stream);
  tensor.view.data = nullptr;
  return tensor;
}

// A contiguous tensor, all of it `poison`.
template <typename Element>
HostElements<Element> filled_tensor(DataType dtype, std::initializer_list<std::int64_t> shape,
                                    Element poison) {
  HostElements<Element> tensor = {contiguous_view(nullptr, dtype, shape), {}};
  std::size_t count = 1;
  for (const std::int64_t extent : shape) {
    count *= static_cast<std::size_t>(extent);
  }
  tensor.elements.assign(count, poison);
  return tensor;
}

HostTensor poisoned_tensor(DataType dtype, std::initializer_list<std::int64_t> shape);

// Calls visit(index) for every row.
void for_each_row(const TensorView& view, const std::function<void(const RowIndex&)>& visit);

// Device memory of a call, which lasts as long as this does.
class CallMemory {
 public:
  explicit CallMemory(const DeviceStream& stream) : stream_(stream) {}

  // The tensor's view in device memory. Throws CudaError.
  template <typename Element>
  TensorView upload(const HostElements<Element>& tensor) {
    return keep(tensor.view,
                make_device_buffer<Element>(stream_.device(), tensor.elements, stream_.handle()));
  }
  TensorView upload(const std::vector<int>& values, std::initializer_list<std::int64_t> shape);

  // Memory for a tensor of this view, every byte 0xff.
  TensorView poisoned(const TensorView& view);

 private:
  TensorView keep(TensorView view, DeviceBuffer buffer);

  const DeviceStream& stream_;
  std::vector<DeviceBuffer> buffers_;
};

// The bytes that `view` spans in device memory.
std::vector<unsigned char> download_bytes(const TensorView& view, const DeviceStream& stream);

// A block table's ids, row by row.
std::vector<int> download_ids(const TensorView& block_table, const DeviceStream& stream);

}  // namespace attnjit::contract
