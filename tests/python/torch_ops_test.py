import importlib.util
import types
import unittest

import python_fixture

import attnjit
from attnjit import TensorError, allocation, compiled_calls, tensors

if importlib.util.find_spec("torch") is None:
    raise SystemExit("skipped: torch is not installed")
import torch

from attnjit import torch_ops

# Functions of each op's shapes, for a trace to run on the host.
LIBRARY = torch.library.Library("attnjit", "IMPL")
calls = []


def run_on_host(name):
    def call(*given, **keywords):
        calls.append((name, keywords))
        return torch_ops._FAKES[name](*given, **keywords)

    LIBRARY.impl(name, call, "CPU")


for op in torch_ops._SCHEMAS:
    run_on_host(op)


def zeros(*shape, dtype=torch.bfloat16):
    return torch.zeros(shape, dtype=dtype)


def numbers(*shape):
    return zeros(*shape, dtype=torch.int32)


def traced(function, *inputs):
    """What `function` gives, compiled whole: a break of the graph is an error."""
    calls.clear()
    return torch.compile(function, backend="aot_eager", fullgraph=True)(*inputs)


def shapes(outputs):
    return [(str(output.dtype), tuple(output.shape)) for output in outputs]


class TracingTest(unittest.TestCase):
    def test_decode_becomes_one_op(self):
        outputs = traced(
            lambda q, k, v, table, lens: attnjit.paged_decode(
                q * 2, k, v, table, lens, softmax_scale=0.5, window_left=7,
                descriptor={"topk": 0}),
            zeros(2, 1, 8, 64), zeros(9, 16, 2, 64), zeros(9, 16, 2, 96), numbers(2, 4), numbers(2))
        self.assertEqual(calls[-1], ("paged_decode", {"softmax_scale": 0.5, "window_left": 7,
                                                      "descriptor": '{"topk": 0}'}))
        self.assertEqual(shapes(outputs), [("torch.bfloat16", (2, 1, 8, 96)),
                                           ("torch.float32", (2, 8, 1))])

    def test_mla_decode_has_the_columns_of_v(self):
        outputs = traced(lambda *inputs: attnjit.mla_decode(*inputs), zeros(2, 1, 16, 576),
                         zeros(9, 64, 1, 576), numbers(2, 4), numbers(2))
        self.assertEqual(shapes(outputs), [("torch.bfloat16", (2, 1, 16, 512)),
                                           ("torch.float32", (2, 16, 1))])

    def test_prefill_has_the_shapes_of_ragged_and_dense_queries(self):
        ragged = traced(lambda q, k, v, offsets: attnjit.prefill(
            q, k, v, q_offsets=offsets, kv_offsets=offsets), zeros(7, 8, 64), zeros(9, 2, 64),
            zeros(9, 2, 64), numbers(3))
        self.assertEqual(shapes(ragged), [("torch.bfloat16", (7, 8, 64)),
                                          ("torch.float32", (8, 7))])
        dense = traced(lambda q, k, v: attnjit.prefill(
            q, k, v, descriptor={"dtype_out": "fp16"}), zeros(2, 7, 8, 64), zeros(2, 9, 2, 64),
            zeros(2, 9, 2, 64))
        self.assertEqual(shapes(dense), [("torch.float16", (2, 7, 8, 64)),
                                         ("torch.float32", (2, 8, 7))])

    def test_an_argument_that_is_none_may_be_a_keyword(self):
        traced(lambda q, k, table, lens: attnjit.paged_decode(
            q, k, v_cache=None, block_table=table, seq_lens=lens), zeros(2, 1, 8, 64),
            zeros(9, 16, 2, 64), numbers(2, 4), numbers(2))
        self.assertEqual(calls[-1][0], "paged_decode")

        def append(new, cache, slots):
            attnjit.append_kv_cache(k_new=new, v_new=None, k_cache=cache, v_cache=None,
                                    slot_mapping=slots)
            return cache + 1

        traced(append, zeros(3, 1, 576), zeros(9, 64, 1, 576), numbers(3))
        self.assertEqual([name for name, _ in calls], ["append_kv_cache"])

    def test_a_trace_refuses_what_the_run_would(self):
        ragged = zeros(7, 8, 64), zeros(9, 2, 64), zeros(9, 2, 64)
        for descriptor in ('{"dtype_out":"fp9"}', '{"dtype_out":[]}', "{", "[]",
                           '{"dtype_out":"bf16","dtype_out":"fp16"}'):
            with self.assertRaisesRegex(attnjit.InvalidDescriptorError, "; fix: "):
                torch_ops._FAKES["prefill"](*ragged, descriptor=descriptor)
        for q in (zeros(2, 8, 64), zeros(2, 1, 8, 64, dtype=torch.float64)):
            with self.assertRaisesRegex(TensorError, "must "):
                torch_ops._FAKES["paged_decode"](q, zeros(9, 16, 2, 64), None, numbers(2, 4),
                                                 numbers(2))

    def test_an_fp8_query_gives_bf16(self):
        fp8 = torch.float8_e4m3fn
        outputs = traced(
            lambda q, k, v, table, lens: attnjit.prefill_kvcache(
                q, k, v, table, lens, q_offsets=lens),
            zeros(7, 8, 64, dtype=fp8), zeros(9, 16, 2, 64, dtype=fp8),
            zeros(9, 16, 2, 64, dtype=fp8), numbers(2, 4), numbers(2))
        self.assertEqual(outputs[0].dtype, torch.bfloat16)

    def test_rope_columns_apart(self):
        outputs = traced(
            lambda q, k, v, rope, offsets: attnjit.mla_prefill_rope(
                q, k, v, rope, q_offsets=offsets, kv_offsets=offsets),
            zeros(7, 4, 192), zeros(9, 4, 128), zeros(9, 4, 128), zeros(2, 9, 1, 64), numbers(3))
        self.assertEqual(shapes(outputs), [("torch.bfloat16", (7, 4, 128)),
                                           ("torch.float32", (4, 7))])

    def test_token_sparse_mla(self):
        decode = traced(lambda q, kv, indices: attnjit.sparse_mla_decode(q, kv, indices),
                        zeros(2, 1, 16, 576), zeros(9, 64, 1, 656, dtype=torch.uint8),
                        numbers(2, 1, 128))
        self.assertEqual(shapes(decode)[1:], [("torch.float32", (2, 16, 1))] * 2)
        prefill = traced(lambda q, kv, indices: attnjit.sparse_mla_prefill(q, kv, indices),
                         zeros(3, 16, 576), zeros(99, 1, 576), numbers(3, 1, 128))
        self.assertEqual(shapes(prefill), [("torch.bfloat16", (3, 16, 512))] +
                         [("torch.float32", (3, 16))] * 2)

    def test_append_is_kept_though_it_gives_nothing(self):
        def step(new, cache, slots):
            attnjit.append_kv_cache(new, None, cache, None, slot_mapping=slots)
            return cache + 1

        traced(step, zeros(3, 1, 576), zeros(9, 64, 1, 576), numbers(3))
        self.assertEqual([name for name, _ in calls], ["append_kv_cache"])

    def test_merge(self):
        outputs = traced(lambda out, lse: attnjit.merge_attention_states([out, out], [lse, lse]),
                         zeros(5, 4, 128), zeros(5, 4, dtype=torch.float32))
        self.assertEqual(shapes(outputs), [("torch.bfloat16", (5, 4, 128)),
                                           ("torch.float32", (5, 4))])

    def test_batches_of_any_size_share_a_graph(self):
        compiled = torch.compile(
            lambda q, kv, table, lens: attnjit.mla_decode(q, kv, table, lens),
            backend="aot_eager", fullgraph=True, dynamic=True)
        for batch in (2, 5):
            out, _ = compiled(zeros(batch, 1, 16, 576), zeros(9, 64, 1, 576), numbers(batch, 4),
                              numbers(batch))
            self.assertEqual(out.shape[0], batch)

    def test_every_operation_is_an_op_that_takes_its_arguments(self):
        given = {"out", "lse", "max_logits", "workspace", "plan", "stream", "runtime"}
        for name in attnjit.operations.__all__:
            function = getattr(attnjit, name).__wrapped__
            code = function.__code__
            names = set(code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]) - given
            schema = getattr(torch.ops.attnjit, name).default._schema
            self.assertLessEqual(names, {argument.name for argument in schema.arguments}, name)

    def test_ops_take_every_tensor_of_a_prefill(self):
        offered = set(torch_ops._PREFILL_TENSORS) | {"q", "k", "v", "k_rope", "out", "lse"}
        fields = {name for name, of in attnjit._structs.PrefillCall._fields_
                  if of is attnjit._structs.Tensor}
        self.assertEqual(offered, fields)


