// The checks of token-sparse attention and how its views become arguments. None of it needs a GPU.
#include "attnjit/sparse_mla.hpp"

#include <climits>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "bad_call.hpp"
#include "catch.hpp"
#include "sparse_mla_arguments.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

void* fake_pointer(std::uintptr_t place = 1) {
  return reinterpret_cast<void*>(place * 0x1000);
}

TensorView elements(std::initializer_list<std::int64_t> shape) {
  return contiguous_view(fake_pointer(), DataType::bf16, shape);
}

TensorView integers(std::initializer_list<std::int64_t> shape) {
  return contiguous_view(fake_pointer(2), DataType::int32, shape);
}

TensorView numbers(std::initializer_list<std::int64_t> shape) {
  return contiguous_view(fake_pointer(3), DataType::fp32, shape);
}

TensorView bytes(std::initializer_list<std::int64_t> shape) {
  return contiguous_view(fake_pointer(4), DataType::fp8_e4m3, shape);
}

struct Case {
  AttentionDescriptor descriptor;
  SparseMlaCall call;
};

// 3 requests of 2 query tokens of 20 heads, 100 indices each, 9 pages of 61 tokens.
Case decode(KvEncoding encoding = KvEncoding::plain) {
  const int columns = encoding == KvEncoding::fp8_584 ? 512 : 576;
  Case made;
  made.descriptor = sparse_mla_decode_descriptor(
      {.num_q_heads = 20, .head_dim_qk = columns, .page_size = 61, .kv_encoding = encoding});
  made.call.q = elements({3, 2, 20, columns});
  made.call.kv = encoding == KvEncoding::plain     ? elements({9, 61, 1, columns})
                 : encoding == KvEncoding::fp8_656 ? bytes({9, 61, 1, 656})
                                                   : bytes({9, 61, 1, 584});
  made.call.indices = integers({3, 2, 100});
  made.call.out = elements({3, 2, 20, 512});
  made.call.lse = numbers({3, 20, 2});
  return made;
}

// The same with a second pool of 5 pages of 4 tokens, 7 indices each, and with lengths.
Case decode_of_two_pools(KvEncoding encoding = KvEncoding::plain) {
  Case made = decode(encoding);
  made.call.topk_length = integers({3});
  made.call.extra_kv = made.call.kv;
  made.call.extra_kv = encoding == KvEncoding::plain     ? elements({5, 4, 1, 576})
                       : encoding == KvEncoding::fp8_656 ? bytes({5, 4, 1, 656})
                                                         : bytes({5, 4, 1, 584});
  made.call.extra_indices = integers({3, 2, 7});
  made.call.extra_topk_length = integers({3});
  return made;
}

// 50 query tokens of 20 heads, 100 indices each, 70 tokens.
Case prefill() {
  Case made;
  made.descriptor = sparse_mla_prefill_descriptor({.num_q_heads = 20});
  made.call.q = elements({50, 20, 576});
  made.call.kv = elements({70, 1, 576});
  made.call.indices = integers({50, 1, 100});
  made.call.out = elements({50, 20, 512});
  made.call.lse = numbers({50, 20});
  made.call.max_logits = numbers({50, 20});
  return made;
}

TEST_CASE("descriptors of token-sparse attention are valid, of every encoding") {
  for (const KvEncoding encoding : {KvEncoding::plain, KvEncoding::fp8_656, KvEncoding::fp8_584}) {
    CHECK_NOTHROW(validate(decode(encoding).descriptor));
  }
  CHECK_NOTHROW(validate(prefill().descriptor));
  CHECK_NOTHROW(validate(sparse_mla_decode_descriptor({.page_size = 1000})));
}

