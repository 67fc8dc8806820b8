// The last tokens of each request, taken out of a paged problem's cache: what a cache write has to
// put back. One thread at a time.
#pragma once

#include <vector>

#include "host_tensor.hpp"
#include "prefill_problem.hpp"

namespace attnjit::contract {

struct NewTokens {
  HostTensor tokens;                // [total_new, num_kv_heads, columns], the requests' end to end
  HostTensor cache;                 // as the problem's, poisoned where these tokens lie
  std::vector<std::int64_t> slots;  // of each token in a pool: page * page_size + row
};

// As many of each request as it has queries. `cache` is the problem's k or v, `table` its block
// table. Throws CudaError.
NewTokens take_new_tokens(const check::PrefillProblem& problem, const TensorView& cache,
                          const std::vector<int>& table, const DeviceStream& stream);

// [batch, num_kv_heads, tokens of a request, columns] of `tokens`, of which each request has as
// many.
HostTensor by_head(HostTensor tokens, int batch);

// The index of a row of a paged cache of `descriptor`.
RowIndex cache_row(const AttentionDescriptor& descriptor, const TensorView& cache, int request,
                   int page, int row, int head);

}  // namespace attnjit::contract
