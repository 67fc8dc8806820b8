#include "legal_calls.hpp"

#include <cstdint>
#include <memory>

#include "fake_prefill_call.hpp"
#include "flash_mla_checks.hpp"
#include "prefill_arguments.hpp"
#include "prefill_suite.hpp"

namespace attnjit::contract {
namespace {

FlashMlaCall legal_decode_call() {
  FlashMlaCall call;
  call.q = call.out = fake_view(DataType::bf16, {2, 8, 1, 128});
  call.k_cache = call.v_cache = fake_view(DataType::bf16, {2, 4, 3, 64, 128});
  call.block_table = fake_view(DataType::int32, {2, 3});
  call.seq_lens = fake_view(DataType::int32, {2});
  return call;
}

MhaKvCacheCall legal_mha_call() {
  MhaKvCacheCall call;
  call.q = call.out = call.k_new = call.v_new = fake_view(DataType::bf16, {2, 4, 100, 64});
  call.k_cache = call.v_cache = fake_view(DataType::bf16, {2, 4, 3, 64, 64});
  call.block_table = fake_view(DataType::int32, {2, 3});
  call.seq_lens = fake_view(DataType::int32, {2});
  return call;
}

FlareMlaPrefillCall legal_flare_call(int page_size) {
  FlareMlaPrefillCall call;
  call.output = fake_view(DataType::bf16, {50, 16, 128});
  call.q = fake_view(DataType::bf16, {50, 16, 192});
  call.k = call.v = fake_view(DataType::bf16, {128, 16, 128});
  call.k_rope = page_size > 0 ? fake_view(DataType::bf16, {9, page_size, 1, 576})
                              : fake_view(DataType::bf16, {2, 64, 1, 576});
  if (page_size > 0) {
    call.block_table = fake_view(DataType::int32, {2, 4});
    call.cache_lengths = fake_view(DataType::int32, {2});
  }
  call.valid_length = call.cache_row_offsets = fake_view(DataType::int32, {3});
  call.scale = 0.1F;
  return call;
}

}  // namespace

TensorView fake_view(DataType dtype, std::initializer_list<std::int64_t> shape) {
  return contiguous_view(reinterpret_cast<void*>(std::uintptr_t{4096}), dtype, shape);
}

MlaMetadata metadata_of(const LegalDecode& decode) {
  return get_mla_metadata(decode.q_shape, decode.kv_shape, decode.block_table, decode.seq_lens,
                          decode.options);
}

std::function<void()> metadata_with(const std::function<void(LegalDecode&)>& spoil) {
  return [spoil] {
    LegalDecode decode;
    spoil(decode);
    metadata_of(decode);
  };
}

std::function<void()> decode_with(const std::function<void(FlashMlaCall&)>& spoil) {
  return [spoil] {
    FlashMlaCall call = legal_decode_call();
    spoil(call);
    check_flash_mla_call(call, metadata_of({}));
  };
}

std::function<void()> prefill_with(const std::function<void(FlashMlaPrefillCall&)>& spoil,
                                   const FlashMlaPrefillShape& shape) {
  return [spoil, shape] {
    PreparedPrefill kernel;
    kernel.descriptor = flash_mla_prefill_descriptor(shape);
    FlashMlaPrefillCall call;
    call.q = call.out = fake_view(DataType::bf16, {2, 8, 100, 128});
    call.k = call.v = fake_view(DataType::bf16, {2, 4, 100, 128});
    spoil(call);
    flash_mla_prefill(kernel, call, nullptr);
  };
}

std::function<void()> mha_with(const std::function<void(MhaKvCacheCall&)>& spoil) {
  return [spoil] {
    auto prefill = std::make_shared<PreparedPrefill>();
    prefill->descriptor =
        flash_mla_prefill_descriptor({.num_q_heads = 4, .num_kv_heads = 4, .head_dim = 64});
    prefill->descriptor.operation = Operation::prefill_kvcache;
    prefill->descriptor.kv_layout = KvLayout::paged;
    prefill->descriptor.kv_layout_tag = KvLayoutTag::hnd;
    prefill->descriptor.page_size = 64;
    MhaKvCacheCall call = legal_mha_call();
    spoil(call);
    mha_fwd_kvcache({prefill, nullptr}, call, nullptr);
  };
}

std::function<void()> flare_with(const std::function<void(FlareMlaPrefillCall&)>& spoil,
                                 int page_size) {
  return [spoil, page_size] {
    PreparedPrefill kernel;
    kernel.descriptor = flare_mla_prefill_descriptor({.num_heads = 16, .page_size = page_size});
    FlareMlaPrefillCall call = legal_flare_call(page_size);
    spoil(call);
    flare_mla_prefill(kernel, call, nullptr);
  };
}

std::function<void()> run_prefill_with(const AttentionDescriptor& descriptor,
                                       const std::function<void(PrefillCall&)>& spoil) {
  return [descriptor, spoil] {
    std::vector<check::PrefillSuiteCase> suite;
    PrefillCall call =
        check::fake_call(check::add_prefill_case(suite, "", descriptor, {{65, 130}, {65, 130}}));
    spoil(call);
    check_prefill_call(descriptor, call);
  };
}

}  // namespace attnjit::contract
