// A share of the kernels to warm, for the tasks of an array job that fill one cache together. Pure
// functions, thread-safe.
#pragma once

#include <string_view>

#include "kernel_jobs.hpp"

namespace attnjit {

struct JobShard {
  std::size_t index = 0;  // from 0
  std::size_t count = 1;
};

// "3/8": index 3 of 8. Throws UsageError.
JobShard parse_job_shard(std::string_view text);

// Every count-th job from `index` on. The first shard alone keeps the refusals, so that the shards
// together say what the whole would.
KernelJobs take_shard(KernelJobs list, const JobShard& shard);

}  // namespace attnjit
