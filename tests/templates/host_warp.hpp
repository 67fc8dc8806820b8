// What device code of one warp needs under the host compiler. Lanes run one after the other, again
// from the start after each exchange between them, so what they run must change nothing outside.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#define __device__
#define __forceinline__ inline

using std::max;
using std::min;

namespace host_warp {

constexpr int num_lanes = 32;
using Lanes = std::array<int, num_lanes>;

struct Place {
  unsigned x;
};

// A lane has come to an exchange that the others have not come to yet.
struct Exchange {
  int value;
};

struct Warp {
  std::vector<Lanes> exchanged;  // what the lanes brought to each exchange, in order
  std::size_t next = 0;
};

inline Warp warp;

// What all lanes bring to this exchange.
inline const Lanes& exchange(int value) {
  if (warp.next == warp.exchanged.size()) {
    throw Exchange{value};
  }
  return warp.exchanged[warp.next++];
}

}  // namespace host_warp

inline host_warp::Place threadIdx = {0};

inline unsigned __ballot_sync(unsigned /*mask*/, bool vote) {
  const host_warp::Lanes& votes = host_warp::exchange(vote ? 1 : 0);
  unsigned bits = 0;
  for (std::size_t lane = 0; lane < votes.size(); ++lane) {
    bits |= static_cast<unsigned>(votes[lane]) << lane;
  }
  return bits;
}

inline int __reduce_min_sync(unsigned /*mask*/, int value) {
  const host_warp::Lanes& values = host_warp::exchange(value);
  return *std::min_element(values.begin(), values.end());
}

inline int __reduce_max_sync(unsigned /*mask*/, int value) {
  const host_warp::Lanes& values = host_warp::exchange(value);
  return *std::max_element(values.begin(), values.end());
}

inline int __popc(unsigned bits) {
  return std::popcount(bits);
}

inline int __ffs(unsigned bits) {
  return bits == 0 ? 0 : std::countr_zero(bits) + 1;
}

inline float __int_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}

inline float __uint_as_float(unsigned bits) {
  return std::bit_cast<float>(bits);
}

struct float2 {
  float x;
  float y;
};

// Copies are parsed here, and not run.
inline std::size_t __cvta_generic_to_shared(const void* /*pointer*/) {
  return 0;
}

namespace host_warp {

// What each lane of a warp gets from `run`.
template <typename Run>
auto run_lanes(const Run& run) {
  std::array<decltype(run()), num_lanes> results;
  warp.exchanged.clear();
  for (bool is_done = false; !is_done;) {
    Lanes brought = {};
    is_done = true;
    for (std::size_t lane = 0; lane < results.size(); ++lane) {
      threadIdx.x = static_cast<unsigned>(lane);
      warp.next = 0;
      try {
        results[lane] = run();
      } catch (const Exchange& exchange) {
        brought[lane] = exchange.value;
        is_done = false;
      }
    }
    if (!is_done) {
      warp.exchanged.push_back(brought);
    }
  }
  return results;
}

}  // namespace host_warp
