#include "cubin_inspection.hpp"

#include "nvrtc_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <elf.h>

#include <algorithm>
#include <cstring>

namespace attnjit {
namespace {

constexpr Elf64_Half machine_cuda = 190;  // EM_CUDA
constexpr unsigned char osabi_since_cuda_13 = 0x41;

template <typename Value>
std::optional<Value> read_at(std::string_view bytes, std::uint64_t offset) {
  if (offset > bytes.size() || bytes.size() - offset < sizeof(Value)) {
    return std::nullopt;
  }
  Value value;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

std::string_view contents(std::string_view bytes, const Elf64_Shdr& section) {
  const bool inside =
      section.sh_offset <= bytes.size() && section.sh_size <= bytes.size() - section.sh_offset;
  return inside ? bytes.substr(section.sh_offset, section.sh_size) : std::string_view();
}

// The zero-terminated text at `offset` of a string table, or "".
std::string_view string_at(std::string_view table, std::uint64_t offset) {
  if (offset >= table.size()) {
    return {};
  }
  const std::string_view rest = table.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

const char* header_problem(const std::optional<Elf64_Ehdr>& header) {
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
    return "is not an ELF file";
  }
  if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_machine != machine_cuda) {
    return "is not a 64-bit CUDA ELF file";
  }
  return header->e_shentsize == sizeof(Elf64_Shdr) ? nullptr : "has a malformed section table";
}

// The format changed with CUDA 13 (and, for sm_100 and newer, with 12.8): the SM number moved from
// the lowest byte of e_flags to the second.
int architecture_of(const Elf64_Ehdr& header) {
  const unsigned shift = header.e_ident[EI_OSABI] == osabi_since_cuda_13 ? 8 : 0;
  return static_cast<int>((header.e_flags >> shift) & 0xff);
}

std::optional<std::vector<Elf64_Shdr>> read_sections(std::string_view cubin,
                                                     const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> sections;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = read_at<Elf64_Shdr>(cubin, header.e_shoff + i * sizeof(Elf64_Shdr));
    const bool has_bytes = section && section->sh_type != SHT_NOBITS && section->sh_size > 0;
    if (!section || (has_bytes && contents(cubin, *section).empty())) {
      return std::nullopt;
    }
    sections.push_back(*section);
  }
  return header.e_shstrndx < sections.size() ? std::optional(sections) : std::nullopt;
}

}  // namespace

std::optional<CubinContents> inspect_cubin(std::string_view cubin, std::string* problem) {
  const auto header = read_at<Elf64_Ehdr>(cubin, 0);
  if (const char* found = header_problem(header); found != nullptr) {
    *problem = found;
    return std::nullopt;
  }
  const auto sections = read_sections(cubin, *header);
  if (!sections) {
    *problem = "is cut off: a section lies outside of it";
    return std::nullopt;
  }
  constexpr std::string_view code_prefix = ".text.";
  CubinContents result{.architecture = architecture_of(*header), .kernels = {}};
  const std::string_view names = contents(cubin, (*sections)[header->e_shstrndx]);
  for (const Elf64_Shdr& section : *sections) {
    const std::string_view name = string_at(names, section.sh_name);
    if (name.starts_with(code_prefix) && section.sh_size > 0) {
      result.kernels.emplace_back(name.substr(code_prefix.size()));
    }
  }
  return result;
}

std::optional<std::string> cubin_problem(std::string_view cubin, std::string_view arch,
                                         std::string_view entry) {
  if (cubin.empty()) {
    return "the cubin is empty";
  }
  std::string problem;
  const std::optional<CubinContents> found = inspect_cubin(cubin, &problem);
  if (!found) {
    return "the cubin " + problem;
  }
  if (found->architecture != architecture_number(arch)) {
    return fmt::format("the cubin is for sm_{}, not {}", found->architecture, arch);
  }
  if (std::find(found->kernels.begin(), found->kernels.end(), entry) == found->kernels.end()) {
    return fmt::format("the cubin holds no kernel {}, only: {}", entry,
                       fmt::join(found->kernels, ", "));
  }
  return std::nullopt;
}

}  // namespace attnjit
