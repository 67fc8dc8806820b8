#include "error_excerpt.hpp"

#include "catch.hpp"
#include "sample_kernels.hpp"

using namespace attnjit;
using namespace attnjit::test;

TEST_CASE(
    "good errors: an error after a #line directive is shown with the directive's file and "
    "numbers") {
  const std::string excerpts =
      error_excerpts(sample_kernel(), "sample_entry.cu", "kernels/sample.cu(3): error: no\n");
  CHECK(excerpts ==
        "kernels/sample.cu:3\n"
        "      1 | extern \"C\" __global__ void sample_entry(float* values) {\n"
        "      2 |   extern __shared__ float tile[];\n"
        ">     3 |   tile[threadIdx.x] = values[threadIdx.x];\n"
        "      4 |   __syncthreads();\n"
        "      5 |   values[threadIdx.x] = scale(tile[blockDim.x - 1 - threadIdx.x]);\n"
        "      6 | }\n");
}

TEST_CASE("good errors: an error in a header or before any directive is shown from there") {
  CHECK(contains(
      error_excerpts(sample_kernel(), "sample_entry.cu", "device/constants.cuh(2): error: no\n"),
      "device/constants.cuh:2\n      1 | #pragma once\n>     2 | constexpr float"));
  CHECK(contains(
      error_excerpts(sample_kernel(), "sample_entry.cu", "sample_entry.cu(2): error: no\n"),
      ">     2 | #include \"device/scale.cuh\""));
}

TEST_CASE("good errors: each place is shown once, and warnings and unknown files not at all") {
  const std::string excerpts = error_excerpts(sample_kernel(), "sample_entry.cu",
                                              "device/scale.cuh(3): error: a\n"
                                              "device/scale.cuh(3): error #20: b\n"
                                              "device/scale.cuh(1): warning: c\n"
                                              "elsewhere.cuh(1): error: d\n"
                                              "device/scale.cuh(x): error: e\n");
  CHECK(contains(excerpts, ">     3 |"));
  CHECK(excerpts.find("device/scale.cuh:3") == excerpts.rfind("device/scale.cuh:3"));
  CHECK(!contains(excerpts, ">     1 |"));
  CHECK(!contains(excerpts, "elsewhere"));
}
