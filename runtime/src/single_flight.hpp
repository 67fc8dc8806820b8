// One computation per key at a time: callers that come while it runs wait for its result instead of
// repeating it. Thread-safe.
#pragma once

#include <future>
#include <map>
#include <mutex>
#include <string>

namespace attnjit {

template <typename Result>
class SingleFlight {
 public:
  // Calls `compute`, or waits for the caller that is running it under the same key; both get its
  // result, or its exception. Nothing is remembered once it has ended.
  template <typename Compute>
  Result run(const std::string& key, const Compute& compute) {
    std::promise<Result> promise;
    {
      std::unique_lock lock(mutex_);
      const auto [flight, is_first] = flights_.try_emplace(key);
      if (!is_first) {
        const std::shared_future<Result> result = flight->second;
        lock.unlock();
        return result.get();
      }
      flight->second = promise.get_future().share();
    }
    return lead(key, compute, promise);
  }

 private:
  template <typename Compute>
  Result lead(const std::string& key, const Compute& compute, std::promise<Result>& promise) {
    try {
      Result result = compute();
      promise.set_value(result);
      land(key);
      return result;
    } catch (...) {
      promise.set_exception(std::current_exception());
      land(key);
      throw;
    }
  }

  void land(const std::string& key) {
    const std::lock_guard lock(mutex_);
    flights_.erase(key);
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_future<Result>> flights_;
};

}  // namespace attnjit
