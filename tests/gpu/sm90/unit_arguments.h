// Arguments of the unit kernels of sm_90 in this folder, passed by value; read by the host compiler
// and by NVRTC. Offsets are bytes from the start of dynamic shared memory, which is 1024-aligned.
#pragma once

#include "interface/tensor_map.h"

namespace attnjit::sm90 {

using kernel_interface::Swizzle;
using kernel_interface::TensorMap;

// How an operand is copied and then described to wgmma.
struct Operand {
  unsigned tile_offset;    // where the first box goes
  unsigned start_offset;   // what its descriptor points to
  unsigned leading_bytes;  // of its descriptor, as stride_bytes
  unsigned stride_bytes;
  Swizzle swizzle;
  unsigned step_bytes;  // to the next k-step
  int steps_per_tile;
  unsigned tile_bytes;  // to the k-steps of the next tile
  int num_boxes;        // along the columns
  int box_columns;
  unsigned box_bytes;
};

// multiply_tiles.cu: d [64, n] = a [64, k] * b [k, n].
struct MultiplyArguments {
  TensorMap a_map;
  TensorMap b_map;
  Operand a;
  Operand b;
  const unsigned* a_registers;  // [k_steps, 4, 128 threads] if A lies in registers
  float* d;
  int k_steps;
  unsigned shared_bytes;
};

// copy_box.cu: one box, and num_rows plain rows of row_bytes after it if rows is not null.
struct CopyArguments {
  TensorMap map;
  int rank;
  int coordinates[5];
  unsigned box_offset;
  unsigned box_bytes;
  const unsigned char* rows;
  unsigned row_bytes;
  int num_rows;
  unsigned char* image;  // [shared_bytes]
  unsigned shared_bytes;
};

// store_matrices.cu
struct StoreArguments {
  unsigned short* image;  // [4 forms, 32 rows, 8 elements]
};

// swapped_products.cu: s [64, heads] = k * q^T, out [512, heads] = v^T * p, p = s in 16 bits.
struct SwappedArguments {
  TensorMap k_map;  // [64 tokens, 576], v is its first 512 columns
  TensorMap q_map;  // [heads, 576]
  float* s;
  float* out;
};

// synchronize.cu
struct SynchronizeArguments {
  int* sums;        // [blocks]
  unsigned* ranks;  // [blocks], in the cluster
};

// increment.cu
struct IncrementArguments {
  int* values;  // [blocks * threads]
  unsigned shift;
};

}  // namespace attnjit::sm90
