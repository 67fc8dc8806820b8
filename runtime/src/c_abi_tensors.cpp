#include "c_abi_tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "driver.hpp"

namespace attnjit::c_abi {
namespace {

// A tensor of the interface is a TensorView byte by byte, and its numbers are the enumerators'.
static_assert(sizeof(attnjit_tensor) == sizeof(TensorView));
static_assert(offsetof(attnjit_tensor, dtype) == offsetof(TensorView, dtype));
static_assert(offsetof(attnjit_tensor, rank) == offsetof(TensorView, rank));
static_assert(offsetof(attnjit_tensor, shape) == offsetof(TensorView, shape));
static_assert(offsetof(attnjit_tensor, strides) == offsetof(TensorView, strides));
static_assert(ATTNJIT_MAX_RANK == TensorView::max_rank);
static_assert(ATTNJIT_BF16 == static_cast<int>(DataType::bf16));
static_assert(ATTNJIT_FP16 == static_cast<int>(DataType::fp16));
static_assert(ATTNJIT_FP32 == static_cast<int>(DataType::fp32));
static_assert(ATTNJIT_FP8_E4M3 == static_cast<int>(DataType::fp8_e4m3));
static_assert(ATTNJIT_FP8_E5M2 == static_cast<int>(DataType::fp8_e5m2));
static_assert(ATTNJIT_UINT8 == static_cast<int>(DataType::uint8));
static_assert(ATTNJIT_INT32 == static_cast<int>(DataType::int32));
static_assert(ATTNJIT_INT64 == static_cast<int>(DataType::int64));

// What stands for the address of a tensor without elements, whose framework gives it none.
alignas(256) std::byte no_elements[256];

// Whether the driver knows the memory: its own, or host memory that was registered with it.
bool is_known_memory(const void* data) {
  const Driver& driver = Driver::instance();
  unsigned type = 0;
  return driver.api().pointer_get_attribute(
             &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
             static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data))) == CUDA_SUCCESS;
}

}  // namespace

TensorView TensorReader::read(std::string_view name, const attnjit_tensor& tensor) {
  TensorView view;
  const bool has_type = tensor.dtype >= ATTNJIT_BF16 && tensor.dtype <= ATTNJIT_INT64;
  const bool has_rank = tensor.rank >= 0 && tensor.rank <= ATTNJIT_MAX_RANK;
  if (!has_type) {
    violations_.push_back({fmt::format("{}.dtype", name), fmt::format("{}", tensor.dtype),
                           fmt::format("must be an attnjit_dtype, 0 to {}", ATTNJIT_INT64),
                           "set it to ATTNJIT_BF16 or another of them"});
  }
  if (!has_rank) {
    violations_.push_back({fmt::format("{}.rank", name), fmt::format("{}", tensor.rank),
                           fmt::format("must be 0 to {}", ATTNJIT_MAX_RANK),
                           "set it to the number of dimensions"});
  }
  if (!has_type || !has_rank) {
    return view;
  }
  std::memcpy(static_cast<void*>(&view), &tensor, sizeof view);
  const auto shape = shape_of(view);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    view.data = view.data == nullptr ? no_elements : view.data;
  } else {
    check_memory(name, view.data);
  }
  return view;
}

void TensorReader::check_memory(std::string_view name, const void* data) {
  if (data != nullptr && trust_ == PointerTrust::asked && !is_known_memory(data)) {
    violations_.push_back({fmt::format("{}.data", name), fmt::format("{}", data),
                           "must be device memory, or host memory that CUDA knows",
                           "pass memory of the GPU; where the GPU reads all of the host's memory, "
                           "set trusts_pointers of the runtime's options"});
  }
}

void TensorReader::check_reserved(std::int32_t value) {
  if (value != 0) {
    violations_.push_back({"reserved", fmt::format("{}", value), "must be 0",
                           "set the struct to zero before its fields"});
  }
}

void TensorReader::finish() {
  if (!violations_.empty()) {
    throw ArgumentError(std::move(violations_));
  }
}

}  // namespace attnjit::c_abi
