// The CUDA expressions that the suites and the fuzzer give as custom masks and score modifiers, and
// what they mean, written apart: on the host here and, for the fp64 reference, in
// reference_visibility.h and device/reference_attention.cu. Pure; thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "check_arguments.h"

namespace attnjit::check {

// The texts, in the order of CustomMask and CustomScore.
extern const std::array<std::string_view, 3> custom_mask_expressions;
extern const std::array<std::string_view, 3> custom_score_expressions;

// Which of them a descriptor has; throws std::invalid_argument for an expression that is none.
CustomMask custom_mask_of(std::string_view expression);
CustomScore custom_score_of(std::string_view expression);

// What an expression may ask about: request, query head, positions, lengths of the request.
struct CustomPair {
  int request = 0;
  int head = 0;
  std::int64_t query = 0;
  std::int64_t key = 0;
  int seqlen_q = 0;
  int seqlen_kv = 0;
};

// Whether the mask shows the query the key.
bool shows(CustomMask mask, const CustomPair& pair);

}  // namespace attnjit::check
