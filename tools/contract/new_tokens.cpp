#include "new_tokens.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace attnjit::contract {

RowIndex cache_row(const AttentionDescriptor& descriptor, const TensorView& cache, int request,
                   int page, int row, int head) {
  const bool is_hnd = descriptor.kv_layout_tag == KvLayoutTag::hnd;
  const int second = is_hnd ? head : row;
  const int third = is_hnd ? row : head;
  return cache.rank == 5 ? RowIndex{request, page, second, third} : RowIndex{page, second, third};
}

NewTokens take_new_tokens(const check::PrefillProblem& problem, const TensorView& cache,
                          const std::vector<int>& table, const DeviceStream& stream) {
  const check::PrefillCase& prefill_case = problem.prefill_case();
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const int page_size = descriptor.page_size;
  const std::int64_t columns = cache.shape.at(static_cast<std::size_t>(cache.rank - 1));
  const int total = std::reduce(prefill_case.q_lens.begin(), prefill_case.q_lens.end());
  NewTokens taken;
  taken.cache = download(cache, stream);
  taken.tokens = poisoned_tensor(descriptor.dtype_kv, {total, descriptor.num_kv_heads, columns});
  for (int b = 0; b < prefill_case.batch(); ++b) {
    for (int i = 0; i < prefill_case.q_len(b); ++i) {
      const int token = prefill_case.kv_len(b) - prefill_case.q_len(b) + i;
      const int page = table[static_cast<std::size_t>(b * problem.call().block_table.shape[1] +
                                                      token / page_size)];
      const auto place = static_cast<std::int64_t>(taken.slots.size());
      for (int head = 0; head < descriptor.num_kv_heads; ++head) {
        std::uint16_t* const cached =
            taken.cache.row(cache_row(descriptor, cache, b, page, token % page_size, head));
        std::copy_n(cached, columns, taken.tokens.row({place, head}));
        std::fill_n(cached, columns, poison_bits);
      }
      taken.slots.push_back(std::int64_t{page} * page_size + token % page_size);
    }
  }
  return taken;
}

HostTensor by_head(HostTensor tokens, int batch) {
  const std::int64_t count = tokens.view.shape[0] / batch;
  const std::int64_t heads = tokens.view.shape[1];
  HostTensor sorted = poisoned_tensor(tokens.view.dtype, {batch, heads, count, tokens.columns()});
  for_each_row(sorted.view, [&](const RowIndex& index) {
    std::copy_n(tokens.row({index[0] * count + index[2], index[1]}), tokens.columns(),
                sorted.row(index));
  });
  return sorted;
}

}  // namespace attnjit::contract
