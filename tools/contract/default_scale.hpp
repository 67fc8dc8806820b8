// The softmax scale of the façades: 0 asks for 1 / sqrt(D). Pure; thread-safe.
#pragma once

namespace attnjit::contract {

double default_scale(int head_dim);

// What a façade is given for a problem's scale: 0 where that is the default.
float facade_scale(float softmax_scale, int head_dim);

}  // namespace attnjit::contract
