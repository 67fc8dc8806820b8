// Fills the tokens of a paged cache that requests see; every other slot keeps its poison. A value
// depends on request, token, head and column only, so that the same cache under another block table
// holds the same tokens. Grid: x = request * token.
#include "device/check_elements.cuh"

extern "C" __global__ void fill_cache(
    const __grid_constant__ attnjit::check::FillCacheArguments arguments) {
  const int request = blockIdx.x / arguments.max_seqlen;
  const int token = blockIdx.x % arguments.max_seqlen;
  if (token < arguments.first_tokens[request] || token >= arguments.seq_lens[request])
    return;
  const int page =
      arguments.block_table[request * arguments.block_table_stride + token / arguments.page_size];
  const attnjit::kernel_interface::CacheStrides& strides = arguments.strides;
  const int columns = arguments.num_kv_heads * arguments.head_dim;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const int head = i / arguments.head_dim;
    const long long index = request * strides.batch + page * strides.block + head * strides.head +
                            token % arguments.page_size * strides.row + i % arguments.head_dim;
    const unsigned long long draw =
        (static_cast<unsigned long long>(request) * arguments.max_seqlen + token) * columns + i;
    store_element(arguments.cache, index, arguments.kind,
                  arguments.offset + arguments.scale * random_normal(arguments.seed, draw));
  }
}
