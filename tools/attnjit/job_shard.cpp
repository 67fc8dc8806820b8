#include "job_shard.hpp"

#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "attnjit/shown_text.hpp"
#include "command.hpp"

namespace attnjit {
namespace {

constexpr std::size_t most_shards = 65536;

std::optional<std::size_t> parse_number(std::string_view text) {
  std::size_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc{} || stop != end) {
    return std::nullopt;
  }
  return number;
}

}  // namespace

JobShard parse_job_shard(std::string_view text) {
  const std::size_t slash = text.find('/');
  const auto index = parse_number(text.substr(0, slash));
  const auto count =
      slash == std::string_view::npos ? std::nullopt : parse_number(text.substr(slash + 1));
  if (!index || !count || *count > most_shards || *index >= *count) {
    throw UsageError(fmt::format(
        "--shard = {}: must be index/count, the index from 0 and below the count, the count at "
        "most "
        "{}; fix: in an array job, pass $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT or "
        "$JOB_COMPLETION_INDEX/<completions>",
        shown_text(text), most_shards));
  }
  return {*index, *count};
}

KernelJobs take_shard(KernelJobs list, const JobShard& shard) {
  KernelJobs share;
  for (std::size_t i = shard.index; i < list.jobs.size(); i += shard.count) {
    share.jobs.push_back(std::move(list.jobs[i]));
  }
  if (shard.index == 0) {
    share.refused = std::move(list.refused);
  }
  return share;
}

}  // namespace attnjit
