#include "default_scale.hpp"

#include <cmath>

namespace attnjit::contract {

double default_scale(int head_dim) {
  return 1.0 / std::sqrt(head_dim);
}

float facade_scale(float softmax_scale, int head_dim) {
  return softmax_scale == static_cast<float>(default_scale(head_dim)) ? 0.0F : softmax_scale;
}

}  // namespace attnjit::contract
