#include "job_shard.hpp"

#include <string>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "catch.hpp"
#include "command.hpp"

namespace attnjit {
namespace {

std::string refusal(const std::string& text) {
  try {
    parse_job_shard(text);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

KernelJobs some_jobs(int count) {
  KernelJobs list;
  for (int i = 0; i < count; ++i) {
    list.jobs.push_back({ScheduleConfig{.block_n = i, .num_threads = 1024}, {}, {}, ""});
  }
  list.refused.push_back({});
  return list;
}

TEST_CASE("shards hold every job once between them, and the first the refusals") {
  for (const std::size_t count : {1U, 2U, 3U, 7U, 20U}) {
    std::vector<int> seen(10, 0);
    std::size_t refusals = 0;
    for (std::size_t index = 0; index < count; ++index) {
      const KernelJobs share = take_shard(some_jobs(10), {index, count});
      for (const KernelJob& job : share.jobs) {
        ++seen.at(static_cast<std::size_t>(std::get<ScheduleConfig>(job.config).block_n));
      }
      refusals += share.refused.size();
    }
    CHECK(seen == std::vector<int>(10, 1));
    CHECK(refusals == 1);
  }
}

TEST_CASE("a shard is index/count, and anything else is refused with the fix") {
  CHECK(parse_job_shard("0/1").count == 1);
  CHECK(parse_job_shard("3/8").index == 3);
  for (const char* text : {"", "1", "/", "1/", "/2", "2/2", "-1/2", "0/0", "1/x", "0x1/4", "1/2/3",
                           " 0/1", "0/65537", "99999999999999999999/99999999999999999999"}) {
    INFO(text);
    CHECK(refusal(text).starts_with("--shard = "));
    CHECK(refusal(text).find("; fix: ") != std::string::npos);
  }
}

}  // namespace
}  // namespace attnjit
