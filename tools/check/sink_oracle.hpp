// The sink oracle: where all scores are 0 and all values 1, an output is keys / (keys + e^sink) and
// an LSE log(keys), of the keys that the query sees. Host only; thread-safe.
#pragma once

#include <vector>

#include "decode_problem.hpp"
#include "reference_comparison.hpp"

namespace attnjit::check {

// Compares `outputs`, the bytes of bf16 out [batch, seqlen_q, num_q_heads, head_dim_v] and then of
// fp32 lse [batch, num_q_heads, seqlen_q], with the oracle.
Comparison compare_with_sink_oracle(const DecodeProblem& problem,
                                    const std::vector<unsigned char>& outputs,
                                    const Tolerance& tolerance);

}  // namespace attnjit::check
