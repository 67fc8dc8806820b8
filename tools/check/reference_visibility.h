// Which keys a query sees, for the fp64 reference: one pair at a time, straight from what
// prefill.hpp says of masks. Plain code for NVRTC and for the host, whose tests hold it against
// is_visible of prefill_case.hpp.
#pragma once

#include "check_arguments.h"

namespace attnjit::check {

// A query, by its place in its request, and that request.
struct QueryPlace {
  int request;
  int head;
  int query;
  int num_queries;
  int num_keys;
  long long position;
  long long first_key_position;
};

// Tokens of a request.
ATTNJIT_HOST_DEVICE inline int count_tokens(const kernel_interface::RequestTokens& tokens,
                                            int request) {
  if (tokens.lengths != nullptr) {
    return tokens.lengths[request];
  }
  return tokens.offsets != nullptr ? tokens.offsets[request + 1] - tokens.offsets[request]
                                   : tokens.extent;
}

// Row of a request's first token, counted in its index of the batch dimension.
ATTNJIT_HOST_DEVICE inline long long first_token_row(const kernel_interface::RequestTokens& tokens,
                                                     int request) {
  return tokens.offsets != nullptr ? tokens.offsets[request] : 0;
}

ATTNJIT_HOST_DEVICE inline QueryPlace place_query(const ReferenceArguments& arguments, int request,
                                                  int head, int query) {
  QueryPlace place = {};
  place.request = request;
  place.head = head;
  place.query = query;
  place.num_queries = count_tokens(arguments.queries, request);
  place.num_keys = count_tokens(arguments.keys, request);
  place.first_key_position =
      arguments.key_positions != nullptr ? arguments.key_positions[request] : 0;
  place.position = arguments.query_positions != nullptr
                       ? static_cast<long long>(arguments.query_positions[request]) + query
                       : place.first_key_position + place.num_keys - place.num_queries + query;
  return place;
}

// Towards minus infinity: positions before the first key are negative.
ATTNJIT_HOST_DEVICE inline long long floor_divide(long long value, long long divisor) {
  const long long quotient = value / divisor;
  return quotient * divisor > value ? quotient - 1 : quotient;
}

ATTNJIT_HOST_DEVICE inline long long pair_index(const PairTensor& tensor, int request, int head,
                                                int query, int key) {
  return request * tensor.strides.batch + head * tensor.strides.head +
         query * tensor.strides.query + key * tensor.strides.key;
}

ATTNJIT_HOST_DEVICE inline bool has_bit(const PairTensor& tensor, const QueryPlace& place,
                                        int bit) {
  if (bit / 8 >= tensor.keys) {
    return false;
  }
  const long long index = pair_index(tensor, place.request, place.head, place.query, bit / 8);
  return (static_cast<const unsigned char*>(tensor.data)[index] >> (bit % 8) & 1) != 0;
}

ATTNJIT_HOST_DEVICE inline int segment_of(const SegmentIds& segments,
                                          const kernel_interface::RequestTokens& tokens,
                                          int request, int token) {
  const long long first = segments.batch_stride != 0 ? request * segments.batch_stride
                                                     : first_token_row(tokens, request);
  return segments.data[first + token];
}

ATTNJIT_HOST_DEVICE inline bool is_in_window(const ReferenceMask& mask, long long distance) {
  const bool is_after_left = mask.window_left < 0 || distance >= -mask.window_left;
  const bool is_before_right = mask.window_right < 0 || distance <= mask.window_right;
  return is_after_left && is_before_right;
}

ATTNJIT_HOST_DEVICE inline bool passes_custom(const ReferenceMask& mask, const QueryPlace& place,
                                              int key) {
  const long long key_position = place.first_key_position + key;
  const long long distance = place.position - key_position;
  switch (mask.custom) {
    case custom_mask_dilated:
      return distance >= 0 && distance % 3 != 1;
    case custom_mask_checkered:
      return distance == 0 || (place.request + place.head + key_position) % 2 == 0;
    case custom_mask_by_lengths:
      return key_position < place.num_keys / 2 ? place.position >= place.num_queries / 3
                                               : distance >= -40;
    default:
      return false;
  }
}

// By one mask, a MaskMeaning.
ATTNJIT_HOST_DEVICE inline bool passes(int meaning, const ReferenceArguments& arguments,
                                       const QueryPlace& place, int key) {
  const ReferenceMask& mask = arguments.mask;
  const long long key_position = place.first_key_position + key;
  const bool is_past = key_position <= place.position;
  const bool is_own_chunk =
      mask.chunk_size > 0 &&
      floor_divide(key_position, mask.chunk_size) == floor_divide(place.position, mask.chunk_size);
  switch (meaning) {
    case mask_causal:
      return is_past;
    case mask_window:
      return is_in_window(mask, key_position - place.position);
    case mask_chunked:
      return is_own_chunk;
    case mask_chunked_causal:
      return is_own_chunk && is_past;
    case mask_prefix:
      return is_past || key < mask.prefix_lens[place.request];
    case mask_document:
      return segment_of(mask.q_segments, arguments.queries, place.request, place.query) ==
             segment_of(mask.kv_segments, arguments.keys, place.request, key);
    case mask_tree: {
      const int draft = key - (place.num_keys - place.num_queries);
      return draft < 0 || has_bit(mask.pairs, place, draft);
    }
    case mask_bool:
      return key < mask.pairs.keys &&
             static_cast<const unsigned char*>(mask.pairs.data)[pair_index(
                 mask.pairs, place.request, place.head, place.query, key)] != 0;
    case mask_additive:
      return key < mask.pairs.keys;
    case mask_bits:
      return has_bit(mask.pairs, place, key);
    case mask_custom:
      return passes_custom(mask, place, key);
    default:
      return true;
  }
}

ATTNJIT_HOST_DEVICE inline bool passes_mask(const ReferenceArguments& arguments,
                                            const QueryPlace& place, int key) {
  for (int i = 0; i < arguments.mask.num_alternatives; ++i) {
    bool passes_all = true;
    for (int meaning = mask_none; meaning <= mask_custom; ++meaning) {
      const bool is_asked = (arguments.mask.alternatives[i] >> meaning & 1) != 0;
      passes_all = passes_all && (!is_asked || passes(meaning, arguments, place, key));
    }
    if (passes_all) {
      return true;
    }
  }
  return false;
}

// Whether an additive mask changes scores.
ATTNJIT_HOST_DEVICE inline bool is_additive(const ReferenceMask& mask) {
  return mask.num_alternatives > 0 && (mask.alternatives[0] >> mask_additive & 1) != 0;
}

ATTNJIT_HOST_DEVICE inline bool passes_blocks(const ReferenceMask& mask, const QueryPlace& place,
                                              int key) {
  if (mask.blocks.data == nullptr) {
    return true;
  }
  const int query_block = place.query / mask.sparsity_block;
  const int key_block = key / mask.sparsity_block;
  if (query_block >= mask.blocks.queries || key_block >= mask.blocks.keys) {
    return false;
  }
  const long long index = pair_index(mask.blocks, place.request,
                                     place.head / mask.q_heads_per_blocks, query_block, key_block);
  return static_cast<const unsigned char*>(mask.blocks.data)[index] != 0;
}

// Whether the query sees key `key` of its request, which has it. An additive mask may still put it
// at -inf.
ATTNJIT_HOST_DEVICE inline bool sees(const ReferenceArguments& arguments, const QueryPlace& place,
                                     int key) {
  return passes_mask(arguments, place, key) && passes_blocks(arguments.mask, place, key);
}

}  // namespace attnjit::check
