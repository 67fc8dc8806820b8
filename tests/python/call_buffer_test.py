import threading
import unittest

import python_fixture  # noqa: F401  the package's place
from fake_arrays import CudaArray

from attnjit import TensorError, TensorView, _structs
from attnjit._call_buffer import CallBuffer, MergeBuffer, buffers


def written(buffer):
    return _structs.DecodeCall.from_address(buffer.address)


def tensor(call, name):
    """What stands in a struct; None if every byte of it is 0."""
    field = getattr(call, name)
    if not any(bytes(field)):
        return None
    return (field.data, field.dtype, tuple(field.shape[:field.rank]),
            tuple(field.strides[:field.rank]))


class CallBufferTest(unittest.TestCase):
    def setUp(self):
        self.buffer = CallBuffer(_structs.DecodeCall)

    def test_a_call_has_its_size_and_the_tensors_that_are_given(self):
        self.buffer.fill({"q": TensorView(4096, "bf16", (2, 1, 16, 576)), "mask": None,
                          "seq_lens": CudaArray("int32", (2,), address=8192)}, 0)
        self.buffer.set_scalar("softmax_scale", 0.5)
        call = written(self.buffer)
        self.assertEqual(call.struct_size, 880)
        self.assertEqual(tensor(call, "q"), (4096, 0, (2, 1, 16, 576), (9216, 9216, 576, 1)))
        self.assertEqual(tensor(call, "seq_lens"), (8192, 6, (2,), (1,)))
        self.assertIsNone(tensor(call, "mask"))
        self.assertIsNone(tensor(call, "out"))
        self.assertEqual(call.softmax_scale, 0.5)

    def test_a_tensor_of_the_same_shape_brings_its_own_address(self):
        for address in (4096, 8192):
            self.buffer.fill({"q": TensorView(address, "bf16", (2, 3))}, 0)
            self.assertEqual(tensor(written(self.buffer), "q"), (address, 0, (2, 3), (3, 1)))

    def test_a_change_of_shape_strides_or_type_is_written(self):
        for view in (TensorView(4096, "bf16", (2, 3)), TensorView(4096, "bf16", (2, 4)),
                     TensorView(4096, "bf16", (2, 4), (8, 1)),
                     TensorView(4096, "fp16", (2, 4), (8, 1)), TensorView(4096, "fp16", (4,))):
            self.buffer.fill({"q": view}, 0)
            pointer, code, shape, strides, *_ = view.reading
            self.assertEqual(tensor(written(self.buffer), "q"), (pointer, code, shape, strides))

    def test_nothing_is_left_of_tensors_that_the_next_call_lacks(self):
        q, lse = TensorView(4096, "bf16", (2, 3)), TensorView(8192, "fp32", (2, 3))
        self.buffer.fill({"q": q, "lse": lse}, 0)
        self.buffer.fill({"q": q, "sinks": lse}, 0)
        call = written(self.buffer)
        self.assertIsNone(tensor(call, "lse"))
        self.assertIsNotNone(tensor(call, "sinks"))
        self.buffer.fill({"q": q, "sinks": None}, 0)
        self.assertIsNone(tensor(written(self.buffer), "sinks"))

    def test_nothing_is_left_of_a_call_that_was_refused(self):
        view = TensorView(4096, "bf16", (2, 3))
        self.buffer.fill({"q": view, "lse": view}, 0)
        with self.assertRaises(TensorError):
            self.buffer.fill({"mask": view, "q": view, "lse": 5}, 0)
        self.buffer.fill({"q": view, "out": view}, 0)
        call = written(self.buffer)
        self.assertIsNone(tensor(call, "lse"))
        self.assertIsNone(tensor(call, "mask"))
        self.assertIsNotNone(tensor(call, "out"))

    def test_errors_name_the_tensor(self):
        view = TensorView(4096, "bf16", (2, 3), device=1)
        with self.assertRaisesRegex(TensorError, "q is on device 1: must be on the kernel's, 0"):
            self.buffer.fill({"q": view}, 0)
        with self.assertRaisesRegex(TensorError, "lse is a builtins.int"):
            self.buffer.fill({"lse": 5}, 0)
        with self.assertRaisesRegex(TensorError, "q is of 6 dimensions: must have at most 5"):
            self.buffer.fill({"q": TensorView(4096, "bf16", (1,) * 6)}, 0)
        with self.assertRaisesRegex(TypeError, "keys is no tensor of this call; its tensors are q"):
            self.buffer.fill({"keys": view}, 0)

    def test_a_workspace_is_its_address_and_bytes(self):
        self.assertEqual(self.buffer.workspace(None), (0, 0))
        for address, size in ((4096, 64), (8192, 64), (8192, 128)):
            self.assertEqual(self.buffer.workspace(TensorView(address, "uint8", (size,))),
                             (address, size))
        self.assertEqual(self.buffer.workspace(TensorView(4096, "fp32", (8,))), (4096, 32))

    def test_each_thread_has_buffers_of_its_own(self):
        addresses = []
        thread = threading.Thread(target=lambda: addresses.append(buffers.decode.address))
        thread.start()
        thread.join()
        self.assertNotEqual(addresses, [buffers.decode.address])

    def test_a_merge_lists_its_parts(self):
        buffer = MergeBuffer()
        out, lse = TensorView(4096, "bf16", (2, 3, 8)), TensorView(8192, "fp32", (2, 3))
        for count in (3, 1):
            buffer.fill({"out": out}, 0)
            buffer.fill_partials([(out, lse)] * count, 0)
            call = _structs.MergeStatesCall.from_address(buffer.address)
            self.assertEqual(call.num_partials, count)
            parts = (_structs.PartialAttention * 3).from_address(call.partials)
            self.assertEqual(tensor(parts[count - 1], "lse"), (8192, 2, (2, 3), (3, 1)))
            self.assertEqual(tensor(parts[2], "out") is None, count == 1)
        with self.assertRaisesRegex(TensorError, "33 partials: must be at most 32"):
            buffer.fill_partials([(out, lse)] * 33, 0)
        with self.assertRaisesRegex(TensorError, r"partials\[1\]\.lse is a builtins.int"):
            buffer.fill_partials([(out, lse), (out, 5)], 0)


unittest.main()
