import gc
import inspect
import math
import unittest
import weakref

import fake_torch
from flash_mla_fixture import (BF16, FP32, INT32, FlashMlaTest, dense_call, ints, sparse_call,
                               tensor)

import attnjit
from attnjit import _structs, flash_mla
from attnjit._call_buffer import buffers
from flash_mla import (FlashMLASchedMeta, flash_attn_varlen_func, flash_attn_varlen_kvpacked_func,
                       flash_attn_varlen_qkvpacked_func, flash_mla_sparse_fwd,
                       flash_mla_with_kvcache, get_mla_metadata)


class InterfaceTest(unittest.TestCase):
    def assert_signature(self, function, text):
        parameters = inspect.signature(function).parameters.values()
        shown = [name.name if name.default is inspect.Parameter.empty
                 else f"{name.name}={name.default!r}" for name in parameters]
        self.assertEqual(" ".join(shown), text)
        self.assertTrue(all(parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
                            for parameter in parameters))

    def test_functions_have_the_arguments_and_defaults_that_are_documented(self):
        self.assert_signature(
            flash_mla_with_kvcache,
            "q k_cache block_table cache_seqlens head_dim_v tile_scheduler_metadata "
            "num_splits=None softmax_scale=None causal=False is_fp8_kvcache=False indices=None "
            "attn_sink=None extra_k_cache=None extra_indices_in_kvcache=None topk_length=None "
            "extra_topk_length=None")
        self.assert_signature(flash_mla_sparse_fwd,
                              "q kv indices sm_scale d_v=512 attn_sink=None topk_length=None "
                              "indexer_topk=0")
        options = ("dropout_p=0.0 softmax_scale=None causal=False deterministic=False "
                   "is_varlen=True")
        self.assert_signature(flash_attn_varlen_func,
                              "q k v cu_seqlens_qo cu_seqlens_kv max_seqlen_qo max_seqlen_kv "
                              + options)
        self.assert_signature(flash_attn_varlen_qkvpacked_func,
                              "qkv cu_seqlens max_seqlen head_dim_qk " + options)
        self.assert_signature(flash_attn_varlen_kvpacked_func,
                              "q kv cu_seqlens_qo cu_seqlens_kv max_seqlen_qo max_seqlen_kv "
                              "head_dim_qk " + options)

    def test_the_module_offers_what_flash_mla_offers(self):
        self.assertLessEqual(
            {"get_mla_metadata", "flash_mla_with_kvcache", "flash_mla_sparse_fwd",
             "flash_attn_varlen_func", "flash_attn_varlen_qkvpacked_func",
             "flash_attn_varlen_kvpacked_func"}, set(flash_mla.__all__))

    def test_metadata_is_empty_and_takes_the_arguments_of_older_versions(self):
        metadata, second = get_mla_metadata(ints(2), 16, num_heads_k=1)
        self.assertIsNone(second)
        self.assertIsInstance(metadata, FlashMLASchedMeta)
        self.assertEqual((metadata.have_initialized, metadata.config,
                          metadata.tile_scheduler_metadata, metadata.num_splits),
                         (False, None, None, None))
        self.assertIsNot(get_mla_metadata()[0], metadata)


