import os
import pathlib
import tempfile
import types
import unittest

import python_fixture
from fake_arrays import DEVICE_MEMORY, CudaArray

import attnjit
from attnjit import TensorView

DECODE = attnjit.descriptors.decode_descriptor(num_q_heads=8, num_kv_heads=2, head_dim_qk=64,
                                               head_dim_v=64, dtype="fp16", page_size=16)
MERGE = attnjit.descriptors.merge_states_descriptor(head_dim=64)


def view(dtype, *shape):
    return TensorView(DEVICE_MEMORY, dtype, shape)


class RuntimeTest(python_fixture.MockDriverTest):
    """What a runtime refuses, though ctypes would cut it to what the library takes."""

    def test_options_out_of_range_are_named(self):
        for name, value in (("device", 2**32), ("device", -1), ("device", "0"),
                            ("forbid_jit", 2**32), ("trusts_pointers", "no"),
                            ("cache_max_bytes", -1), ("cache_max_bytes", 2**64 + 5),
                            ("cache_directory", "/tmp/a\0b"), ("templates", 5),
                            ("nvrtc", "/a\0b"), ("miss_trace", "\0"), ("cache_layers", "/opt/x"),
                            ("cache_sharing", ["owner"]), ("log", 5), ("on_miss", "print")):
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, f"^{name} = .*: must .*; "):
                attnjit.Runtime(**{name: value})
        for name in ("allocate", "release"):
            functions = {"allocate": print, "release": print, name: 5}
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, f"^{name} = 5: must be call"):
                attnjit.Runtime(**functions)
        for device in (2**32, 0.0, []):
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, "^device = "):
                attnjit.default_runtime(device)

    def test_text_with_a_nul_is_refused(self):
        runtime = self.open_runtime()
        for call in (runtime.validate, runtime.prepare, runtime.is_cold,
                     lambda text: runtime.warm(text, "sm_90a"),
                     lambda text: runtime.source(text, "sm_90a")):
            with self.assertRaisesRegex(attnjit.InvalidDescriptorError, "must have no NUL"):
                call('{"operation":"decode"}\0garbage')
        for call in (runtime.warm, runtime.source):
            for arch in ("sm_90a\0zzz", None, b"sm_90a"):
                with self.assertRaisesRegex(attnjit.InvalidArgumentError, "^arch = "):
                    call({}, arch)

    def test_fields_given_twice_are_left_to_the_library_to_refuse(self):
        with self.assertRaisesRegex(attnjit.InvalidDescriptorError, "given more than once"):
            self.open_runtime().validate('{"page_size":64,"page_size":3}')

    def test_paths_of_any_bytes_reach_the_file_system_and_log(self):
        with tempfile.TemporaryDirectory() as folder:
            raw = os.fsencode(folder) + b"/x\xff"
            for given in (raw, os.fsdecode(raw), pathlib.Path(os.fsdecode(raw))):
                self.open_runtime(cache_directory=given).warm(MERGE, "sm_90a")
                self.assertTrue(os.listdir(raw))
            blocked = os.fsencode(folder) + b"/y\xff"
            open(blocked, "w").close()
            lines = []
            runtime = self.open_runtime(cache_directory=blocked,
                                        log=lambda *line: lines.append(line))
            with self.assertRaisesRegex(attnjit.NotStoredError, "/y�"):
                runtime.warm(MERGE, "sm_90a")
        self.assertEqual({level for level, _ in lines}, {"warning"})
        self.assertIn("/y�", lines[0][1])

    def test_misses_tell_paths_of_any_bytes(self):
        misses = []
        with tempfile.TemporaryDirectory() as folder:
            raw = os.fsencode(folder) + b"/x\xff"
            self.open_runtime(cache_directory=raw, on_miss=misses.append).warm(MERGE, "sm_90a")
        self.assertIn("/x�", misses[0].detail)

    def test_an_allocate_that_gives_no_address_is_out_of_memory(self):
        for allocate, cause in ((lambda device, size: 1 // 0, ZeroDivisionError),
                                (lambda device, size: "x", attnjit.InvalidArgumentError),
                                (lambda device, size: 2**70, attnjit.InvalidArgumentError),
                                (lambda device, size: 0, type(None))):
            released = []
            runtime = self.open_runtime(allocate=allocate,
                                        release=lambda *given: released.append(given))
            kernel = runtime.prepare(DECODE)
            with self.assertRaises(attnjit.OutOfMemoryError) as caught:
                kernel.plan_decode(4)
            self.assertIsInstance(caught.exception.__cause__, cause)
            self.assertEqual(released, [])


class PlanTest(python_fixture.MockDriverTest):
    def setUp(self):
        self.kernel = self.open_runtime().prepare(DECODE)

    def test_sizes_of_a_plan_have_their_range(self):
        for name, arguments in (("max_batch", (2**32 + 4,)), ("max_batch", (4.0,)),
                                ("max_batch", (None,)), ("seqlen_q", (4, 2**32 + 1)),
                                ("seqlen_q", (4, 0)), ("max_seqlen_kv", (4, 1, -1))):
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, f"^{name} = .* from . to 2"):
                self.kernel.plan_decode(*arguments)

    def test_lengths_have_their_range(self):
        plan = self.kernel.plan_decode(4)
        for lengths, name in (([2**32 + 5], r"\[0\]"), ([1, 2**31], r"\[1\]"), ([-1], r"\[0\]"),
                              ([2.0], r"\[0\]"), ("12", r"\[0\]"), (None, ""), (5, "")):
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, f"^seq_lens{name} = "):
                plan.update_from_host(lengths)
        for batch in (-2**32 + 1, -1, 5, 2.0, "2"):
            with self.assertRaisesRegex(attnjit.InvalidArgumentError, "^batch = .* from 0 to 4; "):
                plan.update(view("int32", 4), batch=batch)
        for lengths, message in (([1, 2], "a builtins.list: must be"), (None, "None: must be"),
                                 (TensorView(DEVICE_MEMORY + 1, "int32", (2,)), "4-byte aligned"),
                                 (TensorView(DEVICE_MEMORY, "int32", (2,), device=1), "device 1")):
            with self.assertRaisesRegex(attnjit.TensorError, f"^seq_lens is .*{message}"):
                plan.update(lengths)

    def test_a_split_is_of_plan_prefill(self):
        with self.assertRaisesRegex(attnjit.InvalidArgumentError, "^split = 5: must be a Prefill"):
            self.kernel.run_prefill(split=5)


