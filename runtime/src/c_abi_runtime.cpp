// attnjit.h: runtimes, and what they do with descriptors.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "attnjit/config_selection.hpp"
#include "attnjit/descriptor_json.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "attnjit/target_device_query.hpp"
#include "c_abi_objects.hpp"
#include "c_abi_status.hpp"

namespace attnjit::c_abi {
namespace {

std::string_view text(const char* given) {
  return given == nullptr ? "" : given;
}

int require_choice(std::string_view name, std::int32_t value, std::int32_t most) {
  if (value < 0 || value > most) {
    throw InvalidArgument(fmt::format("options->{}", name), fmt::format("{}", value),
                          fmt::format("must be 0 to {}", most), "set it to 0 for the default");
  }
  return value;
}

std::vector<std::filesystem::path> read_layers(const attnjit_runtime_options& options) {
  std::vector<std::filesystem::path> layers;
  if (options.num_cache_layers > 0) {
    require(options.cache_layers, "options->cache_layers");
  }
  for (std::size_t i = 0; i < options.num_cache_layers; ++i) {
    require(options.cache_layers[i], fmt::format("options->cache_layers[{}]", i));
    layers.emplace_back(options.cache_layers[i]);
  }
  return layers;
}

void set_callbacks(const attnjit_runtime_options& options, KernelProviderOptions& provider) {
  if (const auto log = options.log; log != nullptr) {
    void* const user = options.user;
    provider.warn = [log, user](std::string_view message) {
      const CallbackScope scope;
      log(user, ATTNJIT_LOG_WARNING, std::string(message).c_str());
    };
    provider.on_wait = [log, user](std::string_view message) {
      const CallbackScope scope;
      log(user, ATTNJIT_LOG_NOTICE, std::string(message).c_str());
    };
  }
  if (const auto on_miss = options.on_miss; on_miss != nullptr) {
    void* const user = options.user;
    provider.on_miss = [on_miss, user](const MissEvent& event) {
      const std::string reason(to_string(event.reason));
      const std::string detail(event.detail);
      const attnjit_miss miss{.struct_size = sizeof(attnjit_miss),
                              .kernel = event.kernel.entry.c_str(),
                              .arch = event.kernel.arch.c_str(),
                              .key = event.key.digest.c_str(),
                              .reason = reason.c_str(),
                              .detail = detail.c_str()};
      const CallbackScope scope;
      on_miss(user, &miss);
    };
  }
}

KernelProviderOptions read_provider_options(const attnjit_runtime_options& options) {
  KernelProviderOptions provider;
  provider.templates = text(options.templates);
  provider.cache_directory = text(options.cache_directory);
  provider.cache_layers = read_layers(options);
  const int sharing = require_choice("cache_sharing", options.cache_sharing, 2);
  if (sharing != 0) {
    provider.cache_sharing = sharing == 1 ? CacheSharing::owner : CacheSharing::group;
  }
  if (options.cache_max_bytes != 0) {
    provider.cache_max_bytes = options.cache_max_bytes;
  }
  provider.nvrtc = text(options.nvrtc);
  if (require_choice("forbid_jit", options.forbid_jit, 1) != 0) {
    provider.jit = JitPolicy::forbidden;
  }
  if (!text(options.miss_trace).empty()) {
    provider.miss_trace = text(options.miss_trace);
  }
  set_callbacks(options, provider);
  return provider;
}

std::shared_ptr<const DeviceAllocator> read_allocator(const attnjit_runtime_options& options) {
  if ((options.allocate == nullptr) != (options.release == nullptr)) {
    throw InvalidArgument("options->allocate and options->release",
                          options.allocate == nullptr ? "the latter only" : "the former only",
                          "must be given together", "give both, or neither");
  }
  if (options.allocate == nullptr) {
    return nullptr;
  }
  auto allocator = std::make_shared<DeviceAllocator>();
  allocator->allocate = [user = options.user, allocate = options.allocate,
                         release = options.release](int device, std::size_t bytes) {
    const CallbackScope scope;
    void* const memory = allocate(user, device, bytes);
    if (reinterpret_cast<std::uintptr_t>(memory) % DeviceAllocator::alignment_bytes != 0) {
      release(user, device, memory, bytes);
      throw InvalidArgument(
          "options->allocate", fmt::format("{}", memory),
          fmt::format("must be {}-byte aligned", DeviceAllocator::alignment_bytes),
          "round up what your memory pool gives");
    }
    return memory;
  };
  allocator->release = [user = options.user, release = options.release](int device, void* memory,
                                                                        std::size_t bytes) {
    const CallbackScope scope;
    release(user, device, memory, bytes);
  };
  return allocator;
}

std::unique_ptr<Runtime> make_runtime(const attnjit_runtime_options& options) {
  if (options.device < 0) {
    throw InvalidArgument("options->device", fmt::format("{}", options.device),
                          "must be a CUDA device ordinal, 0 or more",
                          "leave it 0 where no GPU is used");
  }
  const int trust = require_choice("trusts_pointers", options.trusts_pointers, 1);
  return std::make_unique<Runtime>(
      Runtime{.attention = std::make_unique<AttentionRuntime>(read_provider_options(options)),
              .device = options.device,
              .trust = trust == 1 ? PointerTrust::trusted : PointerTrust::asked,
              .allocator = read_allocator(options)});
}

AttentionDescriptor read_descriptor(const char* descriptor) {
  require(descriptor, "descriptor");
  return descriptor_from_json(descriptor);
}

TargetDevice read_target(const char* arch) {
  require(arch, "arch");
  if (auto target = find_target_device(arch)) {
    return *target;
  }
  std::string known;
  for (const TargetDevice& target : target_device_presets()) {
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", target.name, target.arch);
  }
  throw InvalidArgument("arch", fmt::format("\"{}\"", arch), "must be a card or an arch: " + known,
                        "pass one of these");
}

// What was compiled, and is wanted in the cache, is lost.
[[noreturn]] void fail_on_not_stored(const DiskCache& cache, const std::vector<CacheKey>& keys) {
  const std::string problem = cache.trust_problem();
  throw NotStored(fmt::format(
      "compiled kernels that the cache did not keep: {}; {}; fix: give a directory with free "
      "space that this user alone can write (cache_directory of the options, or "
      "ATTNJIT_CACHE_DIR)",
      keys.size(), problem.empty() ? cache.find(keys.front()).detail : problem));
}

void require_device(int device) {
  const int count = count_devices();
  if (device >= count) {
    throw InvalidArgument("options->device", fmt::format("{}", device),
                          fmt::format("must be less than {}, the devices that CUDA shows", count),
                          "create the runtime with another device");
  }
}

AnyPrepared prepare(AttentionRuntime& runtime, const AttentionDescriptor& descriptor, int device,
                    CUstream_st* stream) {
  if (!runtime.is_ready(descriptor, device)) {
    require_device(device);
  }
  switch (descriptor.operation) {
    case Operation::decode:
      return runtime.prepare_decode(descriptor, device, stream);
    case Operation::prefill:
    case Operation::prefill_kvcache:
    case Operation::mla_prefill_rope:
      return runtime.prepare_prefill(descriptor, device, stream);
    case Operation::sparse_mla_decode:
    case Operation::sparse_mla_prefill:
      return runtime.prepare_sparse_mla(descriptor, device, stream);
    case Operation::append_kv_cache:
      return runtime.prepare_append(descriptor, device, stream);
    case Operation::merge_states:
      break;
  }
  return runtime.prepare_merge(descriptor, device, stream);
}

std::string render_source(Runtime& runtime, const char* descriptor, const char* arch) {
  const TargetDevice target = read_target(arch);
  std::string source;
  for (const KernelConfig& config : select_configs(read_descriptor(descriptor), target)) {
    const auto& templates = runtime.attention->provider().templates();
    source += (source.empty() ? "" : "\n") + flatten(render(config, target, templates));
  }
  return source;
}

}  // namespace

// Never freed: see the header.
HandleTable<Runtime, 1>& runtimes() {
  static auto* const table = new HandleTable<Runtime, 1>;
  return *table;
}

HandleTable<Kernel, 2>& kernels() {
  static auto* const table = new HandleTable<Kernel, 2>;
  return *table;
}

HandleTable<Plan, 3>& plans() {
  static auto* const table = new HandleTable<Plan, 3>;
  return *table;
}

void fail_on_operation(const Kernel& kernel, std::string_view call) {
  const Operation operation = std::visit(
      [](const auto& prepared) { return prepared->descriptor.operation; }, kernel.prepared);
  throw InvalidArgument("kernel", fmt::format("one of operation {}", to_string(operation)),
                        fmt::format("is none that {} takes", call),
                        "prepare a descriptor of the operation that you call");
}

}  // namespace attnjit::c_abi