TEST_CASE("legal calls of token-sparse attention pass") {
  for (const KvEncoding encoding : {KvEncoding::plain, KvEncoding::fp8_656, KvEncoding::fp8_584}) {
    for (const Case& each : {decode(encoding), decode_of_two_pools(encoding)}) {
      CHECK_NOTHROW(check_sparse_mla_call(each.descriptor, each.call));
    }
  }
  CHECK_NOTHROW(check_sparse_mla_call(prefill().descriptor, prefill().call));
  Case as_bytes = decode(KvEncoding::fp8_656);
  as_bytes.call.kv.dtype = DataType::uint8;
  CHECK_NOTHROW(check_sparse_mla_call(as_bytes.descriptor, as_bytes.call));
  Case hnd = decode();
  hnd.descriptor.kv_layout_tag = KvLayoutTag::hnd;
  hnd.call.kv = elements({9, 1, 61, 576});
  CHECK_NOTHROW(check_sparse_mla_call(hnd.descriptor, hnd.call));
}

using Bad = std::vector<test::BadCall<SparseMlaCall>>;

void check_refused(const Case& legal, const Bad& bad_calls) {
  test::check_bad_calls(bad_calls, legal.call, [&](const SparseMlaCall& call) {
    check_sparse_mla_call(legal.descriptor, call);
  });
}

using Call = SparseMlaCall;

TEST_CASE("each bad argument of a token-sparse decode is named with its rule") {
  const Bad bad_calls = {
      {"q", "must be given", [](Call& c) { c.q = {}; }},
      {"q", "must be bf16", [](Call& c) { c.q.dtype = DataType::fp16; }},
      {"q", "must have shape [any, any, 20, 576]",
       [](Call& c) {
         c.q = elements({6, 20, 576});
       }},
      {"q", "multiples of 8", [](Call& c) { c.q.strides[2] = 578; }},
      {"kv", "must be given", [](Call& c) { c.kv = {}; }},
      {"kv", "must be bf16", [](Call& c) { c.kv.dtype = DataType::fp8_e4m3; }},
      {"kv", "must have shape [any, 61, 1, 576]", [](Call& c) { c.kv.shape[1] = 60; }},
      {"kv", "multiples of 8", [](Call& c) { c.kv.strides[1] = 580; }},
      {"kv", "16-byte aligned",
       [](Call& c) { c.kv.data = reinterpret_cast<void*>(std::uintptr_t{0x1008}); }},
      {"indices", "must be given", [](Call& c) { c.indices = {}; }},
      {"indices", "must be int32", [](Call& c) { c.indices.dtype = DataType::int64; }},
      {"indices", "must have shape [3, 2, any]", [](Call& c) { c.indices.shape[1] = 1; }},
      {"indices", "stride 1", [](Call& c) { c.indices.strides[2] = 2; }},
      {"indices", "must be at most 1073741824",
       [](Call& c) {
         c.indices = integers({3, 2, (std::int64_t{1} << 30) - 6});
       }},
      {"topk_length", "must be int32", [](Call& c) { c.topk_length.dtype = DataType::int64; }},
      {"topk_length", "must have shape [3]", [](Call& c) { c.topk_length = integers({2}); }},
      {"extra_kv", "must have shape [any, any, 1, 576]",
       [](Call& c) { c.extra_kv.shape[3] = 512; }},
      {"extra_kv", "at least one token", [](Call& c) { c.extra_kv.shape[1] = 0; }},
      {"extra_indices", "must be given", [](Call& c) { c.extra_indices = {}; }},
      {"extra_indices", "must have shape [3, 2, any]",
       [](Call& c) { c.extra_indices.shape[0] = 2; }},
      {"extra_topk_length", "must have shape [3]",
       [](Call& c) { c.extra_topk_length = integers({4}); }},
      {"sinks", "must not be given", [](Call& c) { c.sinks = numbers({20}); }},
      {"out", "must be given", [](Call& c) { c.out = {}; }},
      {"out", "must have shape [3, 2, 20, 512]", [](Call& c) { c.out.shape[3] = 576; }},
      {"out", "at least 1", [](Call& c) { c.out.strides[0] = 0; }},
      {"lse", "must have shape [3, 20, 2]",
       [](Call& c) {
         c.lse = numbers({3, 2, 20});
       }},
      {"max_logits", "must be fp32",
       [](Call& c) {
         c.max_logits = integers({3, 20, 2});
       }},
      {"softmax_scale", "must be finite", [](Call& c) { c.softmax_scale = 1.0F / 0.0F; }},
  };
  check_refused(decode_of_two_pools(), bad_calls);
}

