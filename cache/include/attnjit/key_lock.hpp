// One maker at a time per key, across processes: whoever holds the lock of a key makes its entry,
// the others wait and find it made.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

namespace attnjit {

// How long to wait for another holder.
struct LockPatience {
  std::chrono::milliseconds notice{2000};   // then on_wait is called, once
  std::chrono::milliseconds limit{600000};  // then one goes on without the lock
  std::function<void(std::string_view lock_file)> on_wait;
};

enum class LockRefusal {
  none,        // it is held
  busy,        // somebody else held it until patience ended
  impossible,  // no lock can be made
};

// Held until destroyed, or until the process ends, however it ends. Keys share 256 locks: hold one
// at a time. Not held, with the reason, where the directory cannot be written, the file system has
// no locks or patience ended: the caller goes on all the same, at worst the work is done twice.
class KeyLock {
 public:
  KeyLock(LockRefusal refusal, std::string problem)
      : refusal_(refusal), problem_(std::move(problem)) {}
  explicit KeyLock(int descriptor) : descriptor_(descriptor) {}
  KeyLock(KeyLock&& other) noexcept;
  KeyLock& operator=(KeyLock&&) = delete;
  ~KeyLock();

  bool is_held() const { return descriptor_ >= 0; }
  LockRefusal refusal() const { return refusal_; }
  const std::string& problem() const { return problem_; }  // empty if held

 private:
  int descriptor_ = -1;
  LockRefusal refusal_ = LockRefusal::none;
  std::string problem_;
};

}  // namespace attnjit
