// Arguments of kernels/merge_states.cu, shared by host and device code.
#pragma once

namespace attnjit::kernel_interface {

constexpr int most_partials = 32;  // that one launch merges: its arguments are passed by value

// In elements.
struct StateStrides {
  long long out_token;
  long long out_head;
  long long lse_token;
  long long lse_head;
};

// Attention over a part of the keys.
struct PartialAttentionArguments {
  const void* out;
  const float* lse;
  StateStrides strides;
};

struct MergeStatesArguments {
  PartialAttentionArguments partials[most_partials];
  void* out;
  float* lse;  // null if not wanted
  StateStrides strides;
  long long num_rows;  // tokens * heads
  int num_heads;
  int num_partials;
};

}  // namespace attnjit::kernel_interface
