import threading
import unittest

import python_fixture
from fake_arrays import CudaArray

import attnjit
from attnjit import descriptors

DECODE = descriptors.decode_descriptor(num_q_heads=8, num_kv_heads=2, head_dim_qk=64,
                                       head_dim_v=64, dtype="fp16", page_size=16)


def decode_tensors(batch=2):
    cache = CudaArray("fp16", (8, 16, 2, 64))
    return {"q": CudaArray("fp16", (batch, 1, 8, 64)), "k_cache": cache, "v_cache": cache,
            "block_table": CudaArray("int32", (batch, 4)),
            "seq_lens": CudaArray("int32", (batch,)),
            "out": CudaArray("fp16", (batch, 1, 8, 64)), "lse": CudaArray("fp32", (batch, 8, 1))}


class DecodeTest(python_fixture.MockDriverTest):
    def setUp(self):
        self.kernel = self.open_runtime().prepare(DECODE)
        self.plan = self.kernel.plan_decode(4)
        self.workspace = CudaArray("uint8", (self.plan.workspace_bytes,))

    def test_an_updated_plan_runs_on_the_stream_that_is_named(self):
        tensors = decode_tensors()
        self.assertEqual(self.launches_of(lambda: self.plan.update(tensors["seq_lens"], stream=48)),
                         1)
        self.assertEqual(self.last_stream(), 48)
        run = self.launches_of(
            lambda: self.plan.run(**tensors, workspace=self.workspace, stream=64))
        self.assertEqual(run, 2)  # attention, and the merge of its parts
        self.assertEqual(self.last_stream(), 64)
        self.plan.run(**tensors, workspace=self.workspace)
        self.assertEqual(self.last_stream(), 0)

    def test_lengths_on_the_host_are_numbers_or_arrays(self):
        import array
        for lengths in ([3, 4], (3, 4), array.array("i", [3, 4])):
            self.plan.update_from_host(lengths)
            self.plan.run(**decode_tensors(), workspace=self.workspace)

    def test_a_plan_may_be_updated_by_some_of_the_lengths(self):
        self.plan.update(CudaArray("int32", (4,)), batch=2)
        self.plan.run(**decode_tensors(), workspace=self.workspace)
        with self.assertRaisesRegex(attnjit.InvalidArgumentError, "batch = 5: .* seq_lens has 4"):
            self.plan.update(CudaArray("int32", (4,)), batch=5)

    def test_lengths_of_another_type_or_order_are_refused(self):
        for lengths in (CudaArray("int64", (2,)), CudaArray("int32", (2, 1)),
                        CudaArray("int32", (2,), (2,))):
            with self.assertRaisesRegex(attnjit.TensorError, r"must be int32 \[batch\]"):
                self.plan.update(lengths)

    def test_a_wrong_call_lists_all_that_is_wrong(self):
        self.plan.update(CudaArray("int32", (2,)))
        tensors = {**decode_tensors(), "q": CudaArray("fp16", (2, 1, 9, 64)),
                   "out": CudaArray("fp16", (2, 1, 8, 72))}
        with self.assertRaises(attnjit.InvalidCallError) as caught:
            self.plan.run(**tensors, workspace=self.workspace)
        self.assertEqual([violation["field"] for violation in caught.exception.violations],
                         ["q", "out"])
        with self.assertRaisesRegex(attnjit.InvalidCallError, "workspace"):
            self.plan.run(**decode_tensors())

    def test_host_memory_is_refused_unless_pointers_are_trusted(self):
        tensors = {**decode_tensors(), "q": CudaArray("fp16", (2, 1, 8, 64), address=4096)}
        self.plan.update(CudaArray("int32", (2,)))
        with self.assertRaisesRegex(attnjit.InvalidCallError, "q.data = 0x1000: must be device"):
            self.plan.run(**tensors, workspace=self.workspace)
        plan = self.open_runtime(trusts_pointers=True).prepare(DECODE).plan_decode(4)
        plan.update(CudaArray("int32", (2,)))
        plan.run(**tensors, workspace=self.workspace)

    def test_a_capture_takes_updates_and_runs_but_no_lengths_of_the_host(self):
        self.capture()
        self.plan.update(CudaArray("int32", (2,)), stream=16)
        self.plan.run(**decode_tensors(), workspace=self.workspace, stream=16)
        with self.assertRaisesRegex(attnjit.InvalidCallError, "must not be captured"):
            self.plan.update_from_host([3, 4], stream=16)

    def test_threads_run_side_by_side(self):
        self.plan.update(CudaArray("int32", (2,)))
        errors = []

        def work():
            try:
                for _ in range(200):
                    self.plan.run(**decode_tensors(), workspace=self.workspace)
            except Exception as error:  # shown by the test's own thread
                errors.append(error)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(errors, [])

    def test_a_plan_of_another_operation_is_refused(self):
        merge = self.open_runtime().prepare(descriptors.merge_states_descriptor(head_dim=64))
        with self.assertRaises(attnjit.AttnjitError):
            merge.plan_decode(4)


