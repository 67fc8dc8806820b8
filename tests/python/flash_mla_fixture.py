"""Calls of flash_mla on the fake of torch, which must be torch before attnjit is imported."""

import math
import os
import sys

import fake_torch
import python_fixture

sys.modules["torch"] = fake_torch

import attnjit
from attnjit import flash_mla, prepared

sys.modules["flash_mla"] = flash_mla
from flash_mla import flash_mla_with_kvcache, get_mla_metadata

BF16, FP32, INT32 = fake_torch.bfloat16, fake_torch.float32, fake_torch.int32


def tensor(dtype, *shape, device=0):
    return fake_torch.Tensor(dtype, shape, device=device)


def ints(*shape):
    return tensor(INT32, *shape)


def dense_call(metadata, b=2, s_q=1, h_q=16, h_kv=1, dtype=BF16, device=0, **others):
    """A dense call of these sizes, with the arguments of `others` in place of its own."""
    given = {"q": tensor(dtype, b, s_q, h_q, 576, device=device),
             "k_cache": tensor(dtype, 9, 64, h_kv, 576, device=device),
             "block_table": tensor(INT32, b, 4, device=device),
             "cache_seqlens": tensor(INT32, b, device=device), "head_dim_v": 512,
             "tile_scheduler_metadata": metadata}
    return flash_mla_with_kvcache(**{**given, **others})


def sparse_call(metadata, b=2, s_q=1, h_q=16, width=656, d=576, dtype=fake_torch.uint8, **others):
    given = {"q": tensor(BF16, b, s_q, h_q, d), "k_cache": tensor(dtype, 9, 64, 1, width),
             "block_table": None, "cache_seqlens": None, "head_dim_v": 512,
             "tile_scheduler_metadata": metadata, "is_fp8_kvcache": True,
             "indices": ints(b, s_q, 128)}
    return flash_mla_with_kvcache(**{**given, **others})


class FlashMlaTest(python_fixture.MockDriverTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        os.environ["ATTNJIT_CACHE_DIR"] = cls.cache.name
        cls.prepared = []
        prepare = attnjit.Runtime.prepare

        def recording_prepare(runtime, descriptor, stream=None):
            cls.prepared.append(descriptor)
            return prepare(runtime, descriptor, stream)

        attnjit.Runtime.prepare = recording_prepare

    def setUp(self):
        self.metadata, _ = get_mla_metadata()
        for record in (self.prepared, prepared._kernels, fake_torch.allocated, fake_torch.replaced):
            record.clear()

    def assert_prepared(self, **fields):
        self.assertEqual(len(self.prepared), 1)
        self.assertEqual({name: self.prepared[0].get(name) for name in fields}, fields)

    def assert_lse_of_unseen_rows_is_infinite(self, lse):
        replaced, posinf, neginf = fake_torch.replaced[-1]
        self.assertEqual(replaced.data_ptr(), lse.data_ptr())
        self.assertEqual((posinf, neginf), (math.inf, math.inf))
