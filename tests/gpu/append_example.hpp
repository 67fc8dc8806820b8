// A cache write and its model on the host: what a call brings, and what the cache must hold after
// it. Pure functions.
#pragma once

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "attnjit/append_kv_cache.hpp"

namespace attnjit::test {

using Bytes = std::vector<unsigned char>;

enum class AppendForm { ragged, dense, slots, narrow_slots, ragged_slots, dense_slots };

struct AppendExample {
  std::string name;
  AttentionDescriptor cache;
  AppendForm form = AppendForm::ragged;
  std::vector<int> counts = {3, 0, 1, 40, 0, 17};  // of new tokens
  std::vector<int> seq_lens = {3, 0, 65, 70, 9, 33};
  int columns = 5;    // of the block table
  int padding = 0;    // elements behind each row of k_new, and eight times so many behind each page
  int strangers = 0;  // rows of k_new before the first request's, and after the last's
  bool has_caches_apart = false;   // one per request
  bool has_scales_apart = false;   // per request
  bool has_missing_pages = false;  // some entries of the block table are no pages
  bool is_captured = false;        // before the lengths are known

  int batch() const { return static_cast<int>(counts.size()); }
  int num_tokens() const { return std::reduce(counts.begin(), counts.end()) + 2 * strangers; }
  int num_pages() const { return (has_caches_apart ? 1 : batch()) * columns + 2; }
  bool is_latent() const { return cache.value_source == ValueSource::prefix_of_k; }
  bool is_dense() const { return form == AppendForm::dense || form == AppendForm::dense_slots; }
  bool has_table() const { return form == AppendForm::ragged || form == AppendForm::dense; }
  bool has_offsets() const {
    return form == AppendForm::ragged || form == AppendForm::ragged_slots;
  }
};

// Every request's pages are its own. Past a request's length the table holds what leads nowhere.
std::vector<int> make_table(const AppendExample& example);

struct AppendPlace {
  int token;  // a row of k_new
  int request;
  std::int64_t page;  // -1: nowhere
  int row;
};

// Of the tokens of all requests.
std::vector<AppendPlace> make_places(const AppendExample& example, const std::vector<int>& table);

// The slots of `places`; of those without a place, negative ones and ones past the cache.
std::vector<std::int64_t> make_slots(const AppendExample& example,
                                     const std::vector<AppendPlace>& places);

// K or V of a call, views without memory.
struct AppendSide {
  std::vector<std::uint16_t> rows;
  TensorView rows_view;
  Bytes cache;
  TensorView cache_view;
  std::vector<float> scales;
  TensorView scales_view;
};

// Rows hold every 16-bit pattern in turn, NaN and infinities too; the cache holds any bytes.
AppendSide make_side(const AppendExample& example, int head_dim);

// The bytes of the cache after the write.
Bytes expected_cache(const AppendExample& example, const AppendSide& side,
                     const std::vector<AppendPlace>& places, int head_dim);

}  // namespace attnjit::test