class OperationsTest(python_fixture.MockDriverTest):
    """Operations name the argument that is wrong."""

    def setUp(self):
        self.runtime = self.open_runtime()

    def decode(self, **options):
        return attnjit.paged_decode(
            **{"q": view("fp16", 2, 1, 8, 64), "k_cache": view("fp16", 9, 16, 2, 64),
               "v_cache": view("fp16", 9, 16, 2, 64), "block_table": view("int32", 2, 4),
               "seq_lens": view("int32", 2), "out": view("fp16", 2, 1, 8, 64),
               "lse": view("fp32", 2, 8, 1), "workspace": view("uint8", 1 << 28),
               "runtime": self.runtime, **options})

    def assert_refused(self, call, name, value):
        with self.assertRaises(attnjit.AttnjitError) as caught:
            call(**{name: value})
        self.assertRegex(caught.exception.message, rf"(?m)^{name}\b", f"{name} = {value!r}")

    def test_of_a_decode(self):
        for name in ("q", "k_cache", "block_table", "seq_lens"):
            for value in (None, 5, view("fp16"), CudaArray("int32", (1,) * 6)):
                self.assert_refused(self.decode, name, value)
        for name, value in (("v_cache", view("fp16")), ("v_cache", 5), ("mask", 5), ("sinks", 5),
                            ("out", 5), ("lse", [1]), ("workspace", [1]), ("plan", 5),
                            ("runtime", 5), ("stream", -1), ("stream", "side"),
                            ("softmax_scale", "1"), ("window_left", "7"), ("window_left", [7]),
                            ("head_dim_v", "64"), ("head_dim_v", -1), ("max_seqlen_kv", 2**32),
                            ("max_seqlen_kv", [1]), ("kv_layout_tag", ["nhd"]),
                            ("causal", [True])):
            self.assert_refused(self.decode, name, value)
        with self.assertRaisesRegex(attnjit.TensorError, "^block_table has shape"):
            self.decode(batch_invariant=True, block_table=view("int32", 2))
        with self.assertRaisesRegex(attnjit.TensorError, "^block_table is None: must be"):
            self.decode(batch_invariant=True, block_table=None)

    def test_further_fields(self):
        for value, message in (('{"page_size":16,"page_size":3}', "more than once"),
                               ("[]", "object"), ("garbage", "is not JSON"), ("[1]", "object"),
                               (5, "mapping"), ({"mask": ["causal"]}, "mask = "),
                               ({"topk": object()}, "topk = "),
                               ('{"topk": NaN}', "is not JSON"), ({3: 4}, "3 = 4")):
            with self.assertRaisesRegex(attnjit.InvalidDescriptorError, message):
                self.decode(descriptor=value)
        self.decode(descriptor={"returns_lse": True})
        with self.assertRaisesRegex(attnjit.InvalidDescriptorError, "^returns_lse = 1: must be"):
            self.decode(descriptor={"returns_lse": 1})

    def test_of_a_prefill(self):
        def prefill(**options):
            keys = view("fp16", 9, 2, 64)
            return attnjit.prefill(**{
                "q": view("fp16", 7, 8, 64), "k": keys, "v": keys, "q_offsets": view("int32", 3),
                "kv_offsets": view("int32", 3), "out": view("fp16", 7, 8, 64),
                "lse": view("fp32", 8, 7), "workspace": view("uint8", 1 << 28),
                "runtime": self.runtime, **options})

        prefill()
        for name, value in (("q", None), ("k", None), ("k", view("fp16")), ("v", view("fp16")),
                            ("bias", 5), ("mask", 5), ("q_offsets", 5), ("keys", view("fp16", 1)),
                            ("window_right", None), ("softmax_scale", "1"), ("softcap", "x"),
                            ("head_dim_v", 6.5)):
            self.assert_refused(prefill, name, value)
        with self.assertRaisesRegex(attnjit.TensorError, "^v_cache has shape"):
            attnjit.prefill_kvcache(view("fp16", 7, 8, 64), view("fp16", 9, 16, 2, 64),
                                    view("fp16"), None, None, runtime=self.runtime)
        with self.assertRaisesRegex(attnjit.TensorError, "^k has shape"):
            attnjit.mla_prefill_rope(view("fp16", 7, 8, 192), view("fp16"), None, None,
                                     q_offsets=None, kv_offsets=None, runtime=self.runtime)

    def test_of_the_others(self):
        new = view("fp16", 3, 2, 64)
        with self.assertRaisesRegex(attnjit.TensorError, "^v_new has shape"):
            attnjit.append_kv_cache(new, view("fp16"), view("fp16", 9, 16, 2, 64), None,
                                    runtime=self.runtime)
        for outs, lses, message in ((None, [], "outs is a NoneType"), ([new], new, "lses is a Ten"),
                                    ([None], [None], r"outs\[0\] is None")):
            with self.assertRaisesRegex(attnjit.TensorError, message):
                attnjit.merge_attention_states(outs, lses, runtime=self.runtime)
        with self.assertRaisesRegex(attnjit.InvalidArgumentError, "^runtime = .*: must be a Runt"):
            attnjit.merge_attention_states([new], [new], runtime=types.SimpleNamespace(device=0))


unittest.main()
