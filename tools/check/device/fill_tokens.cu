// Fills the tokens of q, k or v that requests own and something sees; every other slot keeps its
// poison. A value depends on request, token, head and column only, so that the same tokens under
// another block table or layout hold the same values. Grid: x = request * token.
#include "device/check_elements.cuh"
#include "reference_visibility.h"

extern "C" __global__ void fill_tokens(
    const __grid_constant__ attnjit::check::FillTokensArguments arguments) {
  const int request = blockIdx.x / arguments.max_tokens;
  const int token = blockIdx.x % arguments.max_tokens;
  if (token < arguments.first_tokens[request] || token >= arguments.end_tokens[request])
    return;
  const attnjit::kernel_interface::CacheStrides& strides = arguments.strides;
  long long row = request * strides.batch;
  if (arguments.block_table != nullptr) {
    const int page =
        arguments.block_table[request * arguments.block_table_stride + token / arguments.page_size];
    row += page * strides.block + token % arguments.page_size * strides.row;
  } else {
    row += (attnjit::check::first_token_row(arguments.tokens, request) + token) * strides.row;
  }
  const int columns = arguments.num_heads * arguments.head_dim;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const long long index = row + i / arguments.head_dim * strides.head + i % arguments.head_dim;
    const unsigned long long draw =
        (static_cast<unsigned long long>(request) * arguments.max_tokens + token) * columns + i;
    store_element(arguments.data, index, arguments.kind,
                  arguments.offset + arguments.scale * random_normal(arguments.seed, draw));
  }
}
