// The decode that most tests of the kernels for Hopper are about: DeepSeek-V3's, one query token
// over the shared latent, pages of 64.
#pragma once

#include "attnjit/attention_descriptor.hpp"

namespace attnjit::test {

inline AttentionDescriptor latent_decode(int num_q_heads) {
  AttentionDescriptor descriptor;
  descriptor.head_dim_qk = 576;
  descriptor.head_dim_v = 512;
  descriptor.num_q_heads = num_q_heads;
  descriptor.num_kv_heads = 1;
  descriptor.value_source = ValueSource::prefix_of_k;
  return descriptor;
}

}  // namespace attnjit::test
