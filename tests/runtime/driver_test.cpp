#include "driver.hpp"

#include "attnjit/target_device_query.hpp"
#include "catch.hpp"
#include "mock_driver.hpp"
#include "sample_kernels.hpp"

#include <algorithm>

using namespace attnjit;
using namespace attnjit::test;

namespace {

// What opening the driver `path` fails with.
DriverProblem problem_of(const char* path, std::string& message) {
  try {
    const Driver driver(path);
  } catch (const DriverError& error) {
    message = error.what();
    return error.problem();
  }
  throw std::runtime_error("the driver opened");
}

}  // namespace

TEST_CASE("every entry point is asked for in the version of CUDA 12.0") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  CHECK(mock.asked_versions.at("cuMemAlloc") == 12000);
  CHECK(std::all_of(mock.asked_versions.begin(), mock.asked_versions.end(),
                    [](const auto& asked) { return asked.second == 12000; }));
  CHECK(driver.version() == 13000);
}

TEST_CASE("no driver needed: an absent driver is named, and what works without one") {
  std::string message;
  CHECK(problem_of("/nonexistent/libcuda.so.1", message) == DriverProblem::absent);
  CHECK(contains(message, "/nonexistent/libcuda.so.1"));
  CHECK(contains(message, "compiling and warming do not"));
}

TEST_CASE("no driver needed: a stub that answers every call with error 34 is recognised") {
  MockDriver& mock = fresh_mock_driver();
  std::string message;
  SECTION("at the first lookup") {
    mock.every_result = CUDA_ERROR_STUB_LIBRARY;
  }
  SECTION("at cuInit") {
    mock.init_result = CUDA_ERROR_STUB_LIBRARY;
  }
  CHECK(problem_of(mock_driver_path, message) == DriverProblem::stub);
  CHECK(contains(message, "LD_LIBRARY_PATH"));
}

TEST_CASE("a driver that lacks an entry point is too old, and the name is given") {
  fresh_mock_driver().missing_name = "cuLibraryLoadData";
  std::string message;
  CHECK(problem_of(mock_driver_path, message) == DriverProblem::too_old);
  CHECK(contains(message, "cuLibraryLoadData"));
}

TEST_CASE("a driver without a GPU is told apart from a broken one") {
  MockDriver& mock = fresh_mock_driver();
  std::string message;
  mock.init_result = CUDA_ERROR_NO_DEVICE;
  CHECK(problem_of(mock_driver_path, message) == DriverProblem::no_device);
  mock.init_result = CUDA_ERROR_SYSTEM_DRIVER_MISMATCH;
  CHECK(problem_of(mock_driver_path, message) == DriverProblem::failed);
  CHECK(contains(message, "(803)"));
}

TEST_CASE("a failed call is reported with its name, code and meaning") {
  fresh_mock_driver();
  const Driver driver(mock_driver_path);
  try {
    driver.check(CUDA_ERROR_INVALID_VALUE, "cuMemAlloc");
    FAIL("nothing was thrown");
  } catch (const CudaError& error) {
    CHECK(error.code() == CUDA_ERROR_INVALID_VALUE);
    CHECK(std::string(error.what()) ==
          "cuMemAlloc failed with CUDA_ERROR_INVALID_VALUE (1): the mock was told to fail");
  }
}

TEST_CASE("a primary context is retained once for each device") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  const CUcontext first = driver.primary_context(0);
  CHECK(driver.primary_context(0) == first);
  CHECK(driver.primary_context(1) != first);
  CHECK(mock.retained_devices == std::vector<int>{0, 1});
  CHECK_THROWS_AS(driver.primary_context(2), CudaError);
}

TEST_CASE("a GPU is described by the driver's attributes") {
  MockDriver& mock = fresh_mock_driver();
  mock.attributes = {{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
                     {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
                     {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
                     {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
                     {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
                     {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560}};
  const Driver driver(mock_driver_path);
  const TargetDevice device = query_target_device(driver, 1);
  CHECK(device.name == "Mock GPU 1");
  CHECK(device.arch == "sm_90a");
  CHECK(device.compute_capability == 90);
  CHECK(device.num_sms == 132);
  CHECK(device.shared_memory_per_block == 232448);
  CHECK(device.shared_memory_per_sm == 233472);
  CHECK(device.l2_bytes == 62914560);
  mock.attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 12;
  CHECK(query_target_device(driver, 0).arch == "sm_120");
}
