import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import python_fixture
from attnjit import _library

COMPILER = shutil.which("cc")


def import_error(**environment):
    """What a process prints that asks for the library's version."""
    run = subprocess.run(
        [sys.executable, "-c", "import attnjit; print(attnjit.library_version())"],
        env={**os.environ, "PYTHONPATH": str(python_fixture.REPOSITORY / "tools" / "python"),
             "PYTHONDONTWRITEBYTECODE": "1", **environment}, capture_output=True, text=True)
    return run.stdout + run.stderr


class LibraryTest(unittest.TestCase):
    def build(self, text):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source = pathlib.Path(folder.name) / "library.c"
        source.write_text(text)
        subprocess.run([COMPILER, "-shared", "-fPIC", "-o", source.with_suffix(".so"), source],
                       check=True)
        return str(source.with_suffix(".so"))

    def test_a_library_that_is_not_there_says_where_it_was_looked_for(self):
        text = import_error(ATTNJIT_LIBRARY="/nowhere/libattnjit.so")
        self.assertIn("/nowhere/libattnjit.so", text)
        self.assertIn("install the wheel of attnjit, or set ATTNJIT_LIBRARY", text)
        self.assertIn("no such file", import_error(ATTNJIT_LIBRARY="", LD_LIBRARY_PATH=""))

    @unittest.skipUnless(COMPILER, "no C compiler `cc`")
    def test_another_library_is_refused(self):
        text = import_error(ATTNJIT_LIBRARY=self.build("int attnjit(void) { return 0; }"))
        self.assertIn("is no libattnjit.so that this package knows", text)

    @unittest.skipUnless(COMPILER, "no C compiler `cc`")
    def test_a_library_of_another_abi_is_refused(self):
        functions = "".join(f"int {name}(void) {{ return 99; }}\n" for name in _library._SIGNATURES)
        text = import_error(ATTNJIT_LIBRARY=self.build(functions))
        self.assertIn("has ABI version 99; this package needs 1", text)

    @python_fixture.needs_library
    def test_the_library_tells_its_version(self):
        project = (python_fixture.REPOSITORY / "CMakeLists.txt").read_text()
        self.assertIn(f"project(attnjit VERSION {import_error().strip()} ", project)

    def test_torch_is_not_imported_with_the_package(self):
        run = subprocess.run(
            [sys.executable, "-c", "import sys, attnjit; print('torch' in sys.modules)"],
            env={**os.environ, "PYTHONPATH": str(python_fixture.REPOSITORY / "tools" / "python"),
                 "PYTHONDONTWRITEBYTECODE": "1"}, capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, "False\n")


unittest.main()
