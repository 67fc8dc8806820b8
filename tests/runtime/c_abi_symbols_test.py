"""What libattnjit.so shows and what it needs: python3 c_abi_symbols_test.py LIBRARY HEADER."""

import re
import subprocess
import sys
import unittest

LIBRARY, HEADER = sys.argv[1:3]


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def shown_symbols():
    """(type, name without its version) of each, as nm prints them."""
    lines = output_of("nm", "-D", "--defined-only", LIBRARY).splitlines()
    return [(line.split()[-2], line.split()[-1].split("@")[0]) for line in lines]


def declared_functions():
    with open(HEADER, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.DOTALL)
    return set(re.findall(r"\b(attnjit_\w+)\(", text))


class SharedLibraryTest(unittest.TestCase):
    def test_every_function_of_the_header_is_shown_and_nothing_else(self):
        functions = {name for kind, name in shown_symbols() if kind == "T"}
        self.assertGreater(len(functions), 20)
        self.assertEqual(functions, declared_functions())

    def test_what_is_shown_besides_functions_is_the_node_of_versions(self):
        others = [(kind, name) for kind, name in shown_symbols() if kind != "T"]
        self.assertEqual(others, [("A", "ATTNJIT_0")])

    def test_cuda_is_not_needed(self):
        dynamic = output_of("readelf", "-d", LIBRARY)
        self.assertIn("(NEEDED)", dynamic)
        for library in ("libcuda", "libnvrtc", "libcudart"):
            self.assertNotIn(library, dynamic)

    def test_its_name_has_the_major_version_and_it_is_never_unloaded(self):
        dynamic = output_of("readelf", "-d", LIBRARY)
        self.assertRegex(dynamic, r"\(SONAME\).*\[libattnjit\.so\.\d+\]")
        self.assertRegex(dynamic, r"\(FLAGS_1\).*NODELETE")


unittest.main(argv=sys.argv[:1])
