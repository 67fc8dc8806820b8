// The checks of a merge of states. None of it needs a GPU; merging is tests/gpu's.
#include "attnjit/merge_states.hpp"

#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_validation.hpp"
#include "bad_call.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

void* fake_pointer() {
  return reinterpret_cast<void*>(std::uintptr_t{0x1000});
}

// A call and the parts that it points to: 3 tokens, 4 heads, 2 parts.
struct Call {
  std::vector<PartialAttention> partials = {
      2,
      {contiguous_view(fake_pointer(), DataType::bf16, {3, 4, 128}),
       contiguous_view(fake_pointer(), DataType::fp32, {3, 4})}};
  TensorView out = partials[0].out;
  TensorView lse = partials[0].lse;
};

void merge(const Call& call) {
  PreparedMerge kernel;
  kernel.descriptor = merge_states_descriptor(128);
  kernel.config = {DataType::bf16, 128, 256};
  merge_attention_states(kernel, {call.partials, call.out, call.lse}, nullptr);
}

TEST_CASE("each bad argument of a merge is named with its rule") {
  const std::vector<test::BadCall<Call>> bad_calls = {
      {"partials", "must be 1 to 32", [](Call& c) { c.partials.clear(); }},
      {"partials", "must be 1 to 32", [](Call& c) { c.partials.resize(33, c.partials[0]); }},
      {"out", "must be given", [](Call& c) { c.out = {}; }},
      {"out", "must be bf16", [](Call& c) { c.out.dtype = DataType::fp32; }},
      {"out", "must have shape", [](Call& c) { c.out.shape[2] = 64; }},
      {"out", "multiples of 8", [](Call& c) { c.out.strides[1] = 130; }},
      {"out", "at least 1", [](Call& c) { c.out.strides[0] = 0; }},
      {"lse", "must be fp32", [](Call& c) { c.lse.dtype = DataType::bf16; }},
      {"lse", "must have shape", [](Call& c) { c.lse.shape[0] = 4; }},
      {"lse", "at least 1", [](Call& c) { c.lse.strides[1] = 0; }},
      {"partials[1].out", "must be given", [](Call& c) { c.partials[1].out = {}; }},
      {"partials[1].out", "must be bf16",
       [](Call& c) { c.partials[1].out.dtype = DataType::fp16; }},
      {"partials[1].out", "must have shape", [](Call& c) { c.partials[1].out.shape[0] = 2; }},
      {"partials[0].out", "16-byte aligned",
       [](Call& c) { c.partials[0].out.data = reinterpret_cast<void*>(std::uintptr_t{0x1008}); }},
      {"partials[1].lse", "must be given", [](Call& c) { c.partials[1].lse = {}; }},
      {"partials[1].lse", "must be fp32",
       [](Call& c) { c.partials[1].lse.dtype = DataType::fp16; }},
      {"partials[1].lse", "must have shape", [](Call& c) { c.partials[1].lse.shape[1] = 3; }},
      {"partials[1].lse", "at least 0", [](Call& c) { c.partials[1].lse.strides[0] = -4; }},
  };
  test::check_bad_calls(bad_calls, Call(), merge);
}

TEST_CASE("everything that is wrong with a merge is told at once") {
  Call call;
  call.partials[0].lse.dtype = DataType::bf16;
  call.partials[1].out.shape[1] = 5;
  CHECK(test::violations_of([&] { merge(call); }).size() == 2);
}

TEST_CASE("a merge of no tokens is done before it is launched") {
  Call call;
  for (PartialAttention& partial : call.partials) {
    partial.out = contiguous_view(fake_pointer(), DataType::bf16, {0, 4, 128});
    partial.lse = contiguous_view(fake_pointer(), DataType::fp32, {0, 4});
  }
  call.out = call.partials[0].out;
  call.lse = {};
  CHECK_NOTHROW(merge(call));
}

TEST_CASE("a merge has one kernel, of its element type and head dim alone") {
  for (const char* card : {"a100", "h200", "b200"}) {
    const TargetDevice device = find_target_device(card).value();
    AttentionDescriptor descriptor = merge_states_descriptor(512, DataType::fp16);
    const auto configs = select_configs(descriptor, device);
    REQUIRE(configs.size() == 1);
    CHECK(std::get<MergeStatesConfig>(configs[0]) == MergeStatesConfig{DataType::fp16, 512, 256});
    descriptor.page_size = 16;
    descriptor.num_q_heads = 7;
    CHECK(select_configs(descriptor, device) == configs);
  }
}

TEST_CASE("a merge is no decode, and a head dim that no kernel has is refused") {
  const TargetDevice device = find_target_device("h200").value();
  CHECK_THROWS_AS(configure_decode(merge_states_descriptor(128), device, {}), DescriptorError);
  CHECK_THROWS_AS(attention_candidates(merge_states_descriptor(128), device), DescriptorError);
  CHECK_THROWS_AS(select_configs(merge_states_descriptor(100), device), DescriptorError);
  CHECK_THROWS_AS(select_configs(merge_states_descriptor(584), device), DescriptorError);
  CHECK_THROWS_AS(select_configs(merge_states_descriptor(128, DataType::fp32), device),
                  DescriptorError);
}

}  // namespace
}  // namespace attnjit