class OtherKernelsTest(python_fixture.MockDriverTest):
    def test_a_prefill_of_few_rows_is_split_and_merged(self):
        kernel = self.open_runtime().prepare(descriptors.prefill_descriptor(
            num_q_heads=4, num_kv_heads=2, head_dim_qk=64, head_dim_v=64, dtype="fp16"))
        keys = CudaArray("fp16", (65536, 2, 64))
        tensors = {"q": CudaArray("fp16", (4, 4, 64)), "k": keys, "v": keys,
                   "q_offsets": CudaArray("int32", (2,)), "kv_offsets": CudaArray("int32", (2,)),
                   "out": CudaArray("fp16", (4, 4, 64)), "lse": CudaArray("fp32", (4, 4))}
        split = kernel.plan_prefill(**tensors)
        self.assertGreater(split.num_splits, 1)
        workspace = CudaArray("uint8", (split.workspace_bytes,))
        self.assertEqual(self.launches_of(lambda: kernel.run_prefill(**tensors, stream=16)), 1)
        self.assertEqual(self.launches_of(lambda: kernel.run_prefill(
            **tensors, split=split, workspace=workspace, stream=32)), 2)
        self.assertEqual(self.last_stream(), 32)
        with self.assertRaisesRegex(TypeError, "keys is no tensor of this call"):
            kernel.run_prefill(**tensors, keys=keys)

    def test_token_sparse_mla_runs(self):
        kernel = self.open_runtime().prepare(
            descriptors.sparse_mla_decode_descriptor(num_q_heads=16, dtype="fp16"))
        self.assertEqual(self.launches_of(lambda: kernel.run_sparse_mla(
            q=CudaArray("fp16", (2, 1, 16, 576)), kv=CudaArray("fp16", (8, 64, 1, 576)),
            indices=CudaArray("int32", (2, 1, 128)), out=CudaArray("fp16", (2, 1, 16, 512)),
            softmax_scale=0.1, stream=16)), 1)

    def test_new_tokens_are_written(self):
        kernel = self.open_runtime().prepare(descriptors.append_kv_cache_descriptor(
            num_kv_heads=2, head_dim_qk=64, head_dim_v=64, dtype="fp16", dtype_kv="fp16",
            page_size=16))
        new, cache = CudaArray("fp16", (2, 1, 2, 64)), CudaArray("fp16", (8, 16, 2, 64))
        self.assertEqual(self.launches_of(lambda: kernel.run_append_kv_cache(
            k_new=new, v_new=new, k_cache=cache, v_cache=cache,
            slot_mapping=CudaArray("int64", (2,)), stream=16)), 1)

    def test_partial_results_are_merged(self):
        kernel = self.open_runtime().prepare(
            descriptors.merge_states_descriptor(head_dim=64, dtype="fp16"))
        out, lse = CudaArray("fp16", (5, 4, 64)), CudaArray("fp32", (5, 4))
        self.assertEqual(self.launches_of(lambda: kernel.run_merge_states(
            partials=[(out, lse), (out, lse)], out=out, lse=lse, stream=16)), 1)
        with self.assertRaisesRegex(attnjit.InvalidArgumentError, "num_partials = 0: must be 1"):
            kernel.run_merge_states(partials=[], out=out)


unittest.main()
