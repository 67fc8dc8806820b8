#include "progress.hpp"
#include "standard_streams.hpp"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace attnjit {
namespace {

constexpr int bar_cells = 20;
constexpr int default_width = 80;

int terminal_width(std::FILE* out) {
  winsize size{};
  const bool known = ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : default_width;
}

}  // namespace

ProgressStyle progress_style_for(std::FILE* out) {
  const char* terminal = std::getenv("TERM");
  const bool can_redraw = terminal != nullptr && std::string_view(terminal) != "dumb";
  return can_redraw && isatty(fileno(out)) == 1 ? ProgressStyle::bar : ProgressStyle::lines;
}

std::string format_progress_bar(const ProgressState& state, int width) {
  const int total = std::max(state.total, 1);
  const int filled = std::min(bar_cells, bar_cells * state.done / total);
  std::string line =
      fmt::format("[{:#<{}}{:.<{}}] {}/{}  {:.1f} s", "", filled, "", bar_cells - filled,
                  state.done, state.total, state.elapsed_seconds);
  if (state.done > 0 && state.done < state.total) {
    line += fmt::format("  ETA {:.1f} s",
                        state.elapsed_seconds / state.done * (state.total - state.done));
  }
  if (!state.current.empty()) {
    line += "  " + state.current;
  }
  return line.substr(0, static_cast<std::size_t>(std::max(width, 0)));
}

Progress::Progress(std::FILE* out, ProgressStyle style, int total)
    : out_(out), style_(style), start_(std::chrono::steady_clock::now()) {
  state_.total = total;
}

Progress::~Progress() {
  clear();
}

void Progress::begin(std::string_view job) {
  state_.current = job;
  draw();
}

void Progress::finish(std::string_view outcome) {
  ++state_.done;
  if (style_ == ProgressStyle::lines) {
    write_text(out_,
               fmt::format("[{}/{}] {}: {}\n", state_.done, state_.total, state_.current, outcome));
  }
  state_.current.clear();
  draw();
}

void Progress::draw() {
  if (style_ != ProgressStyle::bar) {
    return;
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start_;
  state_.elapsed_seconds = elapsed.count();
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

}  // namespace attnjit
