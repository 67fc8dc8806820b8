#include "template_slots.hpp"

#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "ragged_prefill.hpp"
#include "template_copy.hpp"

namespace {

using namespace attnjit;

constexpr std::string_view text =
    "// A header.\n"
    "\n"
    "// slot shows\n"
    "__device__ bool shows(int q,\n"
    "                      int k) {\n"
    "  return true;\n"
    "}\n"
    "// end slot\n"
    "int after;\n";

std::string filled(std::string_view template_text, const SlotExpressions& expressions) {
  SlotExpressions unused = expressions;
  return fill_slots("device/x.cuh", template_text, expressions, unused);
}

std::string refusal(std::string_view template_text) {
  try {
    filled(template_text, {{"shows", "q > k"}, {"scales", ""}});
  } catch (const TemplateError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("an expression takes the place of a slot's body, between lines that say where it is") {
  CHECK(filled(text, {{"shows", "q >= k // causal\n&& k > 3"}}) ==
        "// A header.\n"
        "\n"
        "// slot shows\n"
        "__device__ bool shows(int q,\n"
        "                      int k) {\n"
        "#line 1 \"<slot shows>\"\n"
        "return (q >= k // causal\n"
        "&& k > 3\n"
        "#line 7 \"device/x.cuh\"\n"
        ");\n"
        "}\n"
        "#line 8 \"device/x.cuh\"\n"
        "// end slot\n"
        "int after;\n");
}

TEST_CASE("without an expression the default code stays, byte for byte") {
  CHECK(filled(text, {{"shows", ""}}) == text);
  CHECK(filled("int x;", {{"shows", "q"}}) == "int x;");
}

TEST_CASE("an expression counts as used by the slot that it is in") {
  const SlotExpressions expressions = {{"scales", "1"}, {"shows", "1"}};
  SlotExpressions unused = expressions;
  fill_slots("device/x.cuh", text, expressions, unused);
  CHECK(unused == SlotExpressions{{"scales", "1"}});
}

TEST_CASE("a slot that is wrong is refused by file and line") {
  const std::string slot(text.substr(text.find("// slot")));
  CHECK(refusal("\n// slot show\n") ==
        "device/x.cuh:2: slot show is unknown; fix: use one of scales, shows");
  CHECK(refusal("// slot shows\nint x;\n") ==
        "device/x.cuh:1: slot shows is not closed; fix: end its code with a line \"// end slot\"");
  CHECK(refusal("// slot shows\n\n// slot scales\n// end slot\n// end slot\n") ==
        "device/x.cuh:3: a slot may not lie in slot shows; fix: end that one first: \"// end "
        "slot\"");
  CHECK(refusal("int x;\n// end slot\n") ==
        "device/x.cuh:2: ends a slot where none is open; fix: remove it");
  CHECK(refusal(slot + slot) ==
        "device/x.cuh:8: slot shows is there already; fix: leave one of the two, for a kernel has "
        "one function of the name");
  CHECK(refusal("// slot shows\nconstexpr bool shows = true;\n// end slot\n")
            .starts_with("device/x.cuh:1: slot shows holds no function; fix: "));
  CHECK(refusal(slot) == "");
}

RenderedKernel rendered(const AttentionDescriptor& descriptor, const TemplateLibrary& library) {
  const TargetDevice device = find_target_device("h200").value();
  return render(select_configs(descriptor, device).front(), device, library);
}

AttentionDescriptor custom_prefill(const std::string& mask, const std::string& score) {
  AttentionDescriptor descriptor = test::ragged_prefill(128, 128, 4);
  descriptor.mask = mask.empty() ? MaskKind::causal : MaskKind::custom;
  descriptor.mask_expression = mask;
  descriptor.score_modifier = score.empty() ? ScoreModifier::none : ScoreModifier::custom;
  descriptor.score_expression = score;
  return descriptor;
}

TEST_CASE("a kernel's expressions stand in its headers, under the names of their slots") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const std::string kernel = flatten(rendered(custom_prefill("q != k", "score * 0.5f"), library));
  CHECK(kernel.find("#line 1 \"<slot mask_predicate>\"\nreturn (q != k\n#line ") !=
        std::string::npos);
  CHECK(kernel.find("#line 1 \"<slot score_modifier>\"\nreturn (score * 0.5f\n#line ") !=
        std::string::npos);
  const RenderedKernel plain = rendered(custom_prefill("", ""), library);
  CHECK(flatten(plain).find("<slot ") == std::string::npos);
  for (const SourceFile& header : plain.headers) {
    CHECK((header.name == "kernel_config.cuh" || header.text == library.text(header.name)));
  }
}

TEST_CASE("every character of an expression is part of what is compiled") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  const std::string kernel = flatten(rendered(custom_prefill("q != k", ""), library));
  CHECK(kernel == flatten(rendered(custom_prefill("q != k", ""), library)));
  CHECK(kernel != flatten(rendered(custom_prefill("q != k ", ""), library)));
  CHECK(kernel != flatten(rendered(custom_prefill("", "q != k"), library)));
}

TEST_CASE("an expression that reaches beyond its slot is not rendered, whoever made the config") {
  const TargetDevice device = find_target_device("h200").value();
  auto config =
      std::get<PrefillConfig>(select_configs(custom_prefill("q != k", ""), device).front());
  config.mask_expression = "true); } __device__ int x = (0";
  std::string message;
  try {
    render(config, device, TemplateLibrary::embedded());
  } catch (const std::invalid_argument& error) {
    message = error.what();
  }
  CHECK(message.starts_with("mask_expression = \"true); } "));
  CHECK(message.find("1:5: ')' closes nothing") != std::string::npos);
}

// The templates without the line that opens a slot, or with another in its place.
TemplateLibrary damaged_library(const std::string& opening) {
  const test::TemplateCopy copy;
  const std::filesystem::path path = copy.root() / "device/user_slots.cuh";
  std::string header = TemplateLibrary::embedded().text("device/user_slots.cuh");
  const std::string line = "// slot mask_predicate\n";
  header.replace(header.find(line), line.size(), opening);
  if (opening.empty()) {
    const std::string closing = "// end slot\n";
    header.erase(header.find(closing), closing.size());
  }
  std::ofstream(path, std::ios::binary) << header;
  return TemplateLibrary::from_directory(copy.root());
}

std::string render_refusal(const AttentionDescriptor& descriptor, const TemplateLibrary& library) {
  try {
    rendered(descriptor, library);
  } catch (const TemplateError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("templates whose slots do not fit are refused when they are rendered") {
  const AttentionDescriptor custom = custom_prefill("q != k", "");
  CHECK(render_refusal(custom, damaged_library(""))
            .starts_with("template kernels/prefill_sm80.cu has no slot mask_predicate; fix: "));
  CHECK(render_refusal(custom_prefill("", ""), damaged_library("")) == "");
  const std::string unknown =
      render_refusal(custom_prefill("", ""), damaged_library("// slot mask\n"));
  CHECK(unknown.starts_with("device/user_slots.cuh:"));
  CHECK(unknown.find(": slot mask is unknown; fix: use one of mask_predicate, score_modifier") !=
        std::string::npos);
}

}  // namespace
