// What a plan refuses before it touches a GPU.
#include <memory>
#include <string>
#include <utility>

#include "attnjit/argument_error.hpp"
#include "attnjit/config_selection.hpp"
#include "attnjit/paged_decode.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace attnjit {
namespace {

std::shared_ptr<PreparedDecode> batch_invariant_kernels() {
  auto kernels = std::make_shared<PreparedDecode>();
  kernels->descriptor = test::latent_decode(16);
  kernels->descriptor.batch_invariant = true;
  kernels->target = find_target_device("h200").value();
  const auto configs = configure_decode(kernels->descriptor, kernels->target, {});
  kernels->config = configs[0];
  kernels->tile = decode_tile(configs[0]);
  kernels->combine_config = std::get<CombineConfig>(configs[1]);
  kernels->schedule_config = std::get<ScheduleConfig>(configs[2]);
  return kernels;
}

std::string refusal(int max_batch, int max_seqlen_kv, bool batch_invariant = true) {
  auto kernels = batch_invariant_kernels();
  kernels->descriptor.batch_invariant = batch_invariant;
  try {
    DecodePlan(std::move(kernels), max_batch, 1, max_seqlen_kv);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a batch-invariant plan wants the keys of its longest request") {
  CHECK(refusal(4, 0).find("max_seqlen_kv = 0: must be at least 1 for a batch-invariant "
                           "descriptor, whose workspace grows with it; fix: give the keys of the "
                           "longest request") != std::string::npos);
}

TEST_CASE("a plan that follows the batch refuses a negative number of keys") {
  CHECK(refusal(4, -5, false).find("max_seqlen_kv = -5: must be 0 or more") != std::string::npos);
}

TEST_CASE("a batch-invariant plan refuses more chunks than can be counted") {
  // 2^31 / 1000000 = 2147 chunks of 512 keys each.
  CHECK(refusal(1000000, 2147483647)
            .find("max_seqlen_kv = 2147483647: must be at most 1099264 for 1000000 requests; fix: "
                  "split the batch") != std::string::npos);
}

}  // namespace
}  // namespace attnjit
