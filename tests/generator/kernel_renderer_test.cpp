#include "attnjit/kernel_renderer.hpp"

#include <regex>
#include <set>
#include <stdexcept>

#include "attnjit/config_selection.hpp"
#include "catch.hpp"
#include "field_perturbation.hpp"
#include "ragged_prefill.hpp"

namespace {

using namespace attnjit;

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TargetDevice h200() {
  return find_target_device("h200").value();
}

std::vector<KernelConfig> some_configs() {
  AttentionDescriptor descriptor;
  descriptor.max_seqlen_q = 2;
  std::vector<KernelConfig> configs = select_configs(descriptor, h200());
  descriptor.operation = Operation::merge_states;
  configs.push_back(select_configs(descriptor, h200()).front());
  descriptor.operation = Operation::append_kv_cache;
  configs.push_back(select_configs(descriptor, h200()).front());
  const auto prefill = select_configs(test::ragged_prefill(128, 128, 4), h200());
  configs.push_back(prefill.at(1));
  configs.push_back(prefill.at(0));
  return configs;
}

RenderedKernel render_embedded(const KernelConfig& config) {
  return render(config, h200(), TemplateLibrary::embedded());
}

std::set<std::string> header_names(const RenderedKernel& kernel) {
  std::set<std::string> names;
  for (const SourceFile& header : kernel.headers) {
    CHECK(names.insert(header.name).second);
  }
  return names;
}

std::set<std::string> included_names(const std::string& text) {
  static const std::regex directive("(^|\n)[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]+)[\">]");
  std::set<std::string> names;
  for (std::sregex_iterator match(text.begin(), text.end(), directive), end; match != end;
       ++match) {
    names.insert((*match)[2]);
  }
  return names;
}

// Of the fields that are code, which goes into slots.
template <typename Config>
std::set<std::string> code_fields(const Config& config) {
  std::set<std::string> names;
  for_each_field(config, [&](const char* name, const auto& member, const char*) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(member)>, std::string>) {
      names.insert(name);
    }
  });
  return names;
}

template <typename Config>
void check_header_shows_every_field(const Config& original) {
  const std::string header = render_config_header(original);
  const std::set<std::string> code = code_fields(original);
  for (const std::string& name : test::field_names(original)) {
    const bool is_constant = !code.contains(name);
    CHECK(contains(header, " " + name + " = ") == is_constant);
    const Config changed = test::with_another(original, name);
    CHECK((render_config_header(changed) != header) == is_constant);
    CHECK(flatten(render_embedded(changed)) != flatten(render_embedded(original)));
    CHECK(render_embedded(changed).source != render_embedded(original).source);
  }
}

template <typename Call>
std::string invalid_argument_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("a field that holds no enumerator is refused by name, never rendered") {
  const CombineConfig config{static_cast<DataType>(99), 512};
  const std::string refusal = invalid_argument_of([&] { render_config_header(config); });
  CHECK(contains(refusal, "dtype = 99: must be an enumerator of DataType"));
  CHECK(invalid_argument_of([&] { render_embedded(config); }) == refusal);
}

TEST_CASE("an arch that is no name is refused") {
  const TemplateLibrary library = TemplateLibrary::embedded();
  for (const char* arch : {"", "sm_90a\nint x;", "SM_90", "sm 90", "sm-90", "sm_90a\\"}) {
    TargetDevice device = h200();
    device.arch = arch;
    CHECK(contains(invalid_argument_of([&] { render(some_configs()[0], device, library); }),
                   "arch = "));
    CHECK(
        contains(invalid_argument_of([&] { render_source("f", "", device, library); }), "arch = "));
  }
}

TEST_CASE("every field of a config but code is a constant of its header, and every change shows") {
  for (const KernelConfig& config : some_configs()) {
    std::visit([](const auto& fields) { check_header_shows_every_field(fields); }, config);
  }
}

