import importlib.util
import threading
import unittest

import python_fixture  # noqa: F401  the package's place

if importlib.util.find_spec("torch") is None:
    raise SystemExit("skipped: torch is not installed")
import torch

if not torch.cuda.is_available():
    raise SystemExit("skipped: torch sees no CUDA device")

import attention_reference as reference
from attention_reference import PagedProblem

import attnjit


def latent_problem(seq_lens=(1, 63, 64, 700), **options):
    return PagedProblem(seq_lens, **{"heads": 16, "kv_heads": 1, "columns": 576,
                                     "columns_v": 512, **options})


class GpuTest(unittest.TestCase):
    def assert_equal_attention(self, given, expected):
        out, lse = given
        torch.testing.assert_close(out.float(), expected[0], atol=8e-3, rtol=1e-2)
        torch.testing.assert_close(lse, expected[1], atol=1e-3, rtol=1e-4)

    def decode(self, problem, **options):
        return attnjit.mla_decode(problem.q, problem.k_cache, problem.block_table,
                                  problem.seq_lens, softmax_scale=problem.scale, **options)

    def test_mla_decode(self):
        for seqlen_q in (1, 2):
            problem = latent_problem((2, 63, 64, 700), seqlen_q=seqlen_q)
            self.assert_equal_attention(self.decode(problem), problem.expected())

    def test_decode_of_grouped_heads_with_its_default_scale(self):
        problem = PagedProblem((5, 130), heads=12, kv_heads=4, columns=128, columns_v=128,
                               page_size=16, dtype=torch.float16)
        self.assert_equal_attention(
            attnjit.paged_decode(problem.q, problem.k_cache, problem.v_cache,
                                 problem.block_table, problem.seq_lens), problem.expected())

    def test_layers_share_a_plan(self):
        first, second = latent_problem(), latent_problem()
        second.q = second.q.flip(0).contiguous()
        kernel = attnjit.default_runtime(0).prepare(
            attnjit.descriptors.mla_decode_descriptor(num_q_heads=16))
        plan = kernel.plan_decode(8)
        for update in (plan.update, plan.update_from_host):
            update(first.seq_lens)
            for layer in (first, second):
                self.assert_equal_attention(self.decode(layer, plan=plan), layer.expected())

    def test_a_side_stream_and_its_tensors(self):
        problem = latent_problem()
        torch.cuda.synchronize()
        with torch.cuda.stream(torch.cuda.Stream()):
            given = self.decode(problem)
        torch.cuda.synchronize()
        self.assert_equal_attention(given, problem.expected())

    def test_another_stream_wants_its_outputs(self):
        problem, stream = latent_problem(), torch.cuda.Stream()
        with self.assertRaisesRegex(attnjit.TensorError, "out: must be given where stream"):
            self.decode(problem, stream=stream)

    def test_a_graph_follows_lengths(self):
        problem = latent_problem()
        self.decode(problem)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            given = self.decode(problem)
        for lengths in ((700, 1, 2, 3), (5, 5, 600, 5)):
            problem.seq_lens.copy_(torch.tensor(lengths))
            problem.q.copy_(torch.randn_like(problem.q))
            graph.replay()
            torch.cuda.synchronize()
            self.assert_equal_attention(given, problem.expected())

    def test_a_cold_kernel_leaves_a_capture_valid(self):
        problem = latent_problem(heads=11)
        value = torch.ones(4, device="cuda")
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            with self.assertRaises(attnjit.ColdKernelError):
                self.decode(problem)
            doubled = value * 2
        value.fill_(3)
        graph.replay()
        torch.cuda.synchronize()
        self.assertEqual(doubled.tolist(), [6.0] * 4)

    def test_compiled_models_give_the_same_bits(self):
        problem = latent_problem()
        eager = self.decode(problem)
        for mode in ("default", "reduce-overhead"):
            compiled = torch.compile(lambda: self.decode(problem), fullgraph=True, mode=mode)
            for _ in range(3):
                out, lse = compiled()
                self.assertTrue(torch.equal(out, eager[0]) and torch.equal(lse, eager[1]), mode)

    def test_ragged_prefill_spreads_few_rows(self):
        lengths = ((3, 900), (70, 70), (1, 5))
        q_rows, kv_rows = (sum(pair[side] for pair in lengths) for side in (0, 1))
        q = torch.randn(q_rows, 8, 128, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(kv_rows, 2, 128, device="cuda", dtype=torch.bfloat16)
                for _ in range(2))
        offsets = [torch.tensor([0, *pair], device="cuda").cumsum(0).int()
                   for pair in zip(*lengths)]
        given = attnjit.prefill(q, k, v, q_offsets=offsets[0], kv_offsets=offsets[1])
        parts = [reference.attend(*(side.split(list(counts))[request] for side, counts in (
            (q, [pair[0] for pair in lengths]), (k, [pair[1] for pair in lengths]),
            (v, [pair[1] for pair in lengths]))), 128 ** -0.5,
            reference.causal(*lengths[request], "cuda")) for request in range(3)]
        self.assert_equal_attention(given, (torch.cat([out for out, _ in parts]),
                                            torch.cat([lse for _, lse in parts], dim=1)))

    def test_what_is_appended_is_attended_to(self):
        problem = latent_problem((1, 64, 65, 130))
        new = torch.randn(4, 1, 1, 576, device="cuda", dtype=torch.bfloat16)
        attnjit.append_kv_cache(new, None, problem.k_cache, None, seq_lens=problem.seq_lens,
                                block_table=problem.block_table)
        for request, length in enumerate(problem.seq_lens.tolist()):
            page = problem.block_table[request, (length - 1) // 64]
            self.assertTrue(torch.equal(problem.k_cache[page, (length - 1) % 64, 0],
                                        new[request, 0, 0]))
        self.assert_equal_attention(self.decode(problem), problem.expected())

    def test_parts_merge_into_the_whole(self):
        q = torch.randn(5, 4, 128, device="cuda", dtype=torch.bfloat16)
        k, v = (torch.randn(300, 4, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        offsets = torch.tensor([0, 5], device="cuda").int()
        outs, lses = zip(*(attnjit.prefill(
            q, k[part], v[part], q_offsets=offsets, causal=False,
            kv_offsets=torch.tensor([0, part.stop - part.start], device="cuda").int())
            for part in (slice(0, 100), slice(100, 300))))
        out, lse = attnjit.merge_attention_states(outs, [lse.T for lse in lses])
        self.assert_equal_attention(
            (out, lse.T), reference.attend(q, k, v, 128 ** -0.5,
                                           torch.ones(5, 300, dtype=torch.bool, device="cuda")))

    def test_token_sparse_decode(self):
        problem = latent_problem((256, 256))
        indices = torch.randperm(problem.k_cache.shape[0] * 64, device="cuda")[:256].int()
        indices = indices.reshape(2, 1, 128)
        indices[0, 0, 100:] = -1
        out, lse, max_logits = attnjit.sparse_mla_decode(problem.q, problem.k_cache, indices)
        for request, count in enumerate((100, 128)):
            rows = problem.k_cache.flatten(0, 1)[indices[request, 0, :count].long()]
            seen = torch.ones(1, count, dtype=torch.bool, device="cuda")
            self.assert_equal_attention(
                (out[request], lse[request]),
                reference.attend(problem.q[request], rows, rows[..., :512], 576 ** -0.5, seen))
        self.assertTrue(torch.all(max_logits <= lse))

    def test_threads_on_streams_of_their_own(self):
        problem = latent_problem()
        expected = self.decode(problem)
        torch.cuda.synchronize()
        wrong = []

        def work():
            with torch.cuda.stream(torch.cuda.Stream()):
                for _ in range(100):
                    out, _ = self.decode(problem)
                torch.cuda.current_stream().synchronize()
                if not torch.equal(out, expected[0]):
                    wrong.append(out)

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])

    @unittest.skipUnless(importlib.util.find_spec("cupy"), "CuPy is not installed")
    def test_arrays_of_cupy(self):
        import cupy
        problem = latent_problem(dtype=torch.float16)
        q, kv_cache, table, seq_lens = map(cupy.from_dlpack, (
            problem.q, problem.k_cache, problem.block_table, problem.seq_lens))
        kernel = attnjit.default_runtime(0).prepare(attnjit.descriptors.mla_decode_descriptor(
            num_q_heads=16, dtype="fp16"))
        plan = kernel.plan_decode(4)
        out = cupy.empty((4, 1, 16, 512), cupy.float16)
        lse = cupy.empty((4, 16, 1), cupy.float32)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            plan.update(seq_lens, stream=stream)
            plan.run(q=q, k_cache=kv_cache, block_table=table, seq_lens=seq_lens, out=out,
                     lse=lse, softmax_scale=problem.scale, stream=stream,
                     workspace=cupy.empty(plan.workspace_bytes, cupy.uint8))
            stream.synchronize()
        self.assert_equal_attention((torch.from_dlpack(out), torch.from_dlpack(lse)),
                                    problem.expected())


unittest.main()
