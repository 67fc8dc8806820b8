#include "scaled_tensor.hpp"

#include <cstddef>

#include "cache_layout.hpp"
#include "random_tokens.hpp"
#include "token_access.hpp"

namespace attnjit::check {
namespace {

std::size_t head_dimension(const AttentionDescriptor& descriptor, const TensorView& tensor,
                           bool is_query) {
  const auto rank = static_cast<std::size_t>(tensor.rank);
  const KvLayoutTag tag = descriptor.kv_layout_tag;
  const bool is_before_token = !is_query && (tag == KvLayoutTag::hnd || tag == KvLayoutTag::bhsd);
  return is_before_token ? rank - 3 : rank - 2;
}

// Row-major over the extents of `view`.
TensorView made_contiguous(TensorView view) {
  std::int64_t stride = 1;
  for (auto i = static_cast<std::size_t>(view.rank); i-- > 0;) {
    view.strides.at(i) = stride;
    stride *= view.shape.at(i);
  }
  return view;
}

std::int64_t count_elements(const TensorView& view) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape_of(view)) {
    count *= extent;
  }
  return count;
}

kernel_interface::CacheStrides scale_strides(const AttentionDescriptor& descriptor,
                                             const ScaleShape& shape, TensorView scales) {
  if (shape.grain == ScaleGrain::per_tensor || shape.grain == ScaleGrain::none) {
    return {};
  }
  if (shape.grain == ScaleGrain::per_head) {
    return {.batch = scales.strides[0], .block = 0, .head = scales.strides[1], .row = 0};
  }
  if (shape.grain == ScaleGrain::per_token) {  // with a dimension of one column
    scales.shape.at(static_cast<std::size_t>(scales.rank++)) = 1;
  }
  if (shape.heads_share) {
    scales.strides.at(head_dimension(descriptor, scales, shape.is_query)) = 0;
  }
  if (!shape.is_query) {
    return key_strides(descriptor, scales);
  }
  const kernel_interface::QueryStrides strides = query_strides(scales);
  return {.batch = strides.batch, .block = 0, .head = strides.head, .row = strides.token};
}

}  // namespace

ScaleShape query_scale_shape(const PrefillCase& prefill_case) {
  return {.grain = prefill_case.descriptor.scales_q,
          .is_query = true,
          .heads_share = prefill_case.scales_share_heads};
}

ScaleShape key_scale_shape(const PrefillCase& prefill_case) {
  return {.grain = prefill_case.descriptor.scales_kv,
          .is_query = false,
          .heads_share = prefill_case.scales_share_heads};
}

TensorView scales_view(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                       const TensorView& tensor, int batch) {
  switch (shape.grain) {
    case ScaleGrain::none:
      return {};
    case ScaleGrain::per_tensor:
      return contiguous_view(nullptr, DataType::fp32, {1});
    case ScaleGrain::per_head:
      return contiguous_view(nullptr, DataType::fp32, {batch, descriptor.num_kv_heads});
    case ScaleGrain::per_token:
    case ScaleGrain::per_block:
      break;
  }
  TensorView view = tensor;
  view.data = nullptr;
  view.dtype = DataType::fp32;
  if (shape.heads_share) {
    view.shape.at(head_dimension(descriptor, tensor, shape.is_query)) = 1;
  }
  const auto last = static_cast<std::size_t>(view.rank) - 1;
  if (shape.grain == ScaleGrain::per_token) {
    --view.rank;
  } else {
    view.shape.at(last) = ceil_divide(view.shape.at(last), descriptor.scale_block);
  }
  return made_contiguous(view);
}

ScaledTensor make_scaled_tensor(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                                const TensorView& tensor, std::int64_t bytes, int batch,
                                const DeviceStream& stream) {
  ScaledTensor scaled;
  if (size_bytes(tensor.dtype) != 1) {
    return scaled;
  }
  constexpr std::int64_t value_bytes = 4;
  scaled.values = poisoned_buffer(stream, bytes * value_bytes);
  if (shape.grain != ScaleGrain::none) {
    scaled.scales = scales_view(descriptor, shape, tensor, batch);
    scaled.scale_buffer = poisoned_buffer(stream, count_elements(scaled.scales) * value_bytes);
    scaled.scales.data = scaled.scale_buffer.data();
  }
  return scaled;
}

FillScales fill_scales(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                       const ScaledTensor& scaled) {
  FillScales fill = {};
  fill.values = static_cast<float*>(scaled.values.data());
  fill.scales = static_cast<float*>(scaled.scales.data);
  fill.strides = scale_strides(descriptor, shape, scaled.scales);
  const bool is_per_head = shape.grain == ScaleGrain::per_head;
  fill.heads_per_scale = shape.is_query && is_per_head ? descriptor.q_per_kv() : 1;
  fill.is_per_token =
      shape.grain == ScaleGrain::per_token || shape.grain == ScaleGrain::per_block ? 1 : 0;
  fill.columns = shape.grain == ScaleGrain::per_block ? descriptor.scale_block : 0;
  return fill;
}

TensorView reference_view(const TensorView& tensor, const ScaledTensor& scaled) {
  TensorView view = tensor;
  if (scaled.values.bytes() > 0) {
    view.dtype = DataType::fp32;
    view.data = scaled.values.data();
  }
  return view;
}

}  // namespace attnjit::check
