// Ctrl-C as a question that a loop asks between two jobs, so that the one in hand is finished and
// published. The second Ctrl-C ends the process at once, as without this. One at a time in a
// process; asked from any thread.
#pragma once

namespace attnjit {

class InterruptGuard {
 public:
  InterruptGuard();   // takes over SIGINT
  ~InterruptGuard();  // gives it its default meaning back
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
};

}  // namespace attnjit
