#include "prefill_scales.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "attention_tensors.hpp"
#include "prefill_keys.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

// A tensor that may have scales: what they must fit.
struct ScaledTensor {
  std::string_view scales_name;  // field of PrefillCall
  std::string_view axis;         // of the descriptor
  ScaleGrain grain;
  const TensorView& tensor;
  const TensorView& scales;
  int heads;  // that scales per head are of
};

// Each extent of the scales: what it may be, which besides that it may be 1.
struct Extent {
  std::int64_t full;
  bool may_be_one;
};

std::vector<Extent> extents(const ScaledTensor& scaled, const AttentionDescriptor& descriptor,
                            std::int64_t batch, std::size_t head_dimension) {
  if (scaled.grain == ScaleGrain::per_tensor) {
    return {{1, false}};
  }
  if (scaled.grain == ScaleGrain::per_head) {
    return {{batch, true}, {scaled.heads, true}};
  }
  std::vector<Extent> all;
  const std::span<const std::int64_t> shape = shape_of(scaled.tensor);
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) {
    all.push_back({shape[i], i == head_dimension});
  }
  if (scaled.grain == ScaleGrain::per_block && !shape.empty()) {
    all.push_back({(shape.back() + descriptor.scale_block - 1) / descriptor.scale_block, false});
  }
  return all;
}

std::string shape_text(const std::vector<Extent>& shape) {
  std::vector<std::string> parts;
  for (const Extent& extent : shape) {
    const bool is_open = extent.may_be_one && extent.full != 1;
    parts.push_back(fmt::format("{}{}", extent.full, is_open ? " or 1" : ""));
  }
  return fmt::format("[{}]", fmt::join(parts, ", "));
}

bool fits(const TensorView& scales, const std::vector<Extent>& wanted) {
  bool fits = static_cast<std::size_t>(scales.rank) == wanted.size();
  for (std::size_t i = 0; i < wanted.size() && fits; ++i) {
    const std::int64_t given = scales.shape.at(i);
    fits = given == wanted[i].full || (wanted[i].may_be_one && given == 1);
  }
  return fits;
}

void check_scales(TensorChecks& checks, const ScaledTensor& scaled,
                  const AttentionDescriptor& descriptor, std::int64_t batch,
                  std::size_t head_dimension) {
  const TensorView& scales = scaled.scales;
  if (scaled.grain == ScaleGrain::none) {
    require_absent(checks, scaled.scales_name, scales,
                   fmt::format("the descriptor's {} is none", scaled.axis),
                   fmt::format("leave it out, or prepare a descriptor with {}", scaled.axis));
    return;
  }
  if (scales.data == nullptr || scaled.tensor.data == nullptr) {
    return;  // all 1; or refused without them
  }
  const std::vector<Extent> wanted = extents(scaled, descriptor, batch, head_dimension);
  if (scales.dtype != DataType::fp32) {
    checks.add(scaled.scales_name, describe(scales), "must be fp32", "cast the scales");
  } else if (!fits(scales, wanted)) {
    checks.add(
        scaled.scales_name, describe(scales),
        fmt::format("must have shape {}: scales are {}", shape_text(wanted),
                    to_string(scaled.grain)),
        fmt::format("reshape the scales, or prepare a descriptor with another {}", scaled.axis));
  } else {
    checks.require_readable(scaled.scales_name, scales);
    const auto last = static_cast<std::size_t>(scales.rank) - 1;
    if (scaled.grain == ScaleGrain::per_block && scales.shape.at(last) > 1 &&
        scales.strides.at(last) != 1) {
      checks.add(scaled.scales_name, describe(scales), "must have stride 1 in its last dimension",
                 "make the scales contiguous");
    }
  }
}

// The rope may be the last columns of wider rows, whose blocks of scales then must end where it
// begins.
void check_rope_blocks(TensorChecks& checks, const AttentionDescriptor& descriptor,
                       const PrefillCall& call) {
  const std::int64_t columns_before =
      call.k_rope.shape[3] - (descriptor.head_dim_qk - descriptor.head_dim_v);
  if (call.rope_scales.data != nullptr && columns_before > 0 &&
      descriptor.scales_rope == ScaleGrain::per_block &&
      columns_before % descriptor.scale_block != 0) {
    checks.add("rope_scales", describe(call.rope_scales),
               fmt::format("must have a block that begins with the rope, {} columns into k_rope; "
                           "scale_block is {}",
                           columns_before, descriptor.scale_block),
               "quantize the rope's columns in blocks of their own");
  }
}

// As a tensor of the rank of the one that is scaled: scales per token have one column. A dimension
// of extent 1 stands for all.
TensorView broadcast_scales(const TensorView& scales, ScaleGrain grain) {
  TensorView view = scales;
  if (grain == ScaleGrain::per_token) {
    view.shape.at(static_cast<std::size_t>(view.rank++)) = 1;
  }
  for (std::size_t i = 0; i < static_cast<std::size_t>(view.rank); ++i) {
    view.strides.at(i) = broadcast_stride(view, i);
  }
  return view;
}

