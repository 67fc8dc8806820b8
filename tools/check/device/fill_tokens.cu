// Fills the tokens of q, k or v that requests own and something sees; every other slot keeps its
// poison. A value depends on request, token, head and column only, so that the same tokens under
// another block table or layout hold the same values. Grid: x = request * token.
#include "device/check_elements.cuh"
#include "reference_visibility.h"

using namespace attnjit::check;

namespace {

// Where a token's row begins among rows of these strides.
__device__ long long row_of(const FillTokensArguments& arguments,
                            const attnjit::kernel_interface::CacheStrides& strides, int request,
                            int token) {
  const long long row = request * strides.batch;
  if (arguments.block_table == nullptr)
    return row + (first_token_row(arguments.tokens, request) + token) * strides.row;
  const int page =
      arguments.block_table[request * arguments.block_table_stride + token / arguments.page_size];
  return row + page * strides.block + token % arguments.page_size * strides.row;
}

// Between 2^-7 and 2, as a rule no power of two but of few bits, so that products with it are
// exact; that of an element depends on what shares it only.
__device__ float draw_scale(const FillTokensArguments& arguments, int request, int token, int head,
                            int block) {
  const FillScales& fp8 = arguments.fp8;
  unsigned long long draw = mix_bits(arguments.seed);
  if (fp8.strides.batch > 0 || fp8.is_per_token)
    draw = mix_bits(draw ^ request);
  if (fp8.is_per_token)
    draw = mix_bits(draw ^ token);
  if (fp8.strides.head > 0)
    draw = mix_bits(draw ^ head);
  draw = mix_bits(draw ^ block);
  return (1.0f + static_cast<float>(draw & 63) / 64.0f) / static_cast<float>(1 << (draw >> 6 & 7));
}

__device__ void store_scaled(const FillTokensArguments& arguments, long long index, int request,
                             int token, int head, int column, float value) {
  const FillScales& fp8 = arguments.fp8;
  float scale = 1.0f;
  if (fp8.scales != nullptr) {
    const int scale_head = head / fp8.heads_per_scale;
    const int block = fp8.columns > 0 ? column / fp8.columns : 0;
    scale = draw_scale(arguments, request, token, scale_head, block);
    fp8.scales[row_of(arguments, fp8.strides, request, token) + scale_head * fp8.strides.head +
               block] = scale;
  }
  store_element(arguments.data, index, arguments.kind, value / scale);
  const float product = load_element(arguments.data, index, arguments.kind) * scale;
  fp8.values[index] = product;
  if (fp8.columns > 0)
    fp8.values[index] = unpack_pair<DataType::bf16>(pack_pair<DataType::bf16>(product, 0.0f)).x;
}

}  // namespace

extern "C" __global__ void fill_tokens(const __grid_constant__ FillTokensArguments arguments) {
  const int request = blockIdx.x / arguments.max_tokens;
  const int token = blockIdx.x % arguments.max_tokens;
  if (token < arguments.first_tokens[request] || token >= arguments.end_tokens[request])
    return;
  const long long row = row_of(arguments, arguments.strides, request, token);
  const int columns = arguments.num_heads * arguments.head_dim;
  for (int i = threadIdx.x; i < columns; i += blockDim.x) {
    const int head = i / arguments.head_dim;
    const int column = i % arguments.head_dim;
    const long long index = row + head * arguments.strides.head + column;
    const unsigned long long draw =
        (static_cast<unsigned long long>(request) * arguments.max_tokens + token) * columns + i;
    const float value = arguments.offset + arguments.scale * random_normal(arguments.seed, draw);
    if (is_fp8_kind(arguments.kind))
      store_scaled(arguments, index, request, token, head, column, value);
    else
      store_element(arguments.data, index, arguments.kind, value);
  }
}
