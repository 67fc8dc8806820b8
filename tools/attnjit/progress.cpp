#include "progress.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "standard_streams.hpp"

namespace attnjit {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t bar_cells = 20;
constexpr int default_width = 80;

int terminal_width(std::FILE* out) {
  winsize size{};
  const bool known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : default_width;
}

// An event as one line.
void write_event(std::FILE* out, std::string_view event, const Json& fields) {
  Json line = {{"schema", 1}, {"event", event}};
  line.update(fields);
  write_text(out, line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
  std::fflush(out);
}

}  // namespace

ProgressStyle progress_style_for(std::FILE* out) {
  const char* terminal = std::getenv("TERM");
  const bool can_redraw = terminal != nullptr && std::string_view(terminal) != "dumb";
  return can_redraw && isatty(fileno(out)) == 1 ? ProgressStyle::bar : ProgressStyle::lines;
}

std::string format_progress_bar(const ProgressState& state, int width) {
  const std::size_t total = std::max<std::size_t>(state.total, 1);
  const std::size_t filled = std::min(bar_cells, bar_cells * state.done / total);
  std::string line =
      fmt::format("[{:#<{}}{:.<{}}] {}/{}  {:.1f} s", "", filled, "", bar_cells - filled,
                  state.done, state.total, state.elapsed_seconds);
  if (state.seconds_left && state.done < state.total) {
    line += fmt::format("  ETA {:.1f} s", *state.seconds_left);
  }
  if (!state.current.empty()) {
    line += fmt::format("  {} of {} workers: {}", state.current.size(), state.workers,
                        fmt::join(state.current, "; "));
  }
  return line.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

Progress::Progress(std::FILE* out, ProgressStyle style, std::size_t total, int workers)
    : out_(out), style_(style), start_(std::chrono::steady_clock::now()) {
  state_.total = total;
  state_.workers = workers;
  if (style_ == ProgressStyle::json) {
    write_event(out_, "begin", {{"total", total}, {"workers", workers}});
  }
}

Progress::~Progress() {
  clear();
  if (style_ == ProgressStyle::json) {
    write_event(
        out_, "end",
        {{"done", state_.done}, {"total", state_.total}, {"elapsed_seconds", elapsed_seconds()}});
  }
}

void Progress::begin(std::size_t job, const ProgressJob& what) {
  in_hand_[job] = what.kernel + " " + what.arch;
  if (style_ == ProgressStyle::json) {
    write_event(out_, "start", {{"job", job}, {"kernel", what.kernel}, {"arch", what.arch}});
  }
  draw();
}

void Progress::postpone(std::size_t job, const ProgressJob& what) {
  in_hand_.erase(job);
  if (style_ == ProgressStyle::json) {
    write_event(out_, "postpone", {{"job", job}, {"kernel", what.kernel}, {"arch", what.arch}});
  }
  draw();
}

void Progress::finish(std::size_t job, const ProgressJob& what, const ProgressOutcome& outcome) {
  ++state_.done;
  in_hand_.erase(job);
  if (style_ == ProgressStyle::lines) {
    write_text(out_, fmt::format("[{}/{}] {} {}: {}\n", state_.done, state_.total, what.kernel,
                                 what.arch, outcome.words));
  } else if (style_ == ProgressStyle::json) {
    Json fields = {{"job", job},
                   {"kernel", what.kernel},
                   {"arch", what.arch},
                   {"state", outcome.state},
                   {"done", state_.done},
                   {"total", state_.total},
                   {"elapsed_seconds", elapsed_seconds()}};
    if (outcome.milliseconds) {
      fields["compile_milliseconds"] = *outcome.milliseconds;
    }
    if (state_.seconds_left) {
      fields["seconds_left"] = *state_.seconds_left;
    }
    if (!outcome.problem.empty()) {
      fields["problem"] = outcome.problem;
    }
    write_event(out_, "finish", fields);
  }
  draw();
}

void Progress::notice(std::string_view message) {
  if (style_ == ProgressStyle::json) {
    write_event(out_, "notice", {{"message", message}});
    return;
  }
  clear();
  write_text(out_, fmt::format("attnjit: {}\n", escape_controls(message)));
  draw();
}

void Progress::tick(double seconds_left) {
  state_.seconds_left = seconds_left;
  draw();
}

void Progress::draw() {
  if (style_ != ProgressStyle::bar) {
    return;
  }
  state_.elapsed_seconds = elapsed_seconds();
  state_.current.clear();
  for (const auto& [job, words] : in_hand_) {
    state_.current.push_back(words);
  }
  clear();
  // One column less than there is: a full line makes some terminals wrap.
  write_text(out_, format_progress_bar(state_, terminal_width(out_) - 1));
  std::fflush(out_);
}

void Progress::clear() {
  if (style_ == ProgressStyle::bar) {
    write_text(out_, "\r\033[K");  // to the line's begin, erase to its end (ECMA-48 EL)
    std::fflush(out_);
  }
}

double Progress::elapsed_seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

}  // namespace attnjit
