// What the mains of decode over a latent cache on Hopper share: tensor maps.
#pragma once

#include <cuda.h>

#include "interface/tensor_map.h"
#include "repro_decode.h"

namespace repro {

// Encodes through the driver that the runtime has opened, so that nothing else is linked.
inline void encode(TensorMap& map, DataType type, int rank, const void* base,
                   const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000, cudaEnableDefault,
                                         &found),
        "cuTensorMapEncodeTiled");
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  const auto element =
      type == DataType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry)(
      reinterpret_cast<CUtensorMap*>(&map), element, rank, const_cast<void*>(base), extents,
      strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
      CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", static_cast<int>(result));
    std::exit(1);
  }
}

inline void encode_cache(TensorMap& map, const PagedDecodeArguments& call) {
  const cuuint64_t pages =
      static_cast<cuuint64_t>(repro_case::batch) * pages_per_request(config::page_size);
  const cuuint64_t row = 2ull * repro_case::num_kv_heads * config::head_dim_qk;
  const cuuint64_t extents[5] = {config::head_dim_qk, config::page_size, repro_case::num_kv_heads,
                                 pages, 1};
  const cuuint64_t strides[4] = {row, 2ull * config::head_dim_qk, row * config::page_size,
                                 row * config::page_size * pages};
  const cuuint32_t box[5] = {64, config::page_size < 64 ? config::page_size : 64, 1, 1, 1};
  encode(map, config::dtype, 5, call.k_cache, extents, strides, box);
}

inline void encode_queries(TensorMap& map, const PagedDecodeArguments& call) {
  const cuuint64_t heads = static_cast<cuuint64_t>(repro_case::num_kv_heads) * config::q_per_kv;
  const cuuint64_t head = 2ull * config::head_dim_qk;
  const cuuint64_t extents[4] = {config::head_dim_qk, heads, repro_case::seqlen_q,
                                 repro_case::batch};
  const cuuint64_t strides[3] = {head, head * heads, head * heads * repro_case::seqlen_q};
  const cuuint32_t box[4] = {64, config::q_per_kv, repro_case::seqlen_q, 1};
  encode(map, config::dtype, 4, call.q, extents, strides, box);
}

}  // namespace repro
