// How long compiles take: by the kind of kernel, corrected by those that were seen. Orders the jobs
// of a warm, longest first, and says what is left. Used by one thread.
#pragma once

#include <map>
#include <span>
#include <string_view>
#include <vector>

#include "kernel_jobs.hpp"

namespace attnjit {

class CompileEstimate {
 public:
  // Expected milliseconds of a compile: the mean of its kind so far; before there is one, what its
  // kind took where this was written, times how much slower or faster this machine has been.
  double milliseconds(const KernelJob& job) const;

  void record(const KernelJob& job, double milliseconds);

  // Seconds until `workers` have done all of `jobs`, taken as they come.
  double seconds(std::span<const KernelJob* const> jobs, int workers) const;

 private:
  struct Kind {
    double total = 0;  // milliseconds
    int count = 0;
  };
  std::map<std::string_view, Kind> kinds_;  // by the template's name
  double seen_ = 0;                         // milliseconds, of all kinds
  double expected_ = 0;                     // the same by the table
};

// The indices of `jobs`, longest first; of equal ones, in order.
std::vector<std::size_t> longest_first(std::span<const KernelJob> jobs);

}  // namespace attnjit
