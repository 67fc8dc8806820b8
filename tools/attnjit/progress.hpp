// Progress of a list of jobs, on stderr: a bar that redraws itself on a terminal, one line per
// finished job elsewhere (logs, CI). Used from one thread.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

namespace attnjit {

enum class ProgressStyle { bar, lines };

// bar if `out` is a terminal that can move its cursor, else lines.
ProgressStyle progress_style_for(std::FILE* out);

struct ProgressState {
  int done = 0;
  int total = 0;
  double elapsed_seconds = 0;
  std::string current;  // the job in hand
};

// One line of at most `width` characters: bar, done/total, elapsed, ETA, current job. The ETA takes
// the mean of the jobs done; none before the first is.
std::string format_progress_bar(const ProgressState& state, int width);

class Progress {
 public:
  Progress(std::FILE* out, ProgressStyle style, int total);
  ~Progress();  // takes the bar off the screen
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(std::string_view job);
  void finish(std::string_view outcome);  // of the job begun last, e.g. "compiled in 210 ms"

 private:
  void draw();
  void clear();

  std::FILE* out_;  // not owned
  ProgressStyle style_;
  ProgressState state_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace attnjit
