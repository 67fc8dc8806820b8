// Programmatic dependent launch: a kernel that starts while the one before it in the stream still
// runs. Without the launch attribute both do nothing. PTX ISA 9.7.13.13, griddepcontrol.
#pragma once

// Waits until the grids this one depends on are complete and their writes visible; nothing that
// they write may be read before, nor anything written that they read.
__device__ __forceinline__ void wait_for_earlier_grids() {
  asm volatile("griddepcontrol.wait;" ::: "memory");
}

// Lets the dependent grid start once every block has run this or ended.
__device__ __forceinline__ void launch_dependent_grids() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