TEST_CASE("a config header is a namespace of typed and commented constants") {
  CHECK(render_config_header(
            CombineConfig{DataType::fp16, 512, PartialOrder::transposed, 8, 16, 4, true}) ==
        "// The constants of one combine_splits kernel.\n"
        "#pragma once\n"
        "\n"
        "#include \"device/config_types.cuh\"\n"
        "\n"
        "namespace config {\n"
        "constexpr DataType dtype = DataType::fp16;  // element type of out\n"
        "constexpr int head_dim_v = 512;  // columns of out\n"
        "constexpr PartialOrder partial_order = PartialOrder::transposed;  // how the attention "
        "kernel lays out partial results\n"
        "constexpr int partial_rows = 8;  // rows of a tile of partial results\n"
        "constexpr int num_warps = 16;  // warps per thread block\n"
        "constexpr int segment_pieces = 4;  // pieces that are merged first, in order; 0: by the "
        "batch\n"
        "constexpr bool overlaps_attention = true;  // launched before the attention has ended\n"
        "constexpr bool has_sinks = false;  // a logit per query head joins the softmax's "
        "denominator\n"
        "}  // namespace config\n");
}

TEST_CASE("a rendered kernel carries exactly what it includes, directly or not") {
  for (const KernelConfig& config : some_configs()) {
    const RenderedKernel kernel = render_embedded(config);
    std::set<std::string> wanted = included_names(kernel.source);
    for (const SourceFile& header : kernel.headers) {
      wanted.merge(included_names(header.text));
    }
    CHECK(header_names(kernel) == wanted);
    CHECK(wanted.contains("kernel_config.cuh"));
    CHECK(wanted.contains("device/config_types.cuh"));
  }
}

TEST_CASE("a kernel does not carry headers of other kernels") {
  const std::set<std::string> schedule =
      header_names(render_embedded(ScheduleConfig{64, 1024, 100, 90}));
  CHECK(schedule == std::set<std::string>{"device/config_types.cuh", "interface/chunk_schedule.h",
                                          "interface/decode_schedule.h", "kernel_config.cuh"});
}

TEST_CASE("the rendered source opens with a banner and points errors at the template") {
  const KernelConfig config =
      CombineConfig{DataType::bf16, 128, PartialOrder::rows, 1, 16, 0, true};
  const RenderedKernel kernel = render_embedded(config);
  const TemplateLibrary library = TemplateLibrary::embedded();
  CHECK(kernel.source.starts_with("// Generated by attnjit "));
  CHECK(contains(kernel.source, "Template kernels/combine_splits.cu of library " +
                                    library.digest() + ".\n// Target: sm_90a\n// Config: " +
                                    to_json(config) + "\n#line 1 \"kernels/combine_splits.cu\"\n" +
                                    library.text("kernels/combine_splits.cu")));
}

TEST_CASE("a rendered kernel knows its entry, target and block") {
  const auto configs = some_configs();
  const RenderedKernel decode = render_embedded(configs[0]);
  const auto& config = std::get<PagedDecodeConfig>(configs[0]);
  CHECK(decode.name == "paged_decode_sm80");
  CHECK(decode.entry == "paged_decode_sm80");
  CHECK(contains(decode.source, "extern \"C\" __global__"));
  CHECK(decode.arch == "sm_90a");
  CHECK(decode.num_threads == config.num_warps * 32);
  CHECK(decode.shared_memory_bytes == config.shared_memory_bytes);
  CHECK(decode.config == to_json(configs[0]));
  const RenderedKernel combine = render_embedded(configs[1]);
  CHECK(combine.num_threads == 512);
  CHECK(combine.shared_memory_bytes == 0);
  const RenderedKernel schedule = render_embedded(configs[2]);
  CHECK(schedule.num_threads == 1024);
  CHECK(schedule.shared_memory_bytes == 0);
  const RenderedKernel prefill = render_embedded(configs.back());
  CHECK(prefill.name == "prefill_sm80");
  CHECK(prefill.num_threads == std::get<PrefillConfig>(configs.back()).num_warps * 32);
  CHECK(prefill.shared_memory_bytes == std::get<PrefillConfig>(configs.back()).shared_memory_bytes);
}

