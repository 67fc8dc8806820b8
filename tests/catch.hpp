// Catch2 under its v2 (Debian 12) or v3 (Ubuntu 24.04) header name.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // as v2 has it
#else
#include <catch2/catch.hpp>
#endif
