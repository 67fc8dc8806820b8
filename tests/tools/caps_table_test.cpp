#include "caps_table.hpp"

#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

ServedAxis axis(const std::string& name, const std::vector<std::string>& values) {
  ServedAxis axis{name, {}};
  for (const std::string& value : values) {
    axis.values.push_back({value, static_cast<int>(axis.values.size()), {}, {}});
  }
  return axis;
}

Refusal refusal(Operation operation, const std::string& field,
                const std::vector<std::string>& values) {
  return {operation, field, axis("", values).values, "only others are served", "use one of these"};
}

// Two rows alike in their sinks, and two refusals that say the same.
SupportMatrix small_matrix() {
  const TargetDevice target = find_target_device("sm_80").value();
  const ServedAxis sinks = axis("has_sinks", {"no"});
  return {{target},
          {{Operation::decode,
            "paged_decode_sm80",
            {target},
            {axis("page_size", {"1", "2", "3", "4"}), axis("mask", {"none", "causal"}), sinks}},
           {Operation::merge_states,
            "merge_states",
            {target},
            {axis("page_size", {}), axis("mask", {"none"}), sinks}}},
          {refusal(Operation::decode, "mask", {"tree", "custom"}),
           refusal(Operation::prefill, "operation", {"prefill"}),
           refusal(Operation::merge_states, "mask", {"tree", "custom"}),
           refusal(Operation::append_kv_cache, "operation", {"append_kv_cache"})}};
}

}  // namespace

TEST_CASE("a served row is a block of lines, and what all rows share is said once") {
  const std::string text = format_text(small_matrix());
  CHECK(
      text.starts_with("decode by paged_decode_sm80 on a100 (sm_80)\n"
                       "    page_size       1 to 4\n"
                       "    mask            none, causal\n"
                       "\n"
                       "merge_states by merge_states on a100 (sm_80)\n"
                       "    page_size       -\n"
                       "    mask            none\n"
                       "\n"
                       "all of them: has_sinks no\n"
                       "\n"));
}

TEST_CASE("refusals that say the same are one line for all their operations") {
  const std::string text = format_text(small_matrix());
  CHECK(text.ends_with(
      "field      refused                   of                    rule                    fix\n"
      "mask       tree, custom              decode, merge_states  only others are served  use one "
      "of these\n"
      "operation  prefill, append_kv_cache  -                     only others are served  use one "
      "of these\n"));
}

TEST_CASE("numbers are a range where they follow each other, and only there") {
  SupportMatrix matrix = small_matrix();
  std::vector<ProbedValue>& pages = matrix.rows[0].axes[0].values;
  pages = axis("", {"any", "1", "2", "3", "5", "6", "192/128"}).values;
  for (std::size_t i = 4; i < pages.size(); ++i) {
    ++pages[i].position;
  }
  CHECK(holds(format_text(matrix), "page_size       any, 1 to 3, 5, 6, 192/128\n"));
}

TEST_CASE("in Markdown each row is one line of a table") {
  const std::string text = format_markdown(small_matrix());
  CHECK(holds(text,
              "| operation | kernel | on | page_size | mask |\n"
              "|---|---|---|---|---|\n"
              "| `decode` | `paged_decode_sm80` | a100 (sm_80) | 1 to 4 | none, causal |\n"
              "| `merge_states` | `merge_states` | a100 (sm_80) | - | none |\n"
              "\n"
              "All of them: has_sinks no.\n"));
  CHECK(
      holds(text,
            "| `mask` | tree, custom | decode, merge_states | only others are served | use one of "
            "these |\n"));
}

TEST_CASE("a matrix without rows is its refusals alone") {
  SupportMatrix matrix = small_matrix();
  matrix.rows.clear();
  CHECK(format_text(matrix).starts_with("field "));
  CHECK(!holds(format_markdown(matrix), "All of them"));
}

}  // namespace attnjit
