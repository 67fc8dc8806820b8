// Where the parts of a split prefill leave their results: kernels/prefill_sm80.cu writes them,
// kernels/combine_prefill.cu merges them.
#pragma once

#include "kernel_config.cuh"

#include "device/prefill_work.cuh"
#include "interface/prefill_arguments.h"

// Of part `split` of a row, in units of rows: states lie there, and outputs head_dim_v times as
// far.
__device__ __forceinline__ long long partial_row(
    const attnjit::kernel_interface::PrefillArguments& arguments, const PrefillWork& work, int row,
    int split) {
  const long long first_query =
      arguments.queries.offsets != nullptr
          ? work.first_query
          : static_cast<long long>(work.request) * arguments.queries.extent;
  const int heads = arguments.num_kv_heads * config::q_per_kv;
  return split * arguments.partial_rows + (first_query + query_of(row)) * heads +
         head_of(work, row);
}
