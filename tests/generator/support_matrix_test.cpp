#include "attnjit/support_matrix.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "catch.hpp"
#include "field_perturbation.hpp"

namespace {

using namespace attnjit;

std::vector<TargetDevice> devices(const std::vector<std::string>& names) {
  std::vector<TargetDevice> found;
  for (const std::string& name : names) {
    found.push_back(find_target_device(name).value());
  }
  return found;
}

const SupportMatrix& matrix_of_families() {
  static const SupportMatrix matrix = make_support_matrix(devices({"sm_80", "sm_90a"}));
  return matrix;
}

std::vector<Violation> refusals_of(const AttentionDescriptor& call, const TargetDevice& target) {
  try {
    select_configs(call, target);
  } catch (const DescriptorError& error) {
    return error.violations();
  }
  return {};
}

const ServedAxis& axis_of(const ServedRow& row, const std::string& name) {
  return *std::find_if(row.axes.begin(), row.axes.end(),
                       [&](const ServedAxis& axis) { return axis.axis == name; });
}

std::vector<std::string> values_of(const std::vector<ProbedValue>& values) {
  std::vector<std::string> names;
  for (const ProbedValue& each : values) {
    names.push_back(each.value);
  }
  return names;
}

std::vector<std::string> values_of(const ServedRow& row, const std::string& axis) {
  return values_of(axis_of(row, axis).values);
}

std::vector<ServedRow> rows_of(const SupportMatrix& matrix, Operation operation) {
  std::vector<ServedRow> rows;
  std::copy_if(matrix.rows.begin(), matrix.rows.end(), std::back_inserter(rows),
               [&](const ServedRow& row) { return row.operation == operation; });
  return rows;
}

const Refusal* find_refusal(const SupportMatrix& matrix, Operation operation,
                            const std::string& field) {
  const auto found = std::find_if(
      matrix.refusals.begin(), matrix.refusals.end(),
      [&](const Refusal& each) { return each.operation == operation && each.field == field; });
  return found == matrix.refusals.end() ? nullptr : &*found;
}

std::vector<KernelConfig> serve_all(const AttentionDescriptor&, const TargetDevice&) {
  return {PagedDecodeConfig{}};
}

SupportMatrix matrix_by(std::span<const DescriptorRule> support) {
  return make_support_matrix(devices({"sm_80"}), {.support = support, .configs = serve_all});
}

TEST_CASE("every value that a row lists is served by its kernel") {
  REQUIRE(!matrix_of_families().rows.empty());
  for (const ServedRow& row : matrix_of_families().rows) {
    for (const ServedAxis& axis : row.axes) {
      for (const ProbedValue& each : axis.values) {
        INFO(row.kernel << ", " << axis.axis << " " << each.value << " on " << each.target.name);
        CHECK(each.call.operation == row.operation);
        CHECK_NOTHROW(validate(each.call));
        CHECK(kernel_name(select_configs(each.call, each.target).front()) == row.kernel);
      }
    }
  }
}

TEST_CASE("every value that a refusal lists is refused by its field and rule") {
  REQUIRE(!matrix_of_families().refusals.empty());
  for (const Refusal& refusal : matrix_of_families().refusals) {
    REQUIRE(!refusal.values.empty());
    for (const ProbedValue& each : refusal.values) {
      INFO(refusal.field << " = " << each.value << ": " << refusal.rule);
      CHECK(each.call.operation == refusal.operation);
      const std::vector<Violation> violations = refusals_of(each.call, each.target);
      CHECK(std::any_of(violations.begin(), violations.end(), [&](const Violation& violation) {
        return violation.field == refusal.field && violation.value == each.value &&
               violation.rule == refusal.rule && violation.fix == refusal.fix;
      }));
    }
  }
}

TEST_CASE("every operation has a row, or a refusal that says why not") {
  for (std::size_t i = 0; i < test::names_of<Operation>().size(); ++i) {
    const auto operation = static_cast<Operation>(i);
    INFO(to_string(operation));
    const std::vector<Refusal>& refusals = matrix_of_families().refusals;
    if (rows_of(matrix_of_families(), operation).empty()) {
      CHECK(std::any_of(refusals.begin(), refusals.end(),
                        [&](const Refusal& each) { return each.operation == operation; }));
    } else {
      CHECK(find_refusal(matrix_of_families(), operation, "operation") == nullptr);
    }
  }
}

// `types` with the layout and the mask of other calls.
AttentionDescriptor combined(const AttentionDescriptor& types, const AttentionDescriptor& layout,
                             const AttentionDescriptor& mask) {
  AttentionDescriptor call = types;
  call.kv_layout = layout.kv_layout;
  call.kv_layout_tag = layout.kv_layout_tag;
  call.page_size = layout.page_size;
  call.mask = mask.mask;
  call.dtype_mask = mask.dtype_mask;
  call.window_left = mask.window_left;
  call.window_right = mask.window_right;
  call.chunk_size = mask.chunk_size;
  call.mask_expression = mask.mask_expression;
  call.mask_formula = mask.mask_formula;
  return call;
}

// What refuses `call` and is not in the matrix.
std::vector<Violation> refusals_missing_from(const SupportMatrix& matrix,
                                             const AttentionDescriptor& call,
                                             const std::vector<TargetDevice>& targets) {
  std::vector<Violation> missing;
  for (const TargetDevice& target : targets) {
    for (const Violation& violation : refusals_of(call, target)) {
      if (std::none_of(matrix.refusals.begin(), matrix.refusals.end(), [&](const Refusal& each) {
            return each.operation == call.operation && each.field == violation.field &&
                   each.rule == violation.rule;
          })) {
        missing.push_back(violation);
      }
    }
  }
  return missing;
}

TEST_CASE("the dtypes, layouts and masks of a row combine, but for the refusals listed") {
  for (const ServedRow& row : matrix_of_families().rows) {
    INFO(row.kernel);
    for (const ProbedValue& types : axis_of(row, "dtype q/kv").values) {
      for (const ProbedValue& output : axis_of(row, "dtype_out").values) {
        for (const ProbedValue& layout : axis_of(row, "kv_layout").values) {
          for (const ProbedValue& mask : axis_of(row, "mask").values) {
            AttentionDescriptor call = combined(types.call, layout.call, mask.call);
            call.dtype_out = output.call.dtype_out;
            call.scales_out = ScaleGrain::none;
            CHECK(refusals_missing_from(matrix_of_families(), call, row.targets).empty());
          }
        }
      }
    }
  }
}

TEST_CASE("the kernels of both families have their rows, where they are taken") {
  const std::vector<ServedRow> rows = rows_of(matrix_of_families(), Operation::decode);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].kernel == "paged_decode_sm80");
  CHECK(rows[0].targets.size() == 2);
  CHECK(rows[1].kernel == "swapped_decode_sm90");
  CHECK(rows[1].targets.size() == 1);
  CHECK(rows[1].targets[0].arch == "sm_90a");
  CHECK(values_of(rows[1], "value_source") == std::vector<std::string>{"prefix_of_k"});
  CHECK(values_of(rows[1], "q_per_kv").size() == 16);
  CHECK(values_of(rows[0], "page_size").size() == 256);
}

