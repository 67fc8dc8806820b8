#include "attnjit/kernel_key.hpp"

#include "nvrtc_options.hpp"

namespace attnjit {
namespace {

// Raise it when the meaning of a section changes: entries of other schemas are then never found.
constexpr std::string_view schema = "attnjit kernel 1";

void add_kernel(CacheKeyBuilder& builder, const RenderedKernel& kernel) {
  builder.add("arch", kernel.arch).add("entry", kernel.entry).add("source", kernel.source);
  for (const SourceFile& header : kernel.headers) {
    builder.add("header", header.name).add("text", header.text);
  }
}

}  // namespace

std::vector<std::string> compile_options(const RenderedKernel& kernel,
                                         std::string_view toolchain_identity) {
  return nvrtc_options(kernel.arch,
                       version_of_identity(toolchain_identity).value_or(NvrtcVersion{}));
}

CacheKey make_cache_key(const RenderedKernel& kernel, const std::vector<std::string>& options,
                        std::string_view toolchain_identity) {
  CacheKeyBuilder builder;
  builder.add("schema", schema).add("toolchain", toolchain_identity);
  for (const std::string& option : options) {
    builder.add("option", option);
  }
  add_kernel(builder, kernel);
  return builder.finish();
}

CacheKey make_toolchain_record_key(const RenderedKernel& kernel) {
  CacheKeyBuilder builder;
  add_kernel(builder, kernel);
  // The digest keeps a record small; the entry that it leads to is verified in full.
  return CacheKeyBuilder()
      .add("schema", schema)
      .add("toolchain_of", builder.finish().digest)
      .finish();
}

}  // namespace attnjit
