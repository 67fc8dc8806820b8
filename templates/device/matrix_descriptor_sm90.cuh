// Descriptors of wgmma operands in shared memory. PTX ISA 9.7.15.5.1.2.2, "Matrix Descriptor
// Format".
//
// A tile is what one tensor copy writes: R rows of one swizzle width each, or of 16 bytes where
// there is none. With 16-bit elements (8-bit ones: K-major only, the same bytes):
//
// clang-format off
//   major | swizzle | row bytes W | leading bytes | stride bytes | next k-step     | next tile
//   K     | b128    | 128         | not read      | 1024         | +32, 4 per tile | +128 R of K
//   K     | b64     | 64          | not read      | 512          | +32, 2 per tile | +64 R of K
//   K     | b32     | 32          | not read      | 256          | -               | +32 R of K
//   K     | none    | 16          | 16 R          | 128          | +32 R           | -
//   MN    | b128    | 128         | 128 R         | 1024         | +2048           | leading bytes
//   MN    | b64     | 64          | 64 R          | 512          | +1024           | leading bytes
//   MN    | b32     | 32          | 32 R          | 256          | +512            | leading bytes
//   MN    | none    | 16          | 128           | 16 R         | +256            | stride bytes
// clang-format on
//
// The leading bytes of an MN-major operand are not read when it is no wider than one tile. A tile
// may begin at any row, and the base-offset field stays 0: the swizzle follows address bits 7-9.
#pragma once

#include "interface/tensor_map.h"

using attnjit::kernel_interface::Swizzle;

// Bytes of a row that one swizzle period covers, 16 where there is none.
__device__ constexpr unsigned swizzle_bytes(Swizzle swizzle) {
  return 16u << static_cast<unsigned>(swizzle);
}

// Byte counts are multiples of 16 below 256 KB.
__device__ constexpr unsigned long long make_matrix_descriptor(unsigned address,
                                                               unsigned leading_bytes,
                                                               unsigned stride_bytes,
                                                               Swizzle swizzle) {
  const unsigned mode = swizzle == Swizzle::none  ? 0
                        : swizzle == Swizzle::b32 ? 3
                        : swizzle == Swizzle::b64 ? 2
                                                  : 1;
  const unsigned low = (address & 0x3ffff) >> 4 | leading_bytes >> 4 << 16;
  const unsigned high = stride_bytes >> 4 | mode << 30;
  return static_cast<unsigned long long>(high) << 32 | low;
}

// The same matrix `bytes` further on; only the low word changes, since no address carries out of
// its 14 bits.
__device__ constexpr unsigned long long advance_matrix_descriptor(unsigned long long descriptor,
                                                                  unsigned bytes) {
  return (descriptor & 0xffffffff00000000) | (static_cast<unsigned>(descriptor) + (bytes >> 4));
}