class DenseTest(FlashMlaTest):
    def test_outputs_have_qs_type_and_the_shapes_of_flash_mla(self):
        out, lse = dense_call(self.metadata, b=3, s_q=2, h_q=16, dtype=fake_torch.float16)
        self.assertEqual((out.dtype, out.shape), (fake_torch.float16, (3, 2, 16, 512)))
        self.assertEqual((lse.dtype, lse.shape), (FP32, (3, 16, 2)))
        self.assert_lse_of_unseen_rows_is_infinite(lse)
        self.assert_prepared(operation="decode", value_source="prefix_of_k", dtype_q="fp16",
                             max_seqlen_q=2, mask="none", page_size=64, has_sinks=False)

    def test_causal_is_off_for_one_query_token(self):
        dense_call(self.metadata, causal=True)
        self.assert_prepared(mask="none", max_seqlen_q=1)
        self.prepared.clear()
        dense_call(get_mla_metadata()[0], s_q=3, causal=True)
        self.assert_prepared(mask="causal", max_seqlen_q=3)

    def test_kv_heads_pages_and_sinks_of_any_kind(self):
        dense_call(self.metadata, h_q=9, h_kv=3, k_cache=tensor(BF16, 9, 16, 3, 576),
                   attn_sink=tensor(FP32, 9))
        self.assert_prepared(num_q_heads=9, num_kv_heads=3, page_size=16, has_sinks=True)

    def test_layers_of_a_step_share_a_split(self):
        lengths = ints(2)
        call = lambda: dense_call(self.metadata, cache_seqlens=lengths)
        self.assertEqual([self.launches_of(call) for _ in range(3)], [3, 2, 2])
        self.assertTrue(self.metadata.have_initialized)
        self.assertEqual(self.metadata.config, FlashMLASchedMeta.Config(
            b=2, s_q=1, h_q=16, page_block_size=64, h_k=1, causal=False, is_fp8_kvcache=False,
            topk=None, extra_page_block_size=None, extra_topk=None))
        self.assertEqual(len(self.prepared), 1)

    def test_other_lengths_or_another_object_split_anew(self):
        for metadata in (self.metadata, self.metadata, get_mla_metadata()[0]):
            self.assertEqual(self.launches_of(lambda: dense_call(metadata)), 3)

    def test_a_capture_computes_its_split_itself_and_only_once(self):
        lengths = ints(2)
        call = lambda: dense_call(self.metadata, cache_seqlens=lengths)
        call()
        fake_torch.cuda.is_capturing = True
        self.addCleanup(setattr, fake_torch.cuda, "is_capturing", False)
        self.assertEqual([self.launches_of(call), self.launches_of(call)], [3, 2])
        fake_torch.cuda.is_capturing = False
        self.assertEqual([self.launches_of(call), self.launches_of(call)], [3, 2])

    def test_a_capture_may_begin_with_a_new_object(self):
        dense_call(self.metadata)
        self.capture()
        fake_torch.cuda.is_capturing = True
        self.addCleanup(setattr, fake_torch.cuda, "is_capturing", False)
        self.assertEqual(self.launches_of(lambda: dense_call(get_mla_metadata()[0])), 3)

    def test_memory_of_a_split_is_torchs_and_goes_back_with_the_object(self):
        dense_call(self.metadata)
        memory = [weakref.ref(block) for block in fake_torch.allocated
                  if block.dtype is fake_torch.uint8]
        fake_torch.allocated.clear()
        gc.collect()
        self.assertEqual(len([block for block in memory if block()]), 3)  # not the workspace
        del self.metadata
        gc.collect()
        self.assertEqual([block() for block in memory], [None] * 4)

    def test_more_than_128_query_tokens_are_a_prefill(self):
        out, lse = dense_call(self.metadata, b=1, s_q=129, h_q=8, h_kv=2, causal=True)
        self.assertEqual((out.shape, lse.shape), ((1, 129, 8, 512), (1, 8, 129)))
        self.assert_lse_of_unseen_rows_is_infinite(lse)
        self.assert_prepared(operation="prefill_kvcache", mask="causal")

    def test_calls_go_to_the_current_stream_of_qs_device(self):
        dense_call(self.metadata)
        self.assertEqual(self.last_stream(), 16)
        dense_call(get_mla_metadata()[0], device=1)
        self.assertEqual(self.last_stream(), 32)
        self.assertEqual(fake_torch.cuda.current, 0)

    def test_a_scale_of_0_is_not_the_default(self):
        call = _structs.DecodeCall.from_address(buffers.decode.address)
        for scale, written in ((None, 0), (0.25, 0.25)):
            dense_call(self.metadata, softmax_scale=scale)
            self.assertEqual(call.softmax_scale, written)
        for scale in (0.0, 1e-50):
            dense_call(self.metadata, softmax_scale=scale)
            self.assertNotEqual(call.softmax_scale, 0)

    def test_a_first_call_that_failed_leaves_no_kernel_to_the_next(self):
        with self.assertRaises(RuntimeError):
            dense_call(self.metadata, s_q=2, block_table=tensor(fake_torch.int64, 2, 4))
        dense_call(self.metadata, s_q=2, causal=True)
        plan = self.metadata._prepared.plan
        self.assertEqual(plan.kernel.descriptor["mask"], "causal")

    def test_a_dense_cache_of_16_bits_is_no_fp8(self):
        with self.assertRaisesRegex(AssertionError, "is_fp8_kvcache = True and k_cache is"):
            dense_call(self.metadata, is_fp8_kvcache=True)

    def test_what_is_no_tensor_is_named(self):
        for name in ("k_cache", "block_table", "cache_seqlens", "attn_sink", "indices"):
            with self.assertRaisesRegex(attnjit.TensorError, f"^{name} is a int: must be a torch"):
                dense_call(self.metadata, **{name: 5})

    def test_tensors_on_the_host_are_refused(self):
        with self.assertRaisesRegex(RuntimeError, "q is on cpu: must be on a CUDA device"):
            dense_call(self.metadata, device=-1)
        with self.assertRaisesRegex(RuntimeError, "q is a list: must be a torch tensor"):
            dense_call(self.metadata, q=[])

    def test_a_wrong_tensor_is_named(self):
        for name, wrong, reason in (
                ("q", tensor(BF16, 2, 16, 576), "q has shape"),
                ("q", tensor(FP32, 2, 1, 16, 576), r"^q\.dtype = fp32"),
                ("q", tensor(BF16, 2, 1, 17, 576), None),
                ("k_cache", tensor(fake_torch.float16, 9, 64, 1, 576), "k_cache"),
                ("k_cache", tensor(BF16, 9, 64, 3, 576), "^h_q = 16: .* multiple of h_kv"),
                ("k_cache", tensor(BF16, 9, 300, 1, 576), r"^k_cache\.shape\[1\] = 300"),
                ("attn_sink", tensor(FP32, 15), "^attn_sink = "),
                ("block_table", tensor(fake_torch.int64, 2, 4), "block_table"),
                ("block_table", ints(3, 4), "block_table"),
                ("cache_seqlens", ints(3), r"^cache_seqlens has shape \[3\]: must be \[2\]"),
                ("cache_seqlens", tensor(INT32, 2, device=-1), "^cache_seqlens is .* on cpu"),
                ("cache_seqlens", tensor(fake_torch.int64, 2), "^cache_seqlens is int64")):
            metadata = get_mla_metadata()[0]
            if reason is None:
                dense_call(metadata, **{name: wrong})
                continue
            with self.assertRaisesRegex(RuntimeError, reason):
                dense_call(metadata, **{name: wrong})
            self.assertFalse(metadata.have_initialized)

    def test_what_only_sparse_calls_take_is_refused(self):
        for name in ("extra_k_cache", "extra_indices_in_kvcache", "topk_length",
                     "extra_topk_length"):
            with self.assertRaisesRegex(AssertionError, f"{name} is given without indices"):
                dense_call(self.metadata, **{name: tensor(INT32, 2, 1, 8)
                                             if "indices" in name else ints(2, 1, 1)})
        for name in ("block_table", "cache_seqlens"):
            with self.assertRaisesRegex(AssertionError, f"{name} is None"):
                dense_call(self.metadata, **{name: None})

    def test_metadata_of_another_kind_is_refused(self):
        for wrong in (None, ints(4, 8)):
            with self.assertRaisesRegex(AssertionError, "must be the FlashMLASchedMeta"):
                dense_call(wrong)
        with self.assertRaisesRegex(AssertionError, "num_splits is given: must be None"):
            dense_call(self.metadata, num_splits=ints(3))

    def test_a_reused_object_wants_the_same_configuration(self):
        dense_call(self.metadata)
        for change, reason in (({"b": 3}, "b = 3, was 2"), ({"s_q": 2}, "s_q = 2, was 1"),
                               ({"h_q": 8}, "h_q = 8, was 16"), ({"h_kv": 2}, "h_k = 2, was 1"),
                               ({"k_cache": tensor(BF16, 9, 32, 1, 576)},
                                "page_block_size = 32, was 64"),
                               ({"causal": True}, "causal = True, was False"),
                               ({"is_fp8_kvcache": True}, "is_fp8_kvcache = True, was False"),
                               ({"indices": ints(2, 1, 64)}, "topk = 64, was None")):
            with self.assertRaisesRegex(AssertionError, reason):
                dense_call(self.metadata, **change)


