// The checks of a decode launch, and how views become strides. None of it needs a GPU.
#include "decode_arguments.hpp"

#include <limits>
#include <string>
#include <vector>

#include "bad_call.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

void* fake_pointer() {
  return reinterpret_cast<void*>(std::uintptr_t{0x1000});
}

AttentionDescriptor gqa() {
  AttentionDescriptor descriptor;
  descriptor.num_q_heads = 8;
  descriptor.num_kv_heads = 2;
  descriptor.max_seqlen_q = 3;
  return descriptor;
}

// Batch 2, 3 query tokens, 10 pages of 64 tokens.
DecodeCall legal_call() {
  DecodeCall call;
  call.q = contiguous_view(fake_pointer(), DataType::bf16, {2, 3, 8, 128});
  call.k_cache = contiguous_view(fake_pointer(), DataType::bf16, {10, 64, 2, 128});
  call.v_cache = call.k_cache;
  call.block_table = contiguous_view(fake_pointer(), DataType::int32, {2, 5});
  call.seq_lens = contiguous_view(fake_pointer(), DataType::int32, {2});
  call.out = call.q;
  call.lse = contiguous_view(fake_pointer(), DataType::fp32, {2, 8, 3});
  return call;
}

std::vector<Violation> violations_of(const AttentionDescriptor& descriptor,
                                     const DecodeCall& call) {
  return test::violations_of([&] { check_decode_call(descriptor, call, 2, 3); });
}

using BadCall = test::BadCall<DecodeCall>;

TEST_CASE("a legal decode call passes, with and without lse") {
  DecodeCall call = legal_call();
  CHECK(violations_of(gqa(), call).empty());
  call.lse = {};
  CHECK(violations_of(gqa(), call).empty());
}

TEST_CASE("each bad argument of a decode call is named with its rule") {
  const std::vector<BadCall> bad_calls = {
      {"q", "must be given", [](DecodeCall& c) { c.q.data = nullptr; }},
      {"q", "must be bf16", [](DecodeCall& c) { c.q.dtype = DataType::fp16; }},
      {"q", "must have shape", [](DecodeCall& c) { c.q.shape[2] = 7; }},
      {"q", "must have shape", [](DecodeCall& c) { c.q.rank = 3; }},
      {"q", "16-byte aligned",
       [](DecodeCall& c) { c.q.data = reinterpret_cast<void*>(std::uintptr_t{0x1002}); }},
      {"q", "stride 1", [](DecodeCall& c) { c.q.strides[3] = 2; }},
      {"q", "multiples of 8", [](DecodeCall& c) { c.q.strides[1] = 1025; }},
      {"q", "multiples of 8", [](DecodeCall& c) { c.q.strides[1] = -1024; }},
      {"k_cache", "must have shape", [](DecodeCall& c) { c.k_cache.shape[1] = 32; }},
      {"k_cache", "multiples of 8", [](DecodeCall& c) { c.k_cache.strides[0] = 4; }},
      {"v_cache", "must be given", [](DecodeCall& c) { c.v_cache = {}; }},
      {"v_cache", "must have shape", [](DecodeCall& c) { c.v_cache.shape[3] = 64; }},
      {"block_table", "must be int32", [](DecodeCall& c) { c.block_table.dtype = DataType::fp32; }},
      {"block_table", "must have shape", [](DecodeCall& c) { c.block_table.shape[0] = 1; }},
      {"block_table", "stride 1", [](DecodeCall& c) { c.block_table.strides[1] = 2; }},
      {"seq_lens", "must have shape", [](DecodeCall& c) { c.seq_lens.shape[0] = 3; }},
      {"seq_lens", "must be given", [](DecodeCall& c) { c.seq_lens.data = nullptr; }},
      {"mask", "must not be given",
       [](DecodeCall& c) {
         c.mask = contiguous_view(fake_pointer(), DataType::uint8, {1, 1, 1, 9});
       }},
      {"out", "must be given", [](DecodeCall& c) { c.out = {}; }},
      {"out", "must have shape", [](DecodeCall& c) { c.out.shape[1] = 2; }},
      {"lse", "must be fp32", [](DecodeCall& c) { c.lse.dtype = DataType::bf16; }},
      {"lse", "must have shape", [](DecodeCall& c) { c.lse.shape[1] = 3; }},
      {"k_cache", "must not be empty", [](DecodeCall& c) { c.k_cache.shape[0] = 0; }},
      {"block_table", "must not be empty", [](DecodeCall& c) { c.block_table.shape[1] = 0; }},
      {"out", "at least 1", [](DecodeCall& c) { c.out.strides[1] = 0; }},
      {"lse", "at least 1",
       [](DecodeCall& c) {
         c.lse.strides = {0, 0, 0};
       }},
      {"lse", "at least 1", [](DecodeCall& c) { c.lse.strides[1] = -3; }},
      {"lse", "4-byte aligned",
       [](DecodeCall& c) { c.lse.data = reinterpret_cast<void*>(std::uintptr_t{0x1001}); }},
      {"q", "must have shape", [](DecodeCall& c) { c.q.rank = 9; }},
      {"q", "must have shape", [](DecodeCall& c) { c.q.rank = -1; }},
      {"softmax_scale", "must be finite",
       [](DecodeCall& c) { c.softmax_scale = std::numeric_limits<float>::quiet_NaN(); }},
  };
  test::check_bad_calls(bad_calls, legal_call(),
                        [](const DecodeCall& call) { check_decode_call(gqa(), call, 2, 3); });
}

