// One warp stores fragments by each form of stmatrix: x4, x4 transposed, x2, x2 transposed. Lane l
// addresses row l of 16 bytes.
#include "device/shared_address.cuh"
#include "device/store_matrices_sm90.cuh"
#include "unit_arguments.h"

using attnjit::sm90::StoreArguments;

extern "C" __global__ void __launch_bounds__(32, 1)
    store_matrices(const __grid_constant__ StoreArguments arguments) {
  __shared__ __align__(16) unsigned short image[4][32 * 8];
  for (int i = threadIdx.x; i < 4 * 32 * 8; i += 32)
    image[i / 256][i % 256] = 0xffff;
  __syncwarp();

  const unsigned code = threadIdx.x / 4 * 8 + threadIdx.x % 4 * 2;  // row, column
  unsigned four[4];
  unsigned two[2];
  for (unsigned m = 0; m < 4; ++m)
    four[m] = (256 * m + code) | (256 * m + code + 1) << 16;
  two[0] = four[0];
  two[1] = four[1];
  const int row = threadIdx.x * 8;
  store_matrices(shared_address(&image[0][row]), four);
  store_matrices_transposed(shared_address(&image[1][row]), four);
  store_matrices(shared_address(&image[2][row]), two);
  store_matrices_transposed(shared_address(&image[3][row]), two);
  __syncwarp();
  for (int i = threadIdx.x; i < 4 * 32 * 8; i += 32)
    arguments.image[i] = image[i / 256][i % 256];
}
