// cubin -> LoadedCubin -> LoadedKernel: the load arrow of the straight line. One LoadedCubin serves
// every GPU of its architecture; one LoadedKernel is its kernel made ready on one of them.
// Thread-safe. Handles live until the process ends unless unloaded by name: unloading from exit
// handlers races with the driver's own shutdown.
#pragma once

#include <memory>
#include <string>

struct CUctx_st;
struct CUkern_st;

namespace attnjit {

class Driver;

// What a launch of the kernel needs, besides its arguments.
struct KernelShape {
  std::string entry;
  int num_threads = 0;          // per block
  int shared_memory_bytes = 0;  // dynamic, per block
};

// A kernel ready to launch on one device: loaded, attributes set. Cheap to copy; its LoadedCubin
// owns what it points to.
struct LoadedKernel {
  const Driver* driver = nullptr;
  CUkern_st* kernel = nullptr;
  int device = 0;               // CUDA ordinal
  CUctx_st* context = nullptr;  // the device's primary one
  unsigned num_threads = 0;
  unsigned shared_memory_bytes = 0;
  const char* entry = nullptr;
};

class LoadedCubin {
 public:
  // Hands `cubin` to the driver, which copies it. Throws CudaError.
  LoadedCubin(const Driver& driver, const std::string& cubin, KernelShape shape);

  // The same on this process's driver. Throws DriverError if there is none.
  LoadedCubin(const std::string& cubin, KernelShape shape);

  ~LoadedCubin();
  LoadedCubin(const LoadedCubin&) = delete;
  LoadedCubin& operator=(const LoadedCubin&) = delete;

  // Makes the kernel ready on a device, once; later calls only look it up. Works from any thread,
  // whatever context is current; not while a stream of the device is being captured. Throws
  // CudaError.
  LoadedKernel on_device(int ordinal);

  // Takes the kernel out of the driver. No launch of it may be queued, nor follow.
  void unload();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace attnjit
