#include "sink_values.hpp"

#include <limits>
#include <random>

namespace attnjit::check {
namespace {

// Of one query head. Uniform: a sink of any size meets every head.
float draw_sink(std::mt19937_64& random, SinkSize size, int head) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float unit = static_cast<float>(random() >> 40) * 0x1p-24F;
  switch (size) {
    case SinkSize::ordinary:
      break;
    case SinkSize::large:  // e^-10 to e^-40 of the output is left, or nothing in fp64 either
      return head % 2 == 0 ? 10.0F + 30.0F * unit : 1e4F + 1e5F * unit;
    case SinkSize::negative:
      return -50.0F - 1e5F * unit;
    case SinkSize::infinite:
      if (head % 3 < 2) {
        return head % 3 == 0 ? infinity : -infinity;
      }
  }
  return 8.0F * unit;
}

}  // namespace

std::string_view to_string(SinkSize size) {
  switch (size) {
    case SinkSize::ordinary:
      return "ordinary";
    case SinkSize::large:
      return "large";
    case SinkSize::negative:
      return "negative";
    case SinkSize::infinite:
      return "infinite";
  }
  return "";
}

std::vector<float> draw_sinks(int num_q_heads, SinkSize size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> sinks;
  for (int head = 0; head < num_q_heads; ++head) {
    sinks.push_back(draw_sink(random, size, head));
  }
  return sinks;
}

}  // namespace attnjit::check
