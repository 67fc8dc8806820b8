#include "attnjit/config_selection.hpp"

#include <tuple>

#include <fmt/format.h>

#include "attnjit/descriptor_validation.hpp"
#include "catch.hpp"

namespace {

using namespace attnjit;

struct HeadDims {
  int qk;
  int v;
  ValueSource value_source;
};

constexpr HeadDims served_head_dims[] = {
    {8, 8, ValueSource::separate},        {40, 24, ValueSource::separate},
    {64, 64, ValueSource::separate},      {72, 72, ValueSource::separate},
    {80, 80, ValueSource::separate},      {96, 96, ValueSource::separate},
    {96, 64, ValueSource::separate},      {112, 112, ValueSource::separate},
    {128, 128, ValueSource::separate},    {192, 128, ValueSource::separate},
    {192, 192, ValueSource::separate},    {248, 248, ValueSource::separate},
    {256, 256, ValueSource::separate},    {576, 512, ValueSource::prefix_of_k},
    {320, 256, ValueSource::prefix_of_k}, {288, 256, ValueSource::prefix_of_k},
};
constexpr HeadDims widest_head_dims = {512, 512, ValueSource::separate};

AttentionDescriptor describe_call(const HeadDims& dims, int q_per_kv, int max_seqlen_q = 1,
                                  int page_size = 64) {
  AttentionDescriptor descriptor;
  descriptor.head_dim_qk = dims.qk;
  descriptor.head_dim_v = dims.v;
  descriptor.value_source = dims.value_source;
  descriptor.num_q_heads = q_per_kv;
  descriptor.num_kv_heads = 1;
  descriptor.max_seqlen_q = max_seqlen_q;
  descriptor.page_size = page_size;
  return descriptor;
}

TargetDevice device_named(std::string_view name) {
  return find_target_device(name).value();
}

// What a tuned row of the card may override.
std::vector<KernelConfig> configs_of_model(const AttentionDescriptor& descriptor,
                                           const TargetDevice& device) {
  return configure_decode(descriptor, device, {});
}

PagedDecodeConfig decode_config(const AttentionDescriptor& descriptor, std::string_view device) {
  return std::get<PagedDecodeConfig>(configs_of_model(descriptor, device_named(device)).front());
}

std::string refusal(const AttentionDescriptor& descriptor, const TargetDevice& device) {
  try {
    select_configs(descriptor, device);
  } catch (const DescriptorError& error) {
    return error.what();
  }
  return "";
}

// What the kernel's static_asserts demand, besides the size of its shared memory.
bool fits_kernel(const PagedDecodeConfig& config) {
  const auto is_power_of_two = [](int value) { return value > 0 && (value & (value - 1)) == 0; };
  return is_power_of_two(config.num_warps) && config.num_warps <= 32 && config.block_m % 16 == 0 &&
         is_power_of_two(config.block_m / 16) && config.block_n % 32 == 0 && config.num_stages >= 2;
}

// Tensor copies bring whole swizzle patterns of eight rows; rows are gathered from any page.
bool fits_page(int page_size, KvCopy copy) {
  return page_size % 64 == 0 || page_size == 32 || page_size == 16 || page_size == 8 ||
         copy == KvCopy::gather;
}

bool fits_kernel(const SwappedDecodeConfig& config) {
  const int boxes = config.head_dim_qk / 64;
  return config.block_rows % 8 == 0 && config.block_rows <= 16 &&
         fits_page(config.page_size, config.kv_copy) && config.ring_boxes >= boxes &&
         config.ring_boxes < 2 * boxes && config.head_dim_v % 128 == 0;
}

bool fits_kernel(const SeesawDecodeConfig& config) {
  return config.head_dim_v % 256 == 0 && config.head_dim_v <= 512 &&
         config.head_dim_qk > config.head_dim_v && config.head_dim_qk % 64 == 0 &&
         fits_page(config.page_size, config.kv_copy);
}

template <typename Config>
bool fits_kernel(const Config&) {
  return false;  // no attention kernel
}

TEST_CASE("every head dim, ratio, query length and page size fits every card it is served on") {
  std::vector<std::string> misfits;
  for (const TargetDevice& device : target_device_presets()) {
    for (const HeadDims& dims : served_head_dims) {
      for (const int ratio : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 16, 29, 32, 64, 71, 128}) {
        for (const int seqlen_q : {1, 2, 4, 128}) {
          for (const int page_size : {1, 16, 48, 64, 256}) {
            const auto configs =
                select_configs(describe_call(dims, ratio, seqlen_q, page_size), device);
            const int bytes = decode_tile(configs.front()).shared_memory_bytes;
            const bool fits = bytes > 0 && bytes <= device.shared_memory_per_block;
            const bool fits_template =
                std::visit([](const auto& config) { return fits_kernel(config); }, configs.front());
            if (!fits || !fits_template) {
              misfits.push_back(device.name + " " + describe(configs.front()));
            }
          }
        }
      }
    }
  }
  CHECK(misfits == std::vector<std::string>{});
}

