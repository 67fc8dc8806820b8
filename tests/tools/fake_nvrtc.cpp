// A libnvrtc for tests of `attnjit warm`: makes a cubin by hand in no time, or does with a kernel
// what NVRTC should not. Steered by environment variables, which worker processes inherit:
//   ATTNJIT_FAKE_NVRTC      "crash:combine_splits hang:schedule_decode": what befalls which
//   template ATTNJIT_FAKE_NVRTC_MS   milliseconds of every compile ATTNJIT_FAKE_NVRTC_LOG  a file;
//   every compile appends "<process> <template>\n"
#include <fcntl.h>
#include <nvrtc.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "../runtime/sample_kernels.hpp"

struct _nvrtcProgram {
  std::string entry;
  std::string cubin;
};

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

bool befalls(const std::string& fate, const std::string& entry) {
  return (" " + variable("ATTNJIT_FAKE_NVRTC") + " ").find(" " + fate + ":" + entry + " ") !=
         std::string::npos;
}

void log_compile(const std::string& entry) {
  const std::string line = std::to_string(getpid()) + " " + entry + "\n";
  const int file =
      open(variable("ATTNJIT_FAKE_NVRTC_LOG").c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  if (file >= 0) {
    [[maybe_unused]] const ssize_t written = write(file, line.data(), line.size());
    close(file);
  }
}

// Whether more address space can be had than any kernel needs.
bool has_memory() {
  constexpr std::size_t piece = std::size_t{1} << 26;
  constexpr std::size_t most = 512;
  std::vector<void*> pieces;
  while (pieces.size() < most) {
    void* memory = std::malloc(piece);
    if (memory == nullptr) {
      break;
    }
    pieces.push_back(memory);
  }
  const bool has_all = pieces.size() == most;
  for (void* memory : pieces) {
    std::free(memory);
  }
  return has_all;
}

}  // namespace

extern "C" {

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

const char* nvrtcGetErrorString(nvrtcResult result) {
  return result == NVRTC_ERROR_OUT_OF_MEMORY ? "NVRTC_ERROR_OUT_OF_MEMORY" : "some error";
}

nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = 3;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetSupportedArchs(int* archs) {
  archs[0] = 80;
  archs[1] = 90;
  archs[2] = 120;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char*, const char* name, int,
                               const char* const*, const char* const*) {
  const std::string path = name;  // "<entry>.cu"
  *program = new _nvrtcProgram{.entry = path.substr(0, path.rfind('.')), .cubin = ""};
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char* const* options) {
  log_compile(program->entry);
  if (befalls("crash", program->entry)) {
    std::raise(SIGSEGV);
  }
  while (befalls("hang", program->entry)) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
  if (befalls("memory", program->entry) && !has_memory()) {
    return NVRTC_ERROR_OUT_OF_MEMORY;
  }
  std::this_thread::sleep_for(
      std::chrono::milliseconds(std::atoi(variable("ATTNJIT_FAKE_NVRTC_MS").c_str())));
  int architecture = 0;
  for (int i = 0; i < count; ++i) {
    constexpr const char* prefix = "--gpu-architecture=sm_";
    if (std::strncmp(options[i], prefix, std::strlen(prefix)) == 0) {
      architecture = std::atoi(options[i] + std::strlen(prefix));
    }
  }
  program->cubin = attnjit::test::sample_cubin(architecture, program->entry);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, std::size_t* bytes) {
  *bytes = 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char* log) {
  *log = '\0';
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, std::size_t* bytes) {
  *bytes = program->cubin.size();
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* cubin) {
  std::memcpy(cubin, program->cubin.data(), program->cubin.size());
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram, std::size_t* bytes) {
  *bytes = 1;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram, char* ptx) {
  *ptx = '\0';
  return NVRTC_SUCCESS;
}

}  // extern "C"
