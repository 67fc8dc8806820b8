#include "fake_prefill_call.hpp"

#include "cache_layout.hpp"
#include "prefill_tensors.hpp"
#include "scaled_tensor.hpp"

namespace attnjit::check {

PrefillCall fake_call(const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const bool is_paged = descriptor.kv_layout == KvLayout::paged;
  const auto view_of_keys = [&](int head_dim) {
    return is_paged ? lay_out_cache(descriptor, prefill_case.arrangement, prefill_case.batch(), 100,
                                    head_dim)
                          .view
                    : key_view(prefill_case, head_dim);
  };
  void* const aligned = reinterpret_cast<void*>(4096);
  PrefillCall call;
  const auto give = [&](TensorView& view, TensorView as) {
    view = as;
    view.data = aligned;
  };
  give(call.q, query_view(prefill_case, descriptor.dtype_q, descriptor.head_dim_qk));
  give(call.out, query_view(prefill_case, descriptor.dtype_out, descriptor.head_dim_v));
  give(call.k, view_of_keys(descriptor.head_dim_qk));
  if (descriptor.value_source == ValueSource::separate) {
    give(call.v, view_of_keys(descriptor.head_dim_v));
  }
  const auto give_scales = [&](TensorView& view, const ScaleShape& shape,
                               const TensorView& tensor) {
    if (shape.grain != ScaleGrain::none) {
      give(view, scales_view(descriptor, shape, tensor, prefill_case.batch()));
    }
  };
  give_scales(call.q_scales, query_scale_shape(prefill_case), call.q);
  give_scales(call.k_scales, key_scale_shape(prefill_case), call.k);
  if (descriptor.value_source == ValueSource::separate) {
    give_scales(call.v_scales, key_scale_shape(prefill_case), call.v);
  }
  if (descriptor.scales_out != ScaleGrain::none) {
    give(call.out_scale, contiguous_view(nullptr, DataType::fp32, {1}));
  }
  if (is_paged) {
    give(call.block_table, contiguous_view(nullptr, DataType::int32, {prefill_case.batch(), 9}));
  }
  for (const SmallTensor& tensor : make_small_tensors(prefill_case)) {
    give(call.*tensor.place, tensor.view);
  }
  call.softcap = descriptor.score_modifier == ScoreModifier::softcap ? 1.0F : 0.0F;
  return call;
}

}  // namespace attnjit::check
