// Where the rope columns of k lie for flare_mla_prefill: in a paged or a dense cache of their own,
// by the keys of the requests of a problem. Pure; thread-safe.
#pragma once

#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "cache_layout.hpp"
#include "host_tensor.hpp"
#include "prefill_case.hpp"

namespace attnjit::contract {

struct RopeCacheForm {
  int page_size = 64;  // 0: dense, [batch, num_keys, 1, width]; requests have as many keys
  int width = 576;     // columns of a row of the cache; the last are the rope's
};

class RopeCachePlaces {
 public:
  RopeCachePlaces(const check::PrefillCase& prefill_case, const RopeCacheForm& form);

  // A cache of `width` columns, all of it `poison`.
  template <typename Element>
  HostElements<Element> cache(DataType dtype, int width, Element poison) const {
    return is_paged() ? filled_tensor(dtype, {table_.num_pages, page_size_, 1, width}, poison)
                      : filled_tensor(dtype, {batch_, num_keys_, 1, width}, poison);
  }

  // A key's row in it.
  RowIndex place(int request, int key) const;

  // Of a paged cache; else views of nothing.
  TensorView upload_block_table(CallMemory& memory) const;
  TensorView upload_cache_lengths(CallMemory& memory) const;

 private:
  bool is_paged() const { return page_size_ > 0; }

  int page_size_;
  int batch_;
  int num_keys_;             // of each request, of a dense cache
  std::vector<int> cached_;  // keys before those of the queries, by request
  check::BlockTable table_;
};

// Row of the first key of each request of ragged k and v, and behind the last.
std::vector<int> key_offsets(const check::PrefillCase& prefill_case);

}  // namespace attnjit::contract
