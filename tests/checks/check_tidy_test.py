import json
import shutil
import unittest

import check_fixture


class TidyTest(check_fixture.CheckTest):
    check = "check_tidy"

    def setUp(self):
        super().setUp()
        if not shutil.which("clang-tidy-14"):
            print("skipped: clang-tidy-14 is not installed; run tools/setup --checks")
            self.skipTest("no clang-tidy-14")
        shutil.copy(check_fixture.REPOSITORY / ".clang-tidy", self.root)

    def compile(self, text, header=""):
        self.write("cache/src/a.hpp", header)
        self.write("cache/src/a.cpp", text)
        file = str(self.root / "cache" / "src" / "a.cpp")
        self.write("build/dev/compile_commands.json", json.dumps([
            {"directory": str(self.root), "file": file, "command": f"c++ -std=c++20 -c {file}"}]))

    def test_accepts_clean_code(self):
        self.compile("int size_bytes() {\n  return 1;\n}\n")
        self.assert_passes()

    def test_rejects_a_defect(self):
        self.compile("void a(bool b, int& c) {\n  if (b);\n  c = 1;\n}\n")
        self.assert_reports("cache/src/a.cpp:2: potentially unintended semicolon",
                            "cache/src/a.cpp:2: statement should be inside braces")

    def test_rejects_a_name_against_the_house_style(self):
        self.compile("int sizeBytes() {\n  return 1;\n}\n")
        self.assert_reports("cache/src/a.cpp:1: invalid case style for function 'sizeBytes'")

    def test_sees_headers_through_the_files_that_include_them(self):
        self.compile('#include "a.hpp"\n', "struct tile {};\n")
        self.assert_reports("cache/src/a.hpp:1: invalid case style for struct 'tile'")

    def test_says_what_to_run_where_nothing_was_built(self):
        self.write("cache/src/a.cpp", "")
        status, output = self.run_check()
        self.assertEqual(status, 1)
        self.assertIn("run tools/test first", output)


unittest.main()
