// Which requests are served now, and where their tokens lie: what an engine's scheduler decides
// before a step. Host memory alone; used by one thread.
#pragma once

#include <vector>

namespace attnjit_example {

struct Request {
  int id = 0;
  int arrival = 0;  // step
  int prompt = 0;   // tokens that it brings
  int wanted = 0;   // tokens to decode
  int length = 0;   // tokens so far, the one of this step included
  std::vector<int> pages = {};
};

class ServingBatch {
 public:
  ServingBatch(std::vector<Request> requests, int capacity, int num_pages, int page_size);

  bool is_done() const { return waiting_.empty() && active_.empty(); }

  // Lets waiting requests in, as far as there is room. They have their prompt, and pages for it.
  std::vector<Request> admit(int step);

  // Each active request grows by the token of this step, into a page of its own where the last one
  // is full.
  void grow();

  // Those who have all their tokens leave, and their pages are given to others.
  void retire();

  const std::vector<Request>& active() const { return active_; }

 private:
  void give_pages(Request& request);

  std::vector<Request> waiting_;
  std::vector<Request> active_;
  std::vector<int> free_pages_;
  std::size_t capacity_;
  int page_size_;
};

}  // namespace attnjit_example