bool is_one_number(ScaleGrain grain) {
  return grain == ScaleGrain::per_tensor || grain == ScaleGrain::per_head;
}

QueryScales query_scales(const ScaledTensor& scaled) {
  QueryScales result = {static_cast<const float*>(scaled.scales.data), {}};
  if (result.scales != nullptr && scaled.grain != ScaleGrain::per_tensor) {
    const TensorView view = broadcast_scales(scaled.scales, scaled.grain);
    result.strides = is_one_number(scaled.grain) ? QueryStrides{view.strides[0], 0, view.strides[1]}
                                                 : query_strides(view);
  }
  return result;
}

template <typename Strides>
KeyScales key_scales(const ScaledTensor& scaled, const Strides& strides_of) {
  KeyScales result = {static_cast<const float*>(scaled.scales.data), {}};
  if (result.scales != nullptr && scaled.grain != ScaleGrain::per_tensor) {
    const TensorView view = broadcast_scales(scaled.scales, scaled.grain);
    result.strides = is_one_number(scaled.grain)
                         ? CacheStrides{view.strides[0], 0, view.strides[1], 0}
                         : strides_of(view);
  }
  return result;
}

ScaledTensor scaled_q(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  return {.scales_name = "q_scales",
          .axis = "scales_q",
          .grain = descriptor.scales_q,
          .tensor = call.q,
          .scales = call.q_scales,
          .heads = descriptor.num_kv_heads};
}

ScaledTensor scaled_k(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  return {.scales_name = "k_scales",
          .axis = "scales_kv",
          .grain = descriptor.scales_kv,
          .tensor = call.k,
          .scales = call.k_scales,
          .heads = descriptor.num_kv_heads};
}

ScaledTensor scaled_v(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  return {.scales_name = "v_scales",
          .axis = "scales_kv",
          .grain = descriptor.scales_kv,
          .tensor = call.v,
          .scales = call.v_scales,
          .heads = descriptor.num_kv_heads};
}

ScaledTensor scaled_rope(const AttentionDescriptor& descriptor, const PrefillCall& call) {
  return {.scales_name = "rope_scales",
          .axis = "scales_rope",
          .grain = descriptor.scales_rope,
          .tensor = call.k_rope,
          .scales = call.rope_scales,
          .heads = 1};
}

}  // namespace

void check_prefill_scales(TensorChecks& checks, const AttentionDescriptor& descriptor,
                          const PrefillCall& call, std::int64_t batch) {
  const std::size_t q_heads = call.q.rank == 3 ? 1 : 2;
  const std::size_t kv_heads = key_head_dimension(descriptor, call.k);
  check_scales(checks, scaled_q(descriptor, call), descriptor, batch, q_heads);
  check_scales(checks, scaled_k(descriptor, call), descriptor, batch, kv_heads);
  if (descriptor.value_source == ValueSource::separate) {
    check_scales(checks, scaled_v(descriptor, call), descriptor, batch, kv_heads);
  } else {
    require_absent(checks, "v_scales", call.v_scales, "v is a prefix of k in the descriptor",
                   "leave it out: k_scales are those of v too");
  }
  check_scales(checks, scaled_rope(descriptor, call), descriptor, batch, TensorView::max_rank);
  check_rope_blocks(checks, descriptor, call);
  if (descriptor.scales_out == ScaleGrain::none) {
    require_absent(checks, "out_scale", call.out_scale, "the descriptor's scales_out is none",
                   "leave it out, or prepare a descriptor with scales_out");
  } else if (call.out_scale.data != nullptr) {
    check_numbers(checks, "out_scale", call.out_scale, DataType::fp32, {1});
  }
}

void set_prefill_scales(const AttentionDescriptor& descriptor, const PrefillCall& call,
                        PrefillArguments& arguments) {
  const auto key = [&](const TensorView& view) { return key_strides(descriptor, view); };
  const auto rope = [&](const TensorView& view) { return rope_strides(descriptor, view); };
  arguments.q_scales = query_scales(scaled_q(descriptor, call));
  arguments.k_scales = key_scales(scaled_k(descriptor, call), key);
  arguments.v_scales = key_scales(scaled_v(descriptor, call), key);
  arguments.rope_scales = key_scales(scaled_rope(descriptor, call), rope);
  if (arguments.rope_scales.scales != nullptr && descriptor.scales_rope == ScaleGrain::per_block) {
    const std::int64_t columns = descriptor.head_dim_qk - descriptor.head_dim_v;
    arguments.rope_scales.scales += (call.k_rope.shape[3] - columns) / descriptor.scale_block;
  }
  arguments.out_scale = static_cast<const float*>(call.out_scale.data);
}

}  // namespace attnjit