TEST_CASE("a decode takes its attention, combine and schedule kernels, in this order") {
  const AttentionDescriptor descriptor = describe_call({192, 128, ValueSource::separate}, 4);
  const auto configs = configs_of_model(descriptor, device_named("h200"));
  REQUIRE(configs.size() == 3);
  const auto& decode = std::get<PagedDecodeConfig>(configs[0]);
  const auto& combine = std::get<CombineConfig>(configs[1]);
  const auto& schedule = std::get<ScheduleConfig>(configs[2]);
  CHECK(decode.head_dim_qk == 192);
  CHECK(decode.head_dim_v == 128);
  CHECK(decode.q_per_kv == 4);
  CHECK(decode.page_size == 64);
  CHECK(decode.value_source == ValueSource::separate);
  CHECK(combine.head_dim_v == 128);
  CHECK(combine.dtype == DataType::bf16);
  CHECK(combine.partial_order == PartialOrder::rows);
  CHECK(combine.partial_rows == 1);
  CHECK(schedule.block_n == decode.block_n);
  // A piece: 4 rows x 128 columns x 4 bytes, twice; a block: block_n keys x 320 columns x 2 bytes.
  CHECK(schedule.piece_units == 4 * 128 * 2 * 2 * 256 / (decode.block_n * 320 * 2));
  CHECK(schedule.block_percent == 100);
}

TEST_CASE("the row tile is the smallest that holds the rows of a kv head") {
  const HeadDims dims = {128, 128, ValueSource::separate};
  const auto block_m = [&](int ratio, int seqlen_q) {
    return decode_config(describe_call(dims, ratio, seqlen_q), "h200").block_m;
  };
  CHECK(block_m(1, 1) == 16);
  CHECK(block_m(16, 1) == 16);
  CHECK(block_m(4, 4) == 16);
  CHECK(block_m(17, 1) == 32);
  CHECK(block_m(8, 4) == 32);
  CHECK(block_m(33, 1) == 64);
  CHECK(block_m(64, 1) == 64);
  CHECK(block_m(128, 1) == 64);
  CHECK(block_m(128, 128) == 64);
}

// By hand: a row of q or k takes 584 elements of 2 bytes (576 padded to an odd count of 16 bytes).
TEST_CASE("latent attention of 16 heads takes the portable kernel's small tile on a B200") {
  const PagedDecodeConfig config =
      decode_config(describe_call({576, 512, ValueSource::prefix_of_k}, 16), "b200");
  CHECK(config.block_m == 16);
  CHECK(config.block_n == 32);
  CHECK(config.num_stages == 2);
  CHECK(config.num_warps == 4);
  // q 16 rows, two tiles of 32 keys, probabilities 16 x 40, maxima 4 x 16 floats, 2 x 32 pages.
  CHECK(config.shared_memory_bytes == (16 + 2 * 32) * 584 * 2 + 16 * 40 * 2 + 256 + 256);
}

SwappedDecodeConfig swapped_config(int ratio, int seqlen_q = 1) {
  const AttentionDescriptor descriptor =
      describe_call({576, 512, ValueSource::prefix_of_k}, ratio, seqlen_q);
  return std::get<SwappedDecodeConfig>(configs_of_model(descriptor, device_named("h200")).front());
}

