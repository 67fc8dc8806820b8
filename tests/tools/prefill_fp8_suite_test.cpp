// The fp8 cases of `attnjit check`: they meet every type and grain, and their scales lie where the
// runtime looks for them. What kernels make of them is the GPU's to say.
#include "prefill_fp8_suite.hpp"

#include <set>
#include <string>
#include <tuple>

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "fake_prefill_call.hpp"
#include "prefill_arguments.hpp"
#include "prefill_tensors.hpp"
#include "scaled_tensor.hpp"

namespace attnjit::check {
namespace {

using namespace kernel_interface;

TEST_CASE("the fp8 suite meets every type, grain and layout, all of them legal") {
  std::set<std::tuple<DataType, DataType>> types;
  std::set<DataType> outputs;
  std::set<std::tuple<ScaleGrain, ScaleGrain>> grains;
  std::set<std::tuple<Operation, ScaleGrain, bool>> places;  // of scales of keys, shared by heads
  std::set<ScaleGrain> scales_out;
  std::set<KvLayoutTag> tags;
  std::set<ValueSource> sources;
  for (const PrefillSuiteCase& suite_case : prefill_fp8_suite()) {
    const AttentionDescriptor& descriptor = suite_case.prefill_case.descriptor;
    INFO(suite_case.group << ": " << describe(suite_case.prefill_case));
    CHECK_NOTHROW(validate(descriptor));
    types.insert({descriptor.dtype_q, descriptor.dtype_kv});
    outputs.insert(descriptor.dtype_out);
    grains.insert({descriptor.scales_q, descriptor.scales_kv});
    places.insert(
        {descriptor.operation, descriptor.scales_kv, suite_case.prefill_case.scales_share_heads});
    scales_out.insert(descriptor.scales_out);
    tags.insert(descriptor.kv_layout_tag);
    sources.insert(descriptor.value_source);
  }
  using enum DataType;
  CHECK(types == std::set<std::tuple<DataType, DataType>>{{bf16, bf16},
                                                          {bf16, fp8_e4m3},
                                                          {bf16, fp8_e5m2},
                                                          {fp16, fp16},
                                                          {fp8_e4m3, fp8_e4m3},
                                                          {fp8_e4m3, fp8_e5m2}});
  CHECK(outputs == std::set<DataType>{bf16, fp16, fp8_e4m3, fp8_e5m2});
  CHECK(grains.size() == 25);
  CHECK(places.size() == 2 * 5 * 2);
  CHECK(scales_out == std::set<ScaleGrain>{ScaleGrain::none, ScaleGrain::per_tensor});
  CHECK(tags.size() == 4);
  CHECK(sources.size() == 2);
}

TEST_CASE("the call of a case has the scales that its descriptor names, and no others") {
  for (const PrefillSuiteCase& suite_case : prefill_fp8_suite()) {
    const PrefillCase& prefill_case = suite_case.prefill_case;
    const AttentionDescriptor& descriptor = prefill_case.descriptor;
    const PrefillCall call = fake_call(prefill_case);
    const bool has_k = descriptor.scales_kv != ScaleGrain::none;
    CHECK((call.q_scales.data != nullptr) == (descriptor.scales_q != ScaleGrain::none));
    CHECK((call.k_scales.data != nullptr) == has_k);
    CHECK((call.v_scales.data != nullptr) ==
          (has_k && descriptor.value_source == ValueSource::separate));
    CHECK((call.out_scale.data != nullptr) == (descriptor.scales_out != ScaleGrain::none));
  }
}

TEST_CASE("scales have the shape of their tensor, of what shares them 1") {
  AttentionDescriptor descriptor = ragged_descriptor(8, 2, 128);
  descriptor.scale_block = 48;
  const TensorView k = contiguous_view(nullptr, DataType::fp8_e4m3, {70, 2, 128});
  const auto view = [&](ScaleGrain grain, bool heads_share) {
    return describe(scales_view(descriptor, {grain, false, heads_share}, k, 3));
  };
  CHECK(view(ScaleGrain::per_tensor, false) == "fp32 [1], strides [1]");
  CHECK(view(ScaleGrain::per_head, false) == "fp32 [3, 2], strides [2, 1]");
  CHECK(view(ScaleGrain::per_token, false) == "fp32 [70, 2], strides [2, 1]");
  CHECK(view(ScaleGrain::per_token, true) == "fp32 [70, 1], strides [1, 1]");
  CHECK(view(ScaleGrain::per_block, false) == "fp32 [70, 2, 3], strides [6, 3, 1]");
  CHECK(view(ScaleGrain::per_block, true) == "fp32 [70, 1, 3], strides [3, 3, 1]");
  CHECK(scales_view(descriptor, {}, k, 3).rank == 0);
}

// Along a dimension of one, any stride is as good.
bool is_same(long long a, long long b, std::int64_t extent) {
  return extent <= 1 || a == b;
}

// The check's strides, written apart from the runtime's, of scales that lie at `scales`.
CacheStrides checked_strides(const AttentionDescriptor& descriptor, const ScaleShape& shape,
                             const TensorView& scales) {
  ScaledTensor scaled;
  scaled.scales = scales;
  return fill_scales(descriptor, shape, scaled).strides;
}

TEST_CASE("the check writes scales where the runtime tells the kernel to find them") {
  for (const PrefillSuiteCase& suite_case : prefill_fp8_suite()) {
    const PrefillCase& prefill_case = suite_case.prefill_case;
    const AttentionDescriptor& descriptor = prefill_case.descriptor;
    INFO(suite_case.group << ": " << describe(prefill_case));
    const PrefillCall call = fake_call(prefill_case);
    const PrefillArguments arguments = make_prefill_arguments(descriptor, call);
    if (call.k_scales.data != nullptr) {
      const CacheStrides& told = arguments.k_scales.strides;
      const CacheStrides written =
          checked_strides(descriptor, key_scale_shape(prefill_case), call.k_scales);
      CHECK(is_same(told.batch, written.batch, prefill_case.batch()));
      CHECK(told.block == written.block);
      CHECK(is_same(told.head, written.head, descriptor.num_kv_heads));
      CHECK(told.row == written.row);
    }
    if (call.q_scales.data != nullptr) {
      const QueryStrides& told = arguments.q_scales.strides;
      const CacheStrides written =
          checked_strides(descriptor, query_scale_shape(prefill_case), call.q_scales);
      CHECK(is_same(told.batch, written.batch, prefill_case.batch()));
      CHECK(told.token == written.row);
      const bool is_per_head = descriptor.scales_q == ScaleGrain::per_head;  // those of keys
      CHECK(is_same(told.head, written.head,
                    is_per_head ? descriptor.num_kv_heads : descriptor.num_q_heads));
    }
  }
}

}  // namespace
}  // namespace attnjit::check
