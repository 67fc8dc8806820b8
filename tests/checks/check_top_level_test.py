import unittest

import check_fixture


class TopLevelTest(check_fixture.CheckTest):
    check = "check_top_level"

    def setUp(self):
        super().setUp()
        for folder in ("generator", "templates", "runtime", "cache", "tests", "tools", ".ci"):
            self.write(f"{folder}/file")
        for name in ("CMakeLists.txt", "README.md", "LICENSE", "CMakePresets.json",
                     ".clang-format", ".clang-tidy", ".gitignore"):
            self.write(name)

    def test_accepts_the_agreed_entries(self):
        self.assert_passes()

    def test_rejects_a_new_folder(self):
        self.write("examples/first.cpp")
        self.assert_reports("examples:1: not allowed at the top level")

    def test_rejects_a_new_file(self):
        self.write("notes.md")
        self.assert_reports("notes.md:1: not allowed at the top level")

    def test_rejects_a_missing_entry(self):
        (self.root / "LICENSE").unlink()
        self.assert_reports("LICENSE:1: missing")

    def test_does_not_look_at_build_outputs(self):
        self.write("build/dev/CMakeCache.txt")
        self.assert_passes()


unittest.main()
