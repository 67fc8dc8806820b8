// A shared library opened at run time: libnvrtc, its builtins, libcuda. Stays mapped until the
// process ends even when the last handle is closed, because both vendors' libraries keep threads
// and exit handlers. Move-only owner of one handle; use is thread-safe.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>

namespace attnjit {

class LibraryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class DynamicLibrary {
 public:
  enum class Symbols { local, global };  // global: later libraries may resolve against this one

  // Opens a path, or a bare name through the loader's own search. Throws LibraryError with the
  // loader's words.
  explicit DynamicLibrary(const std::filesystem::path& name, Symbols symbols = Symbols::local);
  ~DynamicLibrary();
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;

  // Address of a function, or null.
  void* find(const char* symbol) const;

  // Sets `function` to `symbol`; throws LibraryError naming both if it is missing.
  template <typename Function>
  void bind(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(require(symbol));
  }

  // The file that the loader mapped.
  std::filesystem::path path() const;

  // GNU build-id of the mapped image in hex; a digest of the file where the linker wrote none.
  std::string build_id() const;

 private:
  void* require(const char* symbol) const;

  void* handle_ = nullptr;
};

}  // namespace attnjit
