// Ctrl-C and SIGTERM as a question that a loop asks. The first Ctrl-C lets the jobs in hand end and
// be published; the second ends the process at once, as without this. SIGTERM asks to end now, for
// whoever sends it (a job scheduler, a container's end) waits only so long. One at a time in a
// process; asked from any thread.
#pragma once

namespace attnjit {

enum class StopRequest { none, after_jobs_in_hand, now };

class InterruptGuard {
 public:
  InterruptGuard();   // takes over SIGINT and SIGTERM
  ~InterruptGuard();  // gives them their default meaning back
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  StopRequest request() const;
};

}  // namespace attnjit
