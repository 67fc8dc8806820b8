// 8x8 matrices of 16-bit elements from registers to shared memory: matrix m is matrices[m], of
// which a thread holds row lane / 4, columns 2 * (lane % 4) and the next (transposed: the other way
// round). Lane l gives the 16-byte aligned address of row l % 8 of matrix l / 8. PTX ISA
// 9.7.14.5.16, stmatrix.
#pragma once

__device__ __forceinline__ void store_matrices(unsigned row, const unsigned (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

// Lanes 0-15 give the addresses.
__device__ __forceinline__ void store_matrices(unsigned row, const unsigned (&matrices)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(row),
               "r"(matrices[0]), "r"(matrices[1])
               : "memory");
}

__device__ __forceinline__ void store_matrices_transposed(unsigned row,
                                                          const unsigned (&matrices)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(matrices[0]), "r"(matrices[1]), "r"(matrices[2]), "r"(matrices[3])
               : "memory");
}

__device__ __forceinline__ void store_matrices_transposed(unsigned row,
                                                          const unsigned (&matrices)[2]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [%0], {%1, %2};" ::"r"(row),
               "r"(matrices[0]), "r"(matrices[1])
               : "memory");
}
