// seesaw_decode_sm90 on a paged latent cache of random numbers. The parts are one even wave of
// blocks, made as attnjit's planner makes them without weighing other cuttings.
#include "kernel.cu"
#include "repro_latent.h"

int main() {
  repro::DecodeProblem problem(64, 64, 64, false, DataType::uint8);
  SeesawDecodeArguments arguments = {};
  arguments.call = problem.arguments;
  if (config::kv_copy == KvCopy::tensor) {
    repro::encode_cache(arguments.kv, problem.arguments);
  }
  repro::launch(seesaw_decode_sm90, problem.grid(), arguments, problem.row_tiles % 2 == 0 ? 2 : 1);
  problem.print();
}
