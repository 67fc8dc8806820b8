// What the masks, trees, block-sparse layouts and segment ids of a prefill case hold, element by
// element: from its seed, so that the host knows what lies on the device. Pure; thread-safe.
#pragma once

#include "prefill_case.hpp"

namespace attnjit::check {

// Whether a materialized bool or bit mask shows a key.
bool mask_bit(const PrefillCase& prefill_case, int request, int head, int query, int key);

// Of a materialized additive mask: a multiple of 1/8 between -2 and 2, exact in every type, or
// -inf.
float mask_value(const PrefillCase& prefill_case, int request, int head, int query, int key);

// Of an additive bias: the same numbers, of other places, and never -inf.
float bias_value(const PrefillCase& prefill_case, int request, int head, int query, int key);

// Whether a query token of a tree sees another: itself and some of those before it.
bool tree_bit(const PrefillCase& prefill_case, int request, int head, int query, int draft);

// Whether a block of the block-sparse layout is looked at; `head` counts query heads.
bool block_bit(const PrefillCase& prefill_case, int request, int head, int query_block,
               int key_block);

// The document of a position. Ids are neither ascending nor of one place only.
int segment_id(const PrefillCase& prefill_case, std::int64_t position);

// Keys that a materialized mask covers, and rows and columns of a block-sparse layout.
int mask_keys(const PrefillCase& prefill_case);
int query_blocks(const PrefillCase& prefill_case);
int key_blocks(const PrefillCase& prefill_case);

}  // namespace attnjit::check
