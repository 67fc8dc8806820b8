// nvcc as a user would call it, where the machine has one: device code to nothing, for its log.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnjit::test {

// The nvcc that a user's shell would find, "" if there is none.
std::string find_nvcc();

// Compiles `source` for `arch` into nothing; the log with the assembler's remarks, opened by
// "failed: " if it does not compile.
std::string compile_with_nvcc(const std::string& nvcc, const std::filesystem::path& source,
                              const std::vector<std::filesystem::path>& include_folders,
                              const std::string& arch);

// What a log says of local memory, "8 bytes stack frame"; a kernel that spills nothing has none.
std::vector<std::string> nonzero_local_memory(const std::string& log);

}  // namespace attnjit::test
