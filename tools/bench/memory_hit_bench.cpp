// What it costs to find kernels that are ready, as every prepare_decode(descriptor, device) does:
// nanoseconds and allocations of a lookup among 1000 descriptors, alone and beside a second thread.
//   attnjit_memory_hit_bench
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "allocation_count.hpp"
#include "prepared_table.hpp"

namespace attnjit {
namespace {

constexpr int num_descriptors = 1000;
constexpr int rounds = 300;
constexpr int finds_per_round = 1000;

using Table = PreparedTable<int>;

// As many descriptors as a server of many models holds.
std::vector<AttentionDescriptor> make_descriptors() {
  std::vector<AttentionDescriptor> descriptors(num_descriptors);
  for (int i = 0; i < num_descriptors; ++i) {
    descriptors[static_cast<std::size_t>(i)].num_q_heads = 8 * (1 + i % 50);
    descriptors[static_cast<std::size_t>(i)].max_seqlen_q = 1 + i / 50;
  }
  return descriptors;
}

// Nanoseconds of one lookup, by rounds; each finds other descriptors than the one before.
std::vector<double> measure(const Table& table, const std::vector<AttentionDescriptor>& wanted) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> nanoseconds(rounds);
  for (double& of_round : nanoseconds) {
    const auto begin = Clock::now();
    for (int i = 0; i < finds_per_round; ++i) {
      if (table.find(wanted[static_cast<std::size_t>(i * 7 % num_descriptors)], 0) == nullptr) {
        std::abort();
      }
    }
    const std::chrono::duration<double, std::nano> elapsed = Clock::now() - begin;
    of_round = elapsed.count() / finds_per_round;
  }
  std::sort(nanoseconds.begin(), nanoseconds.end());
  return nanoseconds;
}

void print(const char* name, const std::vector<double>& sorted) {
  std::printf("%-28s %10.1f %10.1f %10.1f\n", name, sorted[sorted.size() / 2], sorted.front(),
              sorted[sorted.size() * 99 / 100]);
}

void run() {
  const std::vector<AttentionDescriptor> descriptors = make_descriptors();
  Table table;
  for (const AttentionDescriptor& descriptor : descriptors) {
    table.add(descriptor, 0, std::make_shared<int>(0));
  }
  std::printf("%-28s %10s %10s %10s\n", "a hit, nanoseconds", "median", "min", "p99");
  const long before = allocation_count();
  const std::vector<double> alone = measure(table, descriptors);
  const long allocated = allocation_count() - before - 1;  // one is that of the results
  print("one thread", alone);
  std::atomic<bool> stop = false;
  std::jthread other([&] {
    while (!stop) {
      measure(table, descriptors);
    }
  });
  const std::vector<double> beside = measure(table, descriptors);
  stop = true;
  other.join();
  print("beside a second thread", beside);
  std::printf("allocations of %d hits: %ld\n", rounds * finds_per_round, allocated);
}

}  // namespace
}  // namespace attnjit

int main() {
  attnjit::run();
}
