import unittest

import fake_torch
from flash_mla_fixture import BF16, FP32, FlashMlaTest, dense_call, ints, tensor

import attnjit
from flash_mla import (flash_attn_varlen_func, flash_attn_varlen_kvpacked_func,
                       flash_attn_varlen_qkvpacked_func, flash_mla_sparse_fwd)


class MessagesTest(FlashMlaTest):
    """Errors have the names of the function that was called, not attnjit's."""

    def test_a_batch_of_nothing_is_refused_in_its_own_terms(self):
        for name in ("b", "s_q"):
            with self.assertRaisesRegex(attnjit.InvalidCallError,
                                        f"^{name} = 0: must be at least 1; fix: leave the call"):
                dense_call(self.metadata, **{name: 0})

    def test_violations_have_the_names_of_the_messages(self):
        with self.assertRaises(attnjit.InvalidCallError) as caught:
            dense_call(self.metadata, attn_sink=tensor(FP32, 15))
        error = caught.exception
        self.assertEqual([violation["field"] for violation in error.violations], ["attn_sink"])
        self.assertEqual((str(error), error.status), (error.message, 3))
        with self.assertRaisesRegex(attnjit.InvalidCallError,
                                    r"^cache_seqlens = (.|\n)*\nattn_sink = "):
            dense_call(self.metadata, b=1, s_q=129, h_q=8, cache_seqlens=ints(3),
                       attn_sink=tensor(FP32, 3))

    def test_of_sparse_rows(self):
        q, kv, indices = tensor(BF16, 7, 64, 576), tensor(BF16, 99, 1, 576), ints(7, 1, 128)
        for d_v, sink, scale, name in ((300, None, 0.5, "d_v"), (512, ints(64), 0.5, "attn_sink"),
                                       (512, None, "x", "sm_scale")):
            with self.assertRaisesRegex(RuntimeError, f"^{name} = "):
                flash_mla_sparse_fwd(q, kv, indices, scale, d_v, sink)

    def test_of_ragged_and_packed_tensors(self):
        long = tensor(fake_torch.int64, 3)
        q, kv, qkv = tensor(BF16, 10, 4, 192), tensor(BF16, 20, 3, 320), tensor(BF16, 10, 4, 512)
        of_fp32 = tensor(FP32, 10, 4, 512)
        for call, message in (
                (lambda: flash_attn_varlen_func(q, kv, kv, long, ints(3), 7, 7),
                 "h_q = 4: .* multiple of h_kv"),
                (lambda: flash_attn_varlen_func(q, qkv, qkv, ints(3), ints(3), 7, 7), "k = bf16"),
                (lambda: flash_attn_varlen_func(q, q, q, long, 5, 7, 7), "cu_seqlens_kv is a"),
                (lambda: flash_attn_varlen_func(q, q, q, long, ints(3), 7, 7),
                 "cu_seqlens_qo = int64"),
                (lambda: flash_attn_varlen_kvpacked_func(q, 5, long, long, 7, 7, 192),
                 "kv is a int: must be a torch tensor"),
                (lambda: flash_attn_varlen_kvpacked_func(q, kv, long, long, 7, 7, 320),
                 "head_dim_qk = 320: must be an integer from 1 to 319; kv has 320 columns"),
                (lambda: flash_attn_varlen_qkvpacked_func(5, long, 7, 192), "qkv is a int"),
                (lambda: flash_attn_varlen_qkvpacked_func(qkv, long, 7, 192),
                 r"cu_seqlens = int64 .*\ncu_seqlens = int64"),
                (lambda: flash_attn_varlen_qkvpacked_func(of_fp32, ints(3), 7, 192),
                 r"qkv\.dtype = fp32")):
            with self.assertRaisesRegex(attnjit.AttnjitError, f"^{message}"):
                call()


unittest.main()
