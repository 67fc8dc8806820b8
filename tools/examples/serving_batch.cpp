#include "serving_batch.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <utility>

namespace attnjit_example {

ServingBatch::ServingBatch(std::vector<Request> requests, int capacity, int num_pages,
                           int page_size)
    : waiting_(std::move(requests)),
      capacity_(static_cast<std::size_t>(capacity)),
      page_size_(page_size) {
  // Taken from the end: scattered from the first request on.
  for (int page = 0; page < num_pages; ++page) {
    free_pages_.insert(page % 3 == 0 ? free_pages_.begin() : free_pages_.end(), page);
  }
}

void ServingBatch::give_pages(Request& request) {
  while (static_cast<int>(request.pages.size()) * page_size_ < request.length) {
    if (free_pages_.empty()) {
      throw std::runtime_error("the cache has no page left: give it more of them");
    }
    request.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

std::vector<Request> ServingBatch::admit(int step) {
  std::vector<Request> admitted;
  while (!waiting_.empty() && waiting_.front().arrival <= step && active_.size() < capacity_) {
    Request request = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    request.length = request.prompt;
    give_pages(request);
    admitted.push_back(request);
    active_.push_back(std::move(request));
  }
  return admitted;
}

void ServingBatch::grow() {
  for (Request& request : active_) {
    ++request.length;
    give_pages(request);
  }
}

void ServingBatch::retire() {
  const auto leaves = std::stable_partition(active_.begin(), active_.end(), [](const Request& one) {
    return one.length < one.prompt + one.wanted;
  });
  for (auto request = leaves; request != active_.end(); ++request) {
    free_pages_.insert(free_pages_.end(), request->pages.begin(), request->pages.end());
  }
  active_.erase(leaves, active_.end());
}

}  // namespace attnjit_example
