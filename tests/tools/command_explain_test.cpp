// attnjit explain: what it says is what select_configs does.
#include <fstream>
#include <string>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

using nlohmann::json;

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The name of the candidate that is taken; each decode has exactly one.
std::string taken_of(const json& decode) {
  std::string taken;
  for (const json& candidate : decode.at("candidates")) {
    if (candidate.at("taken") == true) {
      CHECK(taken.empty());
      CHECK(candidate.at("unmet").empty());
      taken = candidate.at("kernel");
    }
  }
  return taken;
}

TEST_CASE("explain names the kernel that select_configs takes, on every target") {
  for (const char* options : {"--tp 8", "--tp 2", "--tp 2 --page 1", "--tp 8 --max-seqlen-q 2"}) {
    const CommandOutput output =
        run_attnjit(std::string("explain deepseek-v3 --phases decode --json --arch "
                                "sm_80,h200,b200 ") +
                    options);
    REQUIRE(output.exit_code == 0);
    const json document = json::parse(output.out);
    CHECK(document.at("schema") == 1);
    REQUIRE(document.at("decodes").size() == 3);
    for (const json& decode : document.at("decodes")) {
      CHECK(decode.at("candidates").size() == 3);
      CHECK(taken_of(decode) == decode.at("configs").at(0).at("kernel"));
      CHECK(decode.at("configs").size() == 3);
    }
  }
}

TEST_CASE("explain says what a kernel needs that the call does not have") {
  const std::string out = run_attnjit("explain deepseek-v3 --tp 2 --page 1 --arch h200,b200").out;
  CHECK(holds(out, "on h200 (sm_90a)\n"));
  CHECK(holds(out,
              "\nswapped_decode_sm90  64 query rows (max_seqlen_q 1 of 64 heads per kv head) are "
              "more than 16\n"));
  CHECK(holds(out, "\nseesaw_decode_sm90   taken\n"));
  CHECK(holds(out, "attention: seesaw_decode_sm90 bf16 576/512 x64 page 1 gathered none\n"));
  CHECK(holds(out, "needs sm_90a, b200 is sm_100; 64 query rows"));
  CHECK(holds(out, "\npaged_decode_sm80    taken\n"));
  const std::string grouped = run_attnjit("explain llama-3.1-8b --arch h200").out;
  CHECK(holds(grouped, "value_source = separate is not prefix_of_k"));
  const std::string latent = run_attnjit("explain deepseek-v3 --tp 8 --arch h200").out;
  CHECK(holds(latent, "\nswapped_decode_sm90  taken\n"));
  CHECK(holds(latent, "seesaw_decode_sm90   could serve it, comes after swapped_decode_sm90\n"));
  CHECK(holds(latent, "attention: swapped_decode_sm90 bf16 576/512 x16 page 64 none rows 16"));
}

TEST_CASE("explain says whether a measurement or the model chose") {
  CHECK(holds(run_attnjit("explain deepseek-v3 --tp 8 --arch b200").out,
              "\nchosen by the model: no tuned row for this decode on this card\n"));
  const json document = json::parse(run_attnjit("explain deepseek-v3 --arch b200 --json").out);
  CHECK(document.at("decodes").at(0).at("tuned") == false);
}

TEST_CASE("explain of a batch-invariant decode names its chunks") {
  const std::string out =
      run_attnjit("explain deepseek-v3 --tp 8 --arch h200 --batch-invariant").out;
  CHECK(holds(out, "mask causal, batch-invariant, on h200"));
  CHECK(holds(out, "rows 16 ring 9 chunks 8\n"));
  CHECK(holds(out, "warps 16, segments of 8\n"));
}

const std::string descriptor =
    R"({"operation": "decode", "head_dim_qk": 128, "head_dim_v": 128, "num_q_heads": 8, )"
    R"("num_kv_heads": 8})";

TEST_CASE("explain takes a descriptor, as text or in a file") {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "decode.json").string();
  std::ofstream(file) << descriptor;
  for (const std::string& what : {descriptor, file}) {
    const CommandOutput output = run_attnjit("explain '" + what + "' --arch l40s");
    CHECK(output.exit_code == 0);
    CHECK(holds(output.out, "decode 128/128, 8 query heads, 8 kv heads, up to 1 query token"));
    CHECK(holds(output.out, "needs sm_90a, l40s is sm_89"));
  }
  const CommandOutput refused = run_attnjit("explain '{\"operation\": \"prefill\"}'");
  CHECK(refused.exit_code == 3);
  CHECK(refused.out.empty());
  CHECK(holds(refused.err, "must be ragged or dense for prefill; fix: "));
}

