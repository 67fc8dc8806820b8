// What `attnjit tune` tries, and which knobs are refused.
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace attnjit {
namespace {

TargetDevice device_named(std::string_view name) {
  return find_target_device(name).value();
}

AttentionDescriptor grouped_decode(int ratio, int max_seqlen_q) {
  AttentionDescriptor descriptor;
  descriptor.num_kv_heads = 2;
  descriptor.num_q_heads = 2 * ratio;
  descriptor.max_seqlen_q = max_seqlen_q;
  return descriptor;
}

std::vector<AttentionDescriptor> some_decodes() {
  std::vector<AttentionDescriptor> decodes;
  for (const bool batch_invariant : {false, true}) {
    for (AttentionDescriptor decode :
         {grouped_decode(4, 1), grouped_decode(8, 3), grouped_decode(1, 1), test::latent_decode(3),
          test::latent_decode(16), test::latent_decode(128)}) {
      decode.batch_invariant = batch_invariant;
      decodes.push_back(decode);
    }
  }
  return decodes;
}

// What is wrong with a list of variants, "" if nothing is.
std::string find_fault(const AttentionDescriptor& descriptor, const TargetDevice& device,
                       const std::vector<ConfigVariant>& variants, const TuningKnobs& first) {
  if (variants.empty() || variants.front().configs != configure_decode(descriptor, device, first)) {
    return "the first is not what it starts from";
  }
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const ConfigVariant& variant = variants[i];
    if (variant.configs != configure_decode(descriptor, device, variant.knobs)) {
      return describe(variant.knobs) + ": its knobs give other configs";
    }
    if (decode_tile(variant.configs.front()).shared_memory_bytes > device.shared_memory_per_block) {
      return describe(variant.knobs) + ": does not fit";
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (variants[j].configs == variant.configs) {
        return describe(variant.knobs) + ": is there twice";
      }
    }
  }
  return "";
}

TEST_CASE("what is tried is legal, without repetition, and begins with the model's choice") {
  for (const char* card : {"h200", "a100", "rtx4090", "b200"}) {
    for (const AttentionDescriptor& descriptor : some_decodes()) {
      INFO(card << " " << describe(tuning_key(descriptor)));
      const TargetDevice device = device_named(card);
      const auto variants = legal_configs(descriptor, device);
      CHECK(find_fault(descriptor, device, variants, {}) == "");
      const TuningKnobs& last = variants.back().knobs;
      const auto schedules = legal_schedules(descriptor, device, last);
      CHECK(find_fault(descriptor, device, schedules, last) == "");
      CHECK(schedules.size() > 4);
    }
  }
}

TEST_CASE("every attention kernel that serves a decode is tried") {
  const auto kernels_of = [](const AttentionDescriptor& descriptor) {
    std::set<std::string_view> names;
    for (const ConfigVariant& variant : legal_configs(descriptor, device_named("h200"))) {
      names.insert(kernel_name(variant.configs.front()));
    }
    return names;
  };
  CHECK(kernels_of(test::latent_decode(16)) == std::set<std::string_view>{"swapped_decode_sm90",
                                                                          "seesaw_decode_sm90",
                                                                          "paged_decode_sm80"});
  CHECK(kernels_of(test::latent_decode(64)) ==
        std::set<std::string_view>{"seesaw_decode_sm90", "paged_decode_sm80"});
  CHECK(kernels_of(grouped_decode(4, 1)) == std::set<std::string_view>{"paged_decode_sm80"});
}

std::string refusal(const AttentionDescriptor& descriptor,
                    const std::function<void(TuningKnobs&)>& set) {
  TuningKnobs knobs;
  set(knobs);
  try {
    configure_decode(descriptor, device_named("h200"), knobs);
  } catch (const TuningError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("an illegal knob is refused by its name, with what is allowed") {
  const AttentionDescriptor latent = test::latent_decode(16);
  CHECK(refusal(latent, [](TuningKnobs& knobs) { knobs.ring_boxes = 8; }) ==
        "ring_boxes = 8: must be between 9 and 17; fix: choose a value between them");
  CHECK(refusal(latent, [](TuningKnobs& knobs) { knobs.ring_boxes = 10; })
            .find("must be at most the 232448 bytes of a block of h200; fix: choose fewer boxes, "
                  "stages or keys") != std::string::npos);
  CHECK(refusal(latent, [](TuningKnobs& knobs) { knobs.num_stages = 3; }) ==
        "num_stages = 3: is no knob of swapped_decode_sm90; fix: remove it");
  CHECK(refusal(latent, [](TuningKnobs& knobs) { knobs.chunk_blocks = 8; }) ==
        "chunk_blocks = 8: is no knob of a decode that may follow its batch; fix: remove it");
  CHECK(refusal(latent, [](TuningKnobs& knobs) { knobs.combine_warps = 12; }) ==
        "combine_warps = 12: must be one of 8, 16; fix: choose one of them");
  CHECK(refusal(test::latent_decode(64), [](TuningKnobs& knobs) {
          knobs.kernel = AttentionKernel::swapped_decode_sm90;
        }).starts_with("kernel = swapped_decode_sm90: does not serve this decode: 64 query rows"));
  AttentionDescriptor invariant = latent;
  invariant.batch_invariant = true;
  CHECK(refusal(invariant, [](TuningKnobs& knobs) {
          knobs.piece_units = 8;
        }).starts_with("piece_units = 8: is no knob of a batch-invariant decode"));
}

TEST_CASE("a tile that the portable kernel cannot share out is refused") {
  CHECK(refusal(grouped_decode(4, 1),
                [](TuningKnobs& knobs) {
                  knobs.num_stages = 9;
                  knobs.block_n = 48;
                }) ==
        "block_n = 48: must be one of 32, 64; fix: choose one of them\n"
        "num_stages = 9: must be between 2 and 4; fix: choose a value between them");
  CHECK(refusal(grouped_decode(4, 1), [](TuningKnobs& knobs) {
          knobs.num_warps = 8;
          knobs.block_n = 32;
        }).starts_with("num_warps = 8: must share 16 rows and 32 keys out evenly"));
  AttentionDescriptor wide = test::latent_decode(128);
  CHECK(
      refusal(wide, [](TuningKnobs& knobs) {
        knobs.kernel = AttentionKernel::paged_decode_sm80;
        knobs.num_warps = 4;
      }).find("num_warps = 4: must leave a thread at most 144 accumulators") != std::string::npos);
}

}  // namespace
}  // namespace attnjit
