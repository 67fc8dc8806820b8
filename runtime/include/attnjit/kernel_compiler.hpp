// RenderedKernel -> KernelCompiler -> CompiledKernel: the compile arrow of the straight line, as an
// interface so that a cache or a test can stand on something other than NVRTC. Implementations are
// thread-safe.
#pragma once

#include "attnjit/cache_key.hpp"
#include "attnjit/rendered_kernel.hpp"

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// The compiler is missing, too old, broken, or does not know the target: nothing is wrong with the
// kernel.
class ToolchainError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The kernel does not compile. The message holds config, options, log and the lines around each
// error.
class CompileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the assembler says one block of a kernel uses.
struct KernelResources {
  int registers = 0;            // per thread
  int barriers = 0;             // named barriers
  int stack_frame_bytes = 0;    // per thread
  int spill_store_bytes = 0;    // per thread
  int spill_load_bytes = 0;     // per thread
  int static_shared_bytes = 0;  // per block, besides the dynamic part

  friend bool operator==(const KernelResources&, const KernelResources&) = default;
};

struct CompiledKernel {
  std::string cubin;
  std::string log;
  KernelResources resources;
  std::vector<std::string> notes;  // lines of the log with a C75xx code: wgmma was serialised
  double milliseconds = 0;
};

class KernelCompiler {
 public:
  virtual ~KernelCompiler() = default;

  // Every version and setting that may change the bytes made; begins with "nvrtc <major>.<minor>".
  virtual std::string toolchain_identity() const = 0;

  // Compiles to a checked cubin. Throws CompileError or ToolchainError.
  virtual CompiledKernel compile(const RenderedKernel& kernel, const CacheKey& key) const = 0;
};

}  // namespace attnjit
