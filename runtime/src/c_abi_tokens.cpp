// attnjit.h: token-sparse attention, cache write, merge.
#include <array>
#include <span>

#include <fmt/format.h>

#include "attnjit/append_kv_cache.hpp"
#include "attnjit/merge_states.hpp"
#include "attnjit/sparse_mla.hpp"
#include "c_abi_calls.hpp"
#include "c_abi_objects.hpp"
#include "c_abi_status.hpp"
#include "c_abi_tensors.hpp"

namespace attnjit::c_abi {
namespace {

constexpr std::size_t most_partials = 32;

SparseMlaCall read_sparse_mla_call(const attnjit_sparse_mla_call& call,
                                   const AttentionDescriptor& descriptor, TensorReader& reader) {
  SparseMlaCall read;
  read.q = reader.read("q", call.q);
  read.kv = reader.read("kv", call.kv);
  read.indices = reader.read("indices", call.indices);
  read.topk_length = reader.read("topk_length", call.topk_length);
  read.extra_kv = reader.read("extra_kv", call.extra_kv);
  read.extra_indices = reader.read("extra_indices", call.extra_indices);
  read.extra_topk_length = reader.read("extra_topk_length", call.extra_topk_length);
  read.sinks = reader.read("sinks", call.sinks);
  read.out = reader.read("out", call.out);
  read.lse = reader.read("lse", call.lse);
  read.max_logits = reader.read("max_logits", call.max_logits);
  read.softmax_scale = scale_or_default(call.softmax_scale, descriptor);
  reader.check_reserved(call.reserved);
  return read;
}

AppendKvCacheCall read_append_call(const attnjit_append_kv_cache_call& call, TensorReader& reader) {
  AppendKvCacheCall read;
  read.k_new = reader.read("k_new", call.k_new);
  read.v_new = reader.read("v_new", call.v_new);
  read.k_cache = reader.read("k_cache", call.k_cache);
  read.v_cache = reader.read("v_cache", call.v_cache);
  read.new_offsets = reader.read("new_offsets", call.new_offsets);
  read.block_table = reader.read("block_table", call.block_table);
  read.seq_lens = reader.read("seq_lens", call.seq_lens);
  read.slot_mapping = reader.read("slot_mapping", call.slot_mapping);
  read.k_scale = reader.read("k_scale", call.k_scale);
  read.v_scale = reader.read("v_scale", call.v_scale);
  return read;
}

// Fills `partials`, of which as many as the call has are read.
void read_partials(const attnjit_merge_states_call& call, TensorReader& reader,
                   std::array<PartialAttention, most_partials>& partials) {
  if (call.num_partials < 1 || call.num_partials > most_partials) {
    throw InvalidArgument("call->num_partials", fmt::format("{}", call.num_partials),
                          fmt::format("must be 1 to {}", most_partials),
                          "merge more in several calls");
  }
  require(call.partials, "call->partials");
  for (std::size_t i = 0; i < call.num_partials; ++i) {
    partials[i] = reader.read(i, call.partials[i]);
  }
}

}  // namespace
}  // namespace attnjit::c_abi

using namespace attnjit;         // NOLINT(google-build-using-namespace): the interface's bodies
using namespace attnjit::c_abi;  // NOLINT(google-build-using-namespace): stand outside of both

extern "C" {

attnjit_status attnjit_sparse_mla(attnjit_kernel kernel, const attnjit_sparse_mla_call* call,
                                  void* stream) {
  return guarded([&] {
    attnjit_sparse_mla_call storage;
    const attnjit_sparse_mla_call& given = read_struct("call", call, storage);
    const auto used = kernels().use("kernel", kernel);
    const auto& prepared = prepared_as<PreparedSparseMla>(*used, "attnjit_sparse_mla");
    TensorReader reader(used->trust);
    const SparseMlaCall read = read_sparse_mla_call(given, prepared->descriptor, reader);
    reader.finish();
    run_sparse_mla(*prepared, read, static_cast<CUstream_st*>(stream));
  });
}

attnjit_status attnjit_append_kv_cache(attnjit_kernel kernel,
                                       const attnjit_append_kv_cache_call* call, void* stream) {
  return guarded([&] {
    attnjit_append_kv_cache_call storage;
    const attnjit_append_kv_cache_call& given = read_struct("call", call, storage);
    const auto used = kernels().use("kernel", kernel);
    const auto& prepared = prepared_as<PreparedAppend>(*used, "attnjit_append_kv_cache");
    TensorReader reader(used->trust);
    const AppendKvCacheCall read = read_append_call(given, reader);
    reader.finish();
    append_kv_cache(*prepared, read, static_cast<CUstream_st*>(stream));
  });
}

attnjit_status attnjit_merge_states(attnjit_kernel kernel, const attnjit_merge_states_call* call,
                                    void* stream) {
  return guarded([&] {
    attnjit_merge_states_call storage;
    const attnjit_merge_states_call& given = read_struct("call", call, storage);
    const auto used = kernels().use("kernel", kernel);
    const auto& prepared = prepared_as<PreparedMerge>(*used, "attnjit_merge_states");
    TensorReader reader(used->trust);
    std::array<PartialAttention, most_partials> partials;
    read_partials(given, reader, partials);
    MergeStatesCall read;
    read.partials = std::span(partials).first(given.num_partials);
    read.out = reader.read("out", given.out);
    read.lse = reader.read("lse", given.lse);
    reader.finish();
    merge_attention_states(*prepared, read, static_cast<CUstream_st*>(stream));
  });
}

}  // extern "C"
