// Token-sparse kernels of every encoding, tile and type: they compile for each architecture and
// keep everything in registers.
#include <string>

#include "catch.hpp"
#include "compiled_kernels.hpp"
#include "sparse_mla_descriptor.hpp"

namespace {

using namespace attnjit;
using namespace attnjit::test;

TEST_CASE("token-sparse kernels compile for every architecture without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  for (const KvEncoding encoding : {KvEncoding::plain, KvEncoding::fp8_656, KvEncoding::fp8_584}) {
    for (const int heads : {16, 32, 128}) {
      AttentionDescriptor descriptor = sparse_mla(Operation::sparse_mla_decode, heads, encoding);
      descriptor.has_sinks = heads != 32;
      for (const char* arch : architectures) {
        add_kernels({"token-sparse " + std::string(to_string(encoding)), descriptor}, arch, library,
                    kernels);
      }
    }
  }
  check_all_compile(kernels);
}

TEST_CASE("token-sparse kernels of other head dims and of fp16 compile without local memory") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  Kernels kernels;
  struct HeadDims {
    int qk;
    int v;
  };
  for (const HeadDims dims : {HeadDims{512, 512}, {320, 256}, {72, 40}, {8, 8}}) {
    for (const int heads : {8, 128}) {
      AttentionDescriptor descriptor = sparse_mla(Operation::sparse_mla_prefill, heads);
      descriptor.head_dim_qk = dims.qk;
      descriptor.head_dim_v = dims.v;
      descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = DataType::fp16;
      for (const char* arch : {"sm_80", "sm_90a"}) {
        add_kernels({"token-sparse fp16", descriptor}, arch, library, kernels);
      }
    }
  }
  check_all_compile(kernels);
}

}  // namespace