class TorchTensorsTest(unittest.TestCase):
    def test_tensors_on_the_host_are_refused(self):
        with self.assertRaisesRegex(TensorError, "on cpu: must be on a CUDA device"):
            tensors.read(zeros(2))

    def test_every_type_of_ours_has_one_of_torchs(self):
        for dtype, name in tensors.TORCH_NAMES.items():
            self.assertEqual(tensors.dtype_of_torch(getattr(torch, name)), dtype)
        self.assertEqual(tensors.dtype_of_torch(torch.bool), "uint8")
        with self.assertRaisesRegex(TensorError, "torch.float64: must be of bfloat16"):
            tensors.dtype_of_torch(torch.float64)

    def test_outputs_are_allocated_beside_the_tensors(self):
        like = zeros(2)
        tensors.find_reader(like)
        out = allocation.allocate("out", (2, 3), "fp8_e4m3", like=like, stream=None)
        self.assertEqual((out.dtype, tuple(out.shape), out.device),
                         (torch.float8_e4m3fn, (2, 3), like.device))
        self.assertIsNone(allocation.workspace_for(0, None, like=like, stream=None))
        self.assertIs(allocation.workspace_for(8, out, like=like, stream=None), out)
        self.assertEqual(allocation.workspace_for(8, None, like=like, stream=None).numel(), 8)

    def test_a_call_on_the_host_is_no_trace(self):
        self.assertFalse(compiled_calls.is_compiling())
        with self.assertRaises(TensorError):
            attnjit.mla_decode(zeros(2, 1, 16, 576), zeros(9, 64, 1, 576), numbers(2, 4),
                               numbers(2), runtime=types.SimpleNamespace(device=0, handle=0))


unittest.main()
