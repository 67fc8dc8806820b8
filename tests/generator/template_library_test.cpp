#include "attnjit/template_library.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

#include "attnjit/kernel_renderer.hpp"
#include "catch.hpp"
#include "template_copy.hpp"

namespace {

using namespace attnjit;
namespace fs = std::filesystem;
using test::TemplateCopy;

// ATTNJIT_TEMPLATES as given, its old value afterwards.
class TemplatesVariable {
 public:
  explicit TemplatesVariable(const std::string& value) {
    if (const char* old = std::getenv(name)) {
      old_ = old;
    }
    setenv(name, value.c_str(), 1);
  }
  ~TemplatesVariable() {
    if (old_.empty()) {
      unsetenv(name);
    } else {
      setenv(name, old_.c_str(), 1);
    }
  }
  TemplatesVariable(const TemplatesVariable&) = delete;
  TemplatesVariable& operator=(const TemplatesVariable&) = delete;

 private:
  static constexpr const char* name = "ATTNJIT_TEMPLATES";
  std::string old_;
};

std::string refusal(const fs::path& root) {
  try {
    TemplateLibrary::from_directory(root);
  } catch (const TemplateError& error) {
    return error.what();
  }
  return "";
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

void append(const fs::path& path, std::string_view text) {
  std::ofstream(path, std::ios::app) << text;
}

// Whoever may not read what its owner alone may: root may read everything, so it steps aside.
class OtherUser {
 public:
  OtherUser() {
    const bool is_other = geteuid() != 0 || seteuid(65534) == 0;
    REQUIRE(is_other);
  }
  ~OtherUser() { is_back_ = getuid() != 0 || seteuid(0) == 0; }
  OtherUser(const OtherUser&) = delete;
  OtherUser& operator=(const OtherUser&) = delete;

 private:
  bool is_back_ = false;
};

TEST_CASE("a subfolder that cannot be read is refused by name") {
  const TemplateCopy copy;
  const fs::path folder = copy.root() / "secret";
  fs::create_directory(folder);
  fs::permissions(copy.root(), fs::perms::all);
  fs::permissions(folder, fs::perms::none);
  std::string message;
  {
    const OtherUser other;
    message = refusal(copy.root());
  }
  fs::permissions(folder, fs::perms::all);
  INFO(message);
  CHECK(contains(message, folder.string()));
  CHECK(contains(message, "; fix: "));
}

TEST_CASE("a pipe among the templates is refused, not waited for") {
  const TemplateCopy copy;
  const fs::path added = copy.root() / "device" / "added.cuh";
  REQUIRE(mkfifo(added.c_str(), 0600) == 0);
  CHECK(contains(refusal(copy.root()), added.string()));
  fs::remove(added);
  const fs::path header = copy.root() / "device" / "config_types.cuh";
  fs::remove(header);
  REQUIRE(mkfifo(header.c_str(), 0600) == 0);
  CHECK(contains(refusal(copy.root()), header.string()));
}

TEST_CASE("the embedded templates are the files of templates/, byte for byte") {
  const TemplateLibrary embedded = TemplateLibrary::embedded();
  const TemplateLibrary directory =
      TemplateLibrary::from_directory(ATTNJIT_SOURCE_DIR "/templates");
  CHECK(embedded.files() == directory.files());
  CHECK(embedded.digest() == directory.digest());
}

TEST_CASE("every file of templates/ that is device code is embedded") {
  const fs::path root = ATTNJIT_SOURCE_DIR "/templates";
  const TemplateLibrary embedded = TemplateLibrary::embedded();
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string extension = entry.path().extension().string();
    if (extension == ".cu" || extension == ".cuh" || extension == ".h") {
      const std::string name = fs::relative(entry.path(), root).generic_string();
      CHECK(embedded.files().contains(name));
    }
  }
}

TEST_CASE("the README of templates/ names every file") {
  std::ifstream file(ATTNJIT_SOURCE_DIR "/templates/README.md");
  const std::string readme{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const TemplateLibrary embedded = TemplateLibrary::embedded();
  for (const auto& [name, text] : embedded.files()) {
    CHECK(contains(readme, "`" + name + "`"));
  }
}

TEST_CASE("an unknown template is refused with the names there are") {
  std::string message;
  try {
    TemplateLibrary::embedded().text("kernels/absent.cu");
  } catch (const TemplateError& error) {
    message = error.what();
  }
  CHECK(contains(message, "kernels/absent.cu does not exist; there are:"));
  CHECK(contains(message, " kernels/paged_decode_sm80.cu"));
}

TEST_CASE("the digest is sixteen hex digits and changes with any text") {
  TemplateCopy copy;
  const std::string before = TemplateLibrary::from_directory(copy.root()).digest();
  CHECK(before.size() == 16);
  CHECK(before.find_first_not_of("0123456789abcdef") == std::string::npos);
  append(copy.root() / "device/softmax_math.cuh", " ");
  CHECK(TemplateLibrary::from_directory(copy.root()).digest() != before);
}

TEST_CASE("a directory that lacks one template is refused by that path, never completed") {
  const TemplateLibrary embedded = TemplateLibrary::embedded();
  for (const auto& [name, text] : embedded.files()) {
    TemplateCopy copy;
    fs::remove(copy.root() / name);
    const std::string message = refusal(copy.root());
    CHECK(contains(message, (copy.root() / name).string()));
    CHECK(contains(message, "fix: "));
  }
}

TEST_CASE("a directory in the place of a template is refused, as is a missing root") {
  TemplateCopy copy;
  fs::remove(copy.root() / "device/mma_sm80.cuh");
  fs::create_directory(copy.root() / "device/mma_sm80.cuh");
  CHECK(contains(refusal(copy.root()), "device/mma_sm80.cuh"));
  CHECK(contains(refusal(copy.root() / "absent"), "cannot be read"));
}

TEST_CASE("an edited template shows in what is rendered from its directory") {
  TemplateCopy copy;
  append(copy.root() / "kernels/schedule_decode.cu", "// edited kernel\n");
  append(copy.root() / "interface/decode_schedule.h", "// edited header\n");
  const TargetDevice device = find_target_device("sm_80").value();
  const std::string text = flatten(render(ScheduleConfig{64, 1024, 100, 90}, device,
                                          TemplateLibrary::from_directory(copy.root())));
  CHECK(contains(text, "// edited kernel\n"));
  CHECK(contains(text, "// edited header\n"));
}

TEST_CASE("a header that only the directory has can be included from there") {
  TemplateCopy copy;
  append(copy.root() / "device/added.cuh", "// an added header\n");
  append(copy.root() / "kernels/schedule_decode.cu", "#include \"device/added.cuh\"\n");
  append(copy.root() / "device/.backup.cuh~", "not device code");
  const TemplateLibrary library = TemplateLibrary::from_directory(copy.root());
  const TargetDevice device = find_target_device("sm_80").value();
  CHECK(contains(flatten(render(ScheduleConfig{64, 1024, 100, 90}, device, library)),
                 "// ---- device/added.cuh ----\n// an added header\n"));
  CHECK(library.files().size() == TemplateLibrary::embedded().files().size() + 1);
}

TEST_CASE("templates come from the directory given, else the environment, else the binary") {
  TemplateCopy edited;
  append(edited.root() / "device/mma_sm80.cuh", "// edited\n");
  TemplateCopy pristine;
  const std::string embedded = TemplateLibrary::embedded().digest();
  const std::string changed = TemplateLibrary::from_directory(edited.root()).digest();
  {
    const TemplatesVariable variable(edited.root().string());
    CHECK(TemplateLibrary::open({}).digest() == changed);
    CHECK(TemplateLibrary::open(pristine.root()).digest() == embedded);
  }
  {
    const TemplatesVariable variable("");
    CHECK(TemplateLibrary::open({}).digest() == embedded);
    CHECK(TemplateLibrary::open(edited.root()).digest() == changed);
  }
  {
    const TemplatesVariable variable((edited.root() / "absent").string());
    CHECK_THROWS_AS(TemplateLibrary::open({}), TemplateError);
  }
}

}  // namespace
