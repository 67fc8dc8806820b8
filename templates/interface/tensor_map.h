// What a tensor copy (TMA) needs: the map that the host encodes and a kernel takes as a
// __grid_constant__ argument, and the swizzle that a copy writes and a matrix descriptor reads.
// Built-in types only: read by the host compiler and by NVRTC.
#pragma once

namespace attnjit::kernel_interface {

// The driver's CUtensorMap, opaque, with the alignment it has from CUDA 13 on. PTX ISA 5.5.8,
// "Tensor-Map".
struct alignas(128) TensorMap {
  unsigned long long opaque[16];
};
static_assert(sizeof(TensorMap) == 128, "a tensor map has 128 bytes");

// How 16-byte chunks are permuted within rows of that many bytes, so that the same chunk of eight
// rows lies in eight different banks. The permutation follows address bits 7-9, wherever a tile
// begins. PTX ISA 5.5.7, "Swizzling Modes".
enum class Swizzle { none, b32, b64, b128 };

}  // namespace attnjit::kernel_interface
