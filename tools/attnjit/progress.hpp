// Progress of a list of jobs that run several at a time, on stderr: a bar that redraws itself on a
// terminal, one line per finished job or one JSON event per line elsewhere (logs, CI, other
// programs). Used from one thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnjit {

enum class ProgressStyle { bar, lines, json, none };

// bar if `out` is a terminal that can move its cursor, else lines.
ProgressStyle progress_style_for(std::FILE* out);

struct ProgressState {
  std::size_t done = 0;
  std::size_t total = 0;
  double elapsed_seconds = 0;
  std::optional<double> seconds_left;
  int workers = 0;
  std::vector<std::string> current;  // the jobs in hand
};

// One line of at most `width` characters: bar, done/total, elapsed, ETA, workers, jobs in hand.
std::string format_progress_bar(const ProgressState& state, int width);

struct ProgressJob {
  std::string kernel;  // in words
  std::string arch;
};

// How a job ended.
struct ProgressOutcome {
  std::string words;                   // e.g. "compiled in 210 ms"
  std::string_view state;              // as the report names it
  std::optional<double> milliseconds;  // of its compile
  std::string problem;                 // why it failed
};

class Progress {
 public:
  // `workers`: as many jobs at most run at a time.
  Progress(std::FILE* out, ProgressStyle style, std::size_t total, int workers);
  ~Progress();  // takes the bar off the screen, or tells the end
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void begin(std::size_t job, const ProgressJob& what);
  // It was begun, and will be begun again.
  void postpone(std::size_t job, const ProgressJob& what);
  // Of a job that was begun or not.
  void finish(std::size_t job, const ProgressJob& what, const ProgressOutcome& outcome);
  void notice(std::string_view message);
  void tick(double seconds_left);

 private:
  void draw();
  void clear();
  double elapsed_seconds() const;

  std::FILE* out_;  // not owned
  ProgressStyle style_;
  ProgressState state_;
  std::map<std::size_t, std::string> in_hand_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace attnjit
