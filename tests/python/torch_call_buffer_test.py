import sys
import unittest

import fake_torch
import python_fixture  # noqa: F401  the package's place

sys.modules["torch"] = fake_torch

from attnjit import TensorError, _structs
from attnjit._call_buffer import CallBuffer


class TorchCallBufferTest(unittest.TestCase):
    """Tensors of torch whose type, shape and contiguity stand in the struct cost their address."""

    def setUp(self):
        self.buffer = CallBuffer(_structs.DecodeCall)

    def written(self, tensor, device=0):
        """The rank, type, extents, strides and address that stand in the struct."""
        self.buffer.fill({"q": tensor}, device)
        q = _structs.DecodeCall.from_address(self.buffer.address).q
        return q.data, q.dtype, tuple(q.shape[:q.rank]), tuple(q.strides[:q.rank])

    def test_whatever_differs_from_the_call_before_is_written(self):
        bf16, fp16 = fake_torch.bfloat16, fake_torch.float16
        contiguous = fake_torch.Tensor(bf16, (4, 6), address=4096)
        for tensor, code, strides in (
                (contiguous, 0, (6, 1)),
                (fake_torch.Tensor(bf16, (4, 6), address=8192), 0, (6, 1)),
                (fake_torch.Tensor(bf16, (4, 6), strides=(8, 1), address=4096), 0, (8, 1)),
                (fake_torch.Tensor(bf16, (4, 6), strides=(12, 1), address=4096), 0, (12, 1)),
                (contiguous, 0, (6, 1)),
                (fake_torch.Tensor(fp16, (4, 6), address=4096), 1, (6, 1)),
                (fake_torch.Tensor(fp16, (6, 4), address=4096), 1, (4, 1)),
                (fake_torch.Tensor(fp16, (24,), address=4096), 1, (1,))):
            self.assertEqual(self.written(tensor),
                             (tensor.data_ptr(), code, tensor.shape, strides))

    def test_another_device_is_refused_though_all_else_stands_there(self):
        self.written(fake_torch.Tensor(fake_torch.bfloat16, (4, 6)))
        with self.assertRaisesRegex(TensorError, "q is on device 1: must be on the kernel's, 0"):
            self.written(fake_torch.Tensor(fake_torch.bfloat16, (4, 6), device=1))

    def test_a_workspace_of_another_size_is_measured_anew(self):
        for extent in (100, 100, 200):
            workspace = fake_torch.Tensor(fake_torch.uint8, (extent,))
            self.assertEqual(self.buffer.workspace(workspace), (workspace.data_ptr(), extent))
        with self.assertRaisesRegex(TensorError, "must be contiguous"):
            self.buffer.workspace(fake_torch.Tensor(fake_torch.uint8, (200,), strides=(2,)))


unittest.main()