class SparseTest(FlashMlaTest):
    def test_both_formats_of_fp8_and_bytes_of_any_type(self):
        for width, d, encoding in ((656, 576, "fp8_656"), (584, 512, "fp8_584")):
            for dtype in (fake_torch.float8_e4m3fn, fake_torch.int8, fake_torch.uint8):
                out, lse = sparse_call(get_mla_metadata()[0], s_q=3, width=width, d=d, dtype=dtype)
                self.assertEqual((out.dtype, out.shape), (BF16, (2, 3, 16, 512)))
                self.assertEqual((lse.dtype, lse.shape), (FP32, (2, 16, 3)))
                self.assertEqual(lse.stride(), (48, 1, 16))  # a view of [b, s_q, h_q]
                self.assert_lse_of_unseen_rows_is_infinite(lse)
            self.assertEqual(self.prepared[-1]["kv_encoding"], encoding)

    def test_lengths_sinks_and_a_second_pool(self):
        sparse_call(self.metadata, b=3, h_q=64, width=584, d=512, attn_sink=tensor(FP32, 64),
                    extra_k_cache=tensor(fake_torch.int8, 5, 2, 1, 584),
                    extra_indices_in_kvcache=ints(3, 1, 96), topk_length=ints(3),
                    extra_topk_length=ints(3))
        self.assert_prepared(kv_encoding="fp8_584", has_sinks=True, num_q_heads=64)
        self.assertEqual((self.metadata.config.topk, self.metadata.config.extra_page_block_size,
                          self.metadata.config.extra_topk), (128, 2, 96))

    def test_a_cache_of_qs_type(self):
        sparse_call(self.metadata, width=576, dtype=BF16, is_fp8_kvcache=False)
        self.assert_prepared(kv_encoding="plain", dtype_kv="bf16")

    def test_nothing_is_planned(self):
        self.assertEqual(self.launches_of(lambda: sparse_call(self.metadata)), 1)

    def test_contradictions_are_refused(self):
        for change, reason in (({"causal": True}, "causal = True with indices"),
                               ({"is_fp8_kvcache": False}, "is_fp8_kvcache = False"),
                               ({"dtype": BF16, "width": 576}, "is_fp8_kvcache = True")):
            with self.assertRaisesRegex(AssertionError, reason):
                sparse_call(self.metadata, **change)
        for change, reason in (({"width": 600}, "tokens of 600 bytes under a q of 576"),
                               ({"d": 512}, "tokens of 656 bytes under a q of 512"),
                               ({"extra_k_cache": tensor(fake_torch.uint8, 5, 2, 1, 656)},
                                "^extra_indices_in_kvcache = null"),
                               ({"extra_indices_in_kvcache": ints(2, 1, 8)},
                                "^extra_indices_in_kvcache = .*: extra_k_cache is not"),
                               ({"k_cache": tensor(fake_torch.uint8, 9, 64, 2, 656)},
                                "^k_cache = "),
                               ({"indices": ints(2, 2, 128)}, "indices"),
                               ({"attn_sink": tensor(FP32, 15)}, "^attn_sink = ")):
            with self.assertRaisesRegex(RuntimeError, reason):
                sparse_call(get_mla_metadata()[0], **change)

    def test_a_reused_object_wants_the_same_counts(self):
        sparse_call(self.metadata)
        with self.assertRaisesRegex(AssertionError, "topk = 64, was 128"):
            sparse_call(self.metadata, indices=ints(2, 1, 64))

    def test_prefill_gives_out_largest_scores_and_lse(self):
        q, kv, indices = tensor(BF16, 7, 64, 576), tensor(BF16, 99, 1, 576), ints(7, 1, 128)
        out, max_logits, lse = flash_mla_sparse_fwd(q, kv, indices, 0.5)
        self.assertEqual((out.shape, max_logits.shape, lse.shape),
                         ((7, 64, 512), (7, 64), (7, 64)))
        self.assert_lse_of_unseen_rows_is_infinite(lse)
        self.assertEqual(len(fake_torch.replaced), 1)  # largest scores stay -inf
        self.assert_prepared(operation="sparse_mla_prefill", num_q_heads=64, has_sinks=False)
        self.assertEqual(len(flash_mla_sparse_fwd(q, kv, indices, 0.5, 512, tensor(FP32, 64),
                                                  ints(7), indexer_topk=32)), 4)
        for count in (-1, 1000, 2.5):
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, "^indexer_topk = "):
                flash_mla_sparse_fwd(q, kv, indices, 0.5, indexer_topk=count)


