// The draws of fuzzed cases: the same with every standard library, which its distributions are not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <random>

namespace attnjit::check {

// What is drawn: each has draws of its own, so that one more in one of them moves no other.
enum class FuzzSubject : unsigned {
  descriptor,
  decode,
  prefill,
  illegal_descriptor,
  illegal_call,
  call_kernel,
  call,
};

class FuzzRandom {
 public:
  FuzzRandom(std::uint64_t seed, std::uint64_t index, FuzzSubject subject) {
    std::seed_seq words = {static_cast<unsigned>(subject), static_cast<unsigned>(seed),
                           static_cast<unsigned>(seed >> 32), static_cast<unsigned>(index),
                           static_cast<unsigned>(index >> 32)};
    random_.seed(words);
  }

  std::uint64_t bits() { return random_(); }

  // One of least … most.
  int between(int least, int most) {
    const auto count = static_cast<std::uint64_t>(std::int64_t{most} - least + 1);
    return static_cast<int>(least + static_cast<std::int64_t>(random_() % count));
  }

  bool one_in(int count) { return between(1, count) == 1; }

  template <typename Value>
  Value pick(std::initializer_list<Value> values) {
    return *std::next(values.begin(), between(0, static_cast<int>(values.size()) - 1));
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace attnjit::check