TEST_CASE("the entry point of every template bears the template's name") {
  for (const KernelConfig& config : some_configs()) {
    const RenderedKernel kernel = render_embedded(config);
    CHECK(contains(kernel.source, " " + kernel.entry + "(const __grid_constant__ "));
  }
}

TEST_CASE("rendering twice gives the same bytes; another target gives others") {
  const KernelConfig config = some_configs().front();
  const TemplateLibrary library = TemplateLibrary::embedded();
  CHECK(flatten(render(config, h200(), library)) == flatten(render(config, h200(), library)));
  const TargetDevice other = find_target_device("sm_100").value();
  CHECK(flatten(render(config, h200(), library)) != flatten(render(config, other, library)));
}

TEST_CASE("flattened text holds the source and every header under its name") {
  const RenderedKernel kernel = render_embedded(some_configs().front());
  const std::string text = flatten(kernel);
  CHECK(text.starts_with(kernel.source));
  for (const SourceFile& header : kernel.headers) {
    CHECK(contains(text, "\n// ---- " + header.name + " ----\n" + header.text));
  }
}

TEST_CASE("a source that is no template brings the headers it includes") {
  const RenderedKernel kernel =
      render_source("probe", "#include \"interface/paged_decode_arguments.h\"\n", h200(),
                    TemplateLibrary::embedded());
  CHECK(header_names(kernel) ==
        std::set<std::string>{"interface/decode_schedule.h", "interface/paged_decode_arguments.h"});
  CHECK(kernel.entry == "probe");
  CHECK(kernel.arch == "sm_90a");
  CHECK(kernel.config == "{}");
}

TEST_CASE("a source that includes an unknown header is refused by that name") {
  std::string message;
  try {
    render_source("probe", "#include \"device/absent.cuh\"\n", h200(), TemplateLibrary::embedded());
  } catch (const TemplateError& error) {
    message = error.what();
  }
  CHECK(contains(message, "device/absent.cuh does not exist; there are: device/async_copy.cuh"));
}

// "enum class MaskKind { none, causal };" as {"MaskKind", {"none", "causal"}}.
std::set<std::string> device_enumerators(const std::string& name) {
  const std::string text = TemplateLibrary::embedded().text("device/config_types.cuh");
  const std::string opening = "enum class " + name + " {";
  const std::size_t begin = text.find(opening);
  REQUIRE(begin != std::string::npos);
  const std::string list =
      text.substr(begin + opening.size(), text.find('}', begin) - begin - opening.size());
  const std::regex word("\\w+");
  return {std::sregex_token_iterator(list.begin(), list.end(), word), std::sregex_token_iterator()};
}

template <typename Enum>
void check_device_enumerators(const std::string& name) {
  const std::vector<std::string> host = test::names_of<Enum>();
  const std::set<std::string> known(host.begin(), host.end());
  const std::set<std::string> device = device_enumerators(name);
  CHECK(!device.empty());
  for (const std::string& enumerator : device) {
    CHECK(known.contains(enumerator));
  }
}

TEST_CASE("the enumerators of the device code are named as the generator names them") {
  check_device_enumerators<DataType>("DataType");
  check_device_enumerators<ValueSource>("ValueSource");
  check_device_enumerators<MaskKind>("MaskKind");
  check_device_enumerators<ScoreModifier>("ScoreModifier");
  check_device_enumerators<ScaleGrain>("ScaleGrain");
  check_device_enumerators<KvEncoding>("KvEncoding");
  check_device_enumerators<KvCopy>("KvCopy");
  check_device_enumerators<PartialOrder>("PartialOrder");
  const std::string types = TemplateLibrary::embedded().text("device/config_types.cuh");
  const std::regex declaration("enum class");
  CHECK(std::distance(std::sregex_iterator(types.begin(), types.end(), declaration),
                      std::sregex_iterator()) == 8);
}

}  // namespace
