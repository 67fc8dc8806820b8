// The sinks of a checked problem's query heads. Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace attnjit::check {

// How large the sinks of a descriptor with sinks are, beside scores of N(0, 1). Each head has its
// own.
enum class SinkSize {
  ordinary,  // as the LSE of a few to a thousand keys
  large,     // far above it: outputs vanish
  negative,  // far below it: as without sinks
  infinite,  // a third each of +inf, -inf and ordinary ones
};
std::string_view to_string(SinkSize);

// One per query head, the same with every standard library.
std::vector<float> draw_sinks(int num_q_heads, SinkSize size, std::uint64_t seed);

}  // namespace attnjit::check
