#include "attnjit/device_memory.hpp"

#include <cstdint>
#include <exception>
#include <utility>

#include <fmt/format.h>

#include "driver.hpp"

namespace attnjit {
namespace {

CUdeviceptr device_pointer(void* data) {
  return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(data));
}

// The driver and a device's primary context, current for a scope.
struct DeviceScope {
  explicit DeviceScope(int device) : context(driver, driver.primary_context(device)) {}

  const Driver& driver = Driver::instance();
  ScopedContext context;
};

// Of destructors. Where the driver gives no context any more, as while the process ends or after a
// fault of the device, its objects are left to it.
template <typename Release>
void release_on(int device, const Release& release) noexcept {
  try {
    const DeviceScope scope(device);
    release(scope.driver.api());
  } catch (const std::exception&) {
    return;
  }
}

void* allocate_from(const DeviceAllocator& allocator, int device, std::size_t bytes) {
  void* const data = allocator.allocate(device, bytes);
  if (data == nullptr) {
    throw CudaError(CUDA_ERROR_OUT_OF_MEMORY,
                    fmt::format("the caller's allocator gave no memory: {} bytes on device {} were "
                                "asked for",
                                bytes, device));
  }
  if (reinterpret_cast<std::uintptr_t>(data) % DeviceAllocator::alignment_bytes != 0) {
    allocator.release(device, data, bytes);
    throw CudaError(CUDA_ERROR_MISALIGNED_ADDRESS,
                    fmt::format("the caller's allocator gave {}, which is not {}-byte aligned",
                                data, DeviceAllocator::alignment_bytes));
  }
  return data;
}

}  // namespace

DeviceBuffer::DeviceBuffer(int device, std::size_t bytes,
                           std::shared_ptr<const DeviceAllocator> allocator)
    : device_(device), bytes_(bytes), allocator_(std::move(allocator)) {
  if (allocator_ != nullptr) {
    data_ = allocate_from(*allocator_, device, bytes);
    return;
  }
  const DeviceScope scope(device);
  CUdeviceptr pointer = 0;
  scope.driver.check(scope.driver.api().mem_alloc(&pointer, bytes > 0 ? bytes : 1), "cuMemAlloc");
  data_ = reinterpret_cast<void*>(static_cast<std::uintptr_t>(pointer));
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr && allocator_ != nullptr) {
    allocator_->release(device_, data_, bytes_);
  } else if (data_ != nullptr) {
    release_on(device_, [&](const DriverApi& api) { api.mem_free(device_pointer(data_)); });
  }
}

DeviceBuffer::DeviceBuffer(DeviceBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      allocator_(std::move(other.allocator_)) {}

DeviceBuffer& DeviceBuffer::operator=(DeviceBuffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(allocator_, other.allocator_);
  return *this;
}

void DeviceBuffer::upload(const void* source, std::size_t bytes, CUstream_st* stream) {
  const DeviceScope scope(device_);
  scope.driver.check(
      scope.driver.api().memcpy_host_to_device_async(device_pointer(data_), source, bytes, stream),
      "cuMemcpyHtoDAsync");
}

void DeviceBuffer::download(void* destination, std::size_t bytes, CUstream_st* stream) const {
  const DeviceScope scope(device_);
  scope.driver.check(scope.driver.api().memcpy_device_to_host_async(
                         destination, device_pointer(data_), bytes, stream),
                     "cuMemcpyDtoHAsync");
  scope.driver.check(scope.driver.api().stream_synchronize(stream), "cuStreamSynchronize");
}

void DeviceBuffer::fill(unsigned char value, CUstream_st* stream) {
  const DeviceScope scope(device_);
  scope.driver.check(
      scope.driver.api().memset_d8_async(device_pointer(data_), value, bytes_, stream),
      "cuMemsetD8Async");
}

void download_device_memory(const void* source, void* destination, std::size_t bytes,
                            const DeviceStream& stream) {
  const DeviceScope scope(stream.device());
  const auto pointer = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(source));
  scope.driver.check(
      scope.driver.api().memcpy_device_to_host_async(destination, pointer, bytes, stream.handle()),
      "cuMemcpyDtoHAsync");
  stream.synchronize();
}

DeviceStream::DeviceStream(int device) : device_(device) {
  const DeviceScope scope(device);
  scope.driver.check(scope.driver.api().stream_create(&stream_, CU_STREAM_NON_BLOCKING),
                     "cuStreamCreate");
}

DeviceStream::~DeviceStream() {
  release_on(device_, [&](const DriverApi& api) { api.stream_destroy(stream_); });
}

void DeviceStream::synchronize() const {
  const DeviceScope scope(device_);
  scope.driver.check(scope.driver.api().stream_synchronize(stream_), "cuStreamSynchronize");
}

DeviceGraph::DeviceGraph(const DeviceStream& stream, const std::function<void()>& enqueue)
    : device_(stream.device()) {
  const DeviceScope scope(device_);
  const DriverApi& api = scope.driver.api();
  scope.driver.check(api.stream_begin_capture(stream.handle(), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     "cuStreamBeginCapture");
  CUgraph graph = nullptr;
  try {
    enqueue();
  } catch (...) {
    api.stream_end_capture(stream.handle(), &graph);
    if (graph != nullptr) {
      api.graph_destroy(graph);
    }
    throw;
  }
  scope.driver.check(api.stream_end_capture(stream.handle(), &graph), "cuStreamEndCapture");
  const CUresult result = api.graph_instantiate(&graph_, graph, 0);
  api.graph_destroy(graph);
  scope.driver.check(result, "cuGraphInstantiate");
}

DeviceGraph::~DeviceGraph() {
  release_on(device_, [&](const DriverApi& api) { api.graph_exec_destroy(graph_); });
}

void DeviceGraph::launch(const DeviceStream& stream) const {
  const DeviceScope scope(device_);
  scope.driver.check(scope.driver.api().graph_launch(graph_, stream.handle()), "cuGraphLaunch");
}

DeviceEvent::DeviceEvent(int device) : device_(device) {
  const DeviceScope scope(device);
  scope.driver.check(scope.driver.api().event_create(&event_, CU_EVENT_DEFAULT), "cuEventCreate");
}

DeviceEvent::~DeviceEvent() {
  release_on(device_, [&](const DriverApi& api) { api.event_destroy(event_); });
}

void DeviceEvent::record(const DeviceStream& stream) {
  const DeviceScope scope(device_);
  scope.driver.check(scope.driver.api().event_record(event_, stream.handle()), "cuEventRecord");
}

double DeviceEvent::microseconds_since(const DeviceEvent& start) const {
  const DeviceScope scope(device_);
  scope.driver.check(scope.driver.api().event_synchronize(event_), "cuEventSynchronize");
  float milliseconds = 0;
  scope.driver.check(scope.driver.api().event_elapsed_time(&milliseconds, start.event_, event_),
                     "cuEventElapsedTime");
  return 1000.0 * static_cast<double>(milliseconds);
}

}  // namespace attnjit
