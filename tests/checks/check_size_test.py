import unittest

import check_fixture


def function_of(lines, head="int count()"):
    return f"{head} {{\n" + "  ++total;\n" * (lines - 1) + "}\n"


class SizeTest(check_fixture.CheckTest):
    check = "check_size"

    def test_accepts_files_lines_and_functions_at_their_limits(self):
        self.write("cache/src/a.cpp", "//\n" * 400)
        self.write("cache/src/b.cpp", "//" + "x" * 98 + "\n" + function_of(60))
        self.write("templates/kernels/c.cu",
                   function_of(150, 'extern "C" __global__ void __launch_bounds__(128) decode()'))
        self.assert_passes()

    def test_rejects_a_long_file(self):
        self.write("cache/src/a.cpp", "//\n" * 401)
        self.assert_reports("cache/src/a.cpp:401: file has 401 lines")

    def test_rejects_a_long_line(self):
        self.write("cache/src/a.cpp", "\n//" + "x" * 99 + "\n")
        self.assert_reports("cache/src/a.cpp:2: line has 101 columns")

    def test_rejects_a_long_function_wherever_it_is_defined(self):
        self.write("cache/src/a.cpp", "namespace a {\n" + function_of(61) + "}\n")
        self.write("cache/src/b.cpp",
                   "struct B : A {\n" + function_of(61, "int c(int d = 1) const noexcept") + "};\n")
        self.write("cache/src/c.cpp", function_of(61, "C::C(int d)\n    : A(d), e_{d}"))
        self.write("cache/src/d.cpp", "template <typename T>\n" + function_of(61, "auto d() -> T"))
        self.assert_reports("cache/src/a.cpp:2: function count has 61 lines",
                            "cache/src/b.cpp:2: function c has 61 lines",
                            "cache/src/c.cpp:2: function C has 61 lines",
                            "cache/src/d.cpp:2: function d has 61 lines")

    def test_is_not_misled_by_braces_in_text(self):
        body = 'int a() {\n  const char* open = "{";\n  // {\n  char c = \'{\';\n}\n'
        self.write("cache/src/a.cpp", body + "int b;\n" * 70 + "int c() {\n}\n")
        self.assert_passes()

    def test_rejects_a_long_kernel_entry(self):
        self.write("templates/kernels/a.cu",
                   function_of(151, 'extern "C" __global__ void __launch_bounds__(128) decode()'))
        self.assert_reports("templates/kernels/a.cu:1: function decode has 151 lines; at most 150")

    def test_rejects_a_long_device_function(self):
        self.write("templates/device/a.cuh", function_of(61, "__device__ void load_tiles(int a)"))
        self.assert_reports("templates/device/a.cuh:1: function load_tiles has 61 lines")

    def test_rejects_a_long_python_function(self):
        self.write("tools/python/a.py", "def a():\n" + "    b()\n" * 61)
        self.assert_reports("tools/python/a.py:1: function a has 61 lines")

    def test_does_not_look_at_golden_renderings(self):
        self.write("tests/generator/golden/decode.cu", "//\n" * 500)
        self.assert_passes()


unittest.main()
