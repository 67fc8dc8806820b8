// The library's front door for launching: a descriptor becomes kernels that are ready on a device
// (prepare, may compile), which paged_decode.hpp, flash_mla.hpp, prefill.hpp, sparse_mla.hpp,
// merge_states.hpp and append_kv_cache.hpp then run (never compile). Thread-safe. What it prepares
// stays loaded until the process ends.
#pragma once

#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "attnjit/attention_descriptor.hpp"
#include "attnjit/kernel_config.hpp"
#include "attnjit/kernel_provider.hpp"
#include "attnjit/loaded_kernel.hpp"
#include "attnjit/target_device.hpp"

struct CUstream_st;

namespace attnjit {

// A kernel is not ready and cannot be made ready now: the stream is being captured into a graph.
class ColdKernelError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The kernels of one paged-decode descriptor, loaded on one device. Cheap to copy; immutable.
struct PreparedDecode {
  AttentionDescriptor descriptor;
  TargetDevice target;
  int device = 0;       // CUDA ordinal
  KernelConfig config;  // of `attention`
  DecodeTile tile;
  ScheduleConfig schedule_config;
  LoadedKernel attention;
  CombineConfig combine_config;
  LoadedKernel combine;
  LoadedKernel schedule;
  std::vector<std::shared_ptr<LoadedCubin>> cubins;  // own what the kernels point to
};

// The kernel of an operation that has only one, loaded on one device. Cheap to copy; immutable.
template <typename Config>
struct PreparedKernel {
  AttentionDescriptor descriptor;
  int device = 0;  // CUDA ordinal
  Config config;
  LoadedKernel kernel;
  std::shared_ptr<LoadedCubin> cubin;  // owns what the kernel points to
};
using PreparedMerge = PreparedKernel<MergeStatesConfig>;
using PreparedAppend = PreparedKernel<AppendKvCacheConfig>;
using PreparedSparseMla = PreparedKernel<SparseMlaConfig>;

// The kernels of a prefill, loaded on one device. Cheap to copy; immutable.
struct PreparedPrefill {
  AttentionDescriptor descriptor;
  TargetDevice target;
  int device = 0;  // CUDA ordinal
  PrefillConfig config;
  LoadedKernel kernel;
  CombinePrefillConfig combine_config;
  LoadedKernel combine;                              // merges the parts of a split call
  std::vector<std::shared_ptr<LoadedCubin>> cubins;  // own what the kernels point to
};

class AttentionRuntime {
 public:
  // Opens templates, cache and NVRTC as KernelProvider does. Touches no GPU yet.
  explicit AttentionRuntime(const KernelProviderOptions& options = {});
  ~AttentionRuntime();

  // Makes the kernels of `descriptor` ready on CUDA device `device`: from memory, from the cache,
  // or compiled now. Throws DescriptorError, DriverError, CudaError and what
  // KernelProvider::provide throws.
  std::shared_ptr<const PreparedDecode> prepare_decode(const AttentionDescriptor& descriptor,
                                                       int device);

  // The same with `configs` of configure_decode in place of those that select_configs takes, for
  // whoever compares them. Not kept: each call loads what is not loaded yet.
  std::shared_ptr<const PreparedDecode> prepare_decode(const AttentionDescriptor& descriptor,
                                                       std::span<const KernelConfig> configs,
                                                       int device);

  // The same for use on `stream`: if that is being captured and the kernels are not ready,
  // ColdKernelError, and the capture stays valid.
  std::shared_ptr<const PreparedDecode> prepare_decode(const AttentionDescriptor& descriptor,
                                                       int device, CUstream_st* stream);

  // Null unless the kernels are ready on `device`. Never compiles, loads or touches the GPU.
  std::shared_ptr<const PreparedDecode> find_decode(const AttentionDescriptor& descriptor,
                                                    int device) const;

  // The same for the kernel of merge_states.hpp. Throws as prepare_decode does.
  std::shared_ptr<const PreparedMerge> prepare_merge(const AttentionDescriptor& descriptor,
                                                     int device);
  std::shared_ptr<const PreparedMerge> prepare_merge(const AttentionDescriptor& descriptor,
                                                     int device, CUstream_st* stream);

  // The same for the kernel of prefill.hpp. Throws as prepare_decode does.
  std::shared_ptr<const PreparedPrefill> prepare_prefill(const AttentionDescriptor& descriptor,
                                                         int device);
  std::shared_ptr<const PreparedPrefill> prepare_prefill(const AttentionDescriptor& descriptor,
                                                         int device, CUstream_st* stream);
  // The same for the kernel of append_kv_cache.hpp.
  std::shared_ptr<const PreparedAppend> prepare_append(const AttentionDescriptor& descriptor,
                                                       int device);
  std::shared_ptr<const PreparedAppend> prepare_append(const AttentionDescriptor& descriptor,
                                                       int device, CUstream_st* stream);

  // The same for the kernel of sparse_mla.hpp.
  std::shared_ptr<const PreparedSparseMla> prepare_sparse_mla(const AttentionDescriptor& descriptor,
                                                              int device);
  std::shared_ptr<const PreparedSparseMla> prepare_sparse_mla(const AttentionDescriptor& descriptor,
                                                              int device, CUstream_st* stream);

  // Whether the kernels of `descriptor`, of any operation, are ready on `device`: prepare would
  // then find them in memory.
  bool is_ready(const AttentionDescriptor& descriptor, int device) const;

  KernelProvider& provider();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attnjit
