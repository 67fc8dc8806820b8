// A file to which every miss is appended, so that `attnjit warm --from-trace` can make beforehand
// what a run had to compile. Private to KernelProvider; thread-safe, and for any number of
// processes on one file.
#pragma once

#include "attnjit/kernel_provider.hpp"

#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>

namespace attnjit {

// One line, its end included: {"schema": 1, "config": {…}, "arch", "key", "toolchain", "reason",
// "detail"}. Empty for a kernel that no KernelConfig describes, which nothing can make again.
std::string miss_trace_line(const MissEvent& miss, std::string_view toolchain);

class MissTrace {
 public:
  // An empty `file` records nothing. Opens nothing yet.
  MissTrace(std::filesystem::path file, std::function<void(std::string_view)> warn);
  ~MissTrace();
  MissTrace(const MissTrace&) = delete;
  MissTrace& operator=(const MissTrace&) = delete;

  bool is_recording() const { return !file_.empty(); }

  // Appends one line by one write, so that lines of several processes do not mix. What fails is
  // told once, and never an error; a file whose other end would have to be waited for is not one.
  void record(const MissEvent& miss, std::string_view toolchain);

 private:
  bool open_file();
  void warn_once(std::string_view problem);

  std::filesystem::path file_;
  std::function<void(std::string_view)> warn_;
  std::mutex mutex_;  // guards what follows
  int descriptor_ = -1;
  bool is_torn_ = false;  // the last line was written in part
  bool has_warned_ = false;
};

}  // namespace attnjit