using namespace attnjit;         // NOLINT(google-build-using-namespace): the interface's bodies
using namespace attnjit::c_abi;  // NOLINT(google-build-using-namespace): stand outside of both

extern "C" {

attnjit_status attnjit_runtime_create(const attnjit_runtime_options* options,
                                      attnjit_runtime* runtime) {
  return guarded([&] {
    require(runtime, "runtime");
    *runtime = 0;
    attnjit_runtime_options defaults = {};
    defaults.struct_size = sizeof defaults;
    attnjit_runtime_options storage;
    *runtime = runtimes().add(
        make_runtime(options == nullptr ? defaults : read_struct("options", options, storage)));
  });
}

attnjit_status attnjit_runtime_destroy(attnjit_runtime runtime) {
  return guarded_end([runtime] {
    if (runtime != 0) {
      runtimes().remove("runtime", runtime);
    }
  });
}

attnjit_status attnjit_validate(const char* descriptor) {
  return guarded([&] { validate(read_descriptor(descriptor)); });
}

attnjit_status attnjit_warm(attnjit_runtime runtime, const char* descriptor, const char* arch,
                            int32_t* num_compiled) {
  return guarded([&] {
    std::int32_t compiled = 0;
    std::vector<CacheKey> not_stored;
    const auto used = runtimes().use("runtime", runtime);
    const TargetDevice target = read_target(arch);
    KernelProvider& provider = used->attention->provider();
    for (const KernelConfig& config : select_configs(read_descriptor(descriptor), target)) {
      const ProvidedKernel provided = provider.provide(config, target);
      compiled += provided.miss ? 1 : 0;
      if (!provided.is_stored) {
        not_stored.push_back(provided.key);
      }
    }
    if (num_compiled != nullptr) {
      *num_compiled = compiled;
    }
    if (!not_stored.empty()) {
      fail_on_not_stored(provider.cache(), not_stored);
    }
  });
}

attnjit_status attnjit_source(attnjit_runtime runtime, const char* descriptor, const char* arch,
                              char* buffer, size_t capacity, size_t* bytes) {
  return guarded([&] {
    require(bytes, "bytes");
    if (capacity > 0) {
      require(buffer, "buffer");
    }
    const auto used = runtimes().use("runtime", runtime);
    const std::string source = render_source(*used, descriptor, arch);
    if (capacity > 0) {
      buffer[source.copy(buffer, capacity - 1)] = '\0';
    }
    *bytes = source.size() + 1;
  });
}

attnjit_status attnjit_prepare(attnjit_runtime runtime, const char* descriptor, void* stream,
                               attnjit_kernel* kernel) {
  return guarded([&] {
    require(kernel, "kernel");
    *kernel = 0;
    const auto used = runtimes().use("runtime", runtime);
    *kernel = kernels().add(std::make_unique<Kernel>(
        Kernel{.prepared = prepare(*used->attention, read_descriptor(descriptor), used->device,
                                   static_cast<CUstream_st*>(stream)),
               .trust = used->trust,
               .allocator = used->allocator}));
  });
}

attnjit_status attnjit_is_cold(attnjit_runtime runtime, const char* descriptor, int32_t* is_cold) {
  return guarded([&] {
    require(is_cold, "is_cold");
    const auto used = runtimes().use("runtime", runtime);
    *is_cold = used->attention->is_ready(read_descriptor(descriptor), used->device) ? 0 : 1;
  });
}

attnjit_status attnjit_kernel_release(attnjit_kernel kernel) {
  return guarded_end([kernel] {
    if (kernel != 0) {
      kernels().remove("kernel", kernel);
    }
  });
}

}  // extern "C"