TEST_CASE("few rows over a latent cache take the swapped kernel on Hopper, padded to eight") {
  CHECK(swapped_config(1).block_rows == 8);
  CHECK(swapped_config(9).block_rows == 16);
  CHECK(swapped_config(16).block_rows == 16);
  CHECK(swapped_config(3, 4).block_rows == 16);
  // Two consumers, each with 9 boxes of 8 KiB, 16 x 64 probabilities, 16 KiB and 128 bytes to merge
  // and 4 x 16 floats; twice 16 rows of 576 elements; 26 barriers: 216.96 KiB, aligned to 217
  // and 1.
  CHECK(swapped_config(16).ring_boxes == 9);
  CHECK(swapped_config(16).shared_memory_bytes == 218 * 1024);
  CHECK(swapped_config(8).ring_boxes == 11);
}

TEST_CASE("more rows over a latent cache take the seesaw kernel on Hopper") {
  const HeadDims latent = {576, 512, ValueSource::prefix_of_k};
  const auto is_seesaw = [](const AttentionDescriptor& descriptor) {
    return std::holds_alternative<SeesawDecodeConfig>(
        configs_of_model(descriptor, device_named("h200")).front());
  };
  CHECK(is_seesaw(describe_call(latent, 17)));
  CHECK(is_seesaw(describe_call(latent, 128)));
  CHECK(is_seesaw(describe_call(latent, 16, 2)));
  CHECK(is_seesaw(describe_call(latent, 64, 1, 16)));
  CHECK(is_seesaw(describe_call({320, 256, ValueSource::prefix_of_k}, 40)));
  CHECK_FALSE(is_seesaw(describe_call(latent, 16)));
  const auto configs = configs_of_model(describe_call(latent, 128), device_named("h200"));
  // Two tiles and the queries, 64 x 576 elements each; maxima and sums, 4 x 64 floats; 18 barriers:
  // 217.1 KiB, aligned to 218 and 1.
  CHECK(std::get<SeesawDecodeConfig>(configs.front()).shared_memory_bytes == 219 * 1024);
  CHECK(std::get<ScheduleConfig>(configs.back()).block_percent == 100);
}

TEST_CASE("the kernels for Hopper gather the rows of pages that tensor copies cannot bring") {
  const HeadDims latent = {576, 512, ValueSource::prefix_of_k};
  const auto copies = [&](int page_size) {
    const auto few = select_configs(describe_call(latent, 16, 1, page_size), device_named("h200"));
    const auto many =
        select_configs(describe_call(latent, 128, 1, page_size), device_named("h200"));
    return std::pair(std::get<SwappedDecodeConfig>(few.front()).kv_copy,
                     std::get<SeesawDecodeConfig>(many.front()).kv_copy);
  };
  for (const int page_size : {1, 2, 3, 4, 5, 7, 12, 40, 48, 96, 100, 255}) {
    CHECK(copies(page_size) == std::pair(KvCopy::gather, KvCopy::gather));
  }
  for (const int page_size : {8, 16, 32, 64, 128, 192, 256}) {
    CHECK(copies(page_size) == std::pair(KvCopy::tensor, KvCopy::tensor));
  }
}

TEST_CASE("what the kernels for Hopper do not serve takes the portable one") {
  const auto is_portable = [](AttentionDescriptor descriptor) {
    return std::holds_alternative<PagedDecodeConfig>(
        configs_of_model(descriptor, device_named("h200")).front());
  };
  const HeadDims latent = {576, 512, ValueSource::prefix_of_k};
  CHECK(is_portable(describe_call({128, 64, ValueSource::prefix_of_k}, 16)));
  CHECK(is_portable(describe_call({288, 256, ValueSource::prefix_of_k}, 16)));
  CHECK(is_portable(describe_call({576, 576, ValueSource::prefix_of_k}, 40)));
  CHECK(is_portable(describe_call({128, 128, ValueSource::separate}, 4)));
  AttentionDescriptor masked = describe_call(latent, 16);
  masked.mask = MaskKind::materialized_bool;
  CHECK(is_portable(masked));
  CHECK_FALSE(is_portable(describe_call(latent, 16)));
}

TEST_CASE("latent attention of 128 heads takes all shared memory of an A100 for a deep pipeline") {
  const PagedDecodeConfig config =
      decode_config(describe_call({576, 512, ValueSource::prefix_of_k}, 128), "a100");
  CHECK(config.block_m == 64);
  CHECK(config.block_n == 32);
  CHECK(config.num_stages == 2);
  CHECK(config.shared_memory_bytes == (64 + 2 * 32) * 584 * 2 + 64 * 40 * 2 + 8 * 64 * 4 + 256);
}

