import dataclasses
import importlib.util
import sys
import unittest

import python_fixture

if importlib.util.find_spec("torch") is None:
    raise SystemExit("skipped: torch is not installed")
import torch

sys.path.insert(0, str(python_fixture.REPOSITORY / "tools" / "python" / "checks"))
import dense_decode_cases
import fp8_tokens
import sparse_decode_cases
import sparse_prefill_cases
from reference_module import ReferenceModule
from sparse_decode_cases import SparseDecodeCase
from sparse_prefill_cases import SparsePrefillCase
from tensor_comparison import Tolerance, compare

CPU = torch.device("cpu")
REFERENCE = ReferenceModule(torch.float32)
DENSE = dense_decode_cases.DenseCase(b=3, s_q=2, s_k=90, h_kv=2, varlen=True, h_q=4, causal=True,
                                     zero_lengths=True)
DECODE = SparseDecodeCase(d=512, h_q=4, b=3, s_q=2, pool=(90, 64, 5), extra_pool=(70, 16, 2),
                          has_counts=True, has_extra_counts=True, varlen=True)
PREFILL = SparsePrefillCase(d=576, h_q=4, s_q=5, s_kv=95, topk=128, has_sinks=True,
                            has_counts=True, some_see_nothing=True)


def problems(comparisons):
    return [problem for one in comparisons for problem in one.problems]


def run_dense(module, case=DENSE):
    return dense_decode_cases.run(module, case, torch.bfloat16, CPU, torch.float64)


def run_decode(module, case=DECODE):
    return sparse_decode_cases.run(module, case, 1, CPU, torch.float64)


def run_prefill(module, case=PREFILL):
    return sparse_prefill_cases.run(module, case, 1, CPU, torch.float64)


class Changed(ReferenceModule):
    """The reference, but for some arguments of calls over a cache."""

    def __init__(self, **changes):
        super().__init__(torch.float32)
        self._changes = changes

    def flash_mla_with_kvcache(self, *arguments, **keywords):
        return super().flash_mla_with_kvcache(*arguments, **{**keywords, **self._changes})


class GridTest(unittest.TestCase):
    def test_cases_are_as_many_as_documented(self):
        dense = dense_decode_cases.cases()
        self.assertEqual(len(dense), 2304 + 32)
        self.assertEqual(len(set(dense)), len(dense))
        decode = sparse_decode_cases.cases()
        self.assertEqual(sum(case.pool in sparse_decode_cases._POOLS for case in decode), 3680)
        self.assertEqual(len(sparse_prefill_cases.cases()), 120 + 448 // 2 + 36)

    def test_the_reference_agrees_with_itself(self):
        for comparisons in (run_dense(REFERENCE), run_decode(REFERENCE), run_prefill(REFERENCE)):
            self.assertEqual(problems(comparisons), [])

    def test_both_formats_and_lists_that_name_nothing(self):
        for changes in ({"none_named": True}, {"has_sinks": False, "zero_lengths": True},
                        {"d": 576, "extra_pool": None, "has_extra_counts": False}):
            self.assertEqual(
                problems(run_decode(REFERENCE, dataclasses.replace(DECODE, **changes))), [])

    def test_a_wrong_mask_scale_sink_or_length_is_seen(self):
        self.assertNotEqual(problems(run_dense(Changed(causal=False))), [])
        self.assertNotEqual(problems(run_dense(Changed(softmax_scale=0.5))), [])
        for change in ("attn_sink", "topk_length", "extra_topk_length"):
            self.assertNotEqual(problems(run_decode(Changed(**{change: None}))), [], change)

    def test_what_no_query_sees_is_poisoned(self):
        pages, table, lengths = dense_decode_cases._cache(3, 1, 90, 1, True, False, torch.bfloat16,
                                                          CPU)
        for row, length in zip(table, lengths):
            used = -(-length // 64)
            tokens = pages[row[:used].long()].flatten(0, 1)
            self.assertFalse(tokens[:length].isnan().any())
            self.assertTrue(tokens[length:].isnan().all())
            self.assertTrue((row[used:] == 2147480000).all())

    def test_tokens_are_read_as_they_were_written(self):
        tokens = torch.randn(3, 5, 576).clamp_(-1, 1).bfloat16()
        tokens[1, 2] = float("nan")
        for width, encode in ((576, fp8_tokens.encode_656), (512, fp8_tokens.encode_584)):
            pool = encode(tokens[..., :width])
            read = fp8_tokens.gather_tokens(pool, torch.arange(15))
            expected = tokens[..., :width].flatten(0, 1).float()
            self.assertTrue(torch.equal(read[7].isnan(), expected[7].isnan()))
            error = (read - expected).abs().nan_to_num(0)
            self.assertLessEqual(float(error.max()), 1 / 16)  # 3 bits of a fraction below 2
            self.assertEqual(float(error[:, -64:].max()), 0)

    def test_a_comparison_wants_specials_at_their_places(self):
        reference = torch.tensor([1.0, float("inf"), -float("inf")])
        tolerance = Tolerance(1e-3, 1e-3)
        self.assertEqual(compare("x", reference.clone(), reference, tolerance).problems, [])
        for wrong in ([1.1, float("inf"), -float("inf")], [1.0, float("inf"), 3.0],
                      [float("nan"), float("inf"), -float("inf")],
                      [1.0, -float("inf"), float("inf")]):
            self.assertNotEqual(
                compare("x", torch.tensor(wrong), reference, tolerance).problems, [])
        self.assertIn("must be", compare("x", reference[:2], reference, tolerance).problems[0])
        self.assertIn("must be", compare("x", reference.double(), reference,
                                         tolerance).problems[0])


unittest.main()
