#include <pwd.h>
#include <unistd.h>

#include "attnjit/disk_cache.hpp"
#include "catch.hpp"
#include "scratch_directory.hpp"

namespace attnjit {
namespace {

namespace fs = std::filesystem;
using test::ScopedVariable;

// The three variables of the search for the life of the object.
struct SearchEnvironment {
  ScopedVariable own;
  ScopedVariable xdg;
  ScopedVariable home;

  SearchEnvironment(std::optional<std::string> own_value, std::optional<std::string> xdg_value,
                    std::optional<std::string> home_value)
      : own("ATTNJIT_CACHE_DIR", std::move(own_value)),
        xdg("XDG_CACHE_HOME", std::move(xdg_value)),
        home("HOME", std::move(home_value)) {}
};

// Where the user database sends a process without HOME.
std::optional<fs::path> account_directory() {
  const passwd* account = ::getpwuid(::geteuid());
  if (account == nullptr || !fs::path(account->pw_dir).is_absolute()) {
    return std::nullopt;
  }
  return fs::path(account->pw_dir) / ".cache" / "attnjit";
}

}  // namespace

TEST_CASE("an option names the cache directory before any variable") {
  const SearchEnvironment environment("/own", "/xdg", "/home/me");
  CHECK(resolve_cache_directory("/option") == fs::path("/option"));
}

TEST_CASE("ATTNJIT_CACHE_DIR comes before XDG_CACHE_HOME and that before HOME") {
  {
    const SearchEnvironment environment("/own", "/xdg", "/home/me");
    CHECK(resolve_cache_directory({}) == fs::path("/own"));
  }
  {
    const SearchEnvironment environment(std::nullopt, "/xdg", "/home/me");
    CHECK(resolve_cache_directory({}) == fs::path("/xdg/attnjit"));
  }
  {
    const SearchEnvironment environment(std::nullopt, std::nullopt, "/home/me");
    CHECK(resolve_cache_directory({}) == fs::path("/home/me/.cache/attnjit"));
  }
}

TEST_CASE("empty variables count as unset") {
  const SearchEnvironment environment("", "", "/home/me");
  CHECK(resolve_cache_directory({}) == fs::path("/home/me/.cache/attnjit"));
}

TEST_CASE("relative XDG_CACHE_HOME and HOME are ignored") {
  const SearchEnvironment xdg(std::nullopt, "relative/xdg", "/home/me");
  CHECK(resolve_cache_directory({}) == fs::path("/home/me/.cache/attnjit"));
  const SearchEnvironment both(std::nullopt, "relative/xdg", "relative/home");
  CHECK(resolve_cache_directory({}) == account_directory());
}

TEST_CASE("without HOME the user database names the home directory") {
  const SearchEnvironment environment(std::nullopt, std::nullopt, std::nullopt);
  CHECK(resolve_cache_directory({}) == account_directory());
}

TEST_CASE("a user without variables and without an account has no cache directory") {
  constexpr uid_t user = 54321;
  const SearchEnvironment environment(std::nullopt, std::nullopt, std::nullopt);
  const int result = ::geteuid() != 0 || ::getpwuid(user) != nullptr
                         ? test::not_permitted
                         : test::run_in_child([&] {
                             test::become_user(user);
                             return resolve_cache_directory({}) ? 1 : 0;
                           });
  if (result == test::not_permitted) {
    WARN("not run: this process cannot become a user without an account");
    return;
  }
  CHECK(result == 0);
}

TEST_CASE("a relative option and a relative ATTNJIT_CACHE_DIR do not move with the process") {
  const SearchEnvironment environment("own", std::nullopt, std::nullopt);
  CHECK(resolve_cache_directory("option") == fs::current_path() / "option");
  CHECK(resolve_cache_directory({}) == fs::current_path() / "own");
}

TEST_CASE("a relative option in a directory that was removed means no cache directory") {
  CHECK(test::run_in_child([] {
          const test::ScratchDirectory scratch;
          const fs::path gone = scratch.path() / "gone";
          fs::create_directory(gone);
          fs::current_path(gone);
          fs::remove(gone);
          return resolve_cache_directory("option") ? 1 : 0;
        }) == 0);
}

}  // namespace attnjit
