#include "prefill_case.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "attnjit/mask_formula.hpp"
#include "custom_expressions.hpp"
#include "mask_contents.hpp"

namespace attnjit::check {
namespace {

// Towards minus infinity: queries may stand before the first key.
std::int64_t chunk_of(std::int64_t position, int chunk_size) {
  const std::int64_t remainder = (position % chunk_size + chunk_size) % chunk_size;
  return (position - remainder) / chunk_size;
}

bool is_in_window(const AttentionDescriptor& descriptor, std::int64_t query, std::int64_t key) {
  if (descriptor.window_left >= 0 && key < query - descriptor.window_left) {
    return false;
  }
  return descriptor.window_right < 0 || key <= query + descriptor.window_right;
}

bool is_visible_in(MaskKind mask, const PrefillCase& prefill_case, int request, int head, int query,
                   int key) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const std::int64_t query_position = first_query_position(prefill_case, request) + query;
  const std::int64_t key_position = first_key_position(prefill_case, request) + key;
  const int chunk_size = descriptor.chunk_size;
  switch (mask) {
    case MaskKind::none:
    case MaskKind::composed:
      return true;
    case MaskKind::custom:
      return shows(custom_mask_of(descriptor.mask_expression),
                   {.request = request,
                    .head = head,
                    .query = query_position,
                    .key = key_position,
                    .seqlen_q = prefill_case.q_len(request),
                    .seqlen_kv = prefill_case.kv_len(request)});
    case MaskKind::causal:
      return key_position <= query_position;
    case MaskKind::sliding_window:
      return is_in_window(descriptor, query_position, key_position);
    case MaskKind::chunked:
      return chunk_of(key_position, chunk_size) == chunk_of(query_position, chunk_size);
    case MaskKind::chunked_causal:
      return chunk_of(key_position, chunk_size) == chunk_of(query_position, chunk_size) &&
             key_position <= query_position;
    case MaskKind::prefix_lm:
      return key < prefill_case.prefix_lens[static_cast<std::size_t>(request)] ||
             key_position <= query_position;
    case MaskKind::document:
      return segment_id(prefill_case, query_position) == segment_id(prefill_case, key_position);
    case MaskKind::tree: {
      const int first_draft = prefill_case.kv_len(request) - prefill_case.q_len(request);
      return key < first_draft || tree_bit(prefill_case, request, head, query, key - first_draft);
    }
    case MaskKind::materialized_bool:
    case MaskKind::materialized_bits:
      return key < mask_keys(prefill_case) && mask_bit(prefill_case, request, head, query, key);
    case MaskKind::materialized_additive:
      return key < mask_keys(prefill_case) && mask_value(prefill_case, request, head, query, key) >
                                                  -std::numeric_limits<float>::infinity();
  }
  return true;
}

// Whether all masks of one of the alternatives that the mask is composed of show the key.
bool is_visible_in_mask(const PrefillCase& prefill_case, int request, int head, int query,
                        int key) {
  const std::vector<MaskSet> clauses = mask_formula_of(prefill_case.descriptor).clauses;
  return std::any_of(clauses.begin(), clauses.end(), [&](MaskSet clause) {
    for (int i = 0; i < static_cast<int>(MaskKind::composed); ++i) {
      const auto mask = static_cast<MaskKind>(i);
      if ((clause & mask_bit(mask)) != 0 &&
          !is_visible_in(mask, prefill_case, request, head, query, key)) {
        return false;
      }
    }
    return true;
  });
}

// The keys that one mask may show any of the queries by position.
KeyRange range_of(MaskKind mask, const PrefillCase& prefill_case, int request, int first_query,
                  int last_query) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  const std::int64_t length = prefill_case.kv_len(request);
  // Places among the keys.
  const std::int64_t origin = first_key_position(prefill_case, request);
  const std::int64_t place = first_query_position(prefill_case, request) - origin;
  const std::int64_t first = place + first_query;
  const std::int64_t last = place + last_query;
  const auto first_of_chunk = [&](std::int64_t key) {
    return chunk_of(key + origin, descriptor.chunk_size) * descriptor.chunk_size - origin;
  };
  switch (mask) {
    case MaskKind::causal:
      return {0, last + 1};
    case MaskKind::sliding_window:
      return {descriptor.window_left >= 0 ? first - descriptor.window_left : 0,
              descriptor.window_right >= 0 ? last + descriptor.window_right + 1 : length};
    case MaskKind::chunked:
      return {first_of_chunk(first), first_of_chunk(last) + descriptor.chunk_size};
    case MaskKind::chunked_causal:
      return {first_of_chunk(first), last + 1};
    case MaskKind::prefix_lm:
      return {0, std::max<std::int64_t>(
                     last + 1, prefill_case.prefix_lens[static_cast<std::size_t>(request)])};
    default:
      return {0, length};
  }
}

std::string describe_range(const std::vector<int>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return *least == *most ? fmt::format("{}", *most) : fmt::format("{}-{}", *least, *most);
}