TEST_CASE("the row of a prefill with rope columns says which types and scales those may have") {
  const std::vector<ServedRow> rows = rows_of(matrix_of_families(), Operation::mla_prefill_rope);
  REQUIRE(rows.size() == 1);
  CHECK(values_of(rows[0], "dtype_rope") ==
        std::vector<std::string>{"bf16", "fp16", "fp8_e4m3", "fp8_e5m2"});
  CHECK(values_of(rows[0], "q_rope_apart").size() == 2);
  CHECK(values_of(rows[0], "scales_rope") == test::names_of<ScaleGrain>());
  CHECK(values_of(rows[0], "scale_block").size() == 32);
  const ServedRow prefill = rows_of(matrix_of_families(), Operation::prefill).front();
  CHECK(values_of(prefill, "dtype_rope") == std::vector<std::string>{"bf16"});
  CHECK(values_of(prefill, "scales_q") == test::names_of<ScaleGrain>());
  CHECK(values_of(prefill, "scales_out") == std::vector<std::string>{"none", "per_tensor"});
}

TEST_CASE("a value that one target cannot hold is refused with the target's name") {
  const SupportMatrix matrix = make_support_matrix(devices({"rtx3090", "h100"}));
  const Refusal* refusal = find_refusal(matrix, Operation::decode, "head_dim_qk");
  REQUIRE(refusal != nullptr);
  CHECK(refusal->rule.find("rtx3090") != std::string::npos);
  CHECK(refusal->values.front().target.name == "rtx3090");
  CHECK(find_refusal(matrix_of_families(), Operation::decode, "head_dim_qk") == nullptr);
}

TEST_CASE("an operation that its rule stops refusing gets a row of what it takes") {
  constexpr std::array support = {
      DescriptorRule{
          "operation", "only prefill is served", "use it",
          [](const AttentionDescriptor& call) { return call.operation != Operation::prefill; }},
      DescriptorRule{"head_dim_qk", "only 192 is served", "use it",
                     [](const AttentionDescriptor& call) { return call.head_dim_qk != 192; }}};
  const SupportMatrix matrix = matrix_by(support);
  REQUIRE(matrix.rows.size() == 1);
  CHECK(matrix.rows[0].operation == Operation::prefill);
  CHECK(values_of(matrix.rows[0], "kv_layout") ==
        std::vector<std::string>{"ragged thd", "dense bshd", "dense bhsd"});
  CHECK(values_of(matrix.rows[0], "page_size").empty());
  CHECK(values_of(matrix.rows[0], "head_dim qk/v").front() == "192");
  CHECK(values_of(matrix.rows[0], "mask") == test::names_of<MaskKind>());
  CHECK(find_refusal(matrix, Operation::decode, "operation")->rule == "only prefill is served");
}

