// Tuning tables: read, written and refused; the embedded ones against their devices.
#include "attnjit/tuning_table.hpp"

#include <string>

#include "attnjit/config_selection.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "latent_descriptor.hpp"

namespace attnjit {
namespace {

TargetDevice h200() {
  return find_target_device("h200").value();
}

TunedRow example_row(int num_q_heads, const TuningKnobs& knobs) {
  return {.key = tuning_key(test::latent_decode(num_q_heads)),
          .knobs = knobs,
          .date = "2026-11-30",
          .command = "attnjit tune 'deepseek-v3' --tp 8",
          .points = {"b1 s_k1024", "b16 s_k1024"},
          .model_us = {12.5, 50},
          .tuned_us = {11.5, 49.1}};
}

TuningTable example_table() {
  TuningKnobs combine;
  combine.combine_warps = 8;
  TuningKnobs portable;
  portable.kernel = AttentionKernel::paged_decode_sm80;
  portable.num_stages = 2;
  TuningTable table = {.device = "h200", .card = "NVIDIA H200", .rows = {}, .problem = ""};
  replace_row(table, example_row(64, portable));
  replace_row(table, example_row(16, combine));
  return table;
}

std::string refusal(const std::string& text) {
  try {
    parse_tuning_table("h200.json", text);
  } catch (const TuningError& error) {
    return error.what();
  }
  return "";
}

// The example's text with `from` replaced.
std::string edited(const std::string& from, const std::string& to) {
  std::string text = to_json(example_table());
  const std::size_t place = text.find(from);
  REQUIRE(place != std::string::npos);
  return text.replace(place, from.size(), to);
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("a table reads back as it was written, rows sorted by key") {
  const std::string text = to_json(example_table());
  const TuningTable table = parse_tuning_table("h200.json", text);
  CHECK(table.device == "h200");
  CHECK(table.card == "NVIDIA H200");
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].key.rows == 16);
  CHECK(table.rows == example_table().rows);
  CHECK(to_json(table) == text);
  const std::string empty = to_json(TuningTable{"h200", "NVIDIA H200", {}, ""});
  CHECK(to_json(parse_tuning_table("", empty)) == empty);
}

TEST_CASE("a row takes the place of the one with its key, and goes when it is removed") {
  TuningTable table = example_table();
  TuningKnobs knobs;
  knobs.piece_units = 100;
  replace_row(table, example_row(16, knobs));
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[0].knobs == knobs);
  remove_row(table, TuningKey(table.rows[0].key));
  REQUIRE(table.rows.size() == 1);
  CHECK(table.rows[0].key.rows == 64);
}

TEST_CASE("what is no knob is refused by row and field") {
  CHECK(holds(refusal(edited("\"combine_warps\":8", "\"colour\":8")),
              "h200.json: row 0 (bf16 576/512 rows 16 page 64 prefix_of_k none): colour = 8: is "
              "not known here; fix: remove it, or use one of kernel, ring_boxes"));
  CHECK(holds(refusal(edited("\"combine_warps\":8", "\"combine_warps\":\"many\"")),
              "combine_warps = \"many\": must be an integer"));
  CHECK(holds(refusal(edited("\"paged_decode_sm80\"", "\"fastest\"")),
              "row 1 (bf16 576/512 rows 64 page 64 prefix_of_k none): kernel = \"fastest\": must "
              "be one of swapped_decode_sm90, seesaw_decode_sm90, paged_decode_sm80"));
}

TEST_CASE("a key that lacks a field, or a row out of order, is refused") {
  CHECK(holds(refusal(edited("\"page_size\":64,", "")), "page_size: is missing"));
  CHECK(holds(refusal(edited("\"rows\":16", "\"rows\":200")),
              "row 1 (bf16 576/512 rows 64 page 64 prefix_of_k none): must come after the row "
              "before"));
  CHECK(holds(refusal(edited("\"rows\":64", "\"rows\":16")), "must come after the row before"));
}

TEST_CASE("what is no table is refused") {
  CHECK(holds(refusal("{"), "h200.json: is not JSON: "));
  CHECK(holds(refusal("[]"), "must be an object with a list called rows"));
  CHECK(holds(refusal(edited("\"schema\": 1", "\"schema\": 2")), "schema: must be 1"));
  CHECK(holds(refusal(edited("\"card\"", "\"cart\"")), "card: must be a text"));
  CHECK(holds(refusal(edited("[\"b1 s_k1024\"", "[7")), "points: must be a list"));
}

