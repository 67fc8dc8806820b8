// attnjit.h: plans and decode.
#include <cmath>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "attnjit/argument_error.hpp"
#include "attnjit/paged_decode.hpp"
#include "c_abi_calls.hpp"
#include "c_abi_objects.hpp"
#include "c_abi_status.hpp"
#include "c_abi_tensors.hpp"

namespace attnjit::c_abi {
namespace {

DecodeCall read_decode_call(const attnjit_decode_call& call, const AttentionDescriptor& descriptor,
                            TensorReader& reader) {
  DecodeCall read;
  read.q = reader.read("q", call.q);
  read.k_cache = reader.read("k_cache", call.k_cache);
  read.v_cache = reader.read("v_cache", call.v_cache);
  read.block_table = reader.read("block_table", call.block_table);
  read.seq_lens = reader.read("seq_lens", call.seq_lens);
  read.mask = reader.read("mask", call.mask);
  read.sinks = reader.read("sinks", call.sinks);
  read.out = reader.read("out", call.out);
  read.lse = reader.read("lse", call.lse);
  read.softmax_scale = scale_or_default(call.softmax_scale, descriptor);
  reader.check_reserved(call.reserved);
  return read;
}

std::unique_ptr<Plan> make_plan(attnjit_kernel kernel, const attnjit_plan_options& options) {
  const auto used = kernels().use("kernel", kernel);
  const int seqlen_q = options.seqlen_q == 0 ? 1 : options.seqlen_q;
  return std::make_unique<Plan>(Plan{
      .decode = DecodePlan(prepared_as<PreparedDecode>(*used, "attnjit_plan_create"),
                           options.max_batch, seqlen_q, options.max_seqlen_kv, used->allocator),
      .trust = used->trust});
}

}  // namespace

float scale_or_default(float scale, const AttentionDescriptor& descriptor) {
  return scale != 0.0F ? scale : 1.0F / std::sqrt(static_cast<float>(descriptor.head_dim_qk));
}

}  // namespace attnjit::c_abi

using namespace attnjit;         // NOLINT(google-build-using-namespace): the interface's bodies
using namespace attnjit::c_abi;  // NOLINT(google-build-using-namespace): stand outside of both

extern "C" {

attnjit_status attnjit_plan_create(attnjit_kernel kernel, const attnjit_plan_options* options,
                                   attnjit_plan* plan) {
  return guarded([&] {
    require(plan, "plan");
    *plan = 0;
    attnjit_plan_options storage;
    *plan = plans().add(make_plan(kernel, read_struct("options", options, storage)));
  });
}

attnjit_status attnjit_plan_workspace_bytes(attnjit_plan plan, int64_t* bytes) {
  return guarded([&] {
    require(bytes, "bytes");
    *bytes = plans().use("plan", plan)->decode.workspace_bytes();
  });
}

attnjit_status attnjit_plan_update(attnjit_plan plan, const int32_t* seq_lens, int32_t batch,
                                   void* stream) {
  return guarded([&] {
    require(seq_lens, "seq_lens");
    const auto used = plans().use_alone("plan", plan);
    TensorReader reader(used->trust);
    reader.check_memory("seq_lens", seq_lens);
    reader.finish();
    used->decode.update(seq_lens, batch, static_cast<CUstream_st*>(stream));
  });
}

attnjit_status attnjit_plan_update_from_host(attnjit_plan plan, const int32_t* seq_lens,
                                             int32_t batch, void* stream) {
  return guarded([&] {
    require(seq_lens, "seq_lens");
    if (batch < 1) {
      throw ArgumentError({{"batch", fmt::format("{}", batch), "must be at least 1",
                            "pass the number of requests"}});
    }
    const auto used = plans().use_alone("plan", plan);
    used->decode.update(std::span(seq_lens, static_cast<std::size_t>(batch)),
                        static_cast<CUstream_st*>(stream));
  });
}

attnjit_status attnjit_plan_destroy(attnjit_plan plan) {
  return guarded_end([plan] {
    if (plan != 0) {
      plans().remove("plan", plan);
    }
  });
}

attnjit_status attnjit_decode(attnjit_plan plan, const attnjit_decode_call* call, void* workspace,
                              int64_t workspace_bytes, void* stream) {
  return guarded([&] {
    attnjit_decode_call storage;
    const attnjit_decode_call& given = read_struct("call", call, storage);
    const auto used = plans().use("plan", plan);
    TensorReader reader(used->trust);
    const DecodeCall read = read_decode_call(given, used->decode.kernels().descriptor, reader);
    reader.check_memory("workspace", workspace);
    reader.finish();
    run_decode(used->decode, read, workspace, workspace_bytes, static_cast<CUstream_st*>(stream));
  });
}

}  // extern "C"
