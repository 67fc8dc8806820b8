import importlib.util
import unittest

import python_fixture  # noqa: F401  the package's place

if importlib.util.find_spec("torch") is None:
    raise SystemExit("skipped: torch is not installed")
import torch

if not torch.cuda.is_available():
    raise SystemExit("skipped: torch sees no CUDA device")

import attention_reference as reference
from attention_reference import PagedProblem
from attnjit import flash_mla


def latent_problem(seq_lens=(1, 63, 64, 700), **options):
    return PagedProblem(seq_lens, **{"heads": 16, "kv_heads": 1, "columns": 576,
                                     "columns_v": 512, **options})


def decode(problem, metadata, **options):
    return flash_mla.flash_mla_with_kvcache(
        problem.q, problem.k_cache, problem.block_table, problem.seq_lens, 512, metadata,
        causal=True, **options)


def expected(problem):
    """FlashMLA has +inf where nothing is visible."""
    out, lse = problem.expected()
    return out, torch.where(torch.isneginf(lse), float("inf"), lse)


class FlashMlaGpuTest(unittest.TestCase):
    def assert_equal_attention(self, given, wanted):
        out, lse = given
        torch.testing.assert_close(out.float(), wanted[0], atol=8e-3, rtol=1e-2)
        torch.testing.assert_close(lse, wanted[1], atol=1e-3, rtol=1e-4)

    def capture(self, calls):
        """A graph of `calls`, and what they return in it."""
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            returned = calls()
        return graph, returned

    def assert_graph_follows_lengths(self, problem, metadata):
        graph, returned = self.capture(lambda: [decode(problem, metadata) for _ in range(2)])
        for lengths in ((700, 64, 0, 1), (0, 0, 0, 0), (700, 700, 700, 700)):
            problem.seq_lens.copy_(torch.tensor(lengths))
            graph.replay()
            torch.cuda.synchronize()
            for layer in returned:
                self.assert_equal_attention(layer, expected(problem))

    def test_a_graph_with_an_object_of_its_own_follows_lengths(self):
        problem = latent_problem()
        decode(problem, flash_mla.get_mla_metadata()[0])  # makes the kernel
        self.assert_graph_follows_lengths(problem, flash_mla.get_mla_metadata()[0])

    def test_a_graph_with_an_object_that_was_used_before_follows_lengths(self):
        problem, metadata = latent_problem(), flash_mla.get_mla_metadata()[0]
        decode(problem, metadata)
        self.assert_graph_follows_lengths(problem, metadata)
        self.assert_equal_attention(decode(problem, metadata), expected(problem))

    def test_two_objects_take_turns(self):
        problems = [latent_problem(), latent_problem((700, 1, 64, 63))]
        objects = [flash_mla.get_mla_metadata()[0] for _ in problems]
        for _ in range(3):
            for problem, metadata in zip(problems, objects):
                self.assert_equal_attention(decode(problem, metadata), expected(problem))

    def test_objects_come_and_go(self):
        problem = latent_problem()
        results = [decode(problem, flash_mla.get_mla_metadata()[0]) for _ in range(50)]
        for result in results:
            self.assert_equal_attention(result, expected(problem))

    def test_lengths_that_change_under_an_object_give_right_results(self):
        problem, metadata = latent_problem(), flash_mla.get_mla_metadata()[0]
        decode(problem, metadata)
        problem.seq_lens.copy_(torch.tensor((700, 0, 1, 64)))
        self.assert_equal_attention(decode(problem, metadata), expected(problem))

    def test_more_query_tokens_than_a_decode_has(self):
        problem = latent_problem((129, 700), heads=8, seqlen_q=129)
        self.assert_equal_attention(decode(problem, flash_mla.get_mla_metadata()[0]),
                                    expected(problem))

    def test_sinks_of_a_dense_call_scale_the_output_alone(self):
        problem = latent_problem()
        sinks = torch.randn(16, device="cuda")
        out, lse = expected(problem)
        out = out * torch.sigmoid(lse - sinks[:, None]).transpose(1, 2).unsqueeze(-1)
        self.assert_equal_attention(
            decode(problem, flash_mla.get_mla_metadata()[0], attn_sink=sinks), (out, lse))

    def test_ragged_batches_and_packed_columns(self):
        offsets = torch.tensor([0, 1, 70, 300], dtype=torch.int32, device="cuda")
        qkv = torch.randn(300, 4, 192 + 192 + 128, device="cuda").bfloat16()
        q, k, v = qkv.split((192, 192, 128), -1)
        bounds = offsets.tolist()
        parts = [reference.attend(q[begin:end], k[begin:end], v[begin:end], 192 ** -0.5,
                                  reference.causal(end - begin, end - begin, "cuda"))
                 for begin, end in zip(bounds, bounds[1:])]
        wanted = (torch.cat([out for out, _ in parts]), torch.cat([lse for _, lse in parts], 1).T)
        self.assert_equal_attention(flash_mla.flash_attn_varlen_qkvpacked_func(
            qkv, offsets, 230, 192, causal=True), wanted)
        self.assert_equal_attention(flash_mla.flash_attn_varlen_kvpacked_func(
            q, qkv[..., 192:], offsets, offsets, 230, 230, 192, causal=True), wanted)

    def test_a_scale_of_0_weighs_all_keys_alike(self):
        problem, metadata = latent_problem((64,)), flash_mla.get_mla_metadata()[0]
        out, lse = decode(problem, metadata, softmax_scale=0.0)
        keys = problem.k_cache[problem.block_table[0].long()].flatten(0, 1).float()
        torch.testing.assert_close(out.float()[0, 0, 0], keys[:, 0, :512].mean(0), atol=8e-3,
                                   rtol=1e-2)
        torch.testing.assert_close(lse, torch.full_like(lse, 64.0).log(), atol=1e-3, rtol=0)


unittest.main()
