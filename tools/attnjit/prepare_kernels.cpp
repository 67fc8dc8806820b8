#include "prepare_kernels.hpp"

#include <algorithm>
#include <atomic>
#include <thread>

namespace attnjit {
namespace {

void prepare(AttentionRuntime& runtime, int device, const AttentionDescriptor& descriptor) {
  switch (descriptor.operation) {
    case Operation::decode:
      runtime.prepare_decode(descriptor, device);
      break;
    case Operation::merge_states:
      runtime.prepare_merge(descriptor, device);
      break;
    case Operation::sparse_mla_decode:
    case Operation::sparse_mla_prefill:
      runtime.prepare_sparse_mla(descriptor, device);
      break;
    case Operation::append_kv_cache:
      runtime.prepare_append(descriptor, device);
      break;
    default:
      runtime.prepare_prefill(descriptor, device);
  }
}

}  // namespace

void prepare_kernels(AttentionRuntime& runtime, int device,
                     const std::vector<AttentionDescriptor>& descriptors) {
  std::vector<AttentionDescriptor> distinct;
  for (const AttentionDescriptor& descriptor : descriptors) {
    if (std::find(distinct.begin(), distinct.end(), descriptor) == distinct.end()) {
      distinct.push_back(descriptor);
    }
  }
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < distinct.size(); i = next++) {
      try {
        prepare(runtime, device, distinct[i]);
      } catch (const std::exception&) {
        continue;
      }
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
}

}  // namespace attnjit
