// The checks of a cache write. None of it needs a GPU; writing is tests/gpu's.
#include "attnjit/append_kv_cache.hpp"

#include <limits>
#include <string>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "bad_call.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace attnjit {
namespace {

void* fake_pointer() {
  return reinterpret_cast<void*>(std::uintptr_t{0x1000});
}

TensorView view(DataType dtype, std::initializer_list<std::int64_t> shape) {
  return contiguous_view(fake_pointer(), dtype, shape);
}

// A descriptor and a call: 7 tokens of 2 requests, 4 heads, 9 pages of 16, 192 columns of K and 128
// of V.
struct Call {
  AttentionDescriptor descriptor;
  AppendKvCacheCall call;

  Call() {
    AttentionDescriptor attention;
    attention.num_kv_heads = 4;
    attention.head_dim_qk = 192;
    attention.head_dim_v = 128;
    attention.page_size = 16;
    descriptor = append_kv_cache_descriptor(attention);
    call.k_new = view(DataType::bf16, {7, 4, 192});
    call.v_new = view(DataType::bf16, {7, 4, 128});
    call.k_cache = view(DataType::bf16, {9, 16, 4, 192});
    call.v_cache = view(DataType::bf16, {9, 16, 4, 128});
    call.new_offsets = view(DataType::int32, {3});
    call.block_table = view(DataType::int32, {2, 5});
    call.seq_lens = view(DataType::int32, {2});
  }
};

// No token, so that a call which is right is not launched.
Call empty_call() {
  Call empty;
  empty.call.k_new.shape[0] = empty.call.v_new.shape[0] = 0;
  return empty;
}

Call with_slots(DataType dtype) {
  Call slots;
  slots.call.new_offsets = slots.call.block_table = slots.call.seq_lens = {};
  slots.call.slot_mapping = view(dtype, {7});
  return slots;
}

Call dense_call() {
  Call dense;
  dense.call.k_new = view(DataType::bf16, {2, 3, 4, 192});
  dense.call.v_new = view(DataType::bf16, {2, 3, 4, 128});
  dense.call.new_offsets = {};
  return dense;
}

Call quantizing(ScaleGrain grain) {
  Call fp8;
  fp8.descriptor.dtype_kv = DataType::fp8_e4m3;
  fp8.descriptor.scales_kv = grain;
  fp8.call.k_cache.dtype = fp8.call.v_cache.dtype = DataType::fp8_e4m3;
  if (grain == ScaleGrain::per_tensor) {
    fp8.call.k_scale = fp8.call.v_scale = view(DataType::fp32, {1});
  } else if (grain == ScaleGrain::per_head) {
    fp8.call.k_scale = view(DataType::fp32, {4});
    fp8.call.v_scale = view(DataType::fp32, {2, 4});
  }
  return fp8;
}

Call latent_call() {
  Call latent;
  latent.descriptor = append_kv_cache_descriptor(test::latent_decode(16));
  latent.call.k_new = view(DataType::bf16, {7, 1, 576});
  latent.call.k_cache = view(DataType::bf16, {9, 64, 1, 576});
  latent.call.v_new = latent.call.v_cache = {};
  return latent;
}

void append(const Call& call) {
  PreparedAppend kernel;
  kernel.descriptor = call.descriptor;
  kernel.config = std::get<AppendKvCacheConfig>(
      select_configs(call.descriptor, find_target_device("h200").value()).front());
  append_kv_cache(kernel, call.call, nullptr);
}

using BadCalls = std::vector<test::BadCall<Call>>;

TEST_CASE("each bad tensor of a cache write is named with its rule") {
  const BadCalls bad_calls = {
      {"k_new", "must be given", [](Call& c) { c.call.k_new = {}; }},
      {"k_new", "must be bf16", [](Call& c) { c.call.k_new.dtype = DataType::fp16; }},
      {"k_new", "must have shape [any, 4, 192]", [](Call& c) { c.call.k_new.shape[1] = 3; }},
      {"k_new", "must have shape [any, 4, 192]", [](Call& c) { c.call.k_new.rank = 2; }},
      {"k_new", "multiples of 8", [](Call& c) { c.call.k_new.strides[0] = 772; }},
      {"k_new", "stride 1", [](Call& c) { c.call.k_new.strides[2] = 2; }},
      {"k_new", "16-byte aligned",
       [](Call& c) { c.call.k_new.data = reinterpret_cast<void*>(std::uintptr_t{0x1008}); }},
      {"k_new", "at most 2147483647 tokens",
       [](Call& c) { c.call.k_new.shape[0] = std::int64_t{1} << 31; }},
      {"v_new", "must be given", [](Call& c) { c.call.v_new = {}; }},
      {"v_new", "must have shape [7, 4, 128]", [](Call& c) { c.call.v_new.shape[0] = 8; }},
      {"v_new", "must be bf16", [](Call& c) { c.call.v_new.dtype = DataType::fp32; }},
      {"k_cache", "must be given", [](Call& c) { c.call.k_cache = {}; }},
      {"k_cache", "must be bf16", [](Call& c) { c.call.k_cache.dtype = DataType::fp8_e4m3; }},
      {"k_cache", "must have shape [any, 16, 4, 192]",
       [](Call& c) { c.call.k_cache.shape[1] = 8; }},
      {"k_cache", "multiples of 8", [](Call& c) { c.call.k_cache.strides[1] = 772; }},
      {"k_cache", "at least 1", [](Call& c) { c.call.k_cache.strides[0] = 0; }},
      {"v_cache", "must be given", [](Call& c) { c.call.v_cache = {}; }},
      {"v_cache", "must have shape [9, 16, 4, 128]", [](Call& c) { c.call.v_cache.shape[0] = 8; }},
      {"v_cache", "at least 1", [](Call& c) { c.call.v_cache.strides[2] = 0; }},
      {"new_offsets", "must be given", [](Call& c) { c.call.new_offsets = {}; }},
      {"new_offsets", "must be int32", [](Call& c) { c.call.new_offsets.dtype = DataType::int64; }},
      {"new_offsets", "stride 1", [](Call& c) { c.call.new_offsets.strides[0] = 2; }},
      {"block_table", "must be given, or slot_mapping", [](Call& c) { c.call.block_table = {}; }},
      {"block_table", "must be int32", [](Call& c) { c.call.block_table.dtype = DataType::int64; }},
      {"block_table", "must have shape [2, any]", [](Call& c) { c.call.block_table.shape[0] = 3; }},
      {"block_table", "must not be empty", [](Call& c) { c.call.block_table.shape[1] = 0; }},
      {"seq_lens", "must be given", [](Call& c) { c.call.seq_lens = {}; }},
      {"seq_lens", "must have shape [2]", [](Call& c) { c.call.seq_lens.shape[0] = 3; }},
      {"k_scale", "scales_kv is none", [](Call& c) { c.call.k_scale = view(DataType::fp32, {1}); }},
      {"v_scale", "scales_kv is none", [](Call& c) { c.call.v_scale = view(DataType::fp32, {1}); }},
  };
  test::check_bad_calls(bad_calls, Call(), append);
}

TEST_CASE("an empty list of offsets and a cache without pages are refused") {
  const BadCalls bad_calls = {
      {"new_offsets", "must not be empty", [](Call& c) { c.call.new_offsets.shape[0] = 0; }},
      {"k_cache", "must not be empty",
       [](Call& c) { c = latent_call(), c.call.k_cache.shape[0] = 0; }},
  };
  test::check_bad_calls(bad_calls, Call(), append);
}

TEST_CASE("each bad argument of a write to slots is named with its rule") {
  const BadCalls bad_calls = {
      {"block_table", "must not be given: slot_mapping",
       [](Call& c) {
         c.call.block_table = view(DataType::int32, {2, 5});
       }},
      {"seq_lens", "must not be given: slot_mapping",
       [](Call& c) { c.call.seq_lens = view(DataType::int32, {2}); }},
      {"slot_mapping", "must be int64",
       [](Call& c) { c.call.slot_mapping.dtype = DataType::fp32; }},
      {"slot_mapping", "must have shape [7]", [](Call& c) { c.call.slot_mapping.shape[0] = 6; }},
      {"slot_mapping", "stride 1", [](Call& c) { c.call.slot_mapping.strides[0] = 2; }},
      {"slot_mapping", "8-byte aligned",
       [](Call& c) { c.call.slot_mapping.data = reinterpret_cast<void*>(std::uintptr_t{0x1004}); }},
      {"new_offsets", "caches or scales are per request",
       [](Call& c) {
         c.call.k_cache = view(DataType::bf16, {2, 9, 16, 4, 192});
         c.call.v_cache = view(DataType::bf16, {2, 9, 16, 4, 128});
       }},
  };
  test::check_bad_calls(bad_calls, with_slots(DataType::int64), append);
  Call scaled = quantizing(ScaleGrain::per_head);
  scaled.call.new_offsets = scaled.call.block_table = scaled.call.seq_lens = {};
  scaled.call.slot_mapping = view(DataType::int32, {7});
  test::check_bad_calls({{"new_offsets", "caches or scales are per request", [](Call&) {}}}, scaled,
                        append);
}

TEST_CASE("each bad argument of a dense write is named with its rule") {
  const BadCalls bad_calls = {
      {"new_offsets", "must not be given: k_new is",
       [](Call& c) { c.call.new_offsets = view(DataType::int32, {3}); }},
      {"k_new", "at most 2147483647 tokens",
       [](Call& c) { c.call.k_new.shape[0] = c.call.k_new.shape[1] = std::int64_t{1} << 40; }},
      {"v_new", "must have shape [2, 3, 4, 128]", [](Call& c) { c.call.v_new.shape[1] = 2; }},
      {"v_new", "must have shape [2, 3, 4, 128]",
       [](Call& c) {
         c.call.v_new = view(DataType::bf16, {6, 4, 128});
       }},
      {"k_cache", "must have shape [2, any, 16, 4, 192]",
       [](Call& c) {
         c.call.k_cache = view(DataType::bf16, {3, 9, 16, 4, 192});
       }},
  };
  test::check_bad_calls(bad_calls, dense_call(), append);
}

TEST_CASE("each bad scale of a quantising write is named with its rule") {
  const BadCalls per_head = {
      {"k_scale", "must be given", [](Call& c) { c.call.k_scale = {}; }},
      {"k_scale", "must be fp32", [](Call& c) { c.call.k_scale.dtype = DataType::bf16; }},
      {"k_scale", "must have shape [4]", [](Call& c) { c.call.k_scale.shape[0] = 1; }},
      {"k_scale", "at least 0", [](Call& c) { c.call.k_scale.strides[0] = -1; }},
      {"v_scale", "must have shape [2, 4]", [](Call& c) { c.call.v_scale.shape[0] = 3; }},
  };
  test::check_bad_calls(per_head, quantizing(ScaleGrain::per_head), append);
  const BadCalls per_tensor = {
      {"v_scale", "must be given", [](Call& c) { c.call.v_scale = {}; }},
      {"v_scale", "must have shape [1]",
       [](Call& c) { c.call.v_scale = view(DataType::fp32, {4}); }},
  };
  test::check_bad_calls(per_tensor, quantizing(ScaleGrain::per_tensor), append);
}

TEST_CASE("a write to a cache where v is a prefix of k takes nothing of v") {
  const BadCalls bad_calls = {
      {"v_new", "v is a prefix of k",
       [](Call& c) {
         c.call.v_new = view(DataType::bf16, {7, 1, 512});
       }},
      {"v_cache", "v is a prefix of k",
       [](Call& c) {
         c.call.v_cache = view(DataType::bf16, {9, 64, 1, 512});
       }},
      {"v_scale", "v is a prefix of k",
       [](Call& c) { c.call.v_scale = view(DataType::fp32, {1}); }},
  };
  test::check_bad_calls(bad_calls, latent_call(), append);
}

TEST_CASE("more tokens than a grid has blocks for are refused") {
  Call call = latent_call();
  call.descriptor.num_q_heads = call.descriptor.num_kv_heads = 1024;
  call.call.k_new = view(DataType::bf16, {std::numeric_limits<int>::max(), 1024, 576});
  call.call.k_cache = view(DataType::bf16, {9, 64, 1024, 576});
  test::check_bad_calls({{"k_new", "must be at most 7456540 tokens", [](Call&) {}}}, call, append);
}

TEST_CASE("everything that is wrong with a cache write is told at once") {
  Call call;
  call.call.k_cache.dtype = DataType::fp16;
  call.call.v_new.shape[0] = 5;
  call.call.seq_lens = {};
  CHECK(test::violations_of([&] { append(call); }).size() == 3);
}

TEST_CASE("a write of no token is done before it is launched, in every form") {
  const auto is_done = [](const Call& call) {
    return test::violations_of([&] { append(call); }).empty();
  };
  CHECK(is_done(empty_call()));
  Call dense = dense_call();
  dense.call.k_new.shape[1] = dense.call.v_new.shape[1] = 0;
  CHECK(is_done(dense));
  for (const DataType dtype : {DataType::int32, DataType::int64}) {
    Call slots = with_slots(dtype);
    slots.call.k_new.shape[0] = slots.call.v_new.shape[0] = slots.call.slot_mapping.shape[0] = 0;
    CHECK(is_done(slots));
  }
  Call no_request = empty_call();
  no_request.call.new_offsets.shape[0] = 1;
  no_request.call.block_table.shape[0] = no_request.call.seq_lens.shape[0] = 0;
  CHECK(is_done(no_request));
}

TEST_CASE("the descriptor of a cache write takes of an attention's what tells caches apart") {
  AttentionDescriptor attention;
  attention.mask = MaskKind::sliding_window;
  attention.window_left = 127;
  attention.has_sinks = true;
  attention.max_seqlen_q = 4;
  attention.dtype_q = attention.dtype_out = DataType::fp16;
  attention.dtype_kv = DataType::fp8_e5m2;
  attention.scales_kv = ScaleGrain::per_head;
  attention.kv_layout_tag = KvLayoutTag::hnd;
  attention.page_size = 16;
  const AttentionDescriptor descriptor = append_kv_cache_descriptor(attention);
  CHECK_NOTHROW(validate(descriptor));
  attention.mask = MaskKind::causal;
  attention.window_left = -1;
  attention.has_sinks = false;
  attention.max_seqlen_q = 1;
  attention.num_q_heads = 8;
  CHECK(append_kv_cache_descriptor(attention) == descriptor);
  attention.page_size = 32;
  CHECK(append_kv_cache_descriptor(attention) != descriptor);
}

TEST_CASE("a cache write has one kernel, of what shapes it alone") {
  for (const char* card : {"a100", "h200", "b200"}) {
    const TargetDevice device = find_target_device(card).value();
    AttentionDescriptor descriptor = quantizing(ScaleGrain::per_head).descriptor;
    const auto configs = select_configs(descriptor, device);
    REQUIRE(configs.size() == 1);
    CHECK(std::get<AppendKvCacheConfig>(configs[0]) ==
          AppendKvCacheConfig{DataType::bf16, DataType::fp8_e4m3, 192, 128, 4, 16, 256});
    descriptor.scales_kv = ScaleGrain::none;
    descriptor.kv_layout_tag = KvLayoutTag::hnd;
    descriptor.num_q_heads = 16;
    descriptor.max_seqlen_q = 9;
    descriptor.mask = MaskKind::none;
    descriptor.returns_lse = false;
    CHECK(select_configs(descriptor, device) == configs);
    AttentionDescriptor latent = latent_call().descriptor;
    const auto of_latent = select_configs(latent, device);
    CHECK(std::get<AppendKvCacheConfig>(of_latent[0]) ==
          AppendKvCacheConfig{DataType::bf16, DataType::bf16, 576, 0, 1, 64, 256});
    latent.head_dim_v = 256;
    CHECK(select_configs(latent, device) == of_latent);
  }
}

TEST_CASE("a cache write is no decode") {
  const TargetDevice device = find_target_device("h200").value();
  const AttentionDescriptor descriptor = Call().descriptor;
  CHECK_THROWS_AS(configure_decode(descriptor, device, {}), DescriptorError);
  CHECK_THROWS_AS(attention_candidates(descriptor, device), DescriptorError);
}

}  // namespace
}  // namespace attnjit