TEST_CASE("a row tile that does not fit gives way to a smaller one") {
  // On 99 KiB, 64 rows of 584 elements leave no room for two tiles of keys.
  const PagedDecodeConfig config =
      decode_config(describe_call({576, 512, ValueSource::prefix_of_k}, 128), "sm_86");
  CHECK(config.block_m == 16);
  CHECK(config.shared_memory_bytes <= 99 * 1024);
}

TEST_CASE("512/512 is refused where shared memory is too small, naming size, card and fix") {
  const AttentionDescriptor descriptor = describe_call(widest_head_dims, 4);
  CHECK(refusal(descriptor, device_named("sm_86")) ==
        "head_dim_qk = 512: no tile fits in the 101376 bytes of shared memory of rtx3090 (sm_86); "
        "fix: use a GPU with more shared memory per block");
  for (const TargetDevice& device : target_device_presets()) {
    const bool refused = !refusal(descriptor, device).empty();
    CHECK(refused == (device.shared_memory_per_block < 128 * 1024));
  }
}

TEST_CASE("selecting twice gives the same kernels") {
  for (const HeadDims& dims : served_head_dims) {
    const AttentionDescriptor descriptor = describe_call(dims, 7, 2);
    const TargetDevice device = device_named("l4");
    CHECK(select_configs(descriptor, device) == select_configs(descriptor, device));
  }
}

TEST_CASE("a causal mask over one query token is no mask, over more it stays") {
  const HeadDims dims = {128, 128, ValueSource::separate};
  CHECK(decode_config(describe_call(dims, 4, 1), "h200").mask == MaskKind::none);
  CHECK(decode_config(describe_call(dims, 4, 2), "h200").mask == MaskKind::causal);
  AttentionDescriptor descriptor = describe_call(dims, 4, 1);
  descriptor.mask = MaskKind::materialized_additive;
  descriptor.dtype_mask = DataType::fp32;
  CHECK(decode_config(descriptor, "h200").mask == MaskKind::materialized_additive);
  CHECK(decode_config(descriptor, "h200").dtype_mask == DataType::fp32);
}

TEST_CASE("descriptors that differ only in what a launch brings share their kernels") {
  const HeadDims dims = {128, 128, ValueSource::separate};
  const AttentionDescriptor descriptor = describe_call(dims, 4);
  AttentionDescriptor other = descriptor;
  other.num_q_heads = 32;
  other.num_kv_heads = 8;
  other.kv_layout_tag = KvLayoutTag::hnd;
  other.returns_lse = false;
  const TargetDevice device = device_named("h200");
  CHECK(select_configs(descriptor, device) == select_configs(other, device));
}

TEST_CASE("a batch-invariant decode is cut into chunks, alike in attention and schedule") {
  for (const auto& [ratio, dims, keys] :
       {std::tuple{16, HeadDims{576, 512, ValueSource::prefix_of_k}, 512},
        std::tuple{128, HeadDims{576, 512, ValueSource::prefix_of_k}, 1024},
        std::tuple{4, HeadDims{128, 128, ValueSource::separate}, 256}}) {
    AttentionDescriptor descriptor = describe_call(dims, ratio);
    const auto plain = configs_of_model(descriptor, device_named("h200"));
    descriptor.batch_invariant = true;
    const auto configs = configs_of_model(descriptor, device_named("h200"));
    const auto& schedule = std::get<ScheduleConfig>(configs[2]);
    CHECK(schedule.chunk_blocks * schedule.block_n == keys);
    CHECK(to_json(configs[0]).find(fmt::format("\"chunk_blocks\":{},", schedule.chunk_blocks)) !=
          std::string::npos);
    CHECK(std::get<CombineConfig>(configs[1]).segment_pieces == 8);
    CHECK(std::get<ScheduleConfig>(plain[2]).chunk_blocks == 0);
    CHECK(std::get<CombineConfig>(plain[1]).segment_pieces == 0);
    CHECK(to_json(plain[0]).find("\"chunk_blocks\":0,") != std::string::npos);
  }
}

TEST_CASE("an illegal or unserved descriptor is refused before any kernel is chosen") {
  AttentionDescriptor descriptor;
  descriptor.head_dim_v = 7;
  CHECK(refusal(descriptor, device_named("h200")).starts_with("head_dim_v = 7: must be"));
  descriptor.head_dim_v = 128;
  descriptor.score_modifier = ScoreModifier::alibi;
  CHECK(refusal(descriptor, device_named("h200")).starts_with("score_modifier = alibi: only none"));
}

