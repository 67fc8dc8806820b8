#include "stored_kernel.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "attnjit/config_selection.hpp"
#include "attnjit/kernel_key.hpp"
#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "command_line.hpp"

namespace attnjit {
namespace {

const std::string toolchain = "nvrtc 13.0 of a test";

std::vector<RenderedKernel> render_some() {
  const TargetDevice device = find_target_device("h200").value();
  const TemplateLibrary library = TemplateLibrary::embedded();
  std::vector<RenderedKernel> kernels;
  for (const KernelConfig& config : select_configs(AttentionDescriptor{}, device)) {
    kernels.push_back(render(config, device, library));
  }
  return kernels;
}

CacheKey key_of(const RenderedKernel& kernel) {
  return make_cache_key(kernel, compile_options(kernel, toolchain), toolchain);
}

std::string message_of(const DiskCache& cache, const std::string& prefix) {
  try {
    find_stored_kernel(cache, prefix);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A cache with an entry per kernel, whose cubin is no cubin, and the toolchain's record of it.
struct FilledCache {
  TemporaryDirectory directory;
  DiskCache cache{directory.path(), nullptr};
  std::vector<RenderedKernel> kernels = render_some();

  FilledCache() {
    for (const RenderedKernel& kernel : kernels) {
      cache.put(key_of(kernel), to_json(describe(kernel, CompiledKernel{}, toolchain)), "cubin");
      cache.put(make_toolchain_record_key(kernel), R"({"record": "toolchain"})", toolchain);
    }
  }
};

}  // namespace

TEST_CASE("the key text of a kernel gives back every byte of its sources") {
  for (const RenderedKernel& kernel : render_some()) {
    const auto parsed = parse_kernel_key_text(key_of(kernel).text);
    REQUIRE(parsed.has_value());
    CHECK(parsed->source == kernel.source);
    CHECK(parsed->arch == kernel.arch);
    CHECK(parsed->entry == kernel.entry);
    CHECK(flatten(*parsed) == flatten(kernel));
  }
}

TEST_CASE("a text that is no kernel's key text is told apart") {
  const std::string text = key_of(render_some().front()).text;
  CHECK(!parse_kernel_key_text("").has_value());
  CHECK(!parse_kernel_key_text("source").has_value());
  CHECK(!parse_kernel_key_text("source 5\nab\n").has_value());
  CHECK(!parse_kernel_key_text("source 99999999999999999999999\nab\n").has_value());
  CHECK(!parse_kernel_key_text(make_toolchain_record_key(render_some().front()).text).has_value());
  CHECK(!parse_kernel_key_text(text.substr(0, text.size() - 2)).has_value());
}

TEST_CASE("only six to thirty-two hex digits look like a key") {
  CHECK(looks_like_key("0a1B2c"));
  CHECK(looks_like_key(std::string(32, 'f')));
  CHECK(!looks_like_key("0a1b2"));
  CHECK(!looks_like_key(std::string(33, 'f')));
  CHECK(!looks_like_key("0a1b2g"));
}

TEST_CASE("a kernel is found by its key and by the beginning of it in either case") {
  const FilledCache filled;
  for (const RenderedKernel& kernel : filled.kernels) {
    const std::string digest = key_of(kernel).digest;
    std::string upper = digest.substr(0, 12);
    for (char& digit : upper) {
      digit = digit >= 'a' ? static_cast<char>(digit - 'a' + 'A') : digit;
    }
    for (const std::string& prefix : {digest, digest.substr(0, 12), upper}) {
      const StoredKernel stored = find_stored_kernel(filled.cache, prefix);
      CHECK(stored.digest == digest);
      CHECK(stored.kernel.name == kernel.name);
      CHECK(stored.kernel.config == kernel.config);
      CHECK(flatten(stored.kernel) == flatten(kernel));
    }
  }
}

TEST_CASE("an ambiguous key lists all kernels that match it") {
  const FilledCache filled;
  const std::string message = message_of(filled.cache, "");
  CHECK(holds(message, "3 kernels have a key that begins so; fix: give more digits"));
  for (const RenderedKernel& kernel : filled.kernels) {
    CHECK(holds(message, key_of(kernel).digest));
  }
}

TEST_CASE("an unknown key lists near ones, else where keys come from") {
  const FilledCache filled;
  const std::string digest = key_of(filled.kernels.front()).digest;
  std::string mistyped = digest.substr(0, 10);
  mistyped[4] = mistyped[4] == '0' ? '1' : '0';
  const std::string message = message_of(filled.cache, mistyped);
  CHECK(holds(message, "key = " + mistyped));
  CHECK(holds(message, "near ones:"));
  CHECK(holds(message, digest));

  const TemporaryDirectory empty;
  const std::string far = message_of(DiskCache(empty.path(), nullptr), digest);
  CHECK(!holds(far, "near ones"));
  CHECK(holds(far, "attnjit warm"));
  CHECK(holds(far, empty.path().string()));
}

TEST_CASE("a damaged entry is told with its reason") {
  const FilledCache filled;
  const std::string digest = key_of(filled.kernels.front()).digest;
  for (const StoredEntry& entry : filled.cache.list()) {
    std::filesystem::resize_file(entry.path, entry.bytes - 1);
  }
  const std::string message = message_of(filled.cache, digest);
  CHECK_THROWS_AS(find_stored_kernel(filled.cache, digest), std::runtime_error);
  CHECK(holds(message, "cannot be used"));
  CHECK(holds(message, "attnjit warm"));
}

TEST_CASE("the record of a toolchain is no kernel") {
  const FilledCache filled;
  const std::string record = make_toolchain_record_key(filled.kernels.front()).digest;
  CHECK(holds(message_of(filled.cache, record), "no kernel in the cache"));
}

}  // namespace attnjit
