#include "attnjit/loaded_kernel.hpp"

#include "attnjit/kernel_launch.hpp"
#include "catch.hpp"
#include "driver.hpp"
#include "mock_driver.hpp"
#include "sample_kernels.hpp"

#include <cstring>
#include <thread>
#include <vector>

using namespace attnjit;
using namespace attnjit::test;

namespace {

const KernelShape shape = {
    .entry = "sample_entry", .num_threads = 128, .shared_memory_bytes = 98304};

struct Arguments {
  void* pointer;
  float scale;
  int padding[12];
};

CUstream sample_stream() {
  return reinterpret_cast<CUstream>(std::uintptr_t{0x77});
}

}  // namespace

TEST_CASE("launch layer: a cubin is loaded once and its kernel found by its entry name") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  cubin.on_device(0);
  cubin.on_device(1);
  CHECK(mock.loaded_cubins == std::vector<std::string>{"cubin bytes"});
  CHECK(mock.kernel_names == std::vector<std::string>{"sample_entry"});
}

TEST_CASE(
    "launch layer: shared memory is allowed once for each device, with its primary context "
    "current") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  for (const int ordinal : {0, 1, 0, 1, 1}) {
    CHECK(cubin.on_device(ordinal).device == ordinal);
  }
  REQUIRE(mock.set_attributes.size() == 2);
  CHECK(mock.functions_got == 2);
  for (const int ordinal : {0, 1}) {
    const SetAttribute& set = mock.set_attributes[static_cast<std::size_t>(ordinal)];
    CHECK(set.attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    CHECK(set.value == 98304);
    CHECK(set.device == ordinal);
    CHECK(set.context == driver.primary_context(ordinal));
  }
  CHECK(mock.context_stack.empty());
}

TEST_CASE("launch layer: eight threads that ask for one device make it ready once") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { cubin.on_device(1); });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  CHECK(mock.set_attributes.size() == 1);
}

TEST_CASE("a cubin that the driver refuses is an error that names the kernel") {
  fresh_mock_driver().load_result = CUDA_ERROR_INVALID_VALUE;
  const Driver driver(mock_driver_path);
  const std::string message =
      message_of<CudaError>([&] { LoadedCubin(driver, "cubin bytes", shape); });
  CHECK(contains(message, "cuLibraryLoadData of kernel sample_entry failed with"));
}

TEST_CASE("a cubin is unloaded only on request") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  { LoadedCubin(driver, "cubin bytes", shape).on_device(0); }
  CHECK(mock.unloaded.empty());
  LoadedCubin(driver, "cubin bytes", shape).unload();
  CHECK(mock.unloaded.size() == 1);
}

TEST_CASE(
    "launch layer: a launch passes grid, block, shared memory, stream and the argument bytes") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  const LoadedKernel kernel = cubin.on_device(0);
  const Arguments arguments = {.pointer = &mock, .scale = 0.5f, .padding = {7}};
  launch(kernel, {.x = 3, .y = 5, .z = 7}, sample_stream(), &arguments);
  REQUIRE(mock.launches.size() == 1);
  const Launch& made = mock.launches[0];
  CHECK(made.config.gridDimX == 3);
  CHECK(made.config.gridDimY == 5);
  CHECK(made.config.gridDimZ == 7);
  CHECK(made.config.blockDimX == 128);
  CHECK(made.config.blockDimY * made.config.blockDimZ == 1);
  CHECK(made.config.sharedMemBytes == 98304);
  CHECK(made.config.hStream == sample_stream());
  CHECK(made.function == reinterpret_cast<CUfunction>(kernel.kernel));
  CHECK(std::memcmp(made.arguments.data(), &arguments, sizeof(arguments)) == 0);
  CHECK(made.attributes.empty());
}

TEST_CASE(
    "launch layer: only a launch that may overlap the previous kernel carries the attribute for "
    "it") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  const Arguments arguments{};
  launch(cubin.on_device(0), {.x = 1}, sample_stream(), &arguments,
         LaunchOrder::overlapping_previous);
  REQUIRE(mock.launches.at(0).attributes.size() == 1);
  const CUlaunchAttribute& attribute = mock.launches[0].attributes[0];
  CHECK(attribute.id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  CHECK(attribute.value.programmaticStreamSerializationAllowed == 1);
}

TEST_CASE("launch layer: the default stream works from a thread that has no current context") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  const Arguments arguments{};
  launch(cubin.on_device(1), {.x = 1}, nullptr, &arguments);
  CHECK(mock.launches.back().context == driver.primary_context(1));
  CHECK(mock.context_stack.empty());
}

TEST_CASE("launch layer: a failed launch names kernel, device, grid, threads and shared memory") {
  MockDriver& mock = fresh_mock_driver();
  const Driver driver(mock_driver_path);
  LoadedCubin cubin(driver, "cubin bytes", shape);
  const LoadedKernel kernel = cubin.on_device(1);
  mock.launch_result = CUDA_ERROR_INVALID_VALUE;
  const Arguments arguments{};
  const std::string message =
      message_of<CudaError>([&] { launch(kernel, {.x = 2, .y = 4}, sample_stream(), &arguments); });
  CHECK(contains(message,
                 "cuLaunchKernelEx of kernel sample_entry on device 1 (grid 2x4x1, 128 "
                 "threads, 98304 bytes of shared memory) failed with "
                 "CUDA_ERROR_INVALID_VALUE"));
}
