#include "token_access.hpp"

#include "check_arguments.h"

namespace attnjit::check {

int element_kind(DataType type) {
  switch (type) {
    case DataType::bf16:
      return element_bf16;
    case DataType::fp16:
      return element_fp16;
    case DataType::fp32:
      return element_fp32;
    case DataType::fp8_e4m3:
      return element_fp8_e4m3;
    case DataType::fp8_e5m2:
      return element_fp8_e5m2;
    default:
      return element_uint8;
  }
}

kernel_interface::CacheStrides key_strides(const AttentionDescriptor& descriptor,
                                           const TensorView& keys) {
  const auto& strides = keys.strides;
  switch (descriptor.kv_layout_tag) {
    case KvLayoutTag::thd:
      return {.batch = 0, .block = 0, .head = strides[1], .row = strides[0]};
    case KvLayoutTag::bshd:
      return {.batch = strides[0], .block = 0, .head = strides[2], .row = strides[1]};
    case KvLayoutTag::bhsd:
      return {.batch = strides[0], .block = 0, .head = strides[1], .row = strides[2]};
    case KvLayoutTag::nhd:
      return keys.rank == 5
                 ? kernel_interface::CacheStrides{strides[0], strides[1], strides[3], strides[2]}
                 : kernel_interface::CacheStrides{0, strides[0], strides[2], strides[1]};
    case KvLayoutTag::hnd:
      return keys.rank == 5
                 ? kernel_interface::CacheStrides{strides[0], strides[1], strides[2], strides[3]}
                 : kernel_interface::CacheStrides{0, strides[0], strides[1], strides[2]};
  }
  return {};
}

kernel_interface::QueryStrides query_strides(const TensorView& queries) {
  const auto& strides = queries.strides;
  return queries.rank == 3 ? kernel_interface::QueryStrides{0, strides[0], strides[1]}
                           : kernel_interface::QueryStrides{strides[0], strides[1], strides[2]};
}

kernel_interface::QueryStrides lse_strides(const TensorView& lse) {
  const auto& strides = lse.strides;
  return lse.rank == 2 ? kernel_interface::QueryStrides{0, strides[1], strides[0]}
                       : kernel_interface::QueryStrides{strides[0], strides[2], strides[1]};
}

kernel_interface::MaskStrides pair_strides(const TensorView& pairs) {
  const auto stride = [&](std::size_t dimension) {
    return pairs.shape.at(dimension) == 1 ? 0 : pairs.strides.at(dimension);
  };
  return {.batch = stride(0), .head = stride(1), .query = stride(2), .key = stride(3)};
}

}  // namespace attnjit::check
