// paged_decode_sm80 on a paged cache of random numbers. The parts are one even wave of blocks, made
// as attnjit's planner makes them without weighing other cuttings; a materialized mask holds random
// numbers, or bytes that hide half of the keys.
#include "kernel.cu"
#include "repro_decode.h"

int main() {
  repro::DecodeProblem problem(config::block_m, config::block_n, 1, true, config::dtype_mask);
  repro::launch(paged_decode_sm80, problem.grid(), problem.arguments);
  problem.print();
}
