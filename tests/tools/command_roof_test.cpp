#include <string>

#include <nlohmann/json.hpp>

#include "card_rates.hpp"
#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

json row_of(const std::string& arguments) {
  const CommandOutput output = run_attnjit("roof " + arguments + " --json");
  INFO(output.err);
  REQUIRE(output.exit_code == 0);
  return json::parse(output.out).at("rows").at(0);
}

}  // namespace

TEST_CASE("a latent decode reads its cache once, and its floor is memory's") {
  const json row = row_of("deepseek-v3 --tp 8 --arch h200 --batch 64 --seqlen-kv 4096");
  const double keys = 64.0 * 4096;
  CHECK(row.at("flops") == 2 * keys * 16 * (576 + 512));
  CHECK(row.at("tensors").at("k_cache") == keys * 576 * 2);
  CHECK(row.at("tensors").at("q") == 64.0 * 16 * 576 * 2);
  CHECK(row.at("tensors").at("out") == 64.0 * 16 * 512 * 2);
  CHECK(!row.at("tensors").contains("v_cache"));
  CHECK(row.at("bound") == "memory");
  CHECK(row.at("floor_us").get<double>() == Approx(1e6 * row.at("bytes").get<double>() / 4.6e12));
  CHECK(row.at("flops_per_byte").get<double>() ==
        Approx(row.at("flops").get<double>() / row.at("bytes").get<double>()));
}

TEST_CASE("a small call is bound by its launches, a long prefill by the tensor cores") {
  CHECK(row_of("'{}' --arch h200 --batch 1 --seqlen-kv 1").at("bound") == "launch");
  const json prefill =
      row_of("llama-3.1-8b --phases prefill --arch h200 --batch 1 --seqlen-kv 8192");
  CHECK(prefill.at("bound") == "tensor cores");
  // Causal: a half and a half diagonal of all pairs.
  CHECK(prefill.at("flops") == 2 * (8192.0 * 8193 / 2) * 32 * 256);
  CHECK(prefill.at("seqlen_q") == 8192);
}

TEST_CASE("every preset has rates, and what is no preset is refused by name") {
  for (const TargetDevice& device : target_device_presets()) {
    INFO(device.name);
    CHECK(check::find_card_rates(device).has_value());
  }
  TargetDevice other = find_target_device("h200").value();
  other.name = "NVIDIA H200";
  CHECK(check::find_card_rates(other).value().card == "h200");
  other.num_sms = 7;
  CHECK(!check::find_card_rates(other).has_value());
  CHECK(check::launch_microseconds(2) > check::launch_microseconds(1));
}

}  // namespace attnjit
