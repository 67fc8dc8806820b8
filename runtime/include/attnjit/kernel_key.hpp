// RenderedKernel -> make_cache_key -> CacheKey: every byte that shapes a cubin, and nothing else:
// no path, time, process or environment. The same function serves warming and running. Pure,
// thread-safe.
#pragma once

#include "attnjit/cache_key.hpp"
#include "attnjit/rendered_kernel.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

// The options, in order, that every compile of `kernel` by that toolchain passes, without those
// made from the key itself.
std::vector<std::string> compile_options(const RenderedKernel& kernel,
                                         std::string_view toolchain_identity);

// Key of the cubin that `options` and the toolchain make of `kernel`.
CacheKey make_cache_key(const RenderedKernel& kernel, const std::vector<std::string>& options,
                        std::string_view toolchain_identity);

// Key of the record that says which toolchain last compiled `kernel` into this cache. It lets a
// process that has no compiler, or may not use it, form the key of that toolchain's cubin.
CacheKey make_toolchain_record_key(const RenderedKernel& kernel);

}  // namespace attnjit
