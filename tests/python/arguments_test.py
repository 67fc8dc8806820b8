import os
import pathlib
import types
import unittest

import python_fixture  # noqa: F401  the package's place
from fake_arrays import CudaArray

from attnjit import (InvalidArgumentError, InvalidDescriptorError, TensorError, TensorView,
                     _arguments, _structs, descriptors)
from attnjit._call_buffer import CallBuffer, MergeBuffer, buffers
from attnjit.streams import stream_handle


class Indexed:
    """As NumPy's integers are: no int, with __index__."""

    def __init__(self, number):
        self.number = number

    def __index__(self):
        return self.number


class Bool:
    """As NumPy's bool is: no __index__."""

    shape = ()

    def __init__(self, value):
        self.value = value

    def item(self):
        return self.value


class TextTest(unittest.TestCase):
    def test_text_is_utf_8_without_nul(self):
        self.assertEqual(_arguments.text("arch", "sm_90ä"), "sm_90ä".encode())
        for value, rule in (("sm_90a\0zzz", "must have no NUL"), ("\udc80", "Unicode text"),
                            (None, "must be a str"), (b"sm_90a", "must be a str")):
            with self.assertRaisesRegex(InvalidArgumentError, f"^arch = .*{rule}.*; "):
                _arguments.text("arch", value)

    def test_paths_are_what_open_takes(self):
        for value in ("/tmp/ä", b"/tmp/\xff", os.fsdecode(b"/tmp/\xff"), pathlib.Path("/tmp/a")):
            self.assertEqual(_arguments.path("nvrtc", value), os.fsencode(value))
        for value in ("/tmp/a\0b", b"/tmp/a\0b", pathlib.PurePosixPath("a\0b"), 5, None, "\ud800"):
            with self.assertRaisesRegex(InvalidArgumentError, "^nvrtc = .*: must .*; "):
                _arguments.path("nvrtc", value)

    def test_a_sequence_of_paths_is_not_one_path(self):
        self.assertEqual(_arguments.paths("cache_layers", ["/a", b"/b"]), [b"/a", b"/b"])
        for value in ("/opt/x", b"/opt/x", pathlib.Path("/opt/x"), None, 5):
            with self.assertRaisesRegex(InvalidArgumentError,
                                        r"must be a sequence of paths; write cache_layers=\[…\]"):
                _arguments.paths("cache_layers", value)
        with self.assertRaisesRegex(InvalidArgumentError, r"^cache_layers\[1\] = None: must"):
            _arguments.paths("cache_layers", ["/a", None])


class NumbersTest(unittest.TestCase):
    def test_integers_have_their_range_and_any_type_of_theirs(self):
        for value in (7, True, Indexed(7), Bool(True)):
            _arguments.integer("device", value, 0, 7, "…")
        for value in (8, -1, 2**64, Indexed(8), 7.0, "7", None, Bool(7.0)):
            with self.assertRaisesRegex(InvalidArgumentError, "^device = .* from 0 to 7; do this"):
                _arguments.integer("device", value, 0, 7, "do this")

    def test_flags_are_true_or_false(self):
        self.assertIs(_arguments.flag("forbid_jit", Bool(True)), True)
        self.assertIs(_arguments.flag("forbid_jit", 0), False)
        for value in (2, 2**32, "yes", None):
            with self.assertRaisesRegex(InvalidArgumentError, "^forbid_jit = .* True or False"):
                _arguments.flag("forbid_jit", value)

    def test_streams_are_numbers_of_64_bits(self):
        self.assertEqual(stream_handle(Indexed(16), 0, of_torch=False), 16)
        for stream in (-1, 2**64, 2.0, types.SimpleNamespace(cuda_stream=-1),
                       types.SimpleNamespace(__cuda_stream__=(0,))):
            with self.assertRaisesRegex(InvalidArgumentError, "^stream = "):
                stream_handle(stream, 0, of_torch=False)

    def test_views_have_numbers_that_a_tensor_may_have(self):
        for name, arguments in (("pointer", ("x", "bf16", (2,))), ("pointer", (-1, "bf16", (2,))),
                                (r"shape\[0\]", (0, "bf16", (-2,))),
                                (r"strides\[1\]", (0, "bf16", (2, 2), (2, "x"))),
                                (r"strides\[0\]", (0, "bf16", (2,), (2**70,))),
                                ("shape", (0, "bf16", 5))):
            with self.assertRaisesRegex(InvalidArgumentError, f"^{name} = .*: must be "):
                TensorView(*arguments)
        with self.assertRaisesRegex(InvalidArgumentError, "^device = 4294967296"):
            TensorView(0, "bf16", (2,), device=2**32)
        with self.assertRaisesRegex(TensorError, r"dtype \['bf16'\]: must be one of"):
            TensorView(0, ["bf16"], (2,))

    def test_descriptors_are_computed_of_integers(self):
        for arguments in ({"window_left": None}, {"window_left": "7"}, {"kv_lora_rank": "512"}):
            name = next(iter(arguments))
            with self.assertRaisesRegex(InvalidArgumentError, f"^{name} = "):
                descriptors.mla_decode_descriptor(num_q_heads=16, **arguments)