TEST_CASE("a value that needs another is asked about together with it") {
  constexpr std::array support = {DescriptorRule{
      "scales_kv", "must not be none for an fp8 cache", "give scales",
      [](const AttentionDescriptor& call) {
        return call.dtype_kv == DataType::fp8_e4m3 && call.scales_kv == ScaleGrain::none &&
               call.kv_encoding == KvEncoding::plain;
      }}};
  const SupportMatrix matrix = matrix_by(support);
  const ServedRow row = rows_of(matrix, Operation::decode).front();
  const std::vector<ProbedValue>& types = axis_of(row, "dtype q/kv").values;
  const auto mixed = std::find_if(types.begin(), types.end(), [](const ProbedValue& each) {
    return each.value == "bf16/fp8_e4m3";
  });
  REQUIRE(mixed != types.end());
  CHECK(mixed->call.scales_kv != ScaleGrain::none);
  CHECK(find_refusal(matrix, Operation::decode, "scales_kv") == nullptr);
}

TEST_CASE("a combination that is refused though each of its values is served is listed") {
  constexpr std::array support = {DescriptorRule{"mask", "must not be tree over hnd pages in fp16",
                                                 "use nhd", [](const AttentionDescriptor& call) {
                                                   return call.mask == MaskKind::tree &&
                                                          call.kv_layout_tag == KvLayoutTag::hnd &&
                                                          call.dtype_q == DataType::fp16;
                                                 }}};
  const SupportMatrix matrix = matrix_by(support);
  const Refusal* refusal = find_refusal(matrix, Operation::decode, "mask");
  REQUIRE(refusal != nullptr);
  CHECK(values_of(refusal->values) == std::vector<std::string>{"tree"});
  const std::vector<std::string> masks =
      values_of(rows_of(matrix, Operation::decode).front(), "mask");
  CHECK(std::find(masks.begin(), masks.end(), "tree") != masks.end());
}

// The names of the fields in which two calls differ.
void add_differences(const AttentionDescriptor& a, const AttentionDescriptor& b,
                     std::set<std::string>& names) {
  for (const std::string& name : test::field_names(a)) {
    AttentionDescriptor mixed = a;
    for_each_field(mixed, [&](std::string_view field, auto& member) {
      for_each_field(b, [&](std::string_view other, const auto& value) {
        if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>,
                                     std::remove_cvref_t<decltype(member)>>) {
          if (field == name && other == name) {
            member = value;
          }
        }
      });
    });
    if (!(mixed == a)) {
      names.insert(name);
    }
  }
}

template <typename Enum>
void check_all_asked(const SupportMatrix& matrix, const std::string& axis) {
  std::set<std::string> asked;
  for (const ServedRow& row : matrix.rows) {
    const std::vector<std::string> values = values_of(row, axis);
    asked.insert(values.begin(), values.end());
  }
  const std::vector<std::string> names = test::names_of<Enum>();
  CHECK(asked == std::set<std::string>(names.begin(), names.end()));
}

TEST_CASE("every field is varied and every enumerator asked about") {
  const SupportMatrix matrix = matrix_by({});
  std::set<std::string> varied;
  for (const ServedRow& row : matrix.rows) {
    const AttentionDescriptor& first = matrix.rows.front().axes.front().values.front().call;
    for (const ServedAxis& axis : row.axes) {
      for (const ProbedValue& each : axis.values) {
        add_differences(first, each.call, varied);
      }
    }
  }
  const std::vector<std::string> fields = test::field_names(AttentionDescriptor{});
  CHECK(varied == std::set<std::string>(fields.begin(), fields.end()));
  check_all_asked<MaskKind>(matrix, "mask");
  check_all_asked<ValueSource>(matrix, "value_source");
  check_all_asked<ScoreModifier>(matrix, "score_modifier");
  check_all_asked<Sparsity>(matrix, "sparsity");
  check_all_asked<ScaleGrain>(matrix, "scales_q");
  check_all_asked<ScaleGrain>(matrix, "scales_kv");
  check_all_asked<ScaleGrain>(matrix, "scales_rope");
  check_all_asked<ScaleGrain>(matrix, "scales_out");
}

}  // namespace
