// attnjit.h: prefill.
#include "attnjit/prefill.hpp"

#include <fmt/format.h>

#include "c_abi_calls.hpp"
#include "c_abi_objects.hpp"
#include "c_abi_status.hpp"
#include "c_abi_tensors.hpp"

namespace attnjit::c_abi {
namespace {

// Tensors have one name in both structs.
struct TensorField {
  const char* name;
  attnjit_tensor attnjit_prefill_call::*given;
  TensorView PrefillCall::*read;
};

#define ATTNJIT_TENSOR_FIELD(field) \
  { #field, &attnjit_prefill_call::field, &PrefillCall::field }
constexpr TensorField tensor_fields[] = {
    ATTNJIT_TENSOR_FIELD(q),
    ATTNJIT_TENSOR_FIELD(k),
    ATTNJIT_TENSOR_FIELD(v),
    ATTNJIT_TENSOR_FIELD(k_rope),
    ATTNJIT_TENSOR_FIELD(q_rope),
    ATTNJIT_TENSOR_FIELD(q_scales),
    ATTNJIT_TENSOR_FIELD(k_scales),
    ATTNJIT_TENSOR_FIELD(v_scales),
    ATTNJIT_TENSOR_FIELD(rope_scales),
    ATTNJIT_TENSOR_FIELD(out_scale),
    ATTNJIT_TENSOR_FIELD(q_offsets),
    ATTNJIT_TENSOR_FIELD(q_lens),
    ATTNJIT_TENSOR_FIELD(kv_offsets),
    ATTNJIT_TENSOR_FIELD(seq_lens),
    ATTNJIT_TENSOR_FIELD(block_table),
    ATTNJIT_TENSOR_FIELD(query_positions),
    ATTNJIT_TENSOR_FIELD(key_positions),
    ATTNJIT_TENSOR_FIELD(mask),
    ATTNJIT_TENSOR_FIELD(prefix_lens),
    ATTNJIT_TENSOR_FIELD(q_segments),
    ATTNJIT_TENSOR_FIELD(kv_segments),
    ATTNJIT_TENSOR_FIELD(alibi_slopes),
    ATTNJIT_TENSOR_FIELD(bias),
    ATTNJIT_TENSOR_FIELD(block_mask),
    ATTNJIT_TENSOR_FIELD(block_rows),
    ATTNJIT_TENSOR_FIELD(block_columns),
    ATTNJIT_TENSOR_FIELD(sinks),
    ATTNJIT_TENSOR_FIELD(out),
    ATTNJIT_TENSOR_FIELD(lse),
};
#undef ATTNJIT_TENSOR_FIELD

PrefillCall read_prefill_call(const attnjit_prefill_call& call,
                              const AttentionDescriptor& descriptor, TensorReader& reader) {
  PrefillCall read;
  for (const TensorField& field : tensor_fields) {
    read.*field.read = reader.read(field.name, call.*field.given);
  }
  read.softmax_scale = scale_or_default(call.softmax_scale, descriptor);
  read.softcap = call.softcap;
  return read;
}

}  // namespace
}  // namespace attnjit::c_abi

using namespace attnjit;         // NOLINT(google-build-using-namespace): the interface's bodies
using namespace attnjit::c_abi;  // NOLINT(google-build-using-namespace): stand outside of both

extern "C" {

attnjit_status attnjit_prefill_plan(attnjit_kernel kernel, const attnjit_prefill_call* call,
                                    attnjit_prefill_split* split) {
  return guarded([&] {
    attnjit_prefill_call storage;
    const attnjit_prefill_call& given = read_struct("call", call, storage);
    require(split, "split");
    if (split->struct_size != sizeof *split) {
      fail_on_size("split", split->struct_size, sizeof *split);
    }
    const auto used = kernels().use("kernel", kernel);
    const auto& prepared = prepared_as<PreparedPrefill>(*used, "attnjit_prefill_plan");
    TensorReader reader(PointerTrust::trusted);  // whose data is not read
    const PrefillCall read = read_prefill_call(given, prepared->descriptor, reader);
    reader.finish();
    const PrefillPlan plan = plan_prefill(*prepared, read);
    split->workspace_bytes = plan.workspace_bytes;
    split->num_splits = plan.num_splits;
    split->reserved = 0;
  });
}

attnjit_status attnjit_prefill(attnjit_kernel kernel, const attnjit_prefill_call* call,
                               const attnjit_prefill_split* split, void* workspace,
                               int64_t workspace_bytes, void* stream) {
  return guarded([&] {
    attnjit_prefill_call storage;
    const attnjit_prefill_call& given = read_struct("call", call, storage);
    const auto used = kernels().use("kernel", kernel);
    const auto& prepared = prepared_as<PreparedPrefill>(*used, "attnjit_prefill");
    TensorReader reader(used->trust);
    const PrefillCall read = read_prefill_call(given, prepared->descriptor, reader);
    reader.check_memory("workspace", workspace);
    PrefillPlan plan;
    if (split != nullptr) {
      attnjit_prefill_split split_storage;
      const attnjit_prefill_split& read_split = read_struct("split", split, split_storage);
      reader.check_reserved(read_split.reserved);
      plan = {.num_splits = read_split.num_splits, .workspace_bytes = read_split.workspace_bytes};
    }
    reader.finish();
    run_prefill(*prepared, read, plan, workspace, workspace_bytes,
                static_cast<CUstream_st*>(stream));
  });
}

}  // extern "C"