AttentionDescriptor describe_window(const HeadDims& dims, int q_per_kv, int max_seqlen_q, int left,
                                    int right) {
  AttentionDescriptor descriptor = describe_call(dims, q_per_kv, max_seqlen_q);
  descriptor.mask = MaskKind::sliding_window;
  descriptor.window_left = left;
  descriptor.window_right = right;
  return descriptor;
}

TEST_CASE("every attention kernel takes a sliding window, and the schedule its left side") {
  const HeadDims latent = {576, 512, ValueSource::prefix_of_k};
  const TargetDevice device = device_named("h200");
  const auto swapped = select_configs(describe_window(latent, 16, 1, 127, 0), device);
  CHECK(std::get<SwappedDecodeConfig>(swapped.front()).mask == MaskKind::sliding_window);
  CHECK(std::get<SwappedDecodeConfig>(swapped.front()).window_left == 127);
  CHECK(std::get<SwappedDecodeConfig>(swapped.front()).window_right == 0);
  CHECK(std::get<ScheduleConfig>(swapped.back()).window_left == 127);
  const auto seesaw = select_configs(describe_window(latent, 128, 2, 511, 0), device);
  CHECK(std::get<SeesawDecodeConfig>(seesaw.front()).window_left == 511);
  const HeadDims grouped = {128, 128, ValueSource::separate};
  CHECK(decode_config(describe_window(grouped, 4, 1, 4095, 0), "a100").window_left == 4095);
  CHECK(std::get<ScheduleConfig>(select_configs(describe_call(grouped, 4), device).back())
            .window_left == -1);
  constexpr int most = std::numeric_limits<int>::max();
  CHECK(decode_config(describe_window(grouped, 4, 1, most, 0), "a100").mask == MaskKind::none);
  CHECK(decode_config(describe_window(grouped, 4, 1, most - 1, -1), "a100").mask == MaskKind::none);
  CHECK(decode_config(describe_window(grouped, 4, 3, most, 0), "a100").mask == MaskKind::causal);
  CHECK(decode_config(describe_window(grouped, 4, 1, most - 2, 0), "a100").window_left == most - 2);
}

TEST_CASE("windows that mean the same for the queries a call may bring share their kernels") {
  const HeadDims dims = {128, 128, ValueSource::separate};
  const TargetDevice device = device_named("h200");
  const auto configs_of = [&](int max_seqlen_q, int left, int right) {
    return select_configs(describe_window(dims, 4, max_seqlen_q, left, right), device);
  };
  AttentionDescriptor unmasked = describe_call(dims, 4, 4);
  unmasked.mask = MaskKind::none;
  const AttentionDescriptor causal = describe_call(dims, 4, 4);
  CHECK(configs_of(4, -1, 0) == select_configs(causal, device));
  CHECK(configs_of(4, -1, 3) == select_configs(unmasked, device));
  CHECK(configs_of(1, -1, 0) == select_configs(describe_call(dims, 4), device));
  // The last query stands at the end: nothing is more than three keys after any of four.
  CHECK(configs_of(4, 100, 3) == configs_of(4, 100, -1));
  CHECK(configs_of(4, 100, 3) == configs_of(4, 100, 2000));
  CHECK(configs_of(4, 100, 3) != configs_of(4, 100, 2));
  CHECK(configs_of(1, 100, 0) == configs_of(1, 100, 5));
  CHECK(configs_of(4, -1, 1) != select_configs(causal, device));
  CHECK(configs_of(4, 100, 0) != configs_of(4, 101, 0));
}

TEST_CASE("sinks are for attention and combine kernels, the schedule knows nothing of them") {
  AttentionDescriptor descriptor = describe_call({64, 64, ValueSource::separate}, 8);
  const TargetDevice device = device_named("h200");
  const auto without = select_configs(descriptor, device);
  descriptor.has_sinks = true;
  const auto with = select_configs(descriptor, device);
  CHECK(std::get<PagedDecodeConfig>(with[0]).has_sinks);
  CHECK(std::get<CombineConfig>(with[1]).has_sinks);
  CHECK(with[2] == without[2]);
  CHECK(with[0] != without[0]);
  CHECK(with[1] != without[1]);
}

}  // namespace
