#include "attnjit/kernel_config.hpp"

#include <nlohmann/json.hpp>

#include "attnjit/config_selection.hpp"
#include "attnjit/kernel_config_json.hpp"
#include "catch.hpp"
#include "field_perturbation.hpp"
#include "latent_descriptor.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;

template <typename Config>
void check_json_holds_every_field() {
  const Config original;
  const auto json = nlohmann::ordered_json::parse(to_json(KernelConfig(original)));
  const std::vector<std::string> names = test::field_names(original);
  CHECK(json.size() == names.size() + 1);
  for (const std::string& name : names) {
    CHECK(json.contains(name));
    const Config changed = test::with_another(original, name);
    CHECK(changed != original);
    CHECK(to_json(KernelConfig(changed)) != to_json(KernelConfig(original)));
    CHECK(kernel_config_from_json(to_json(KernelConfig(changed))) == KernelConfig(changed));
  }
  CHECK(kernel_config_from_json(to_json(KernelConfig(original))) == KernelConfig(original));
}

TEST_CASE("the JSON of a config holds the kernel's name and every field") {
  check_json_holds_every_field<PagedDecodeConfig>();
  check_json_holds_every_field<SwappedDecodeConfig>();
  check_json_holds_every_field<SeesawDecodeConfig>();
  check_json_holds_every_field<CombineConfig>();
  check_json_holds_every_field<ScheduleConfig>();
  check_json_holds_every_field<MergeStatesConfig>();
  check_json_holds_every_field<PrefillConfig>();
  check_json_holds_every_field<AppendKvCacheConfig>();
  check_json_holds_every_field<SparseMlaConfig>();
  check_json_holds_every_field<CombinePrefillConfig>();
  CHECK(to_json(KernelConfig(
            CombineConfig{DataType::fp16, 512, PartialOrder::accumulators, 64, 16, 4, true})) ==
        "{\"kernel\":\"combine_splits\",\"dtype\":\"fp16\",\"head_dim_v\":512,"
        "\"partial_order\":\"accumulators\",\"partial_rows\":64,\"num_warps\":16,\"segment_"
        "pieces\":4,"
        "\"overlaps_attention\":true,\"has_sinks\":false}");
}

TEST_CASE("a config that another version wrote, or nobody, is refused by its field") {
  const auto refusal_of = [](const std::string& json) {
    try {
      kernel_config_from_json(json);
      return std::string("none");
    } catch (const ConfigJsonError& error) {
      return std::string(error.what());
    }
  };
  const std::string merge = R"({"kernel":"merge_states","dtype":"bf16","num_threads":128)";
  CHECK(refusal_of(merge + "}").starts_with("head_dim_v: is missing; fix: "));
  CHECK(refusal_of(merge + R"(,"head_dim_v":"512"})").starts_with("head_dim_v = \"512\": must be"));
  CHECK(
      refusal_of(merge + R"(,"head_dim_v":512,"tile":1})").starts_with("tile = 1: is not a field"));
  CHECK(refusal_of(merge + R"(,"head_dim_v":512,"head_dim_v":5})")
            .starts_with("config: must be one"));
  CHECK(refusal_of("{}").starts_with("kernel: must be the name of a kernel template"));
  CHECK(refusal_of(R"({"kernel":"no_such"})").starts_with("kernel = \"no_such\": must be"));
  CHECK(refusal_of("[]").starts_with("config: must be one JSON object"));
  CHECK(refusal_of(merge).starts_with("config: is not JSON: "));
  CHECK(refusal_of(merge + R"(,"head_dim_v":512})") == "none");
}

TEST_CASE("each kernel has its role") {
  CHECK(role_of(PagedDecodeConfig{}) == KernelRole::attention);
  CHECK(role_of(SwappedDecodeConfig{}) == KernelRole::attention);
  CHECK(role_of(SeesawDecodeConfig{}) == KernelRole::attention);
  CHECK(role_of(CombineConfig{}) == KernelRole::combine);
  CHECK(role_of(ScheduleConfig{}) == KernelRole::schedule);
  CHECK(role_of(MergeStatesConfig{}) == KernelRole::merge);
  CHECK(role_of(PrefillConfig{}) == KernelRole::prefill);
  CHECK(role_of(AppendKvCacheConfig{}) == KernelRole::append);
  CHECK(role_of(SparseMlaConfig{}) == KernelRole::sparse);
  CHECK(role_of(CombinePrefillConfig{}) == KernelRole::combine);
  CHECK(to_string(KernelRole::attention) == "attention");
  CHECK(to_string(KernelRole::combine) == "combine");
  CHECK(to_string(KernelRole::schedule) == "schedule");
  CHECK(to_string(KernelRole::merge) == "merge");
  CHECK(to_string(KernelRole::prefill) == "prefill");
  CHECK(to_string(KernelRole::append) == "append");
  CHECK(to_string(KernelRole::sparse) == "sparse");
}

