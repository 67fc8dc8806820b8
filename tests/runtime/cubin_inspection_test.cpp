#include "cubin_inspection.hpp"

#include "catch.hpp"
#include "sample_kernels.hpp"

using namespace attnjit;
using namespace attnjit::test;

TEST_CASE("target checks: a cubin tells its architecture and its kernels") {
  std::string problem;
  const auto contents = inspect_cubin(sample_cubin(100, "decode"), &problem);
  REQUIRE(contents);
  CHECK(contents->architecture == 100);
  CHECK(contents->kernels == std::vector<std::string>{"decode"});
}

TEST_CASE(
    "target checks: a cubin in the format before CUDA 13 has its architecture in the lowest byte") {
  std::string cubin = sample_cubin(0, "decode");
  cubin[7] = 0x33;   // EI_OSABI
  cubin[48] = 0x5a;  // e_flags as NVRTC 12.4 writes them for sm_90a: 0x5a0d5a
  cubin[49] = 0x0d;
  cubin[50] = 0x5a;
  std::string problem;
  REQUIRE(inspect_cubin(cubin, &problem));
  CHECK(inspect_cubin(cubin, &problem)->architecture == 90);
}

TEST_CASE("target checks: a cubin is accepted for its own architecture and entry alone") {
  const std::string cubin = sample_cubin(90, "decode");
  CHECK(!cubin_problem(cubin, "sm_90a", "decode"));
  CHECK(!cubin_problem(cubin, "sm_90", "decode"));
  CHECK(contains(cubin_problem(cubin, "sm_80", "decode").value(), "is for sm_90, not sm_80"));
  CHECK(contains(cubin_problem(cubin, "sm_90a", "dec").value(), "no kernel dec, only: decode"));
  CHECK(cubin_problem("", "sm_90a", "decode") == "the cubin is empty");
}

TEST_CASE("target checks: a cubin cut anywhere is refused") {
  const std::string cubin = sample_cubin(90, "decode");
  for (std::size_t length = 0; length < cubin.size(); ++length) {
    CHECK(cubin_problem(cubin.substr(0, length), "sm_90a", "decode"));
  }
}

TEST_CASE("a cubin with any one byte changed is read without leaving its bounds") {
  const std::string cubin = sample_cubin(90, "decode");
  std::string problem;
  for (std::size_t i = 0; i < cubin.size(); ++i) {
    std::string changed = cubin;
    changed[i] = static_cast<char>(~changed[i]);
    inspect_cubin(changed, &problem);
  }
  CHECK(!inspect_cubin(std::string(200, 'x'), &problem));
  CHECK(problem == "is not an ELF file");
}