std::string describe_softmax(const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  std::string text = describe_mask(descriptor);
  if (descriptor.has_sinks) {
    text += fmt::format(" {}", to_string(prefill_case.sinks));
  }
  if (descriptor.chunk_size > 0) {
    text += fmt::format(" {}", descriptor.chunk_size);
  }
  if (descriptor.score_modifier != ScoreModifier::none) {
    text += fmt::format(" {}", to_string(descriptor.score_modifier));
  }
  if (descriptor.sparsity == Sparsity::block) {
    text += fmt::format(" blocks {} {}", descriptor.sparsity_block, to_string(prefill_case.blocks));
  }
  return text;
}

std::string describe_keys(const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  return descriptor.kv_layout == KvLayout::paged
             ? fmt::format("page {} {} {}", descriptor.page_size,
                           to_string(descriptor.kv_layout_tag), to_string(prefill_case.arrangement))
             : std::string(to_string(descriptor.kv_layout_tag));
}

}  // namespace

std::string_view to_string(QueryLayout layout) {
  switch (layout) {
    case QueryLayout::ragged:
      return "ragged";
    case QueryLayout::bshd:
      return "bshd";
    case QueryLayout::bhsd:
      return "bhsd";
  }
  return "";
}

std::string_view to_string(BlockPattern pattern) {
  switch (pattern) {
    case BlockPattern::random:
      return "random";
    case BlockPattern::empty_rows:
      return "empty_rows";
    case BlockPattern::all:
      return "all";
  }
  return "";
}

std::string describe(const PrefillCase& prefill_case) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  return fmt::format("{} {}/{} h {}/{} {}{} {} | b {} s_q {} s_k {} | q {} k {}{}{}",
                     to_string(descriptor.operation), descriptor.head_dim_qk, descriptor.head_dim_v,
                     descriptor.num_q_heads, descriptor.num_kv_heads, describe_types(descriptor),
                     descriptor.value_source == ValueSource::prefix_of_k ? " v of k" : "",
                     describe_softmax(prefill_case), prefill_case.batch(),
                     describe_range(prefill_case.q_lens), describe_range(prefill_case.kv_lens),
                     to_string(prefill_case.query_layout), describe_keys(prefill_case),
                     prefill_case.query_positions.empty() ? "" : " q at positions",
                     prefill_case.key_positions.empty() ? "" : " k at positions");
}

std::int64_t first_key_position(const PrefillCase& prefill_case, int request) {
  return prefill_case.key_positions.empty()
             ? 0
             : prefill_case.key_positions[static_cast<std::size_t>(request)];
}

std::int64_t first_query_position(const PrefillCase& prefill_case, int request) {
  if (!prefill_case.query_positions.empty()) {
    return prefill_case.query_positions[static_cast<std::size_t>(request)];
  }
  // The last query has the position of the last key.
  return first_key_position(prefill_case, request) + prefill_case.kv_len(request) -
         prefill_case.q_len(request);
}

bool is_visible(const PrefillCase& prefill_case, int request, int head, int query, int key) {
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  if (!is_visible_in_mask(prefill_case, request, head, query, key)) {
    return false;
  }
  if (descriptor.sparsity != Sparsity::block) {
    return true;
  }
  const int query_block = query / descriptor.sparsity_block;
  const int key_block = key / descriptor.sparsity_block;
  return query_block < query_blocks(prefill_case) && key_block < key_blocks(prefill_case) &&
         block_bit(prefill_case, request, head, query_block, key_block);
}

KeyRange reachable_keys(const PrefillCase& prefill_case, int request) {
  const int queries = prefill_case.q_len(request);
  return queries == 0 ? KeyRange{} : reachable_keys(prefill_case, request, 0, queries - 1);
}

KeyRange reachable_keys(const PrefillCase& prefill_case, int request, int first_query,
                        int last_query) {
  const std::int64_t length = prefill_case.kv_len(request);
  const std::vector<MaskSet> clauses = mask_formula_of(prefill_case.descriptor).clauses;
  KeyRange keys = {length, 0};
  for (const MaskSet clause : clauses) {
    KeyRange shown = {0, length};
    for (int i = 0; i < static_cast<int>(MaskKind::composed); ++i) {
      const auto mask = static_cast<MaskKind>(i);
      if ((clause & mask_bit(mask)) != 0) {
        const KeyRange range = range_of(mask, prefill_case, request, first_query, last_query);
        shown = {std::max(shown.begin, range.begin), std::min(shown.end, range.end)};
      }
    }
    keys = {std::min(keys.begin, shown.begin), std::max(keys.end, shown.end)};
  }
  keys.begin = std::clamp<std::int64_t>(keys.begin, 0, length);
  keys.end = std::clamp<std::int64_t>(keys.end, keys.begin, length);
  return keys;
}

std::int64_t count_values(const PrefillCase& prefill_case) {
  std::int64_t rows = 0;
  for (const int queries : prefill_case.q_lens) {
    rows += queries;
  }
  const AttentionDescriptor& descriptor = prefill_case.descriptor;
  return rows * descriptor.num_q_heads * (descriptor.head_dim_v + (descriptor.returns_lse ? 1 : 0));
}

}  // namespace attnjit::check
