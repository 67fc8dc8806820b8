#include "sample_kernels.hpp"

#include <elf.h>

#include <cstring>

namespace attnjit::test {
namespace {

template <typename Value>
std::string bytes_of(const Value& value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

Elf64_Ehdr sample_header(int architecture) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_OSABI] = 0x41;
  header.e_machine = 190;
  header.e_flags = static_cast<Elf64_Word>(architecture) << 8;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shoff = sizeof(Elf64_Ehdr);
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  return header;
}

}  // namespace

RenderedKernel sample_kernel(const std::string& arch) {
  return {.name = "sample",
          .entry = "sample_entry",
          .arch = arch,
          .source =
              "// banner\n"
              "#include \"device/scale.cuh\"\n"
              "#line 1 \"kernels/sample.cu\"\n"
              "extern \"C\" __global__ void sample_entry(float* values) {\n"
              "  extern __shared__ float tile[];\n"
              "  tile[threadIdx.x] = values[threadIdx.x];\n"
              "  __syncthreads();\n"
              "  values[threadIdx.x] = scale(tile[blockDim.x - 1 - threadIdx.x]);\n"
              "}\n",
          .headers = {{"device/scale.cuh",
                       "#pragma once\n"
                       "#include \"device/constants.cuh\"\n"
                       "__device__ inline float scale(float value) { return factor * value; }\n"},
                      {"device/constants.cuh", "#pragma once\nconstexpr float factor = 3.0f;\n"}},
          .config = R"({"kernel":"sample","head_dim_v":512})",
          .num_threads = 128,
          .shared_memory_bytes = 512};
}

std::string sample_cubin(int architecture, std::string_view entry) {
  const std::string code(16, '\x5a');
  const std::string code_name = ".text." + std::string(entry);
  const std::string names = std::string(1, '\0') + code_name + '\0' + ".shstrtab" + '\0';
  const std::size_t names_offset = sizeof(Elf64_Ehdr) + 3 * sizeof(Elf64_Shdr);
  Elf64_Shdr names_section{};
  names_section.sh_name = static_cast<Elf64_Word>(code_name.size() + 2);
  names_section.sh_type = SHT_STRTAB;
  names_section.sh_offset = names_offset;
  names_section.sh_size = names.size();
  Elf64_Shdr code_section{};
  code_section.sh_name = 1;
  code_section.sh_type = SHT_PROGBITS;
  code_section.sh_offset = names_offset + names.size();
  code_section.sh_size = code.size();
  return bytes_of(sample_header(architecture)) + bytes_of(Elf64_Shdr{}) + bytes_of(names_section) +
         bytes_of(code_section) + names + code;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace attnjit::test
