import types
import unittest

import python_fixture  # noqa: F401  the package's place

from attnjit import InvalidArgumentError
from attnjit.streams import stream_handle


def handle(stream):
    return stream_handle(stream, 0, of_torch=False)


class StreamsTest(unittest.TestCase):
    def test_none_is_the_default_stream_of_tensors_that_are_not_torchs(self):
        self.assertEqual(handle(None), 0)

    def test_a_number_is_a_handle(self):
        self.assertEqual(handle(0x1234), 0x1234)

    def test_streams_of_torch_cupy_and_cuda_core_bring_their_handle(self):
        self.assertEqual(handle(types.SimpleNamespace(cuda_stream=0x10)), 0x10)
        self.assertEqual(handle(types.SimpleNamespace(ptr=0x20)), 0x20)
        self.assertEqual(handle(types.SimpleNamespace(__cuda_stream__=lambda: (0, 0x30))), 0x30)

    def test_what_is_no_stream_says_what_may_be_one(self):
        with self.assertRaisesRegex(InvalidArgumentError,
                                    "'side': must be None, a number, or have"):
            handle("side")


unittest.main()
