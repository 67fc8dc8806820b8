// Owners of device memory, streams, graphs and events, for callers that bring no framework of their
// own (tools, examples, tests). Each belongs to one device, whose primary context it uses;
// move-only; one thread at a time. Calls throw CudaError; destructors never throw.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

struct CUctx_st;
struct CUevent_st;
struct CUgraphExec_st;
struct CUstream_st;

namespace attnjit {

class DeviceStream;

// Where device memory comes from in place of the driver, e.g. a framework's pool.
struct DeviceAllocator {
  static constexpr std::size_t alignment_bytes = 256;  // of what `allocate` gives

  // Null: there is no memory left.
  std::function<void*(int device, std::size_t bytes)> allocate;
  std::function<void(int device, void* memory, std::size_t bytes)> release;  // does not throw
};

// Plain device memory.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  // From `allocator`, or the driver if that is null.
  DeviceBuffer(int device, std::size_t bytes,
               std::shared_ptr<const DeviceAllocator> allocator = nullptr);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept;
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

  // Copies in stream order; `source` may be reused at once. Not while `stream` is captured.
  void upload(const void* source, std::size_t bytes, CUstream_st* stream);

  // Copies in stream order and waits for the copy.
  void download(void* destination, std::size_t bytes, CUstream_st* stream) const;

  // Sets every byte, in stream order.
  void fill(unsigned char value, CUstream_st* stream);

 private:
  int device_ = 0;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::shared_ptr<const DeviceAllocator> allocator_;
};

// Copies from device memory that is someone else's, in stream order, and waits for the copy.
void download_device_memory(const void* source, void* destination, std::size_t bytes,
                            const DeviceStream& stream);

// A device buffer that holds `values`, uploaded and ready.
template <typename Value>
DeviceBuffer make_device_buffer(int device, std::span<const Value> values, CUstream_st* stream) {
  DeviceBuffer buffer(device, values.size_bytes());
  buffer.upload(values.data(), values.size_bytes(), stream);
  return buffer;
}

template <typename Value>
std::vector<Value> download_values(const DeviceBuffer& buffer, std::size_t count,
                                   CUstream_st* stream) {
  std::vector<Value> values(count);
  buffer.download(values.data(), count * sizeof(Value), stream);
  return values;
}

class DeviceStream {
 public:
  explicit DeviceStream(int device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;

  CUstream_st* handle() const { return stream_; }
  int device() const { return device_; }
  void synchronize() const;

 private:
  int device_;
  CUstream_st* stream_ = nullptr;
};

// Work captured from a stream, to be replayed.
class DeviceGraph {
 public:
  // Captures what `enqueue` queues on `stream` instead of running it. If `enqueue` throws, the
  // capture is ended and dropped.
  DeviceGraph(const DeviceStream& stream, const std::function<void()>& enqueue);
  ~DeviceGraph();
  DeviceGraph(const DeviceGraph&) = delete;
  DeviceGraph& operator=(const DeviceGraph&) = delete;

  void launch(const DeviceStream& stream) const;

 private:
  int device_;
  CUgraphExec_st* graph_ = nullptr;
};

class DeviceEvent {
 public:
  explicit DeviceEvent(int device);
  ~DeviceEvent();
  DeviceEvent(const DeviceEvent&) = delete;
  DeviceEvent& operator=(const DeviceEvent&) = delete;

  void record(const DeviceStream& stream);

  // Waits for this event; the time since `start`, in microseconds.
  double microseconds_since(const DeviceEvent& start) const;

 private:
  int device_;
  CUevent_st* event_ = nullptr;
};

}  // namespace attnjit
