#include "ptxas_log.hpp"

#include "catch.hpp"

using namespace attnjit;

namespace {

// As NVRTC 13.0 writes it, with a called function and another kernel around.
constexpr const char* sample_log =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
    "ptxas info    : Function properties for other\n"
    "ptxas         .     8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
    "ptxas info    : Used 255 registers, used 1 barriers\n"
    "ptxas info    : Compiling entry function 'decode' for 'sm_90a'\n"
    "ptxas info    : Function properties for decode\n"
    "ptxas         .     1200 bytes stack frame, 16 bytes spill stores, 24 bytes spill loads\n"
    "ptxas info    : Used 40 registers, used 4 barriers, 1200 bytes cumulative stack size, "
    "400 bytes smem\n"
    "ptxas info    : Function properties for helper\n"
    "ptxas         .     99 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads\n";

}  // namespace

TEST_CASE("the resources of a kernel are read from its own part of the log") {
  CHECK(parse_resources(sample_log, "decode") == KernelResources{.registers = 40,
                                                                 .barriers = 4,
                                                                 .stack_frame_bytes = 1200,
                                                                 .spill_store_bytes = 16,
                                                                 .spill_load_bytes = 24,
                                                                 .static_shared_bytes = 400});
  CHECK(parse_resources(sample_log, "other").registers == 255);
}

TEST_CASE("a log that says nothing of a kernel gives zeros") {
  CHECK(parse_resources(sample_log, "deco") == KernelResources{});
  CHECK(parse_resources("", "decode") == KernelResources{});
}

TEST_CASE("a log of NVRTC 12.4, which names no barriers, is read") {
  const char* old_log =
      "ptxas info    : Compiling entry function 'k' for 'sm_80'\n"
      "ptxas info    : Used 40 registers, 400 bytes smem, 360 bytes cmem[0]\n";
  CHECK(parse_resources(old_log, "k") == KernelResources{.registers = 40,
                                                         .barriers = 0,
                                                         .stack_frame_bytes = 0,
                                                         .spill_store_bytes = 0,
                                                         .spill_load_bytes = 0,
                                                         .static_shared_bytes = 400});
}

TEST_CASE("remarks that wgmma was serialised are found by their code") {
  const std::string remark =
      "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are "
      "serialized due to insufficient register resources";
  CHECK(serialization_notes(std::string(sample_log) + remark + "\n") ==
        std::vector<std::string>{remark});
  CHECK(serialization_notes(sample_log).empty());
}
