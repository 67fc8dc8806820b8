// Two runs of one call, the second with something changed that its results must not depend on: they
// are equal to the bit. Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "decode_case.hpp"
#include "prefill_case.hpp"
#include "requirement.hpp"

namespace attnjit::contract {

// What is changed between the runs.
enum class Change {
  infinite_unused_slots,  // of k and v, q and their padding: infinity in place of NaN
  finite_unused_slots,    // the same with a large number
  other_requests,         // all keys and values but request 0's become NaN
  other_heads,            // all but kv head 0's become NaN
  other_rows,             // all rows of q but every third become NaN
  table_padding,          // what block tables hold past a request's pages: a page that is there
};
std::string_view to_string(Change);

ContractCase equal_bits_case(const check::DecodeCase& decode_case, Change change);

// The queries must be dense.
ContractCase equal_bits_case(const check::PrefillCase& prefill_case, Change change);

}  // namespace attnjit::contract
