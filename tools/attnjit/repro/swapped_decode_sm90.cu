// swapped_decode_sm90 on a paged latent cache of random numbers. The parts are one even wave of
// blocks, made as attnjit's planner makes them without weighing other cuttings.
#include "kernel.cu"
#include "repro_latent.h"

int main() {
  repro::DecodeProblem problem(config::block_rows, 64, config::block_rows, false, DataType::uint8);
  SwappedDecodeArguments arguments = {};
  arguments.call = problem.arguments;
  repro::encode_queries(arguments.q, problem.arguments);
  if (config::kv_copy == KvCopy::tensor) {
    repro::encode_cache(arguments.kv, problem.arguments);
  }
  repro::launch(swapped_decode_sm90, problem.grid(), arguments);
  problem.print();
}
