import shutil
import unittest

import check_fixture


class FormatTest(check_fixture.CheckTest):
    check = "check_format"

    def setUp(self):
        super().setUp()
        if not shutil.which("clang-format-14"):
            print("skipped: clang-format-14 is not installed; run tools/setup --checks")
            self.skipTest("no clang-format-14")
        shutil.copy(check_fixture.REPOSITORY / ".clang-format", self.root)

    def test_accepts_formatted_code(self):
        self.write("cache/src/a.cpp", "int a() {\n  return 1;\n}\n")
        self.assert_passes()

    def test_rejects_unformatted_code(self):
        self.write("cache/src/a.cpp", "int a() {\n  return 1;\n}\nint  b;\n")
        self.assert_reports("cache/src/a.cpp:4: not formatted")

    def test_rejects_an_unformatted_template(self):
        self.write("templates/kernels/a.cu", "__device__ void a( int b) {}\n")
        self.assert_reports("templates/kernels/a.cu:1: not formatted")


unittest.main()