TEST_CASE("a row is found by what of a descriptor decides, on its card alone") {
  const TuningTable tables[] = {example_table()};
  AttentionDescriptor descriptor = test::latent_decode(16);
  const auto found = [&](const TargetDevice& device) {
    return find_tuned_row(tables, descriptor, device) != nullptr;
  };
  CHECK(found(h200()));
  TargetDevice card = h200();
  card.name = "NVIDIA H200";
  CHECK(found(card));
  card.num_sms = 66;  // a share of the card
  CHECK_FALSE(found(card));
  CHECK_FALSE(found(find_target_device("h100").value()));
  descriptor.kv_layout_tag = KvLayoutTag::hnd;
  CHECK(found(h200()));
  descriptor.num_q_heads = 8;
  descriptor.max_seqlen_q = 2;  // as many rows, but a causal mask over two query tokens
  CHECK_FALSE(found(h200()));
  descriptor.mask = MaskKind::none;
  CHECK(found(h200()));
  descriptor.has_sinks = true;
  CHECK_FALSE(found(h200()));
  descriptor.has_sinks = false;
  descriptor.page_size = 32;
  CHECK_FALSE(found(h200()));
}

// Some descriptor of the key.
AttentionDescriptor descriptor_of(const TuningKey& key) {
  AttentionDescriptor descriptor;
  descriptor.dtype_q = descriptor.dtype_kv = descriptor.dtype_out = key.dtype;
  descriptor.head_dim_qk = key.head_dim_qk;
  descriptor.head_dim_v = key.head_dim_v;
  descriptor.max_seqlen_q = key.mask == MaskKind::causal ? key.rows : 1;
  descriptor.num_q_heads = key.rows / descriptor.max_seqlen_q;
  descriptor.num_kv_heads = 1;
  descriptor.page_size = key.page_size;
  descriptor.value_source = key.value_source;
  descriptor.mask = key.mask;
  if (key.mask == MaskKind::materialized_additive) {
    descriptor.dtype_mask = DataType::fp32;
  }
  descriptor.window_left = key.window_left;
  descriptor.window_right = key.window_right;
  descriptor.has_sinks = key.has_sinks;
  descriptor.batch_invariant = key.batch_invariant;
  return descriptor;
}

TEST_CASE(
    "every row of the embedded tables is legal on its card, differs from the model, is taken") {
  REQUIRE(!embedded_tuning_tables().empty());
  for (const TuningTable& table : embedded_tuning_tables()) {
    INFO(table.device);
    const auto device = find_target_device(table.device);
    REQUIRE(device.has_value());
    for (const TunedRow& row : table.rows) {
      INFO(describe(row.key));
      const AttentionDescriptor descriptor = descriptor_of(row.key);
      CHECK(tuning_key(descriptor) == row.key);
      REQUIRE_NOTHROW(configure_decode(descriptor, *device, row.knobs));
      CHECK(select_configs(descriptor, *device) ==
            configure_decode(descriptor, *device, row.knobs));
      CHECK(select_configs(descriptor, *device) != configure_decode(descriptor, *device, {}));
      CHECK(row.points.size() == row.model_us.size());
      CHECK(row.points.size() == row.tuned_us.size());
    }
  }
}

TEST_CASE("a table that cannot be read refuses the decodes of its card, and no other's") {
  const std::vector<EmbeddedFile> files = {{"h200.json", "{"}, {"a100.json", "[]"}};
  const std::vector<TuningTable> tables = read_tuning_tables(files);
  REQUIRE(tables.size() == 2);
  CHECK(holds(tables.at(0).problem, "h200.json: is not JSON"));
  CHECK(tables.at(1).device == "a100");
  const AttentionDescriptor descriptor = test::latent_decode(16);
  TargetDevice card = h200();
  CHECK_THROWS_AS(find_tuned_row(tables, descriptor, card), TuningError);
  card.name = "NVIDIA H200";
  CHECK_THROWS_AS(find_tuned_row(tables, descriptor, card), TuningError);
  CHECK(find_tuned_row(tables, descriptor, find_target_device("h100").value()) == nullptr);
  CHECK(find_tuned_row(tables, descriptor, find_target_device("l40s").value()) == nullptr);
}

TEST_CASE("where no row is, the model chooses") {
  const AttentionDescriptor descriptor = test::latent_decode(16);
  const TargetDevice b200 = find_target_device("b200").value();
  CHECK(find_tuned_row(descriptor, b200) == nullptr);
  CHECK(select_configs(descriptor, b200) == configure_decode(descriptor, b200, {}));
}

TEST_CASE("a knob that says what the model says makes the same kernel") {
  const AttentionDescriptor descriptor = test::latent_decode(16);
  TuningKnobs knobs;
  knobs.combine_warps = 16;
  const auto library = TemplateLibrary::embedded();
  CHECK(render(configure_decode(descriptor, h200(), knobs)[1], h200(), library).source ==
        render(configure_decode(descriptor, h200(), {})[1], h200(), library).source);
}

TEST_CASE("an illegal knob of a row is told with the row") {
  TunedRow row;
  row.key = tuning_key(test::latent_decode(16));
  row.knobs.ring_boxes = 12;
  try {
    configure_tuned(test::latent_decode(16), h200(), row);
    FAIL("the ring does not fit");
  } catch (const TuningError& error) {
    const std::string message = error.what();
    CHECK(message.find("tuned row of h200, " + describe(row.key) + ": ") == 0);
    CHECK(message.find("shared_memory_bytes") != std::string::npos);
  }
}

}  // namespace
}  // namespace attnjit