TEST_CASE("options that mean nothing beside a descriptor are refused, by every command") {
  for (const std::string command : {"explain", "src", "check", "bench"}) {
    for (const std::string option : {"--page 1", "--tp 8", "--dtype fp16", "--kv-dtype fp16",
                                     "--max-seqlen-q 9", "--batch-invariant"}) {
      const CommandOutput output = run_attnjit(command + " '" + descriptor + "' " + option);
      CHECK(output.exit_code == 2);
      CHECK(output.err == "attnjit: " + option.substr(0, option.find(' ')) +
                              " was given with a descriptor, where it means nothing; fix: leave "
                              "it out\n");
    }
  }
}

TEST_CASE("options that say how a model is deployed are refused beside a key") {
  const CommandOutput output = run_attnjit("src 0123456789ab --tp 8");
  CHECK(output.exit_code == 2);
  CHECK(holds(output.err, "--tp was given with a key, which names one kernel"));
}

TEST_CASE("decodes that no kernel serves are told with their layers, never left out") {
  const CommandOutput some = run_attnjit("explain llama-4-scout --arch h200");
  CHECK(some.exit_code == 0);
  CHECK(holds(some.err, "refused: decode, layers 0-2, 4-6, "));
  CHECK(holds(some.err, "  mask = chunked_causal: "));
  CHECK(holds(some.out, "decode, layers 3, 7, 11, "));
  const json document = json::parse(run_attnjit("explain llama-4-scout --arch h200 --json").out);
  CHECK(document.at("decodes").size() == 1);
  REQUIRE(document.at("refused").size() == 1);
  CHECK(document.at("refused").at(0).at("layers").size() == 36);
  const CommandOutput none = run_attnjit("explain gemma-2-2b --phases decode");
  CHECK(none.exit_code == 3);
  CHECK(holds(none.err, "layers 1, 3, 5"));
  CHECK(holds(none.err, ": score_modifier = softcap: "));
}

TEST_CASE("layers with windows and sinks are served, each kind by kernels of its own") {
  const CommandOutput output = run_attnjit("explain gpt-oss-20b --phases decode --arch h200");
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(holds(output.out, "decode, layers 0, 2, 4, "));
  CHECK(holds(output.out, "page 64, mask sliding_window 127/0, sinks, on h200 (sm_90a)\n"));
  CHECK(holds(output.out, "page 64, mask causal, sinks, on h200 (sm_90a)\n"));
  CHECK(holds(output.out, "x8 page 64 sliding_window 127/0 sinks m16 "));
  CHECK(holds(output.out, "x8 page 64 none sinks m16 "));
}

TEST_CASE("explain names the kernel of each prefill, and what merges its parts") {
  const CommandOutput output =
      run_attnjit("explain deepseek-v3 --tp 8 --phases prefill --arch h200");
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(output.out ==
        "prefill, layers 0-60: 192/128, 16 query heads, 16 kv heads, any number of query tokens, "
        "bf16, ragged, mask causal, on h200 (sm_90a)\n"
        "one kernel serves every prefill; its tile follows from the call and the card; where few "
        "query rows leave a GPU idle, several thread blocks share their keys, and a second merges\n"
        "prefill: prefill_sm80 bf16 192/128 x1 causal m128 n64 warps 4\n"
        "combine: combine_prefill bf16 128 x1 m128\n\n");
  const std::string invariant =
      R"('{"operation": "prefill_kvcache", "max_seqlen_q": 0, "batch_invariant": true}')";
  CHECK(holds(run_attnjit("explain " + invariant + " --arch h200").out,
              "thread blocks never share a tile's keys"));
  const std::string paged =
      R"('{"operation": "prefill_kvcache", "max_seqlen_q": 9, "mask": "document"}')";
  CHECK(holds(run_attnjit("explain " + paged + " --arch a100").out,
              "prefill 128/128, 32 query heads, 8 kv heads, up to 9 query tokens, bf16, page 64, "
              "mask document, on a100 (sm_80)\n"));
}

TEST_CASE("explain of both phases has the decodes and the prefills, each kind by itself") {
  const json document =
      json::parse(run_attnjit("explain llama-4-scout --arch h200,a100 --json").out);
  CHECK(document.at("decodes").size() == 2);
  REQUIRE(document.at("prefills").size() == 4);
  const json& prefill = document.at("prefills").at(0);
  CHECK(prefill.at("target") == "h200");
  CHECK(prefill.at("descriptor").at("operation") == "prefill_kvcache");
  CHECK(prefill.at("configs").at(0).at("kernel") == "prefill_sm80");
  CHECK_FALSE(prefill.contains("candidates"));
  REQUIRE(document.at("refused").size() == 1);
  CHECK(document.at("refused").at(0).at("phase") == "decode");
}

TEST_CASE("commands about decode refuse prefill by name") {
  for (const std::string command : {"check", "tune"}) {
    const CommandOutput output = run_attnjit(command + " llama-3.1-8b --phases prefill");
    CHECK(output.exit_code == 2);
    CHECK(holds(output.err, "phases = prefill: this command knows only decode; fix: "));
  }
}

