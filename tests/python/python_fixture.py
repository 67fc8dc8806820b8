"""Lets tests import the package from tools/python. The library is that of ATTNJIT_LIBRARY, which
CTest sets; what needs it is skipped with the reason where it is not set."""

import os
import pathlib
import sys
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HEADERS = REPOSITORY / "runtime" / "include"
sys.path.insert(0, str(REPOSITORY / "tools" / "python"))
sys.dont_write_bytecode = True

needs_library = unittest.skipUnless(os.environ.get("ATTNJIT_LIBRARY"),
                                    "ATTNJIT_LIBRARY does not name libattnjit.so")
