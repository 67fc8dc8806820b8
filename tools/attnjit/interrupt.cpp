#include "interrupt.hpp"

#include <csignal>
#include <string_view>

#include <unistd.h>

namespace attnjit {
namespace {

// A signal handler can reach nothing but a global of this type.
volatile std::sig_atomic_t interrupt_received = 0;

void on_interrupt(int) {
  constexpr std::string_view notice =
      "\nattnjit: stopping after the kernel in hand; press Ctrl-C again to stop at once\n";
  interrupt_received = 1;
  // Nothing can be done about a notice that is not shown.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, notice.data(), notice.size());
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupt_received = 0;
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  // SA_RESETHAND: the next one ends the process. SA_RESTART: no call in progress fails.
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

InterruptGuard::~InterruptGuard() {
  std::signal(SIGINT, SIG_DFL);
}

bool InterruptGuard::interrupted() const {
  return interrupt_received != 0;
}

}  // namespace attnjit