class DescriptorTest(unittest.TestCase):
    def test_numbers_may_be_of_other_libraries(self):
        self.assertEqual(_arguments.descriptor_json({"topk": Indexed(8), "has_sinks": Bool(True)}),
                         b'{"topk": 8, "has_sinks": true}')
        self.assertEqual(
            _arguments.descriptor_json(types.MappingProxyType({"mask": "causal"})),
            b'{"mask": "causal"}')

    def test_json_goes_as_it_is(self):
        self.assertEqual(_arguments.descriptor_json('{"a":1,"a":2}'), b'{"a":1,"a":2}')

    def test_what_is_no_descriptor_says_what_is_wrong(self):
        circular = {}
        circular["mask"] = circular
        for value, field in ((None, "descriptor"), (b"{}", "descriptor"), ("\udc80", "descriptor"),
                             ("{}\0x", "descriptor"), ([("topk", 1)], "descriptor"),
                             (pathlib.Path("a.json"), "descriptor"), (circular, "mask"),
                             ({"topk": object()}, "topk"), ({(1, 2): 3}, r"\(1, 2\)")):
            with self.assertRaisesRegex(InvalidDescriptorError, f"^{field} = .*; fix: ") as caught:
                _arguments.descriptor_json(value)
            self.assertEqual(list(caught.exception.violations[0]),
                             ["field", "value", "rule", "fix"])

    def test_further_fields_are_an_object_with_each_field_once(self):
        self.assertEqual(_arguments.further_fields('{"topk": 0}'), {"topk": 0})
        self.assertEqual(_arguments.further_fields(None), {})
        for value, message in (
                ('{"page_size":64,"page_size":3}', "page_size = 3: is given more than once"),
                ("[]", "must be a JSON object"), ("0", "must be a JSON object"),
                ("[1]", "must be a JSON object"), ("garbage", "is not JSON"), ("", "is not JSON"),
                ("[" * 100000, "is not JSON"), (0, "must be a mapping"), ([], "must be a mapping"),
                (b"{}", "must be a mapping")):
            with self.assertRaisesRegex(InvalidDescriptorError, message):
                _arguments.further_fields(value)


class CallArgumentsTest(unittest.TestCase):
    def setUp(self):
        self.buffer = CallBuffer(_structs.DecodeCall)

    def test_a_tensor_that_was_refused_half_written_leaves_nothing(self):
        good = CudaArray("fp16", (2, 3))
        bad = CudaArray("fp16", (999, 3), (3, 1))
        q = _structs.DecodeCall.from_address(self.buffer.address).q
        for strides in ((6, "x"), (6, 2**70)):
            bad.__cuda_array_interface__["strides"] = strides
            for before in ({"q": good}, {}):
                self.buffer.fill(before, 0)
                with self.assertRaisesRegex(TensorError, "^q has a shape, strides or address"):
                    self.buffer.fill({"q": bad}, 0)
                self.buffer.fill({"out": good}, 0)
                self.assertFalse(any(bytes(q)))
                self.buffer.fill(before, 0)
                with self.assertRaises(TensorError):
                    self.buffer.fill({"q": bad}, 0)
                self.buffer.fill({"q": good}, 0)
                self.assertEqual((q.shape[:2], q.strides[:2]), ([2, 3], [3, 1]))

    def test_a_scale_of_nothing_is_no_default(self):
        call = _structs.DecodeCall.from_address(self.buffer.address)
        self.buffer.set_scale(None)
        self.assertEqual(call.softmax_scale, 0)
        for scale in (0.0, -0.0, 0, 1e-50, -1e-50):
            self.buffer.set_scale(scale)
            self.assertTrue(0 < call.softmax_scale < 1e-36)
        self.buffer.set_scale(-0.5)
        self.assertEqual(call.softmax_scale, -0.5)
        for scale in ("1", [1], 1j, 10**400):
            with self.assertRaisesRegex(InvalidArgumentError, "^softmax_scale = .*that fp32 holds"):
                self.buffer.set_scale(scale)

    def test_read_only_arrays_are_read_and_not_written(self):
        array = CudaArray("fp16", (2, 3), is_readonly=True)
        for tensor in (array, TensorView.of(array)):
            for kind, buffer, written in (
                    (_structs.DecodeCall, buffers.decode, {"out", "lse"}),
                    (_structs.PrefillCall, buffers.prefill, {"out", "lse"}),
                    (_structs.SparseMlaCall, buffers.sparse_mla, {"out", "lse", "max_logits"}),
                    (_structs.AppendKvCacheCall, buffers.append, {"k_cache", "v_cache"}),
                    (_structs.MergeStatesCall, buffers.merge, {"out", "lse"})):
                for name in (field[0] for field in kind._fields_ if field[1] is _structs.Tensor):
                    if name not in written:
                        buffer.fill({name: tensor}, 0)
                        continue
                    buffer.fill({name: CudaArray("fp16", (2, 3))}, 0)
                    with self.assertRaisesRegex(TensorError, f"^{name} is marked read-only .*: "
                                                "must be writable, .*; give a writable array"):
                        buffer.fill({name: tensor}, 0)
            buffers.merge.fill_partials([(tensor, tensor)], 0)

    def test_errors_of_tensors_name_them(self):
        broken = CudaArray("fp16", (2,))
        del broken.__cuda_array_interface__["typestr"]
        with self.assertRaisesRegex(TensorError, "^q has .*KeyError"):
            self.buffer.fill({"q": broken}, 0)
        with self.assertRaisesRegex(TensorError, "^workspace is a builtins.list: must be"):
            self.buffer.workspace([1])
        with self.assertRaisesRegex(TensorError, "^workspace has strides"):
            self.buffer.workspace(CudaArray("uint8", (4,), (2,)))

    def test_parts_of_a_merge_are_pairs(self):
        buffer = MergeBuffer()
        view = TensorView(4096, "fp32", (2,))
        for parts, message in ((None, "^partials is a NoneType"), (view, "^partials is a Tensor"),
                               ([view], r"^partials\[0\] is a TensorView"),
                               ([(view,)], r"^partials\[0\] has 1 tensors: must be a pair")):
            with self.assertRaisesRegex(TensorError, message):
                buffer.fill_partials(parts, 0)


unittest.main()
