// One worker process of `attnjit warm`: this same binary, started anew, spoken to over a socket
// that is its standard input and output. It starts with every signal at its default and none
// blocked, in this process's directory and environment, and in a process group of its own, so that
// a Ctrl-C at the terminal reaches only this process, which decides. It ends with this process,
// however that ends, for its input ends then. Owned and used by one thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

namespace attnjit {

class WorkerProcess {
 public:
  // Starts `attnjit <arguments>`. Throws std::system_error.
  explicit WorkerProcess(const std::vector<std::string>& arguments);
  ~WorkerProcess();  // kills it
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // What becomes readable when it says something, or ends.
  int descriptor() const { return socket_; }

  // Sends a line. A worker that is gone does not take it; its end is found by read_lines.
  void send(std::string_view line) const;

  // The whole lines that can be read now, without their ends; nullopt once it has ended.
  std::optional<std::vector<std::string>> read_lines();

  // Kills it if it still runs. How it ended, and the end of what it wrote to standard error:
  // "ended by signal 11 (Segmentation fault)".
  std::string end();

 private:
  pid_t process_ = -1;  // -1: reaped
  int socket_ = -1;
  int errors_ = -1;  // a file without a name: its standard error
  std::string unread_;
};

}  // namespace attnjit