TEST_CASE("another operation's descriptor is refused by name") {
  const CommandOutput output =
      run_attnjit(R"(explain '{"operation": "merge_states"}' --arch h200)");
  CHECK(output.exit_code == 3);
  CHECK(holds(output.err,
              "operation = merge_states: must be decode, prefill, prefill_kvcache, "
              "mla_prefill_rope, sparse_mla_decode or sparse_mla_prefill here; fix: "));
  const CommandOutput tuned = run_attnjit(R"(tune '{"operation": "prefill_kvcache"}')");
  CHECK(tuned.exit_code == 3);
  CHECK(holds(tuned.err, "operation = prefill_kvcache: must be decode here; fix: "));
  const CommandOutput timed = run_attnjit(R"(bench '{"operation": "merge_states"}')");
  CHECK(timed.exit_code == 3);
  CHECK(holds(timed.err,
              "operation = merge_states: must be decode, prefill or prefill_kvcache here; fix: "));
}

TEST_CASE("explain and src name the one kernel of token-sparse calls, tune and bench refuse them") {
  const CommandOutput output = run_attnjit("explain deepseek-v3.2 --tp 8 --arch h200");
  CHECK(output.exit_code == 0);
  CHECK(output.err.empty());
  CHECK(output.out ==
        "decode, layers 0-60: 576/512, 16 query heads, 1 kv head, up to 1 query token, bf16, page "
        "64, mask none, on h200 (sm_90a)\n"
        "one kernel serves all token-sparse attention; its tile follows from the heads, the "
        "encoding and the card\n"
        "sparse: sparse_mla_sm80 bf16 576/512 m16 n32 warps 4\n\n"
        "prefill, layers 0-60: 576/512, 16 query heads, 1 kv head, any number of query tokens, "
        "bf16, ragged, mask none, on h200 (sm_90a)\n"
        "one kernel serves all token-sparse attention; its tile follows from the heads, the "
        "encoding and the card\n"
        "sparse: sparse_mla_sm80 bf16 576/512 m16 n32 warps 4\n\n");
  const std::string fp8 = "deepseek-v3.2 --tp 8 --kv-dtype fp8_e4m3 --arch h200";
  CHECK(holds(run_attnjit("explain " + fp8).out,
              "sparse: sparse_mla_sm80 bf16 fp8_656 576/512 m16 n32 warps 4\n"));
  CHECK(holds(run_attnjit("src " + fp8 + " --kernel sparse --stage config").out,
              "constexpr KvEncoding kv_encoding = KvEncoding::fp8_656;"));
  const json document =
      json::parse(run_attnjit("explain deepseek-v3.2 --arch h200 --json --phases decode").out);
  REQUIRE(document.at("decodes").size() == 1);
  CHECK_FALSE(document.at("decodes").at(0).contains("candidates"));
  for (const std::string command : {"tune", "bench"}) {
    const CommandOutput refused = run_attnjit(command + " deepseek-v3.2");
    CHECK(refused.exit_code == 3);
    CHECK(holds(refused.err, "operation = sparse_mla_decode: must be decode here; fix: "));
  }
}

TEST_CASE("a merge has one kernel, which src shows without --kernel") {
  const std::string merge = R"(src '{"operation": "merge_states"}' --arch h200 --stage config)";
  CHECK(holds(run_attnjit(merge).out, "constexpr int head_dim_v = 128;"));
  const CommandOutput refused = run_attnjit(merge + " --kernel attention");
  CHECK(refused.exit_code == 2);
  CHECK(holds(refused.err, "kernel = attention: this operation has only merge; fix: "));
}

TEST_CASE("src shows the kernel of a model's prefill") {
  const std::string prefill = "src deepseek-v3 --tp 8 --phase prefill --arch h200";
  const CommandOutput flat = run_attnjit(prefill);
  CHECK(flat.exit_code == 0);
  CHECK(holds(flat.out, "\n#line 1 \"kernels/prefill_sm80.cu\"\n"));
  CHECK(holds(flat.out, "\n// ---- device/prefill_mask.cuh ----\n"));
  const CommandOutput config = run_attnjit(prefill + " --kernel prefill --stage config");
  CHECK(holds(config.out, "// The constants of one prefill_sm80 kernel.\n"));
  CHECK(holds(config.out, "constexpr int head_dim_qk = 192;"));
}

TEST_CASE("fields of a model that were not understood are told") {
  const TemporaryDirectory directory;
  const std::string file = (directory.path() / "config.json").string();
  std::ofstream(file) << R"({"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 1024,
    "num_attention_heads": 8, "num_key_value_heads": 8, "attention_oddity": 3})";
  const CommandOutput output = run_attnjit("explain " + file + " --arch h200");
  CHECK(output.exit_code == 0);
  CHECK(holds(output.err, "that look like attention were not understood: attention_oddity"));
}

}  // namespace
}  // namespace attnjit
