// Copies of a call's 16-bit tensors on the host, row by row: for cases that give a kernel other
// memory than the problem's. One thread at a time.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "attnjit/device_memory.hpp"
#include "attnjit/tensor_view.hpp"

namespace attnjit::contract {

constexpr std::uint16_t poison_bits = 0xffff;  // NaN in bf16 and fp16: what problems poison with

// All indices of a row of a tensor but the column; those past its rank are 0.
using RowIndex = std::array<std::int64_t, TensorView::max_rank>;

struct HostTensor {
  TensorView view;  // of no memory
  std::vector<std::uint16_t> elements;

  std::uint16_t* row(const RowIndex& index);
  std::int64_t columns() const { return view.shape.at(static_cast<std::size_t>(view.rank - 1)); }
};

// What `view` spans in device memory. Throws CudaError.
HostTensor download(const TensorView& view, const DeviceStream& stream);

// A contiguous tensor, all of it poison.
HostTensor poisoned_tensor(DataType dtype, std::initializer_list<std::int64_t> shape);

// Calls visit(index) for every row.
void for_each_row(const TensorView& view, const std::function<void(const RowIndex&)>& visit);

// Device memory of a call, which lasts as long as this does.
class CallMemory {
 public:
  explicit CallMemory(const DeviceStream& stream) : stream_(stream) {}

  // The tensor's view in device memory. Throws CudaError.
  TensorView upload(const HostTensor& tensor);
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
