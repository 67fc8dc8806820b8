#include "interrupt.hpp"

#include <csignal>
#include <string_view>

#include <unistd.h>

namespace attnjit {
namespace {

// A signal handler can reach nothing but globals of this type.
volatile std::sig_atomic_t interrupt_received = 0;
volatile std::sig_atomic_t termination_received = 0;

void on_interrupt(int) {
  constexpr std::string_view notice =
      "\nattnjit: stopping after the kernels in hand; press Ctrl-C again to stop at once\n";
  interrupt_received = 1;
  // Nothing can be done about a notice that is not shown.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, notice.data(), notice.size());
}

void on_termination(int) {
  termination_received = 1;
}

void handle(int signal, void (*handler)(int), unsigned flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(flags | SA_RESTART);  // no call in progress fails
  sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_received = 0;
  termination_received = 0;
  handle(SIGINT, on_interrupt, SA_RESETHAND);  // the next one ends the process
  handle(SIGTERM, on_termination, 0);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}

StopRequest InterruptGuard::request() const {
  if (termination_received != 0) {
    return StopRequest::now;
  }
  return interrupt_received != 0 ? StopRequest::after_jobs_in_hand : StopRequest::none;
}

}  // namespace attnjit
