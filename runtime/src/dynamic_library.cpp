#include "dynamic_library.hpp"

#include "attnjit/cache_key.hpp"

#include <fmt/format.h>

#include <dlfcn.h>
#include <link.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

namespace attnjit {
namespace {

const link_map* map_of(void* handle) {
  link_map* map = nullptr;
  dlinfo(handle, RTLD_DI_LINKMAP, &map);
  return map;
}

std::string to_hex(std::span<const unsigned char> bytes) {
  std::string hex;
  for (const unsigned char byte : bytes) {
    hex += fmt::format("{:02x}", byte);
  }
  return hex;
}

// The descriptor of the NT_GNU_BUILD_ID note in one PT_NOTE segment, or "".
std::string find_build_id(std::span<const unsigned char> notes) {
  const auto padded = [](std::size_t bytes) { return (bytes + 3) & ~std::size_t{3}; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) header;
    std::memcpy(&header, notes.data(), sizeof(header));
    const std::size_t name = sizeof(header);
    const std::size_t descriptor = name + padded(header.n_namesz);
    const std::size_t next = descriptor + padded(header.n_descsz);
    if (next > notes.size()) {
      return "";
    }
    const bool is_gnu = header.n_namesz == 4 && std::memcmp(notes.data() + name, "GNU", 4) == 0;
    if (is_gnu && header.n_type == NT_GNU_BUILD_ID) {
      return to_hex(notes.subspan(descriptor, header.n_descsz));
    }
    notes = notes.subspan(next);
  }
  return "";
}

struct BuildIdSearch {
  const link_map* map;
  std::string build_id;
};

int visit_image(dl_phdr_info* image, std::size_t, void* search_pointer) {
  auto& search = *static_cast<BuildIdSearch*>(search_pointer);
  if (image->dlpi_addr != search.map->l_addr ||
      std::strcmp(image->dlpi_name, search.map->l_name) != 0) {
    return 0;
  }
  for (const ElfW(Phdr) & segment : std::span(image->dlpi_phdr, image->dlpi_phnum)) {
    if (segment.p_type == PT_NOTE && search.build_id.empty()) {
      const auto* start =
          reinterpret_cast<const unsigned char*>(image->dlpi_addr + segment.p_vaddr);
      search.build_id = find_build_id({start, segment.p_memsz});
    }
  }
  return 1;
}

std::string digest_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  return CacheKeyBuilder().add("file", bytes).finish().digest;
}

}  // namespace

DynamicLibrary::DynamicLibrary(const std::filesystem::path& name, Symbols symbols) {
  const int visibility = symbols == Symbols::global ? RTLD_GLOBAL : RTLD_LOCAL;
  handle_ = dlopen(name.c_str(), RTLD_NOW | RTLD_NODELETE | visibility);
  if (handle_ == nullptr) {
    const char* reason = dlerror();
    throw LibraryError(reason != nullptr ? reason : fmt::format("cannot load {}", name.string()));
  }
}

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) {
    dlclose(handle_);
  }
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  return *this;
}

void* DynamicLibrary::find(const char* symbol) const {
  return dlsym(handle_, symbol);
}

void* DynamicLibrary::require(const char* symbol) const {
  void* address = find(symbol);
  if (address == nullptr) {
    throw LibraryError(fmt::format("{} does not export {}", path().string(), symbol));
  }
  return address;
}

std::filesystem::path DynamicLibrary::path() const {
  return map_of(handle_)->l_name;
}

std::string DynamicLibrary::build_id() const {
  BuildIdSearch search{.map = map_of(handle_), .build_id = ""};
  dl_iterate_phdr(visit_image, &search);
  return search.build_id.empty() ? "file-" + digest_of_file(path()) : search.build_id;
}

}  // namespace attnjit