TEST_CASE("lists of a second pool are refused without it") {
  const Bad bad_calls = {
      {"extra_indices", "extra_kv is not",
       [](Call& c) {
         c.extra_indices = integers({3, 2, 7});
       }},
      {"extra_topk_length", "extra_kv is not",
       [](Call& c) { c.extra_topk_length = integers({3}); }},
  };
  check_refused(decode(), bad_calls);
}

TEST_CASE("each bad pool of encoded tokens is named with its rule") {
  check_refused(decode(KvEncoding::fp8_656),
                {{"kv", "must be fp8_e4m3", [](Call& c) { c.kv.dtype = DataType::bf16; }},
                 {"kv", "must have shape [any, 61, 1, 656]", [](Call& c) { c.kv.shape[3] = 584; }},
                 {"kv", "multiples of 16", [](Call& c) { c.kv.strides[0] += 8; }},
                 {"kv", "multiples of 16", [](Call& c) { c.kv.strides[1] = 664; }},
                 {"kv", "16-byte aligned",
                  [](Call& c) { c.kv.data = reinterpret_cast<void*>(std::uintptr_t{0x1008}); }}});
  check_refused(decode(KvEncoding::fp8_584),
                {{"kv", "must have shape [any, 61, 1, 584]", [](Call& c) { c.kv.shape[3] = 656; }},
                 {"kv", "multiples of 8", [](Call& c) { c.kv.strides[0] += 4; }},
                 {"kv", "at a stride of 584 bytes", [](Call& c) { c.kv.strides[1] = 592; }},
                 {"kv", "8-byte aligned",
                  [](Call& c) { c.kv.data = reinterpret_cast<void*>(std::uintptr_t{0x1004}); }}});
}

TEST_CASE("each bad argument of a token-sparse prefill is named with its rule") {
  const Bad bad_calls = {
      {"q", "must have shape [any, 20, 576]",
       [](Call& c) {
         c.q = elements({1, 50, 20, 576});
       }},
      {"kv", "must have shape [any, 1, 576]",
       [](Call& c) {
         c.kv = elements({70, 2, 576});
       }},
      {"indices", "must have shape [50, 1, any]",
       [](Call& c) {
         c.indices = integers({50, 100});
       }},
      {"topk_length", "must have shape [50]", [](Call& c) { c.topk_length = integers({1}); }},
      {"extra_kv", "only sparse_mla_decode",
       [](Call& c) {
         c.extra_kv = elements({9, 1, 576});
       }},
      {"out", "must have shape [50, 20, 512]", [](Call& c) { c.out.shape[0] = 49; }},
      {"lse", "must have shape [50, 20]",
       [](Call& c) {
         c.lse = numbers({20, 50});
       }},
      {"max_logits", "must have shape [50, 20]", [](Call& c) { c.max_logits = numbers({50}); }},
      {"max_logits", "at least 1", [](Call& c) { c.max_logits.strides[0] = 0; }},
  };
  check_refused(prefill(), bad_calls);
  Case with_sinks = prefill();
  with_sinks.descriptor.has_sinks = true;
  with_sinks.call.sinks = numbers({20});
  check_refused(with_sinks,
                {{"sinks", "must be given", [](Call& c) { c.sinks = {}; }},
                 {"sinks", "must have shape [20]", [](Call& c) { c.sinks = numbers({64}); }}});
}

SparseMlaArguments arguments_of(const Case& each) {
  check_sparse_mla_call(each.descriptor, each.call);
  return make_sparse_mla_arguments(each.descriptor, each.call);
}

