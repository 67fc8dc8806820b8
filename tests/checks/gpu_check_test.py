import subprocess
import unittest

import check_fixture


class GpuCheckTest(check_fixture.CheckTest):
    """tools/gpu_check over stand-ins for test executables, which print what Catch2 v2 and v3 do."""

    def add_executable(self, name, text, status):
        self.write(f"tests/runtime/attnjit_{name}_gpu_tests",
                   f"#!/bin/sh\necho '{text}'\nexit {status}\n")
        (self.root / f"tests/runtime/attnjit_{name}_gpu_tests").chmod(0o755)

    def gpu_check(self):
        run = subprocess.run([check_fixture.REPOSITORY / "tools" / "gpu_check", self.root],
                             capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def test_passes_where_all_tests_pass(self):
        self.add_executable("decode", "All tests passed (40 assertions in 4 test cases)", 0)
        status, output = self.gpu_check()
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"attnjit_decode_gpu_tests +4 +0 +0 ")

    def test_fails_where_a_test_fails(self):
        self.add_executable("decode", "test cases: 5 | 3 passed | 2 failed", 2)
        self.add_executable("merge", "All tests passed (1 assertion in 1 test case)", 0)
        status, output = self.gpu_check()
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"attnjit_decode_gpu_tests +3 +2 +0 ")
        self.assertRegex(output, r"attnjit_merge_gpu_tests +1 +0 +0 ")

    def test_fails_where_an_executable_dies(self):
        self.add_executable("decode", "failed: cuInit fails with error 999", 1)
        status, output = self.gpu_check()
        self.assertEqual(status, 1, output)
        self.assertRegex(output, r"attnjit_decode_gpu_tests +0 +1 +0 .*status 1")

    def test_fails_where_no_test_ran(self):
        self.add_executable("decode", "No tests ran", 0)
        status, output = self.gpu_check()
        self.assertEqual(status, 1, output)
        self.assertIn("ran no test", output)

    def test_says_why_where_there_is_no_gpu(self):
        self.add_executable("decode", "skipped: no NVIDIA device in /dev", 77)
        status, output = self.gpu_check()
        self.assertEqual(status, 0, output)
        self.assertEqual(output.splitlines()[-1], "skipped: no NVIDIA device in /dev")

    def test_refuses_a_folder_without_gpu_tests(self):
        status, output = self.gpu_check()
        self.assertEqual(status, 2, output)
        self.assertIn("build them first", output)


unittest.main()