TEST_CASE("all violations of a decode call are listed at once") {
  DecodeCall call = legal_call();
  call.q.dtype = DataType::fp16;
  call.out = {};
  call.seq_lens.shape[0] = 3;
  CHECK(violations_of(gqa(), call).size() == 3);
}

TEST_CASE("v_cache is refused where v is a prefix of k") {
  AttentionDescriptor descriptor = gqa();
  descriptor.value_source = ValueSource::prefix_of_k;
  const std::vector<Violation> violations = violations_of(descriptor, legal_call());
  REQUIRE(violations.size() == 1);
  CHECK(violations[0].field == "v_cache");
}

TEST_CASE("a materialized mask must be given, of its type, full or broadcast") {
  AttentionDescriptor descriptor = gqa();
  descriptor.mask = MaskKind::materialized_bool;
  DecodeCall call = legal_call();
  CHECK(violations_of(descriptor, call).size() == 1);
  call.mask = contiguous_view(fake_pointer(), DataType::uint8, {1, 8, 1, 320});
  CHECK(violations_of(descriptor, call).empty());
  CHECK(make_decode_arguments(descriptor, call).mask_strides.batch == 0);
  CHECK(make_decode_arguments(descriptor, call).mask_strides.head == 320);
  CHECK(make_decode_arguments(descriptor, call).mask_strides.query == 0);
  CHECK(make_decode_arguments(descriptor, call).mask_keys == 320);
  call.mask = contiguous_view(fake_pointer(), DataType::uint8, {2, 3, 1, 320});
  CHECK(violations_of(descriptor, call).size() == 1);
  call.mask = contiguous_view(fake_pointer(), DataType::uint8, {2, 8, 3, 0});
  CHECK(violations_of(descriptor, call).size() == 1);
  call.mask = contiguous_view(fake_pointer(), DataType::uint8, {2, 8, 3, 320});
  call.mask.strides[2] = -320;
  CHECK(violations_of(descriptor, call).size() == 1);
  call.mask = contiguous_view(fake_pointer(), DataType::bf16, {1, 1, 1, 320});
  CHECK(violations_of(descriptor, call).size() == 1);
}

TEST_CASE("sinks must be given where the descriptor has them, one contiguous fp32 per query head") {
  AttentionDescriptor descriptor = gqa();
  DecodeCall call = legal_call();
  call.sinks = contiguous_view(fake_pointer(), DataType::fp32, {8});
  std::vector<Violation> violations = violations_of(descriptor, call);
  REQUIRE(violations.size() == 1);
  CHECK(violations[0].field == "sinks");
  CHECK(violations[0].rule.find("must not be given") != std::string::npos);

  descriptor.has_sinks = true;
  CHECK(violations_of(descriptor, call).empty());
  CHECK(make_decode_arguments(descriptor, call).sinks == fake_pointer());
  const std::vector<BadCall> bad_calls = {
      {"sinks", "must be given", [](DecodeCall& c) { c.sinks = {}; }},
      {"sinks", "must be fp32", [](DecodeCall& c) { c.sinks.dtype = DataType::bf16; }},
      {"sinks", "must have shape [8]", [](DecodeCall& c) { c.sinks.shape[0] = 2; }},
      {"sinks", "stride 1", [](DecodeCall& c) { c.sinks.strides[0] = 2; }},
      {"sinks", "4-byte aligned",
       [](DecodeCall& c) { c.sinks.data = reinterpret_cast<void*>(std::uintptr_t{0x1002}); }},
  };
  test::check_bad_calls(bad_calls, call, [&](const DecodeCall& spoilt) {
    check_decode_call(descriptor, spoilt, 2, 3);
  });
}

TEST_CASE("cache strides follow the layout tag and the rank") {
  AttentionDescriptor descriptor = gqa();
  DecodeCall call = legal_call();
  kernel_interface::CacheStrides strides = make_decode_arguments(descriptor, call).k_strides;
  CHECK(strides.batch == 0);
  CHECK(strides.block == 64 * 2 * 128);
  CHECK(strides.row == 2 * 128);
  CHECK(strides.head == 128);

  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  call.k_cache = contiguous_view(fake_pointer(), DataType::bf16, {2, 10, 2, 64, 128});
  strides = make_decode_arguments(descriptor, call).k_strides;
  CHECK(strides.batch == 10 * 2 * 64 * 128);
  CHECK(strides.block == 2 * 64 * 128);
  CHECK(strides.head == 64 * 128);
  CHECK(strides.row == 128);
}

}  // namespace
}  // namespace attnjit
