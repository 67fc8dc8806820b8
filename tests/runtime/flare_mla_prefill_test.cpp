// The prefill whose rope columns of k lie in a cache: its descriptor, its checks, the kernel's
// arguments. None of it needs a GPU; running is tests/gpu's.
#include "attnjit/flare_mla_prefill.hpp"

#include <array>
#include <string>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "bad_call.hpp"
#include "catch.hpp"
#include "prefill_arguments.hpp"
#include "prefill_calls.hpp"

namespace attnjit {
namespace {

using namespace test;
using namespace kernel_interface;

constexpr KvLayoutTag rope_tags[] = {KvLayoutTag::nhd, KvLayoutTag::hnd, KvLayoutTag::bshd,
                                     KvLayoutTag::bhsd};

std::vector<Violation> violations_of(const PrefillCase& prefill) {
  return test::violations_of([&] { check_prefill_call(prefill.descriptor, prefill.call); });
}

void check_bad_prefills(const std::vector<BadCall<PrefillCall>>& bad_calls,
                        const PrefillCase& prefill) {
  REQUIRE(violations_of(prefill).empty());
  check_bad_calls(bad_calls, prefill.call,
                  [&](const PrefillCall& call) { check_prefill_call(prefill.descriptor, call); });
}

PrefillArguments arguments_of(const PrefillCase& prefill) {
  check_prefill_call(prefill.descriptor, prefill.call);
  return make_prefill_arguments(prefill.descriptor, prefill.call);
}

// batch, block, head and row.
using Strides = std::array<long long, 4>;

Strides strides_of(const CacheStrides& strides) {
  return {strides.batch, strides.block, strides.head, strides.row};
}

// Behind 32 of the 96 columns of each row.
const void* rope_of_cache() {
  return static_cast<char*>(fake_pointer(9)) + 64;
}

TEST_CASE("a flare MLA prefill is causal over DeepSeek's columns unless told otherwise") {
  const AttentionDescriptor paged =
      flare_mla_prefill_descriptor({.num_heads = 16, .page_size = 64});
  CHECK_NOTHROW(validate(paged));
  CHECK(paged.operation == Operation::mla_prefill_rope);
  CHECK(paged.head_dim_qk == 192);
  CHECK(paged.head_dim_v == 128);
  CHECK(paged.num_q_heads == 16);
  CHECK(paged.num_kv_heads == 16);
  CHECK(paged.max_seqlen_q == 0);
  CHECK(paged.kv_layout == KvLayout::paged);
  CHECK(paged.kv_layout_tag == KvLayoutTag::nhd);
  CHECK(paged.page_size == 64);
  CHECK(paged.mask == MaskKind::causal);
  CHECK_FALSE(paged.returns_lse);
  CHECK(paged.dtype_q == DataType::bf16);

  const AttentionDescriptor dense = flare_mla_prefill_descriptor({.num_heads = 3,
                                                                  .q_depth = 96,
                                                                  .depth = 64,
                                                                  .returns_lse = true,
                                                                  .mask = MaskKind::none,
                                                                  .dtype = DataType::fp16});
  CHECK_NOTHROW(validate(dense));
  CHECK(dense.head_dim_qk == 96);
  CHECK(dense.head_dim_v == 64);
  CHECK(dense.kv_layout == KvLayout::dense);
  CHECK(dense.kv_layout_tag == KvLayoutTag::bshd);
  CHECK(dense.mask == MaskKind::none);
  CHECK(dense.returns_lse);
  for (const DataType dtype : {dense.dtype_q, dense.dtype_kv, dense.dtype_out}) {
    CHECK(dtype == DataType::fp16);
  }
}

std::vector<std::string> refused_fields(const AttentionDescriptor& descriptor) {
  std::vector<std::string> fields;
  try {
    validate(descriptor);
  } catch (const DescriptorError& error) {
    for (const Violation& violation : error.violations()) {
      fields.push_back(violation.field);
    }
  }
  return fields;
}

TEST_CASE("a flare MLA prefill in fp8, or of an fp8 cache, is refused by the field's name") {
  const FlareMlaPrefillShape shape = {.num_heads = 16, .page_size = 64};
  FlareMlaPrefillShape fp8 = shape;
  fp8.dtype = DataType::fp8_e4m3;
  CHECK(refused_fields(flare_mla_prefill_descriptor(fp8)) == std::vector<std::string>{"dtype_q"});
  AttentionDescriptor fp8_cache = flare_mla_prefill_descriptor(shape);
  fp8_cache.dtype_kv = DataType::fp8_e4m3;
  CHECK(refused_fields(fp8_cache) == std::vector<std::string>{"dtype_kv"});
  FlareMlaPrefillShape no_rope = shape;
  no_rope.depth = no_rope.q_depth;
  CHECK(refused_fields(flare_mla_prefill_descriptor(no_rope)) ==
        std::vector<std::string>{"head_dim_qk"});
}

TEST_CASE("a legal prefill of rope columns passes in every layout, with what is optional") {
  for (const KvLayoutTag tag : rope_tags) {
    PrefillCase prefill = roped(tag);
    CHECK(violations_of(prefill).empty());
    prefill.call.lse = {};
    prefill.call.query_positions = prefill.call.key_positions = integers({2});
    CHECK(violations_of(prefill).empty());
  }
}

TEST_CASE("each bad argument of a prefill with paged rope columns is named with its rule") {
  check_bad_prefills(
      {
          {"k_rope", "must be given", [](PrefillCall& c) { c.k_rope = {}; }},
          {"k_rope", "must be bf16", [](PrefillCall& c) { c.k_rope.dtype = DataType::fp8_e4m3; }},
          {"k_rope", "must have shape [any, 16, 1, any]",
           [](PrefillCall& c) { c.k_rope.shape[1] = 64; }},
          {"k_rope", "must have shape [any, 16, 1, any]",
           [](PrefillCall& c) { c.k_rope.shape[2] = 2; }},
          {"k_rope", "must have shape [any, 16, 1, any]",
           [](PrefillCall& c) {
             c.k_rope = elements({9, 16, 96});
           }},
          {"k_rope", "must not be empty", [](PrefillCall& c) { c.k_rope.shape[0] = 0; }},
          {"k_rope", "must have at least 64 columns",
           [](PrefillCall& c) { c.k_rope.shape[3] = 56; }},
          {"k_rope", "a multiple of 8", [](PrefillCall& c) { c.k_rope.shape[3] = 92; }},
          {"k_rope", "multiples of 8", [](PrefillCall& c) { c.k_rope.strides[1] = 100; }},
          {"k_rope", "stride 1", [](PrefillCall& c) { c.k_rope.strides[3] = 2; }},
          {"k_rope", "16-byte aligned",
           [](PrefillCall& c) { c.k_rope.data = reinterpret_cast<void*>(0x1008); }},
          {"k", "must have shape [any, 2, 64]",
           [](PrefillCall& c) {
             c.k = elements({70, 2, 128});
           }},
          {"v", "must have shape [70, 2, 64]", [](PrefillCall& c) { c.v.shape[0] = 69; }},
          {"block_table", "must be given", [](PrefillCall& c) { c.block_table = {}; }},
          {"block_table", "must have shape [2, any]",
           [](PrefillCall& c) { c.block_table.shape[0] = 3; }},
          {"block_table", "must be int32",
           [](PrefillCall& c) { c.block_table.dtype = DataType::fp32; }},
          {"kv_offsets", "must be given", [](PrefillCall& c) { c.kv_offsets = {}; }},
          {"kv_offsets", "must have shape [3]", [](PrefillCall& c) { c.kv_offsets.shape[0] = 2; }},
          {"query_positions", "must be given: k_rope is paged",
           [](PrefillCall& c) { c.query_positions = {}; }},
          {"query_positions", "must have shape [2]",
           [](PrefillCall& c) { c.query_positions = integers({3}); }},
          {"key_positions", "must have shape [2]",
           [](PrefillCall& c) { c.key_positions = integers({3}); }},
      },
      roped(KvLayoutTag::nhd));
  check_bad_prefills({{"k_rope", "must have shape [any, 1, 16, any]",
                       [](PrefillCall& c) {
                         c.k_rope = elements({9, 16, 1, 96});
                       }}},
                     roped(KvLayoutTag::hnd));
}

TEST_CASE("each bad argument of a prefill with dense rope columns is named with its rule") {
  check_bad_prefills(
      {
          {"k_rope", "must be given", [](PrefillCall& c) { c.k_rope = {}; }},
          {"k_rope", "must have shape [2, any, 1, any]",
           [](PrefillCall& c) { c.k_rope.shape[0] = 3; }},
          {"k_rope", "must not be empty in dimension 1",
           [](PrefillCall& c) { c.k_rope.shape[1] = 0; }},
          {"k_rope", "must have at least 64 columns",
           [](PrefillCall& c) { c.k_rope.shape[3] = 32; }},
          {"block_table", "must not be given: the keys are not paged",
           [](PrefillCall& c) {
             c.block_table = integers({2, 5});
           }},
          {"kv_offsets", "must be given", [](PrefillCall& c) { c.kv_offsets = {}; }},
      },
      roped(KvLayoutTag::bshd));
  check_bad_prefills({{"k_rope", "must have shape [2, 1, any, any]",
                       [](PrefillCall& c) { c.k_rope.shape[1] = 40; }},
                      {"k_rope", "must not be empty in dimension 2",
                       [](PrefillCall& c) { c.k_rope.shape[2] = 0; }}},
                     roped(KvLayoutTag::bhsd));
}

TEST_CASE("rope columns are refused where k has all columns") {
  for (const PrefillCase& whole : {ragged(), dense(KvLayoutTag::bshd), paged(KvLayoutTag::nhd)}) {
    check_bad_prefills({{"k_rope", "must not be given: k has all columns",
                         [](PrefillCall& c) {
                           c.k_rope = elements({9, 16, 1, 64});
                         }}},
                       whole);
    CHECK(arguments_of(whole).k_rope == nullptr);
    CHECK(arguments_of(whole).rope_extent == 0);
  }
}

TEST_CASE("paged rope columns are found by the block table, beside ragged keys") {
  PrefillCase prefill = roped(KvLayoutTag::nhd);
  prefill.call.block_table.strides[0] = 7;
  prefill.call.key_positions = integers({2}, 12);
  PrefillArguments arguments = arguments_of(prefill);
  CHECK(arguments.k_rope == rope_of_cache());
  CHECK(strides_of(arguments.rope_strides) == Strides{0, 1536, 0, 96});
  CHECK(arguments.rope_extent == 5 * 16);
  CHECK(arguments.k == fake_pointer(6));
  CHECK(arguments.v == fake_pointer(7));
  CHECK(strides_of(arguments.k_strides) == Strides{0, 0, 64, 128});
  CHECK(strides_of(arguments.v_strides) == Strides{0, 0, 64, 128});
  CHECK(arguments.keys.offsets == fake_pointer(8));
  CHECK(arguments.keys.lengths == nullptr);
  CHECK(arguments.block_table == fake_pointer(10));
  CHECK(arguments.block_table_stride == 7);
  CHECK(arguments.query_positions == fake_pointer(11));
  CHECK(arguments.key_positions == fake_pointer(12));

  prefill = roped(KvLayoutTag::hnd);
  prefill.call.k_rope.strides[0] = 4096;  // layers between a layer's pages
  CHECK(strides_of(arguments_of(prefill).rope_strides) == Strides{0, 4096, 0, 96});
}

TEST_CASE("dense rope columns are found by the request, and tell where the last query stands") {
  for (const KvLayoutTag tag : {KvLayoutTag::bshd, KvLayoutTag::bhsd}) {
    PrefillCase prefill = roped(tag);
    PrefillArguments arguments = arguments_of(prefill);
    CHECK(arguments.k_rope == rope_of_cache());
    CHECK(strides_of(arguments.rope_strides) == Strides{3840, 0, 0, 96});
    CHECK(arguments.rope_extent == 40);
    CHECK(arguments.query_positions == nullptr);
    CHECK(arguments.keys.offsets == fake_pointer(8));
  }
  PrefillCase narrow = roped(KvLayoutTag::bshd);
  narrow.call.k_rope = elements({2, 40, 1, 64}, 9);
  CHECK(arguments_of(narrow).k_rope == fake_pointer(9));
}

// Of 2 requests with 50 query tokens and 128 rows of k and v in all.
FlareMlaPrefillCall flare_call() {
  FlareMlaPrefillCall call;
  call.output = elements({50, 16, 128}, 2);
  call.q = elements({50, 16, 192}, 3);
  call.k = elements({128, 16, 128}, 4);
  call.v = elements({128, 16, 128}, 5);
  call.k_rope = elements({9, 64, 1, 576}, 6);
  call.block_table = integers({2, 4}, 7);
  call.cache_lengths = integers({2}, 8);
  call.valid_length = integers({3}, 9);
  call.cache_row_offsets = integers({3}, 10);
  call.cache_offsets = integers({2}, 11);
  call.lse = fp32_numbers({16, 50}, 12);
  return call;
}

// Is refused, or launches nothing: there is no kernel behind it.
void run(const FlareMlaPrefillCall& call) {
  PreparedPrefill kernel;
  kernel.descriptor = flare_mla_prefill_descriptor({.num_heads = 16, .page_size = 64});
  kernel.config.block_m = 128;
  kernel.config.q_per_kv = 1;
  flare_mla_prefill(kernel, call, nullptr);
}

TEST_CASE("every tensor of a flare MLA prefill is one of the prefill's, by its name") {
  using Call = FlareMlaPrefillCall;
  check_bad_calls<Call>(
      {
          {"out", "must have shape [50, 16, 128]", [](Call& c) { c.output.shape[0] = 49; }},
          {"q", "must have shape [any, 16, 192]", [](Call& c) { c.q.shape[2] = 128; }},
          {"k", "must have shape [any, 16, 128]", [](Call& c) { c.k.shape[2] = 192; }},
          {"v", "must have shape [128, 16, 128]", [](Call& c) { c.v.shape[0] = 127; }},
          {"k_rope", "must have at least 64 columns", [](Call& c) { c.k_rope.shape[3] = 56; }},
          {"block_table", "must have shape [2, any]", [](Call& c) { c.block_table.shape[0] = 1; }},
          {"query_positions", "must be given", [](Call& c) { c.cache_lengths = {}; }},
          {"q_offsets", "must be int32", [](Call& c) { c.valid_length.dtype = DataType::fp32; }},
          {"kv_offsets", "must have shape [3]", [](Call& c) { c.cache_row_offsets.shape[0] = 4; }},
          {"key_positions", "must have shape [2]", [](Call& c) { c.cache_offsets.shape[0] = 3; }},
          {"lse", "must have shape [16, 50]", [](Call& c) { c.lse.shape[0] = 50; }},
          {"softmax_scale", "must be finite", [](Call& c) { c.scale = 1.0F / 0.0F; }},
      },
      flare_call(), run);
}

TEST_CASE("a flare MLA prefill of no query tokens is done before it is launched") {
  FlareMlaPrefillCall call = flare_call();
  call.q = elements({0, 16, 192});
  call.output = elements({0, 16, 128});
  call.lse = call.cache_offsets = {};
  CHECK_NOTHROW(run(call));
}

}  // namespace
}  // namespace attnjit
