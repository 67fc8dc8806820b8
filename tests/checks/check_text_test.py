import unittest

import check_fixture

# Written in pieces, so that the check accepts this file.
OPEN_END = "TO" + "DO"
MACHINE_PATH = "/ho" + "me/someone"


class TextTest(check_fixture.CheckTest):
    check = "check_text"

    def test_accepts_ordinary_text(self):
        self.write("cache/src/disk_cache.cpp",
                   "// Looks under /usr/local/cuda and ~/.cache and /home/me.\n")
        self.assert_passes()

    def test_rejects_the_path_of_one_machine(self):
        self.write("tools/setup", f"#!/bin/sh\ncd {MACHINE_PATH}\n")
        self.assert_reports("tools/setup:2: path of one machine: " + MACHINE_PATH)

    def test_rejects_an_open_end_without_its_issue(self):
        self.write("cache/src/a.cpp", f"int a;\n// {OPEN_END}: finish\n")
        self.assert_reports(f"cache/src/a.cpp:2: {OPEN_END} without an issue")

    def test_accepts_an_open_end_with_its_issue(self):
        self.write("cache/src/a.cpp", f"// {OPEN_END}(#12): finish\n")
        self.assert_passes()

    def test_rejects_a_folder_that_says_nothing(self):
        self.write("runtime/common/launch.cpp", "")
        self.assert_reports("runtime/common/launch.cpp:1: folder 'common'")

    def test_rejects_a_file_name_that_says_nothing(self):
        self.write("runtime/src/cuda_helpers.cpp", "")
        self.assert_reports("runtime/src/cuda_helpers.cpp:1: file name with 'helpers'")


unittest.main()
