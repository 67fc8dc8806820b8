// The checks of FlashMLA's prefills: each documented error has its code and its fix. None of it
// needs a GPU; the attention is tests/gpu's.
#include "attnjit/flash_mla_prefill.hpp"

#include <functional>
#include <vector>

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"
#include "flash_mla_code.hpp"

namespace attnjit {
namespace {

using test::code_of;

void* fake_pointer() {
  return reinterpret_cast<void*>(std::uintptr_t{0x1000});
}

TensorView bf16_view(std::initializer_list<std::int64_t> shape) {
  return contiguous_view(fake_pointer(), DataType::bf16, shape);
}

// B 2, Hq 8, Hk 4, P 100, D 128.
FlashMlaPrefillCall prefill_call() {
  FlashMlaPrefillCall call;
  call.q = call.out = bf16_view({2, 8, 100, 128});
  call.k = call.v = bf16_view({2, 4, 100, 128});
  return call;
}

PreparedPrefill prefill_kernel(MaskKind mask = MaskKind::causal, int sparsity_block = 0) {
  PreparedPrefill kernel;
  kernel.descriptor = flash_mla_prefill_descriptor({.num_q_heads = 8,
                                                    .num_kv_heads = 4,
                                                    .head_dim = 128,
                                                    .sparsity_block = sparsity_block,
                                                    .mask = mask});
  return kernel;
}

// B 2, H 4, P 100, D 64, Nblk 3.
MhaKvCacheCall mha_call() {
  MhaKvCacheCall call;
  call.q = call.k_new = call.v_new = call.out = bf16_view({2, 4, 100, 64});
  call.k_cache = call.v_cache = bf16_view({2, 4, 3, 64, 64});
  call.block_table = contiguous_view(fake_pointer(), DataType::int32, {2, 3});
  call.seq_lens = contiguous_view(fake_pointer(), DataType::int32, {2});
  return call;
}

void run_mha(const MhaKvCacheCall& call) {
  auto prefill = std::make_shared<PreparedPrefill>();
  prefill->descriptor =
      flash_mla_prefill_descriptor({.num_q_heads = 4, .num_kv_heads = 4, .head_dim = 64});
  prefill->descriptor.operation = Operation::prefill_kvcache;
  prefill->descriptor.kv_layout = KvLayout::paged;
  prefill->descriptor.kv_layout_tag = KvLayoutTag::hnd;
  prefill->descriptor.page_size = 64;
  mha_fwd_kvcache({prefill, nullptr}, call, nullptr);
}

template <typename Call>
struct Spoilt {
  FlashMlaErrorCode code;
  std::function<void(Call&)> spoil;
};

TEST_CASE("each documented error of flash_mla_prefill has its code") {
  using Code = FlashMlaErrorCode;
  using Call = FlashMlaPrefillCall;
  const std::vector<Spoilt<Call>> spoilt = {
      {Code::shape_mismatch, [](Call& c) { c.q.shape[1] = 4; }},
      {Code::shape_mismatch, [](Call& c) { c.q.rank = 3; }},
      {Code::shape_mismatch, [](Call& c) { c.k.shape[0] = 3; }},
      {Code::shape_mismatch, [](Call& c) { c.v.shape[2] = 99; }},
      {Code::dtype_mismatch, [](Call& c) { c.k.dtype = DataType::fp16; }},
      {Code::inner_contiguity, [](Call& c) { c.v.strides[3] = 2; }},
      {Code::stride_order,
       [](Call& c) {
         c.q = permuted_view(bf16_view({2, 100, 8, 128}), {0, 2, 1, 3});
       }},
      {Code::mask_length,
       [](Call& c) {
         c.attn_mask = contiguous_view(fake_pointer(), DataType::uint8, {2, 1, 100, 99});
       }},
  };
  for (const Spoilt<Call>& each : spoilt) {
    Call call = prefill_call();
    each.spoil(call);
    INFO(to_string(each.code));
    CHECK(code_of([&] { flash_mla_prefill(prefill_kernel(), call, nullptr); }) == each.code);
  }
}

TEST_CASE("what prefill itself checks reaches the caller of flash_mla_prefill by field") {
  FlashMlaPrefillCall call = prefill_call();
  CHECK_THROWS_AS(flash_mla_prefill(prefill_kernel(MaskKind::materialized_bool), call, nullptr),
                  ArgumentError);
  CHECK_THROWS_AS(flash_mla_prefill(prefill_kernel(MaskKind::causal, 64), call, nullptr),
                  ArgumentError);
  call.out = {};
  CHECK_THROWS_AS(flash_mla_prefill(prefill_kernel(), call, nullptr), ArgumentError);
}

TEST_CASE("a head ratio that is none is refused when the descriptor is made") {
  CHECK(code_of([] {
          flash_mla_prefill_descriptor({.num_q_heads = 6, .num_kv_heads = 4, .head_dim = 64});
        }) == FlashMlaErrorCode::head_ratio);
  CHECK(code_of([] {
          flash_mla_prefill_descriptor({.num_q_heads = 6, .num_kv_heads = 0, .head_dim = 64});
        }) == FlashMlaErrorCode::head_ratio);
  CHECK_NOTHROW(validate(prefill_kernel(MaskKind::causal, 64).descriptor));
}

TEST_CASE("each documented error of mha_fwd_kvcache has its code") {
  using Code = FlashMlaErrorCode;
  using Call = MhaKvCacheCall;
  const std::vector<Spoilt<Call>> spoilt = {
      {Code::shape_mismatch, [](Call& c) { c.q.shape[1] = 8; }},
      {Code::shape_mismatch, [](Call& c) { c.k_cache.shape[1] = 2; }},  // plain MHA: Hq = Hk
      {Code::shape_mismatch, [](Call& c) { c.v_cache.shape[2] = 4; }},
      {Code::shape_mismatch, [](Call& c) { c.v_new = {}; }},
      {Code::shape_mismatch, [](Call& c) { c.k_new.shape[2] = 99; }},
      {Code::block_count, [](Call& c) { c.block_table.shape[0] = 1; }},
      {Code::block_count,
       [](Call& c) {
         c.block_table = contiguous_view(fake_pointer(), DataType::int32, {2, 1});
         c.k_cache = c.v_cache = bf16_view({2, 4, 1, 64, 64});
       }},
      {Code::dtype_mismatch, [](Call& c) { c.block_table.dtype = DataType::int64; }},
      {Code::dtype_mismatch, [](Call& c) { c.k_cache.dtype = DataType::fp16; }},
      {Code::inner_contiguity, [](Call& c) { c.k_cache.strides[3] = 128; }},
      {Code::inner_contiguity, [](Call& c) { c.block_table.strides[0] = 4; }},
      {Code::stride_order, [](Call& c) { std::swap(c.k_cache.strides[1], c.k_cache.strides[2]); }},
      {Code::mask_length,
       [](Call& c) {
         c.attn_mask = contiguous_view(fake_pointer(), DataType::uint8, {2, 1, 100, 64});
       }},
  };
  for (const Spoilt<Call>& each : spoilt) {
    Call call = mha_call();
    each.spoil(call);
    INFO(to_string(each.code));
    CHECK(code_of([&] { run_mha(call); }) == each.code);
  }
}

TEST_CASE("a cache is not written where the attention would be refused") {
  MhaKvCacheCall call = mha_call();
  call.out = {};
  CHECK_THROWS_AS(run_mha(call), ArgumentError);  // the null append kernel is not touched
}

}  // namespace
}  // namespace attnjit
