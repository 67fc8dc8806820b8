import threading
import unittest
import unittest.mock

import python_fixture
from fake_arrays import DEVICE_MEMORY, CudaArray

import attnjit
from attnjit import TensorView, prepared


def view(dtype, *shape):
    return TensorView(DEVICE_MEMORY, dtype, shape)


class OperationsTest(python_fixture.MockDriverTest):
    """Each operation on arrays without a framework: outputs are given, the descriptor follows."""

    def setUp(self):
        self.runtime = self.open_runtime()
        self.prepared = []
        prepare = self.runtime.prepare

        def recording_prepare(descriptor, stream=None):
            self.prepared.append(descriptor)
            return prepare(descriptor, stream)

        self.runtime.prepare = recording_prepare
        self.workspace = view("uint8", 1 << 28)

    def assert_prepared(self, **fields):
        """One kernel was prepared, with at least these fields."""
        self.assertEqual(len(self.prepared), 1)
        self.assertEqual({name: self.prepared[0].get(name) for name in fields}, fields)

    def decode(self, batch=2, **options):
        return attnjit.paged_decode(
            **{"q": view("bf16", batch, 1, 8, 64), "k_cache": view("bf16", 9, 16, 2, 64),
               "v_cache": view("bf16", 9, 16, 2, 64), "block_table": view("int32", batch, 4),
               "seq_lens": view("int32", batch), "out": view("bf16", batch, 1, 8, 64),
               "lse": view("fp32", batch, 8, 1), "workspace": self.workspace,
               "stream": 16, "runtime": self.runtime, **options})

    def test_decode_takes_its_descriptor_from_its_tensors(self):
        self.assertEqual(self.launches_of(self.decode), 3)  # schedule, attention, merge
        self.assert_prepared(operation="decode", num_q_heads=8, num_kv_heads=2, head_dim_qk=64,
                             head_dim_v=64, page_size=16, dtype_q="bf16", mask="causal",
                             max_seqlen_q=1, value_source="separate")

    def test_decode_prepares_once(self):
        for batch in (2, 2, 3):
            self.decode(batch)
        self.assertEqual(len(self.prepared), 1)

    def test_decode_of_pages_with_heads_first(self):
        self.decode(k_cache=view("bf16", 9, 2, 16, 64), v_cache=view("bf16", 9, 2, 16, 64),
                    kv_layout_tag="hnd")
        self.assert_prepared(num_kv_heads=2, page_size=16, kv_layout_tag="hnd")

    def test_decode_with_a_window_a_sink_and_a_field_of_the_callers(self):
        self.decode(window_left=7, sinks=view("fp32", 8), batch_invariant=True,
                    descriptor={"returns_lse": True})
        self.assert_prepared(mask="sliding_window", window_left=7, window_right=0, has_sinks=True,
                             batch_invariant=True, returns_lse=True)

    def test_decode_with_a_materialized_mask(self):
        self.decode(mask=CudaArray("bool", (2, 1, 1, 64)))
        self.assert_prepared(mask="materialized_bool", dtype_mask="uint8")

    def test_decode_with_a_plan_of_the_callers_neither_prepares_nor_updates(self):
        kernel = self.runtime.prepare(attnjit.descriptors.decode_descriptor(
            num_q_heads=8, num_kv_heads=2, head_dim_qk=64, head_dim_v=64, page_size=16))
        plan = kernel.plan_decode(2)
        plan.update(view("int32", 2))
        self.prepared.clear()
        self.assertEqual(self.launches_of(lambda: self.decode(plan=plan)), 2)
        self.assertEqual(self.prepared, [])

    def test_each_stream_and_thread_has_plans_of_its_own(self):
        kernel = self.runtime.prepare(attnjit.descriptors.decode_descriptor(
            num_q_heads=8, num_kv_heads=2, head_dim_qk=64, head_dim_v=64, page_size=16))
        plans = [prepared.plan_of(kernel, batch, 1, 0, stream)
                 for batch, stream in ((5, 0), (8, 0), (8, 16))]
        thread = threading.Thread(
            target=lambda: plans.append(prepared.plan_of(kernel, 8, 1, 0, 0)))
        thread.start()
        thread.join()
        self.assertIs(plans[0], plans[1])
        self.assertEqual(len(set(map(id, plans))), 3)

    def test_each_capture_takes_a_plan_that_calls_before_it_laid_aside(self):
        kernel = self.runtime.prepare(attnjit.descriptors.decode_descriptor(
            num_q_heads=8, num_kv_heads=2, head_dim_qk=64, head_dim_v=64, page_size=16))

        def plan(stream, is_captured):
            with unittest.mock.patch.object(prepared, "current_stream_is_captured",
                                            lambda device: is_captured):
                return prepared.plan_of(kernel, 16, 1, 0, stream)

        with self.assertRaisesRegex(attnjit.ColdKernelError, "call the operation once before"):
            plan(32, True)
        eager = plan(0, False)
        captured = plan(32, True)
        self.assertIs(plan(32, True), captured)
        self.assertIs(plan(0, False), eager)
        self.assertEqual(len({eager, captured, plan(48, True)}), 3)

    def test_plans_do_not_grow_with_the_numbers_of_calls(self):
        given = []

        def allocate(device, size):
            given.append(size)
            return DEVICE_MEMORY + (len(given) << 30)

        self.runtime = self.open_runtime(allocate=allocate, release=lambda *_: given.pop())
        decode = lambda **options: self.decode(batch_invariant=True, **options)
        for pages in (1, 300):
            decode(block_table=view("int32", 2, pages))
        a_plan = len(given) // 4  # each has a spare
        for pages in range(1, 300, 3):
            decode(block_table=view("int32", 2, pages))
        self.assertLessEqual(len(given), a_plan * 2 * 10)  # 1 to 512 pages
        before = len(given)
        for keys in range(1, 4800, 100):
            decode(max_seqlen_kv=keys)
        self.assertLessEqual(len(given) - before, a_plan * 2 * 4)  # of less than a page of 16 keys
        self.assertEqual(prepared._rounded(2**31 - 1), 2**31 - 1)  # no more is an int32

    def test_mla_decode_takes_v_from_k(self):
        attnjit.mla_decode(view("bf16", 2, 1, 16, 576), view("bf16", 9, 64, 1, 576),
                           view("int32", 2, 4), view("int32", 2), out=view("bf16", 2, 1, 16, 512),
                           lse=view("fp32", 2, 16, 1), workspace=self.workspace,
                           runtime=self.runtime)
        self.assert_prepared(head_dim_qk=576, head_dim_v=512, value_source="prefix_of_k",
                             num_kv_heads=1)

    def prefill(self, q, k, v, rows, **options):
        shape = q.shape
        return attnjit.prefill(q, k, v, out=view("bf16", *shape[:-1], v.shape[-1]),
                               lse=view("fp32", *rows), workspace=self.workspace,
                               runtime=self.runtime, **options)

    def test_prefill_of_ragged_keys(self):
        self.prefill(view("bf16", 7, 8, 64), view("bf16", 9, 2, 64), view("bf16", 9, 2, 64), (8, 7),
                     q_offsets=view("int32", 3), kv_offsets=view("int32", 3))
        self.assert_prepared(operation="prefill", kv_layout="ragged", kv_layout_tag="thd",
                             page_size=0, num_kv_heads=2)

    def test_prefill_of_dense_keys_with_a_cap_and_a_sink(self):
        self.prefill(view("bf16", 2, 7, 8, 64), view("bf16", 2, 2, 9, 64),
                     view("bf16", 2, 2, 9, 64), (2, 8, 7), kv_layout_tag="bhsd", softcap=30.0,
                     sinks=view("fp32", 8), causal=False)
        self.assert_prepared(kv_layout="dense", num_kv_heads=2, score_modifier="softcap",
                             has_sinks=True, mask="none")

    def test_prefill_with_a_mask_and_a_bias(self):
        self.prefill(view("bf16", 2, 7, 8, 64), view("bf16", 2, 9, 2, 64),
                     view("bf16", 2, 9, 2, 64), (2, 8, 7), mask=view("fp16", 2, 1, 7, 9),
                     bias=view("bf16", 1, 8, 7, 9))
        self.assert_prepared(mask="materialized_additive", dtype_mask="fp16",
                             score_modifier="additive_bias", dtype_bias="bf16")

    def test_prefill_over_an_fp8_cache(self):
        attnjit.prefill_kvcache(
            view("bf16", 7, 8, 64), view("fp8_e4m3", 9, 16, 2, 64), view("fp8_e4m3", 9, 16, 2, 64),
            view("int32", 2, 4), view("int32", 2), q_offsets=view("int32", 3),
            k_scales=view("fp32", 1), v_scales=view("fp32", 1),
            descriptor={"scales_kv": "per_tensor"}, out=view("bf16", 7, 8, 64),
            lse=view("fp32", 8, 7), workspace=self.workspace, runtime=self.runtime)
        self.assert_prepared(operation="prefill_kvcache", dtype_q="bf16", dtype_kv="fp8_e4m3",
                             dtype_out="bf16", page_size=16, scales_kv="per_tensor")

    def test_prefill_with_rope_columns_in_a_cache(self):
        attnjit.mla_prefill_rope(
            view("bf16", 7, 4, 192), view("bf16", 9, 4, 128), view("bf16", 9, 4, 128),
            view("bf16", 8, 64, 1, 576), q_offsets=view("int32", 3), kv_offsets=view("int32", 3),
            query_positions=view("int32", 2), block_table=view("int32", 2, 4),
            out=view("bf16", 7, 4, 128), lse=view("fp32", 4, 7), workspace=self.workspace,
            runtime=self.runtime)
        self.assert_prepared(operation="mla_prefill_rope", head_dim_qk=192, head_dim_v=128,
                             page_size=64, dtype_rope="bf16")

    def sparse_decode(self, kv):
        return attnjit.sparse_mla_decode(
            view("bf16", 2, 1, 16, 576), kv, view("int32", 2, 1, 128),
            out=view("bf16", 2, 1, 16, 512), lse=view("fp32", 2, 16, 1),
            max_logits=view("fp32", 2, 16, 1), runtime=self.runtime)

    def test_sparse_decode_knows_an_encoding_by_its_bytes(self):
        self.sparse_decode(view("uint8", 9, 64, 1, 656))
        self.assert_prepared(operation="sparse_mla_decode", kv_encoding="fp8_656",
                             dtype_kv="fp8_e4m3", page_size=64)

    def test_sparse_decode_of_plain_tokens(self):
        self.sparse_decode(view("bf16", 9, 128, 1, 576))
        self.assert_prepared(kv_encoding="plain", dtype_kv="bf16", page_size=128)

    def test_sparse_prefill(self):
        attnjit.sparse_mla_prefill(
            view("bf16", 3, 16, 576), view("bf16", 99, 1, 576), view("int32", 3, 1, 128),
            out=view("bf16", 3, 16, 512), lse=view("fp32", 3, 16),
            max_logits=view("fp32", 3, 16), runtime=self.runtime)
        self.assert_prepared(operation="sparse_mla_prefill", kv_layout="ragged", num_q_heads=16)

    def test_append_quantises_by_the_scales_that_it_is_given(self):
        new, cache = view("bf16", 3, 2, 64), view("fp8_e4m3", 9, 16, 2, 64)
        attnjit.append_kv_cache(new, new, cache, cache, slot_mapping=view("int32", 3),
                                k_scale=view("fp32", 2), v_scale=view("fp32", 2),
                                runtime=self.runtime)
        self.assert_prepared(operation="append_kv_cache", dtype_q="bf16", dtype_kv="fp8_e4m3",
                             scales_kv="per_head", page_size=16, value_source="separate")

    def test_append_of_latents(self):
        attnjit.append_kv_cache(view("bf16", 3, 1, 576), None, view("bf16", 9, 64, 1, 576), None,
                                slot_mapping=view("int32", 3), runtime=self.runtime)
        self.assert_prepared(value_source="prefix_of_k", head_dim_v=576, scales_kv="none")

    def test_merge(self):
        out, lse = view("bf16", 5, 4, 128), view("fp32", 5, 4)
        attnjit.merge_attention_states([out, out], [lse, lse], out=out, lse=lse,
                                       runtime=self.runtime)
        self.assert_prepared(operation="merge_states", head_dim_v=128)
        with self.assertRaisesRegex(attnjit.TensorError, "2 outs and 1 lses"):
            attnjit.merge_attention_states([out, out], [lse], runtime=self.runtime)

    def test_outputs_that_no_one_allocates_are_asked_for(self):
        with self.assertRaisesRegex(attnjit.TensorError,
                                    r"out: must be given where .* bf16 \[2, 1, 8, 64\]"):
            self.decode(out=None)
        with self.assertRaisesRegex(attnjit.TensorError, "workspace: must be given"):
            self.decode(workspace=None)

    def test_a_tensor_of_another_rank_is_named(self):
        with self.assertRaisesRegex(attnjit.TensorError, r"q has shape \[2, 8, 64\]: must have 4"):
            self.decode(q=view("bf16", 2, 8, 64))


unittest.main()
