import unittest

import python_fixture  # noqa: F401  the package's place
from fake_arrays import DEVICE_MEMORY, CudaArray, DlpackArray

from attnjit import TensorError, TensorView, tensors


def reading(tensor):
    pointer, code, shape, strides, device, _ = tensors.read(tensor)
    return pointer, tensors.DTYPE_NAMES[code], tuple(shape), tuple(strides), device


class TensorsTest(unittest.TestCase):
    def test_a_view_is_row_major_unless_strides_are_given(self):
        self.assertEqual(reading(TensorView(4096, "bf16", (2, 3, 4))),
                         (4096, "bf16", (2, 3, 4), (12, 4, 1), None))
        self.assertEqual(reading(TensorView(4096, "fp8_e4m3", (2, 4), (8, 1), device=1)),
                         (4096, "fp8_e4m3", (2, 4), (8, 1), 1))

    def test_a_view_of_another_type_must_be_as_wide(self):
        array = CudaArray("fp16", (2, 4))
        view = TensorView.of(array, dtype="bf16")
        self.assertEqual(reading(view), (DEVICE_MEMORY, "bf16", (2, 4), (4, 1), None))
        self.assertIs(view.owner, array)
        with self.assertRaisesRegex(TensorError, "as wide as the tensor's, fp16"):
            TensorView.of(array, dtype="fp32")

    def test_a_view_of_no_type_lists_those_that_there_are(self):
        with self.assertRaisesRegex(TensorError, "'fp64': must be one of bf16, fp16"):
            TensorView(4096, "fp64", (2,))

    def test_cuda_arrays_bring_type_shape_and_strides(self):
        self.assertEqual(reading(CudaArray("fp16", (2, 3, 4))),
                         (DEVICE_MEMORY, "fp16", (2, 3, 4), (12, 4, 1), None))
        self.assertEqual(reading(CudaArray("int32", (2, 3), (5, 1))),
                         (DEVICE_MEMORY, "int32", (2, 3), (5, 1), None))
        self.assertEqual(reading(CudaArray("bool", (2,)))[1], "uint8")

    def test_a_read_only_mark_stays_with_a_view(self):
        for is_readonly in (False, True):
            array = CudaArray("fp16", (2, 3), is_readonly=is_readonly)
            self.assertIs(tensors.read(array)[5], is_readonly)
            self.assertIs(tensors.read(TensorView.of(array, dtype="bf16"))[5], is_readonly)

    def test_a_cuda_array_of_no_type_of_ours_says_how_to_give_it(self):
        array = CudaArray("fp16", (2,))
        array.__cuda_array_interface__["typestr"] = "<f8"
        with self.assertRaisesRegex(TensorError, r"<f8: must be of <f2.*TensorView\.of"):
            tensors.read(array)

    def test_dlpack_brings_types_that_other_interfaces_lack(self):
        names = {(4, 16): "bf16", (2, 16): "fp16", (2, 32): "fp32", (10, 8): "fp8_e4m3",
                 (12, 8): "fp8_e5m2", (1, 8): "uint8", (6, 8): "uint8", (0, 32): "int32",
                 (0, 64): "int64"}
        for (code, bits), name in names.items():
            self.assertEqual(reading(DlpackArray(code, bits, (2,)))[1], name)
        with self.assertRaisesRegex(TensorError, "code 2 with 64 bits"):
            tensors.read(DlpackArray(2, 64, (2,)))

    def test_dlpack_is_read_without_synchronising_and_with_its_offset(self):
        array = DlpackArray(4, 16, (2, 3), byte_offset=64, device=(2, 1))
        self.assertEqual(reading(array), (DEVICE_MEMORY + 64, "bf16", (2, 3), (3, 1), 1))
        self.assertEqual(array.asked_streams, [-1])
        self.assertEqual(reading(DlpackArray(4, 16, (2, 3), (8, 1)))[3], (8, 1))

    def test_dlpack_of_host_memory_is_refused(self):
        with self.assertRaisesRegex(TensorError, "device of type 1: must be CUDA"):
            tensors.read(DlpackArray(4, 16, (2,), device=(1, 0)))

    def test_what_is_no_tensor_says_what_may_be_one(self):
        with self.assertRaisesRegex(TensorError, "builtins.list: must be a torch tensor"):
            tensors.read([1, 2])

    def test_memory_is_address_and_bytes_of_a_contiguous_tensor(self):
        self.assertEqual(tensors.memory_of("workspace", None), (0, 0))
        self.assertEqual(tensors.memory_of("workspace", CudaArray("fp32", (4, 5))),
                         (DEVICE_MEMORY, 80))
        with self.assertRaisesRegex(TensorError, "workspace has .* must be contiguous"):
            tensors.memory_of("workspace", CudaArray("fp32", (4, 5), (8, 1)))
        with self.assertRaisesRegex(TensorError, "^workspace is marked read-only by its"):
            tensors.memory_of("workspace", CudaArray("fp32", (4, 5), is_readonly=True))


unittest.main()
