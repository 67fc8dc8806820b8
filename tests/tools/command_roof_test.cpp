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

TEST_CASE("an option that none of the calls reads is refused, with the reason") {
  const std::string decode = R"('{"max_seqlen_q": 2}')";
  const std::string prefill = R"('{"operation": "prefill", "kv_layout": "ragged", )"
                              R"("kv_layout_tag": "thd", "page_size": 0, "max_seqlen_q": 0}')";
  for (const std::string& arguments :
       {std::string("roof deepseek-v3 --arch h200 --seqlen-q 16"),
        "roof " + decode + " --seqlen-q 16", std::string("bench deepseek-v3 --seqlen-q 16"),
        std::string("check --tp 8"), std::string("check --batch 3"),
        std::string("check --suite decode --seqlen-kv 100"), std::string("check --phases decode"),
        std::string("plan deepseek-v3 --phases prefill --max-seqlen-q 4"),
        std::string("src deepseek-v3 --phase prefill --max-seqlen-q 4"),
        std::string("why '{}' --key-text --json"),
        std::string(R"(repro '{"operation": "merge_states"}' --out /proc/none --seqlen-kv 7)"),
        std::string("repro '{}' --kernel combine --out /proc/none --seqlen-kv 7"),
        std::string("repro '{}' --kernel schedule --out /proc/none --seed 7")}) {
    INFO(arguments);
    const CommandOutput output = run_attnjit(arguments);
    INFO(output.err);
    CHECK(output.exit_code == 2);
    CHECK(output.err.find(" was given with ") != std::string::npos);
    CHECK(output.err.find("where it means nothing; fix: leave it out") != std::string::npos);
  }
  CHECK(row_of(prefill + " --arch h200 --batch 1 --seqlen-q 16").at("seqlen_q") == 16);
  const CommandOutput both = run_attnjit(
      "roof llama-3.1-8b --arch h200 --batch 1 --phases decode,prefill --seqlen-q 16 --json");
  CHECK(json::parse(both.out).at("rows").size() == 2);
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
