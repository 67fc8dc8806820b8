#include "tensor_map.hpp"

#include <cstddef>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "driver.hpp"

namespace attnjit {
namespace {

constexpr std::int64_t max_extent = std::int64_t{1} << 32;
constexpr std::int64_t end_of_strides = std::int64_t{1} << 40;
constexpr int max_box = 256;
constexpr int alignment_bytes = 16;  // of the tensor, of strides, of a box's rows

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap) &&
              alignof(TensorMap) >= alignof(CUtensorMap));

CUtensorMapDataType element_type(DataType dtype) {
  switch (dtype) {
    case DataType::bf16:
      return CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
    case DataType::fp16:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    case DataType::fp32:
      return CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
    case DataType::int32:
      return CU_TENSOR_MAP_DATA_TYPE_INT32;
    case DataType::int64:
      return CU_TENSOR_MAP_DATA_TYPE_INT64;
    case DataType::fp8_e4m3:
    case DataType::fp8_e5m2:
    case DataType::uint8:
      break;
  }
  return CU_TENSOR_MAP_DATA_TYPE_UINT8;
}

struct SwizzleMode {
  CUtensorMapSwizzle mode;
  int max_row_bytes;  // 0: any
};

SwizzleMode swizzle_mode(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::b32:
      return {CU_TENSOR_MAP_SWIZZLE_32B, 32};
    case Swizzle::b64:
      return {CU_TENSOR_MAP_SWIZZLE_64B, 64};
    case Swizzle::b128:
      return {CU_TENSOR_MAP_SWIZZLE_128B, 128};
    case Swizzle::none:
      break;
  }
  return {CU_TENSOR_MAP_SWIZZLE_NONE, 0};
}

// Collects violations; texts are made only where a rule is broken.
class Rules {
 public:
  explicit Rules(std::string_view name) : name_(name) {}

  void add(const std::string& field, std::string value, std::string rule, std::string fix) {
    violations_.push_back(
        {fmt::format("{}.{}", name_, field), std::move(value), std::move(rule), std::move(fix)});
  }

  void add(std::string_view array, std::size_t index, std::int64_t value, std::string rule,
           std::string fix) {
    add(fmt::format("{}[{}]", array, index), fmt::format("{}", value), std::move(rule),
        std::move(fix));
  }

  std::vector<Violation> take() { return std::move(violations_); }

 private:
  std::string_view name_;
  std::vector<Violation> violations_;
};

void check_base(Rules& rules, const void* base) {
  if (base == nullptr || reinterpret_cast<std::uintptr_t>(base) % alignment_bytes != 0) {
    rules.add("base", fmt::format("{}", base),
              fmt::format("must be a {}-byte aligned address", alignment_bytes),
              "copy to aligned device memory");
  }
}

void check_dimension(Rules& rules, const TensorMapShape& shape, std::size_t i) {
  if (shape.extents.at(i) < 1 || shape.extents.at(i) > max_extent) {
    rules.add("extents", i, shape.extents.at(i), "must be from 1 to 2^32 elements",
              "split the tensor, or leave an empty one out");
  }
  if (shape.box.at(i) < 1 || shape.box.at(i) > max_box) {
    rules.add("box", i, shape.box.at(i), fmt::format("must be from 1 to {} elements", max_box),
              "copy several boxes");
  }
  if (i == 0) {
    return;
  }
  const std::int64_t stride = shape.strides_bytes.at(i - 1);
  if (stride < 0 || stride >= end_of_strides || stride % alignment_bytes != 0) {
    rules.add("strides_bytes", i - 1, stride,
              fmt::format("must be a multiple of {} below 2^40", alignment_bytes),
              "pad the tensor's rows, or make it contiguous");
  }
}

void check_box_row(Rules& rules, const TensorMapShape& shape) {
  const std::int64_t row_bytes = std::int64_t{shape.box.front()} * size_bytes(shape.dtype);
  const int max_row_bytes = swizzle_mode(shape.swizzle).max_row_bytes;
  if (row_bytes % alignment_bytes != 0) {
    rules.add("box", 0, shape.box.front(),
              fmt::format("must span a multiple of {} bytes, not {}", alignment_bytes, row_bytes),
              "widen the box");
  }
  if (max_row_bytes != 0 && row_bytes > max_row_bytes) {
    rules.add("box", 0, shape.box.front(),
              fmt::format("must span at most the {} bytes of its swizzle, not {}", max_row_bytes,
                          row_bytes),
              "copy several boxes, or make columns / box columns a dimension");
  }
}

}  // namespace

std::vector<Violation> find_violations(std::string_view name, const TensorMapShape& shape,
                                       const void* base) {
  Rules rules(name);
  check_base(rules, base);
  if (shape.rank < 1 || shape.rank > max_tensor_map_rank) {
    rules.add("rank", fmt::format("{}", shape.rank),
              fmt::format("must be from 1 to {}", max_tensor_map_rank),
              "merge dimensions that are contiguous in each other");
    return rules.take();
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(shape.rank); ++i) {
    check_dimension(rules, shape, i);
  }
  check_box_row(rules, shape);
  return rules.take();
}

TensorMap encode_tensor_map(const Driver& driver, std::string_view name,
                            const TensorMapShape& shape, const void* base) {
  std::vector<Violation> violations = find_violations(name, shape, base);
  if (!violations.empty()) {
    throw ArgumentError(std::move(violations));
  }
  std::array<cuuint64_t, max_tensor_map_rank> extents{};
  std::array<cuuint64_t, max_tensor_map_rank - 1> strides{};
  std::array<cuuint32_t, max_tensor_map_rank> box{};
  std::array<cuuint32_t, max_tensor_map_rank> steps{};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    extents.at(i) = static_cast<cuuint64_t>(shape.extents.at(i));
    box.at(i) = static_cast<cuuint32_t>(shape.box.at(i));
    steps.at(i) = 1;
  }
  for (std::size_t i = 0; i < strides.size(); ++i) {
    strides.at(i) = static_cast<cuuint64_t>(shape.strides_bytes.at(i));
  }
  TensorMap map{};
  // No L2 promotion: 256-byte sectors cost 4 to 6 % of the bandwidth on an H200 (measured).
  const CUresult result = driver.api().tensor_map_encode_tiled(
      reinterpret_cast<CUtensorMap*>(&map), element_type(shape.dtype),
      static_cast<cuuint32_t>(shape.rank), const_cast<void*>(base), extents.data(), strides.data(),
      box.data(), steps.data(), CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle_mode(shape.swizzle).mode,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    driver.fail(result, fmt::format("cuTensorMapEncodeTiled of {}", name));
  }
  return map;
}

}  // namespace attnjit
