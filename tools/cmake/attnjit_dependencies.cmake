# Third-party packages, all from the system. fmt and xxHash are linked, nlohmann/json is
# header-only; CLI11 and Catch2 are needed only by the tool and the tests.
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.10 REQUIRED)
find_package(Threads REQUIRED)

# xxHash ships no CMake package on Debian and Ubuntu; XXH_INLINE_ALL needs only its header.
find_path(ATTNJIT_XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