class VarlenTest(FlashMlaTest):
    def call(self, function=flash_attn_varlen_func, tensors=None, **options):
        offsets = ints(3)
        tensors = tensors or (tensor(BF16, 10, 8, 192), tensor(BF16, 20, 2, 192),
                              tensor(BF16, 20, 2, 128))
        return function(*tensors, offsets, offsets, 7, 15, **options)

    def test_out_and_lse_have_the_rows_of_q(self):
        out, lse = self.call(causal=True)
        self.assertEqual((out.dtype, out.shape), (BF16, (10, 8, 128)))
        self.assertEqual((lse.shape, lse.stride()), ((10, 8), (1, 10)))
        self.assert_lse_of_unseen_rows_is_infinite(lse)
        self.assert_prepared(operation="prefill", mask="causal", num_q_heads=8, num_kv_heads=2,
                             head_dim_qk=192, head_dim_v=128, kv_layout="ragged")

    def test_packed_columns(self):
        out, _ = self.call(flash_attn_varlen_kvpacked_func,
                           (tensor(BF16, 10, 8, 192), tensor(BF16, 20, 2, 320)), head_dim_qk=192)
        self.assertEqual(out.shape, (10, 8, 128))
        out, _ = flash_attn_varlen_qkvpacked_func(tensor(BF16, 10, 4, 512), ints(3), 7, 192)
        self.assertEqual(out.shape, (10, 4, 128))

    def test_what_is_not_served_is_refused(self):
        with self.assertRaisesRegex(AssertionError, "dropout_p = 0.1: must be 0"):
            self.call(dropout_p=0.1)
        q, k = tensor(BF16, 10, 8, 128), tensor(BF16, 20, 2, 128)
        q.requires_grad = True
        with self.assertRaisesRegex(RuntimeError, "only the forward is served"):
            self.call(tensors=(q, k, k))


unittest.main()