TEST_CASE("a config is described in one short line") {
  AttentionDescriptor descriptor = test::latent_decode(16);
  const auto portable = select_configs(descriptor, find_target_device("b200").value());
  CHECK(describe(portable[0]) ==
        "paged_decode_sm80 bf16 576/512 x16 page 64 none m16 n32 stages 2 warps 4");
  const auto configs = select_configs(descriptor, find_target_device("h200").value());
  CHECK(describe(configs[0]) == "swapped_decode_sm90 bf16 576/512 x16 page 64 none rows 16 ring 9");
  CHECK(describe(configs[1]) == "combine_splits bf16 512 transposed of 16 warps 16");
  CHECK(describe(configs[2]) == "schedule_decode n64 threads 1024 piece 113 block 60%");
  descriptor.num_q_heads = 128;
  const auto many = select_configs(descriptor, find_target_device("h200").value());
  CHECK(describe(many[0]) == "seesaw_decode_sm90 bf16 576/512 x128 page 64 none");
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = 127;
  descriptor.window_right = 0;
  descriptor.has_sinks = true;
  const auto local = select_configs(descriptor, find_target_device("h200").value());
  CHECK(describe(local[0]) ==
        "seesaw_decode_sm90 bf16 576/512 x128 page 64 sliding_window 127/0 sinks");
  CHECK(describe(local[1]) == "combine_splits bf16 512 accumulators of 64 warps 16 sinks");
  CHECK(describe(local[2]) == "schedule_decode n64 threads 1024 piece 910 block 100% window 127");
}

TEST_CASE("a prefill's config names its mask with what shapes it, and its tile") {
  const TargetDevice device = find_target_device("h200").value();
  AttentionDescriptor descriptor = test::ragged_prefill(192, 128, 1);
  const auto line = [&] { return describe(select_configs(descriptor, device).front()); };
  CHECK(line() == "prefill_sm80 bf16 192/128 x1 causal m128 n64 warps 4");
  descriptor.mask = MaskKind::chunked_causal;
  descriptor.chunk_size = 8192;
  descriptor.score_modifier = ScoreModifier::softcap;
  descriptor.has_sinks = true;
  CHECK(line() ==
        "prefill_sm80 bf16 192/128 x1 chunked_causal 8192 softcap sinks m128 n64 warps 8");
  descriptor.operation = Operation::prefill_kvcache;
  descriptor.kv_layout = KvLayout::paged;
  descriptor.kv_layout_tag = KvLayoutTag::nhd;
  descriptor.page_size = 16;
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = 127;
  descriptor.chunk_size = 0;
  descriptor.sparsity = Sparsity::block;
  descriptor.sparsity_block = 64;
  CHECK(line() ==
        "prefill_sm80 bf16 192/128 x1 page 16 sliding_window 127/-1 softcap blocks 64 sinks m128 "
        "n64 warps 8");
}

TEST_CASE("a prefill's config names types that differ, and the grains of their scales") {
  const TargetDevice device = find_target_device("h200").value();
  AttentionDescriptor descriptor = test::ragged_prefill(128, 128, 4);
  const auto line = [&] { return describe(select_configs(descriptor, device).front()); };
  descriptor.dtype_kv = DataType::fp8_e4m3;
  CHECK(line() == "prefill_sm80 bf16/fp8_e4m3/bf16 128/128 x4 causal m128 n64 warps 8");
  descriptor.dtype_q = descriptor.dtype_out = DataType::fp8_e4m3;
  descriptor.scales_q = ScaleGrain::per_token;
  CHECK(line() == "prefill_sm80 fp8_e4m3 scales per_token/none 128/128 x4 causal m128 n64 warps 8");
  descriptor = test::rope_prefill(0);
  descriptor.dtype_rope = DataType::fp8_e4m3;
  CHECK(line() == "prefill_sm80 bf16 rope fp8_e4m3 192/128 x1 causal m128 n64 warps 8");
  descriptor.scales_rope = ScaleGrain::per_block;
  descriptor.scale_block = 64;
  CHECK(line() ==
        "prefill_sm80 bf16 rope fp8_e4m3/per_block 64 192/128 x1 causal m128 n64 warps 8");
}

TEST_CASE("the tile of an attention kernel says how it is launched; other kernels have none") {
  SwappedDecodeConfig config;
  config.block_rows = 16;
  config.q_per_kv = 16;
  const DecodeTile tile = decode_tile(config);
  CHECK(tile.block_m == 16);
  CHECK(tile.block_n == 64);
  CHECK(tile.num_threads == 384);
  CHECK_THROWS_AS(decode_tile(CombineConfig{}), std::invalid_argument);
  CHECK_THROWS_AS(decode_tile(PrefillConfig{}), std::invalid_argument);
}

}  // namespace
