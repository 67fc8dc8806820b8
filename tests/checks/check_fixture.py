"""A small tree in a temporary folder, on which a check of tools/checks runs as a program."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]


class CheckTest(unittest.TestCase):
    check = ""  # file name in tools/checks, set by each test class

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name).resolve()

    def write(self, name, text=""):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def run_check(self):
        run = subprocess.run(
            [sys.executable, REPOSITORY / "tools" / "checks" / self.check, "--root", self.root],
            capture_output=True, text=True)
        return run.returncode, run.stdout + run.stderr

    def assert_passes(self):
        status, output = self.run_check()
        self.assertEqual((status, output.splitlines()[-1]), (0, f"{self.check}: ok"), output)

    def assert_reports(self, *expected):
        """Fails with exactly these beginnings of lines, each `file:line: words`."""
        status, output = self.run_check()
        self.assertEqual(status, 1, output)
        reported = [line for line in output.splitlines() if not line.startswith("check_")]
        self.assertEqual(len(reported), len(expected), output)
        for line, beginning in zip(reported, expected):
            self.assertTrue(line.startswith(beginning), f"{line!r} instead of {beginning!r}")
