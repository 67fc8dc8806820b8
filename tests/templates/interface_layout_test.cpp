// The argument structs of templates/interface, passed by value from the host compiler's code to
// NVRTC's: both must lay them out alike. A kernel made of static_asserts on the host's numbers.
#include <cstddef>

#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/nvrtc_compiler.hpp"
#include "catch.hpp"
#include "interface/append_kv_cache_arguments.h"
#include "interface/decode_schedule.h"
#include "interface/merge_states_arguments.h"
#include "interface/paged_decode_arguments.h"
#include "interface/prefill_arguments.h"
#include "interface/sparse_mla_arguments.h"
#include "interface/tensor_map.h"

namespace {

using namespace attnjit;
using namespace attnjit::kernel_interface;

std::string assert_equal(const std::string& device_expression, std::size_t host_value) {
  return "static_assert(" + device_expression + " == " + std::to_string(host_value) + ", \"\");\n";
}

// Names of a struct and of all its members, once, for both compilers. NVRTC has no offsetof; its
// __INTADDR__ makes an address a constant.
#define ATTNJIT_SIZE(type)                          \
  assert_equal("sizeof(" #type ")", sizeof(type)) + \
      assert_equal("alignof(" #type ")", alignof(type))
#define ATTNJIT_MEMBER(type, member)                                                   \
  assert_equal("__INTADDR__(&((" #type "*)0)->" #member ")", offsetof(type, member)) + \
      assert_equal("sizeof(" #type "::" #member ")", sizeof(type::member))

std::string schedule_assertions() {
  return ATTNJIT_SIZE(SchedulePart) + ATTNJIT_MEMBER(SchedulePart, first_request) +
         ATTNJIT_MEMBER(SchedulePart, first_block) + ATTNJIT_MEMBER(SchedulePart, end_request) +
         ATTNJIT_MEMBER(SchedulePart, end_block) + ATTNJIT_MEMBER(SchedulePart, first_piece) +
         ATTNJIT_MEMBER(SchedulePart, call_blocks) + ATTNJIT_SIZE(ScheduleArguments) +
         ATTNJIT_MEMBER(ScheduleArguments, seq_lens) + ATTNJIT_MEMBER(ScheduleArguments, parts) +
         ATTNJIT_MEMBER(ScheduleArguments, piece_offsets) +
         ATTNJIT_MEMBER(ScheduleArguments, unit_offsets) +
         ATTNJIT_MEMBER(ScheduleArguments, batch) + ATTNJIT_MEMBER(ScheduleArguments, num_parts) +
         ATTNJIT_MEMBER(ScheduleArguments, seqlen_q) +
         ATTNJIT_MEMBER(ScheduleArguments, most_chunks);
}

std::string stride_assertions() {
  return ATTNJIT_SIZE(CacheStrides) + ATTNJIT_MEMBER(CacheStrides, batch) +
         ATTNJIT_MEMBER(CacheStrides, block) + ATTNJIT_MEMBER(CacheStrides, head) +
         ATTNJIT_MEMBER(CacheStrides, row) + ATTNJIT_SIZE(QueryStrides) +
         ATTNJIT_MEMBER(QueryStrides, batch) + ATTNJIT_MEMBER(QueryStrides, token) +
         ATTNJIT_MEMBER(QueryStrides, head) + ATTNJIT_SIZE(MaskStrides) +
         ATTNJIT_MEMBER(MaskStrides, batch) + ATTNJIT_MEMBER(MaskStrides, head) +
         ATTNJIT_MEMBER(MaskStrides, query) + ATTNJIT_MEMBER(MaskStrides, key) +
         ATTNJIT_SIZE(PartialState) + ATTNJIT_MEMBER(PartialState, maximum) +
         ATTNJIT_MEMBER(PartialState, sum) + ATTNJIT_SIZE(PartialResults) +
         ATTNJIT_MEMBER(PartialResults, out) + ATTNJIT_MEMBER(PartialResults, states) +
         ATTNJIT_MEMBER(PartialResults, tiles);
}

std::string decode_assertions() {
  return ATTNJIT_SIZE(PagedDecodeArguments) + ATTNJIT_MEMBER(PagedDecodeArguments, q) +
         ATTNJIT_MEMBER(PagedDecodeArguments, k_cache) +
         ATTNJIT_MEMBER(PagedDecodeArguments, v_cache) +
         ATTNJIT_MEMBER(PagedDecodeArguments, mask) + ATTNJIT_MEMBER(PagedDecodeArguments, out) +
         ATTNJIT_MEMBER(PagedDecodeArguments, lse) +
         ATTNJIT_MEMBER(PagedDecodeArguments, block_table) +
         ATTNJIT_MEMBER(PagedDecodeArguments, seq_lens) +
         ATTNJIT_MEMBER(PagedDecodeArguments, parts) +
         ATTNJIT_MEMBER(PagedDecodeArguments, piece_offsets) +
         ATTNJIT_MEMBER(PagedDecodeArguments, partial) +
         ATTNJIT_MEMBER(PagedDecodeArguments, q_strides) +
         ATTNJIT_MEMBER(PagedDecodeArguments, out_strides) +
         ATTNJIT_MEMBER(PagedDecodeArguments, lse_strides) +
         ATTNJIT_MEMBER(PagedDecodeArguments, k_strides) +
         ATTNJIT_MEMBER(PagedDecodeArguments, v_strides) +
         ATTNJIT_MEMBER(PagedDecodeArguments, mask_strides) +
         ATTNJIT_MEMBER(PagedDecodeArguments, block_table_stride) +
         ATTNJIT_MEMBER(PagedDecodeArguments, block_table_columns) +
         ATTNJIT_MEMBER(PagedDecodeArguments, mask_keys) +
         ATTNJIT_MEMBER(PagedDecodeArguments, seqlen_q) +
         ATTNJIT_MEMBER(PagedDecodeArguments, num_kv_heads) +
         ATTNJIT_MEMBER(PagedDecodeArguments, softmax_scale) +
         ATTNJIT_MEMBER(PagedDecodeArguments, sinks);
}

std::string combine_assertions() {
  return ATTNJIT_SIZE(CombineArguments) + ATTNJIT_MEMBER(CombineArguments, partial) +
         ATTNJIT_MEMBER(CombineArguments, out) + ATTNJIT_MEMBER(CombineArguments, lse) +
         ATTNJIT_MEMBER(CombineArguments, piece_offsets) +
         ATTNJIT_MEMBER(CombineArguments, out_strides) +
         ATTNJIT_MEMBER(CombineArguments, lse_strides) + ATTNJIT_MEMBER(CombineArguments, batch) +
         ATTNJIT_MEMBER(CombineArguments, seqlen_q) +
         ATTNJIT_MEMBER(CombineArguments, num_kv_heads) +
         ATTNJIT_MEMBER(CombineArguments, q_per_kv) +
         ATTNJIT_MEMBER(CombineArguments, lines_at_once) +
         ATTNJIT_MEMBER(CombineArguments, warps_per_line) + ATTNJIT_MEMBER(CombineArguments, sinks);
}

std::string merge_assertions() {
  return ATTNJIT_SIZE(StateStrides) + ATTNJIT_MEMBER(StateStrides, out_token) +
         ATTNJIT_MEMBER(StateStrides, out_head) + ATTNJIT_MEMBER(StateStrides, lse_token) +
         ATTNJIT_MEMBER(StateStrides, lse_head) + ATTNJIT_SIZE(PartialAttentionArguments) +
         ATTNJIT_MEMBER(PartialAttentionArguments, out) +
         ATTNJIT_MEMBER(PartialAttentionArguments, lse) +
         ATTNJIT_MEMBER(PartialAttentionArguments, strides) + ATTNJIT_SIZE(MergeStatesArguments) +
         ATTNJIT_MEMBER(MergeStatesArguments, partials) +
         ATTNJIT_MEMBER(MergeStatesArguments, out) + ATTNJIT_MEMBER(MergeStatesArguments, lse) +
         ATTNJIT_MEMBER(MergeStatesArguments, strides) +
         ATTNJIT_MEMBER(MergeStatesArguments, num_rows) +
         ATTNJIT_MEMBER(MergeStatesArguments, num_heads) +
         ATTNJIT_MEMBER(MergeStatesArguments, num_partials);
}

std::string append_assertions() {
  return ATTNJIT_SIZE(NewTokenStrides) + ATTNJIT_MEMBER(NewTokenStrides, batch) +
         ATTNJIT_MEMBER(NewTokenStrides, token) + ATTNJIT_MEMBER(NewTokenStrides, head) +
         ATTNJIT_SIZE(ScaleStrides) + ATTNJIT_MEMBER(ScaleStrides, batch) +
         ATTNJIT_MEMBER(ScaleStrides, head) + ATTNJIT_SIZE(AppendedRows) +
         ATTNJIT_MEMBER(AppendedRows, source) + ATTNJIT_MEMBER(AppendedRows, cache) +
         ATTNJIT_MEMBER(AppendedRows, scale) + ATTNJIT_MEMBER(AppendedRows, source_strides) +
         ATTNJIT_MEMBER(AppendedRows, cache_strides) + ATTNJIT_MEMBER(AppendedRows, scale_strides) +
         ATTNJIT_SIZE(NewTokenPlaces) + ATTNJIT_MEMBER(NewTokenPlaces, new_offsets) +
         ATTNJIT_MEMBER(NewTokenPlaces, seq_lens) + ATTNJIT_MEMBER(NewTokenPlaces, block_table) +
         ATTNJIT_MEMBER(NewTokenPlaces, slot_mapping) +
         ATTNJIT_MEMBER(NewTokenPlaces, block_table_stride) +
         ATTNJIT_MEMBER(NewTokenPlaces, num_pages) +
         ATTNJIT_MEMBER(NewTokenPlaces, block_table_columns) +
         ATTNJIT_MEMBER(NewTokenPlaces, slot_bytes) + ATTNJIT_MEMBER(NewTokenPlaces, batch) +
         ATTNJIT_MEMBER(NewTokenPlaces, num_tokens) +
         ATTNJIT_MEMBER(NewTokenPlaces, tokens_per_batch) + ATTNJIT_SIZE(AppendKvCacheArguments) +
         ATTNJIT_MEMBER(AppendKvCacheArguments, k) + ATTNJIT_MEMBER(AppendKvCacheArguments, v) +
         ATTNJIT_MEMBER(AppendKvCacheArguments, places);
}

std::string prefill_mask_assertions() {
  return ATTNJIT_SIZE(RequestTokens) + ATTNJIT_MEMBER(RequestTokens, offsets) +
         ATTNJIT_MEMBER(RequestTokens, lengths) + ATTNJIT_MEMBER(RequestTokens, extent) +
         ATTNJIT_SIZE(PrefillMask) + ATTNJIT_MEMBER(PrefillMask, mask) +
         ATTNJIT_MEMBER(PrefillMask, strides) + ATTNJIT_MEMBER(PrefillMask, queries) +
         ATTNJIT_MEMBER(PrefillMask, keys) + ATTNJIT_MEMBER(PrefillMask, prefix_lens) +
         ATTNJIT_MEMBER(PrefillMask, q_segments) + ATTNJIT_MEMBER(PrefillMask, kv_segments) +
         ATTNJIT_MEMBER(PrefillMask, kv_segment_stride) +
         ATTNJIT_MEMBER(PrefillMask, alibi_slopes) + ATTNJIT_MEMBER(PrefillMask, softcap) +
         ATTNJIT_MEMBER(PrefillMask, blocks) + ATTNJIT_MEMBER(PrefillMask, block_rows) +
         ATTNJIT_MEMBER(PrefillMask, block_columns) + ATTNJIT_MEMBER(PrefillMask, block_strides) +
         ATTNJIT_MEMBER(PrefillMask, block_heads) + ATTNJIT_MEMBER(PrefillMask, query_blocks) +
         ATTNJIT_MEMBER(PrefillMask, key_blocks) + ATTNJIT_MEMBER(PrefillMask, segment_keys) +
         ATTNJIT_MEMBER(PrefillMask, bias) + ATTNJIT_MEMBER(PrefillMask, bias_strides) +
         ATTNJIT_MEMBER(PrefillMask, bias_queries) + ATTNJIT_MEMBER(PrefillMask, bias_keys);
}

std::string prefill_scale_assertions() {
  return ATTNJIT_SIZE(QueryScales) + ATTNJIT_MEMBER(QueryScales, scales) +
         ATTNJIT_MEMBER(QueryScales, strides) + ATTNJIT_SIZE(KeyScales) +
         ATTNJIT_MEMBER(KeyScales, scales) + ATTNJIT_MEMBER(KeyScales, strides) +
         ATTNJIT_MEMBER(PrefillArguments, q_rope) +
         ATTNJIT_MEMBER(PrefillArguments, q_rope_strides) +
         ATTNJIT_MEMBER(PrefillArguments, q_scales) + ATTNJIT_MEMBER(PrefillArguments, k_scales) +
         ATTNJIT_MEMBER(PrefillArguments, v_scales) +
         ATTNJIT_MEMBER(PrefillArguments, rope_scales) +
         ATTNJIT_MEMBER(PrefillArguments, out_scale);
}

std::string prefill_assertions() {
  return ATTNJIT_SIZE(PrefillArguments) + ATTNJIT_MEMBER(PrefillArguments, q) +
         ATTNJIT_MEMBER(PrefillArguments, k) + ATTNJIT_MEMBER(PrefillArguments, v) +
         ATTNJIT_MEMBER(PrefillArguments, out) + ATTNJIT_MEMBER(PrefillArguments, lse) +
         ATTNJIT_MEMBER(PrefillArguments, q_strides) +
         ATTNJIT_MEMBER(PrefillArguments, out_strides) +
         ATTNJIT_MEMBER(PrefillArguments, lse_strides) +
         ATTNJIT_MEMBER(PrefillArguments, k_strides) + ATTNJIT_MEMBER(PrefillArguments, v_strides) +
         ATTNJIT_MEMBER(PrefillArguments, k_rope) + ATTNJIT_MEMBER(PrefillArguments, rope_strides) +
         ATTNJIT_MEMBER(PrefillArguments, rope_extent) + ATTNJIT_MEMBER(PrefillArguments, queries) +
         ATTNJIT_MEMBER(PrefillArguments, keys) +
         ATTNJIT_MEMBER(PrefillArguments, query_positions) +
         ATTNJIT_MEMBER(PrefillArguments, key_positions) +
         ATTNJIT_MEMBER(PrefillArguments, block_table) +
         ATTNJIT_MEMBER(PrefillArguments, block_table_stride) +
         ATTNJIT_MEMBER(PrefillArguments, mask) + ATTNJIT_MEMBER(PrefillArguments, sinks) +
         ATTNJIT_MEMBER(PrefillArguments, softmax_scale) + ATTNJIT_MEMBER(PrefillArguments, batch) +
         ATTNJIT_MEMBER(PrefillArguments, num_kv_heads);
}

std::string sparse_mla_assertions() {
  return ATTNJIT_SIZE(TokenPool) + ATTNJIT_MEMBER(TokenPool, data) +
         ATTNJIT_MEMBER(TokenPool, page_stride) + ATTNJIT_MEMBER(TokenPool, row_stride) +
         ATTNJIT_MEMBER(TokenPool, num_tokens) + ATTNJIT_MEMBER(TokenPool, page_size) +
         ATTNJIT_SIZE(TokenIndices) + ATTNJIT_MEMBER(TokenIndices, indices) +
         ATTNJIT_MEMBER(TokenIndices, lengths) + ATTNJIT_MEMBER(TokenIndices, request_stride) +
         ATTNJIT_MEMBER(TokenIndices, query_stride) + ATTNJIT_MEMBER(TokenIndices, count) +
         ATTNJIT_SIZE(SparseMlaArguments) + ATTNJIT_MEMBER(SparseMlaArguments, q) +
         ATTNJIT_MEMBER(SparseMlaArguments, out) + ATTNJIT_MEMBER(SparseMlaArguments, lse) +
         ATTNJIT_MEMBER(SparseMlaArguments, max_logits) +
         ATTNJIT_MEMBER(SparseMlaArguments, q_strides) +
         ATTNJIT_MEMBER(SparseMlaArguments, out_strides) +
         ATTNJIT_MEMBER(SparseMlaArguments, lse_strides) +
         ATTNJIT_MEMBER(SparseMlaArguments, max_logits_strides) +
         ATTNJIT_MEMBER(SparseMlaArguments, pools) + ATTNJIT_MEMBER(SparseMlaArguments, indices) +
         ATTNJIT_MEMBER(SparseMlaArguments, sinks) +
         ATTNJIT_MEMBER(SparseMlaArguments, softmax_scale) +
         ATTNJIT_MEMBER(SparseMlaArguments, seqlen_q) +
         ATTNJIT_MEMBER(SparseMlaArguments, num_q_heads) +
         ATTNJIT_MEMBER(SparseMlaArguments, is_aligned_16);
}

std::string tensor_map_assertions() {
  return ATTNJIT_SIZE(TensorMap) + assert_equal("(int)Swizzle::b128", std::size_t{3}) +
         assert_equal("sizeof(Swizzle)", sizeof(Swizzle));
}

// What NVRTC says about a kernel of these assertions, "" if all hold.
std::string refusal(const std::string& assertions, const char* arch) {
  const std::string source =
      "#include \"interface/append_kv_cache_arguments.h\"\n"
      "#include \"interface/decode_schedule.h\"\n"
      "#include \"interface/merge_states_arguments.h\"\n"
      "#include \"interface/paged_decode_arguments.h\"\n"
      "#include \"interface/prefill_arguments.h\"\n"
      "#include \"interface/sparse_mla_arguments.h\"\n"
      "#include \"interface/tensor_map.h\"\n"
      "using namespace attnjit::kernel_interface;\n" +
      assertions + "extern \"C\" __global__ void probe(PagedDecodeArguments) {}\n";
  const RenderedKernel kernel =
      render_source("probe", source, find_target_device(arch).value(), TemplateLibrary::embedded());
  const NvrtcCompiler compiler;
  try {
    compiler.compile(
        kernel, make_cache_key(kernel, compiler.options(kernel), compiler.toolchain_identity()));
  } catch (const CompileError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("the argument structs lie alike under the host compiler and NVRTC") {
  const std::string assertions = schedule_assertions() + stride_assertions() + decode_assertions() +
                                 combine_assertions() + merge_assertions() + append_assertions() +
                                 prefill_mask_assertions() + prefill_scale_assertions() +
                                 prefill_assertions() + sparse_mla_assertions() +
                                 tensor_map_assertions();
  CHECK(refusal(assertions, "sm_80") == "");
  CHECK(refusal(assertions, "sm_90a") == "");
}

TEST_CASE("a struct that lay differently would be refused") {
  CHECK(refusal(assert_equal("sizeof(SchedulePart)", sizeof(SchedulePart) + 4), "sm_80") != "");
  CHECK(refusal(assert_equal("__INTADDR__(&((SchedulePart*)0)->end_block)",
                             offsetof(SchedulePart, end_block) + 4),
                "sm_80") != "");
}

}  // namespace
