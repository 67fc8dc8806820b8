// Fills a contiguous tensor with random elements.
#include "device/check_elements.cuh"

extern "C" __global__ void fill_random(
    const __grid_constant__ attnjit::check::FillArguments arguments) {
  const long long stride = static_cast<long long>(gridDim.x) * blockDim.x;
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < arguments.count; i += stride) {
    const float value =
        arguments.kind == attnjit::check::element_uint8
            ? (mix_bits(arguments.seed * 31 + i) % arguments.one_in != 0 ? 1.0f : 0.0f)
            : random_normal(arguments.seed, i);
    store_element(arguments.data, i, arguments.kind, value);
  }
}