TEST_CASE("pools of a decode are counted in bytes, pages and tokens") {
  Case each = decode_of_two_pools();
  each.call.kv.strides[0] = 62 * 576;
  const SparseMlaArguments plain = arguments_of(each);
  CHECK(plain.pools[0].page_stride == 62 * 1152);
  CHECK(plain.pools[0].row_stride == 1152);
  CHECK(plain.pools[0].page_size == 61);
  CHECK(plain.pools[0].num_tokens == 9 * 61);
  CHECK(plain.pools[1].page_stride == 4 * 1152);
  CHECK(plain.pools[1].page_size == 4);
  CHECK(plain.pools[1].num_tokens == 20);
  CHECK(plain.indices[0].request_stride == 200);
  CHECK(plain.indices[0].query_stride == 100);
  CHECK(plain.indices[0].count == 100);
  CHECK(plain.indices[1].request_stride == 14);
  CHECK(plain.indices[1].count == 7);
  CHECK(plain.seqlen_q == 2);
  CHECK(plain.lse_strides.token == 1);
  CHECK(plain.lse_strides.head == 2);
  CHECK(arguments_of(decode()).indices[1].count == 0);
}

TEST_CASE("pages of 584 bytes a token begin with rows of 576; odd ones are aligned to 8 bytes") {
  const SparseMlaArguments odd = arguments_of(decode(KvEncoding::fp8_584));
  CHECK(odd.pools[0].row_stride == 576);
  CHECK(odd.pools[0].page_stride == 61 * 584);
  CHECK(odd.is_aligned_16 == 0);
  Case padded = decode(KvEncoding::fp8_584);
  padded.call.kv.strides[0] = 62 * 576;
  CHECK(arguments_of(padded).is_aligned_16 == 1);
  Case two = decode_of_two_pools(KvEncoding::fp8_584);
  two.call.kv.strides[0] = 62 * 576;
  CHECK(arguments_of(two).is_aligned_16 == 1);
  two.call.extra_kv.data = reinterpret_cast<void*>(std::uintptr_t{0x1008});
  CHECK(arguments_of(two).is_aligned_16 == 0);
}

TEST_CASE("each query token of a prefill is a request, each row of its tokens a page") {
  const SparseMlaArguments arguments = arguments_of(prefill());
  CHECK(arguments.seqlen_q == 1);
  CHECK(arguments.q_strides.batch == 20 * 576);
  CHECK(arguments.q_strides.head == 576);
  CHECK(arguments.pools[0].page_size == 1);
  CHECK(arguments.pools[0].page_stride == 1152);
  CHECK(arguments.pools[0].num_tokens == 70);
  CHECK(arguments.indices[0].request_stride == 100);
  CHECK(arguments.lse_strides.batch == 20);
  CHECK(arguments.lse_strides.head == 1);
  CHECK(arguments.max_logits_strides.batch == 20);
}

void run(const Case& each) {
  PreparedSparseMla kernel;
  kernel.descriptor = each.descriptor;
  kernel.config = {.block_m = 16};
  run_sparse_mla(kernel, each.call, nullptr);
}

TEST_CASE("a token-sparse call without query tokens launches nothing") {
  Case each = prefill();
  each.call.q = elements({0, 20, 576});
  each.call.out = elements({0, 20, 512});
  each.call.indices = integers({0, 1, 100});
  each.call.lse = numbers({0, 20});
  each.call.max_logits = {};
  CHECK_NOTHROW(run(each));
}

TEST_CASE("a token-sparse call of more head tiles than a grid has is refused by q") {
  for (const std::int64_t tokens : {(std::int64_t{INT_MAX} - 1) / 2 + 1, std::int64_t{1} << 40}) {
    Case each = prefill();
    each.call.q = elements({tokens, 20, 576});
    each.call.out = elements({tokens, 20, 512});
    each.call.indices = integers({tokens, 1, 100});
    each.call.lse = each.call.max_logits = {};
    const auto violations = test::violations_of([&] { run(each); });
    REQUIRE(violations.size() == 1);
    CHECK(violations[0].field == "q");
    CHECK(violations[0].rule.find("at most 1073741823 query tokens") != std::string::npos);
  }
}

}  // namespace
}  // namespace attnjit
