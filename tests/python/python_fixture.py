"""Lets tests import the package from tools/python. The library is that of ATTNJIT_LIBRARY, which
CTest sets; what needs it is skipped with the reason where it is not set."""

import ctypes
import os
import pathlib
import sys
import tempfile
import unittest

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
HEADERS = REPOSITORY / "runtime" / "include"
sys.path.insert(0, str(REPOSITORY / "tools" / "python"))
sys.dont_write_bytecode = True

import attnjit  # noqa: E402  from there

needs_library = unittest.skipUnless(os.environ.get("ATTNJIT_LIBRARY"),
                                    "ATTNJIT_LIBRARY does not name libattnjit.so")


class MockDriverTest(unittest.TestCase):
    """Runs on a driver without a GPU (tests/runtime/mock_driver.cpp), named by ATTNJIT_LIBCUDA, and
    on a cache of its own. Kernels are compiled by NVRTC and never run."""

    @classmethod
    def setUpClass(cls):
        for variable in ("ATTNJIT_LIBRARY", "ATTNJIT_LIBCUDA"):
            if not os.environ.get(variable):
                raise unittest.SkipTest(f"{variable} is not set")
        cls.mock = ctypes.CDLL(os.environ["ATTNJIT_LIBCUDA"])
        cls.mock.attnjit_mock_last_stream.restype = ctypes.c_void_p
        cls.cache = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.cache.cleanup)

    def open_runtime(self, **options):
        return attnjit.Runtime(**{"cache_directory": self.cache.name, **options})

    def launches_of(self, call):
        """How many launches `call` queues, on a stream other than the default one: that needs a
        context, which the library looks for by launching twice."""
        before = self.mock.attnjit_mock_launch_count()
        call()
        return self.mock.attnjit_mock_launch_count() - before

    def last_stream(self):
        return self.mock.attnjit_mock_last_stream() or 0

    def capture(self):
        """From here to the end of the test every stream is being captured."""
        self.mock.attnjit_mock_set_capturing(1)
        self.addCleanup(self.mock.attnjit_mock_set_capturing, 0)
