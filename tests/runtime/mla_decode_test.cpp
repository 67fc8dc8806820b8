// The descriptor of an MLA decode. Running one is the GPU's, tests/gpu and `attnjit check`.
#include "attnjit/mla_decode.hpp"

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"

namespace attnjit {
namespace {

TEST_CASE("an MLA decode is causal over the whole cache unless it is given a window and sinks") {
  const AttentionDescriptor plain = mla_decode_descriptor({.num_q_heads = 16});
  CHECK(plain.mask == MaskKind::causal);
  CHECK_FALSE(plain.has_sinks);
  const AttentionDescriptor local =
      mla_decode_descriptor({.num_q_heads = 16, .window_left = 127, .has_sinks = true});
  CHECK(local.mask == MaskKind::sliding_window);
  CHECK(local.window_left == 127);
  CHECK(local.window_right == 0);
  CHECK(local.has_sinks);
  CHECK_NOTHROW(validate(local));
  CHECK_THROWS_AS(validate(mla_decode_descriptor({.window_left = -2})), DescriptorError);
}

}  // namespace
}  // namespace attnjit
