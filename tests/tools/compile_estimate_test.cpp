#include "compile_estimate.hpp"

#include "catch.hpp"

namespace attnjit {
namespace {

KernelJob job(const KernelConfig& config) {
  return {.config = config, .target = {}, .uses = {}, .traced_key = ""};
}

}  // namespace

TEST_CASE("jobs are ordered by what their kinds take, longest first, equal ones as they come") {
  const std::vector<KernelJob> jobs = {job(CombinePrefillConfig{}), job(PrefillConfig{}),
                                       job(ScheduleConfig{}), job(SeesawDecodeConfig{}),
                                       job(PrefillConfig{})};
  CHECK(longest_first(jobs) == std::vector<std::size_t>{3, 1, 4, 2, 0});
}

TEST_CASE("a kind that was seen takes the mean of its compiles, one that was not the pace so far") {
  CompileEstimate estimate;
  const double table = estimate.milliseconds(job(ScheduleConfig{}));
  const double prefill = estimate.milliseconds(job(PrefillConfig{}));
  estimate.record(job(PrefillConfig{}), 2 * prefill);
  CHECK(estimate.milliseconds(job(PrefillConfig{})) == Approx(2 * prefill));
  CHECK(estimate.milliseconds(job(ScheduleConfig{})) == Approx(2 * table));
  estimate.record(job(PrefillConfig{}), 4 * prefill);
  CHECK(estimate.milliseconds(job(PrefillConfig{})) == Approx(3 * prefill));
}

TEST_CASE("what is left follows from kinds and workers, not from a mean over all") {
  CompileEstimate estimate;
  const KernelJob quick = job(ScheduleConfig{});
  const KernelJob slow = job(PrefillConfig{});
  estimate.record(quick, 100);
  estimate.record(slow, 5000);
  const std::vector<const KernelJob*> jobs = {&slow, &quick, &quick};
  CHECK(estimate.seconds(jobs, 1) == Approx(5.2));
  CHECK(estimate.seconds(jobs, 2) == Approx(5.0));
  CHECK(estimate.seconds({}, 2) == 0);
}

}  // namespace attnjit
