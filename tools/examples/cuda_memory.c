#include "cuda_memory.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef unsigned long long device_pointer;

static struct {
  int (*init)(unsigned flags);
  int (*device_count)(int* count);
  int (*device)(int* device, int ordinal);
  int (*retain_context)(void** context, int device);
  int (*set_context)(void* context);
  int (*create_stream)(void** stream, unsigned flags);
  int (*synchronize)(void* stream);
  int (*allocate)(device_pointer* pointer, size_t bytes);
  int (*release)(device_pointer pointer);
  int (*to_device)(device_pointer to, const void* from, size_t bytes);
  int (*to_host)(void* to, device_pointer from, size_t bytes);
} cuda;

static int find(void* library, const char* name, void* function) {
  void* const address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != NULL;
}

static void check_cuda(int result, const char* what) {
  if (result != 0) {
    printf("FAIL %s: CUDA error %d\n", what, result);
    exit(EXIT_FAILURE);
  }
}

const char* open_cuda(void) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW);
  int count = 0;
  if (library == NULL) {
    return "libcuda.so.1 cannot be opened";
  }
  if (!find(library, "cuInit", &cuda.init) ||
      !find(library, "cuDeviceGetCount", &cuda.device_count) ||
      !find(library, "cuDeviceGet", &cuda.device) ||
      !find(library, "cuDevicePrimaryCtxRetain", &cuda.retain_context) ||
      !find(library, "cuCtxSetCurrent", &cuda.set_context) ||
      !find(library, "cuStreamCreate", &cuda.create_stream) ||
      !find(library, "cuStreamSynchronize", &cuda.synchronize) ||
      !find(library, "cuMemAlloc_v2", &cuda.allocate) ||
      !find(library, "cuMemFree_v2", &cuda.release) ||
      !find(library, "cuMemcpyHtoD_v2", &cuda.to_device) ||
      !find(library, "cuMemcpyDtoH_v2", &cuda.to_host)) {
    return "libcuda.so.1 lacks a function";
  }
  if (cuda.init(0) != 0 || cuda.device_count(&count) != 0 || count == 0) {
    return "libcuda.so.1 finds no device";
  }
  int device = 0;
  void* context = NULL;
  check_cuda(cuda.device(&device, 0), "cuDeviceGet");
  check_cuda(cuda.retain_context(&context, device), "cuDevicePrimaryCtxRetain");
  check_cuda(cuda.set_context(context), "cuCtxSetCurrent");
  return NULL;
}

void* create_stream(void) {
  enum { non_blocking = 1 };
  void* stream = NULL;
  check_cuda(cuda.create_stream(&stream, non_blocking), "cuStreamCreate");
  return stream;
}

void synchronize(void* stream) {
  check_cuda(cuda.synchronize(stream), "cuStreamSynchronize");
}

void* allocate_device(size_t bytes) {
  device_pointer pointer = 0;
  check_cuda(cuda.allocate(&pointer, bytes > 0 ? bytes : 1), "cuMemAlloc");
  return (void*)(uintptr_t)pointer;
}

void release_device(void* memory) {
  check_cuda(cuda.release((device_pointer)(uintptr_t)memory), "cuMemFree");
}

void* upload(const void* values, size_t bytes) {
  void* const memory = allocate_device(bytes);
  check_cuda(cuda.to_device((device_pointer)(uintptr_t)memory, values, bytes), "cuMemcpyHtoD");
  return memory;
}

void download(void* values, const void* memory, size_t bytes) {
  check_cuda(cuda.to_host(values, (device_pointer)(uintptr_t)memory, bytes), "cuMemcpyDtoH");
}
