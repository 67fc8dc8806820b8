#include "swapped_arguments.hpp"

#include "driver.hpp"

namespace attnjit {
namespace {

using namespace kernel_interface;

TensorMap encode(DataType type, const void* base, const cuuint64_t (&extents)[5],
                 const long long (&strides)[4], const cuuint32_t (&box)[5]) {
  TensorMap map = {};
  cuuint64_t bytes[4];
  for (int i = 0; i < 4; ++i) {
    bytes[i] = static_cast<cuuint64_t>(strides[i] > 0 ? strides[i] * 2 : 16);
  }
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  const Driver& driver = Driver::instance();
  driver.check(driver.api().tensor_map_encode_tiled(
                   reinterpret_cast<CUtensorMap*>(&map),
                   type == DataType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                          : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                   5, const_cast<void*>(base), extents, bytes, box, steps,
                   CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                   CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
               "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace

SwappedDecodeArguments make_swapped_arguments(const AttentionDescriptor& descriptor,
                                              const DecodeCall& call,
                                              const PagedDecodeArguments& arguments, int device) {
  const auto extent = [](std::int64_t value) { return static_cast<cuuint64_t>(value); };
  const bool per_request = call.k_cache.rank == 5;
  const auto rows = static_cast<cuuint32_t>(descriptor.q_per_kv());
  const Driver& driver = Driver::instance();
  const ScopedContext context(driver, driver.primary_context(device));  // encoding needs one
  SwappedDecodeArguments result = {};
  result.call = arguments;
  result.kv_batch_step = per_request ? 1 : 0;
  const CacheStrides& kv = arguments.k_strides;
  result.kv =
      encode(descriptor.dtype_kv, arguments.k_cache,
             {extent(descriptor.head_dim_qk), extent(descriptor.page_size),
              extent(descriptor.num_kv_heads), extent(call.k_cache.shape[per_request ? 1 : 0]),
              per_request ? extent(call.k_cache.shape[0]) : 1},
             {kv.row, kv.head, kv.block, kv.batch}, {64, 64, 1, 1, 1});
  const QueryStrides& q = arguments.q_strides;
  result.q = encode(descriptor.dtype_q, arguments.q,
                    {extent(descriptor.head_dim_qk), extent(descriptor.num_q_heads),
                     extent(arguments.seqlen_q), extent(call.q.shape[0]), 1},
                    {q.head, q.token, q.batch, 0},
                    {64, rows, static_cast<cuuint32_t>(arguments.seqlen_q), 1, 1});
  return result;
}

}  // namespace attnjit
