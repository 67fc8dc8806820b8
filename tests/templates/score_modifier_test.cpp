// templates/device/score_modifier.cuh under the host compiler: which numbers of a bias are added,
// and what a user's expression is asked about.
#include "host_warp.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"

// Of one case only: other cases of this file are in the same program.
namespace ATTNJIT_CASE {
#include "device/score_modifier.cuh"
}  // namespace ATTNJIT_CASE

namespace {

using namespace ATTNJIT_CASE;
using namespace ATTNJIT_CASE::attnjit::kernel_interface;

constexpr int num_heads = 2 * config::q_per_kv;

// The second of two requests and kv heads, whose queries and keys stand at positions of their own.
PrefillWork example_work() {
  PrefillWork work = {};
  work.request = 1;
  work.kv_head = 1;
  work.seqlen_q = 5;
  work.num_rows = work.seqlen_q * config::q_per_kv;
  work.seqlen_kv = 9;
  work.query_place = 4;
  work.key_position = 30;
  return work;
}

// In units of log2, as the softmax wants it.
float score_of(const PrefillArguments& arguments, int row, int key, float product) {
  const PrefillWork work = example_work();
  return modified_score(arguments, work, row_modifier(arguments, work, row),
                        arguments.softmax_scale, key, product) /
         log2_e;
}

TEST_CASE("a bias is added where it covers the query and the key, " ATTNJIT_CASE_NAME) {
  if constexpr (config::score_modifier == ScoreModifier::additive_bias) {
    constexpr int queries = 4;
    constexpr int keys = 7;
    std::vector<float> bias;
    for (int i = 0; i < 2 * num_heads * queries * keys; ++i) {
      bias.push_back(static_cast<float>(i));
    }
    PrefillArguments arguments = {};
    arguments.softmax_scale = 0.5F;
    arguments.mask.bias = bias.data();
    arguments.mask.bias_strides = {num_heads * queries * keys, queries * keys, keys, 1};
    arguments.mask.bias_queries = queries;
    arguments.mask.bias_keys = keys;
    for (int row = 0; row < example_work().num_rows + 3; ++row) {
      for (int key = 0; key < 16; ++key) {
        const int query = row / config::q_per_kv;
        const int head = config::q_per_kv + row % config::q_per_kv;
        const bool is_covered = query < queries && key < keys;
        const int place = ((num_heads + head) * queries + query) * keys + key;
        const float expected = 3.0F + static_cast<float>(is_covered ? place : 0);
        CHECK(score_of(arguments, row, key, 6.0F) == Approx(expected));
      }
    }
    arguments.mask.bias_strides = {0, 0, 0, 1};  // one row for all
    arguments.mask.bias_queries = 0x7fffffff;
    CHECK(score_of(arguments, 14, 6, 6.0F) == Approx(9.0F));
    CHECK(score_of(arguments, 15, 6, 6.0F) == Approx(3.0F));  // no row of the request
  }
}

TEST_CASE("an expression gets the scaled score and positions, " ATTNJIT_CASE_NAME) {
  if constexpr (config::score_modifier == ScoreModifier::custom) {
    PrefillArguments arguments = {};
    arguments.softmax_scale = -0.5F;
    // Query 2 of head 4 at position 36, key 5 at position 35.
    const float expected = 2.0F * -3.0F + 100000 + 40000 + 360 - 35 + 5 - 9000;
    CHECK(score_of(arguments, 7, 5, 6.0F) == Approx(expected));
  }
}

TEST_CASE(
    "the softmax's factor is positive, and no number where the scale is none, " ATTNJIT_CASE_NAME) {
  if constexpr (softmax_scales) {
    CHECK(softmax_factor(-0.5F) == Approx(0.5F * log2_e));
    CHECK(softmax_factor(0.0F) == 1e-30F);
    CHECK(std::isnan(softmax_factor(std::numeric_limits<float>::quiet_NaN())));
  } else {
    CHECK(softmax_factor(-0.5F) == 1.0F);
  }
}

}  // namespace
