#include "c_abi_tensors.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// What is less than this can be multiplied by all that a call has, and by bytes, in 64 bits.
constexpr std::int64_t end_of_counts = std::int64_t{1} << 53;

bool is_countable(std::int64_t stride) {
  return stride > -end_of_counts && stride < end_of_counts;
}

bool has_countable_elements(const attnjit_tensor& tensor) {
  std::int64_t elements = 1;
  for (std::int32_t i = 0; i < tensor.rank; ++i) {
    const std::int64_t extent = tensor.shape[i];
    if (extent < 0 || extent > (end_of_counts - 1) / elements) {
      return false;
    }
    elements *= std::max<std::int64_t>(extent, 1);
  }
  return true;
}

// Those of dimensions without a second element are not used, and may be anything.
bool has_countable_strides(const attnjit_tensor& tensor) {
  for (std::int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] > 1 && !is_countable(tensor.strides[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool TensorReader::has_form(std::string_view name, const attnjit_tensor& tensor) {
  const std::size_t before = violations_.size();
  if (tensor.dtype < ATTNJIT_BF16 || tensor.dtype > ATTNJIT_INT64) {
    violations_.push_back({fmt::format("{}.dtype", name), fmt::format("{}", tensor.dtype),
                           fmt::format("must be an attnjit_dtype, 0 to {}", ATTNJIT_INT64),
                           "set it to ATTNJIT_BF16 or another of them"});
  }
  if (tensor.rank < 0 || tensor.rank > ATTNJIT_MAX_RANK) {
    violations_.push_back({fmt::format("{}.rank", name), fmt::format("{}", tensor.rank),
                           fmt::format("must be 0 to {}", ATTNJIT_MAX_RANK),
                           "set it to the number of dimensions"});
  } else if (!has_countable_elements(tensor)) {
    const std::span shape(tensor.shape, static_cast<std::size_t>(tensor.rank));
    violations_.push_back({fmt::format("{}.shape", name),
                           fmt::format("[{}]", fmt::join(shape, ", ")),
                           "must have extents of 0 or more, and fewer than 2^53 elements",
                           "pass the tensor's shape"});
  } else if (!has_countable_strides(tensor)) {
    const std::span strides(tensor.strides, static_cast<std::size_t>(tensor.rank));
    violations_.push_back(
        {fmt::format("{}.strides", name), fmt::format("[{}]", fmt::join(strides, ", ")),
         "must be less than 2^53 elements", "pass the tensor's strides, in elements"});
  }
  return violations_.size() == before;
}

TensorView TensorReader::read(std::string_view name, const attnjit_tensor& tensor) {
  TensorView view;
  if (!has_form(name, tensor)) {
    return view;
  }
  std::memcpy(static_cast<void*>(&view), &tensor, sizeof view);
  bool is_empty = false;
  for (std::size_t i = 0; i < TensorView::max_rank; ++i) {
    const bool is_dimension = i < static_cast<std::size_t>(tensor.rank);
    is_empty = is_empty || (is_dimension && view.shape.at(i) == 0);
    view.shape.at(i) = is_dimension ? view.shape.at(i) : 0;
    view.strides.at(i) = is_dimension && is_countable(view.strides.at(i)) ? view.strides.at(i) : 0;
  }
  if (is_empty) {
    view.data = view.data == nullptr ? no_elements : view.data;
  } else {
    check_memory(name, view.data);
  }
  return view;
}

PartialAttention TensorReader::read(std::size_t i, const attnjit_partial_attention& partial) {
  const std::size_t before = violations_.size();
  const PartialAttention views = {read("out", partial.out), read("lse", partial.lse)};
  for (std::size_t violation = before; violation < violations_.size(); ++violation) {
    std::string& field = violations_[violation].field;
    field = fmt::format("partials[{}].{}", i, field);
  }
  return views;
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
