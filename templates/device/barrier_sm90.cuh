// Barriers of sm_90 and the fences that go with them, one instruction per wrapper. An mbarrier is
// given by its address in shared memory (shared_address): 8 bytes, aligned to 8. Its phases
// alternate in parity, the first is 0; a waiter must never fall two phases behind.
#pragma once

// Of this thread block: `arrivals` complete a phase. PTX ISA 9.7.13.15.9, mbarrier.init.
__device__ __forceinline__ void init_barrier(unsigned barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

// Makes this thread's init_barrier visible to the async proxy and to the cluster; a block or
// cluster barrier must follow before others use it. PTX ISA 9.7.13.4, fence.mbarrier_init.
__device__ __forceinline__ void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Releases this thread's earlier reads and writes. PTX ISA 9.7.13.15.13, mbarrier.arrive.
__device__ __forceinline__ void arrive(unsigned barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

// Arrives, and makes the phase wait for `bytes` more of asynchronous copies.
__device__ __forceinline__ void arrive_expect_bytes(unsigned barrier, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Arrives once all earlier cp.async of this thread have completed; counts among the expected
// arrivals. PTX ISA 9.7.13.15.15, cp.async.mbarrier.arrive.
__device__ __forceinline__ void arrive_after_copies(unsigned barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

// True once the phase of this parity is complete; may suspend the thread for a while first.
// PTX ISA 9.7.13.15.16, mbarrier.try_wait.
__device__ __forceinline__ bool try_wait(unsigned barrier, unsigned parity) {
  unsigned complete;
  asm volatile(
      "{ .reg .pred complete; mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], %2; "
      "selp.b32 %0, 1, 0, complete; }"
      : "=r"(complete)
      : "r"(barrier), "r"(parity)
      : "memory");
  return complete != 0;
}

// Returns when the phase of this parity is complete. On a fresh barrier, parity 1 returns at once.
__device__ __forceinline__ void wait(unsigned barrier, unsigned parity) {
  while (!try_wait(barrier, parity)) {
  }
}

// Orders this thread's earlier ordinary accesses of shared memory before later ones of the async
// proxy (wgmma, bulk copies) by threads that it synchronises with: the writing thread runs it, then
// arrives. PTX ISA 9.7.13.4, fence.proxy.
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Barrier `id` (0 to 15; 0 is __syncthreads') of `num_threads` threads of the block, counting those
// that only arrive; all of a warp's threads take part. PTX ISA 9.7.13.1, bar.
template <int num_threads>
__device__ __forceinline__ void sync_named_barrier(int id) {
  static_assert(num_threads % 32 == 0, "whole warps");
  asm volatile("bar.sync %0, %1;" ::"r"(id), "n"(num_threads) : "memory");
}

// Arrives at a named barrier without waiting.
template <int num_threads>
__device__ __forceinline__ void arrive_named_barrier(int id) {
  static_assert(num_threads % 32 == 0, "whole warps");
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "n"(num_threads) : "memory");
}

// All threads of the cluster, in full warps. PTX ISA 9.7.13.3, barrier.cluster.
__device__ __forceinline__ void arrive_cluster() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ __forceinline__ void wait_cluster() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Of this thread block in its cluster. PTX ISA 10.15, %cluster_ctarank.
__device__ __forceinline__ unsigned cluster_rank() {
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}
