import sys
import unittest
import unittest.mock

import python_fixture

import attnjit

MERGE = attnjit.descriptors.merge_states_descriptor(head_dim=64)


class RuntimeTest(python_fixture.MockDriverTest):
    def test_validation_lists_all_that_is_wrong(self):
        runtime = self.open_runtime()
        runtime.validate(MERGE)
        with self.assertRaises(attnjit.InvalidDescriptorError) as caught:
            runtime.validate({"head_dim_qk": 100, "head_dim_v": 100})
        self.assertEqual(caught.exception.status, 2)
        self.assertEqual([violation["field"] for violation in caught.exception.violations],
                         ["head_dim_qk", "head_dim_v"])
        self.assertIn("must be a multiple of 8", caught.exception.violations[0]["rule"])
        self.assertIn("head_dim_v = 100", caught.exception.message)
        self.assertIsInstance(caught.exception, ValueError)

    def test_a_descriptor_may_be_json(self):
        runtime = self.open_runtime()
        runtime.validate('{"head_dim_qk": 64, "head_dim_v": 64}')
        with self.assertRaises(attnjit.InvalidDescriptorError):
            runtime.validate('{"head_dim_qk": ')

    def test_warming_fills_the_cache_and_finds_it_full(self):
        runtime = self.open_runtime()
        descriptor = attnjit.descriptors.merge_states_descriptor(head_dim=72)
        self.assertEqual(runtime.warm(descriptor, "sm_90a"), 1)
        self.assertEqual(runtime.warm(descriptor, "sm_90a"), 0)

    def test_sources_are_whole(self):
        source = self.open_runtime().source(MERGE, "sm_90a")
        for part in ("__global__", "constexpr int head_dim_v = 64;"):
            self.assertIn(part, source)
        self.assertNotIn("\0", source)

    def test_a_kernel_is_cold_until_it_is_prepared(self):
        runtime = self.open_runtime()
        self.assertTrue(runtime.is_cold(MERGE))
        kernel = runtime.prepare(MERGE)
        self.assertFalse(runtime.is_cold(MERGE))
        self.assertEqual(kernel.descriptor, MERGE)

    def test_a_kernel_that_may_not_be_compiled_is_missing(self):
        runtime = self.open_runtime(forbid_jit=True)
        with self.assertRaises(attnjit.MissingKernelError):
            runtime.prepare(attnjit.descriptors.merge_states_descriptor(head_dim=80))

    def test_misses_are_told(self):
        misses = []
        runtime = self.open_runtime(on_miss=misses.append)
        runtime.warm(attnjit.descriptors.merge_states_descriptor(head_dim=88), "sm_90a")
        self.assertEqual([(miss.kernel, miss.arch, miss.reason) for miss in misses],
                         [("merge_states", "sm_90a", "absent")])

    def test_a_capture_refuses_what_is_cold_and_gives_what_is_ready(self):
        runtime = self.open_runtime()
        warm, cold = (attnjit.descriptors.merge_states_descriptor(head_dim=head_dim)
                      for head_dim in (96, 104))
        runtime.prepare(warm)
        self.capture()
        runtime.prepare(warm, stream=16)
        with self.assertRaises(attnjit.ColdKernelError):
            runtime.prepare(cold, stream=16)

    def test_plans_use_the_memory_of_the_callers_functions(self):
        given, taken = [], []

        def allocate(device, size):
            given.append((device, size))
            return (1 << 60) + 4096 * len(given)

        runtime = self.open_runtime(
            allocate=allocate, release=lambda device, address, size: taken.append((device, size)))
        plan = runtime.prepare({"max_seqlen_q": 1}).plan_decode(4)
        self.assertTrue(given)
        self.assertEqual(taken, [])
        del plan
        self.assertEqual(sorted(taken), sorted(given))

    def test_what_log_on_miss_and_release_raise_is_printed_and_the_call_goes_on(self):
        ignored = []

        def fail(*_):
            raise ValueError("of the callback")

        with unittest.mock.patch.object(sys, "unraisablehook",
                                        lambda given: ignored.append(given.exc_type)):
            runtime = self.open_runtime(on_miss=fail)
            descriptor = attnjit.descriptors.merge_states_descriptor(head_dim=112)
            self.assertEqual(runtime.warm(descriptor, "sm_90a"), 1)
            runtime = self.open_runtime(log=fail, cache_directory="/dev/null/x")
            with self.assertRaises(attnjit.NotStoredError):
                runtime.warm(descriptor, "sm_90a")
            count = len(ignored)
            self.assertGreaterEqual(count, 2)
            runtime = self.open_runtime(allocate=lambda device, size: 1 << 60, release=fail)
            plan = runtime.prepare({"max_seqlen_q": 1}).plan_decode(4)
            del plan
            self.assertGreater(len(ignored), count)
        self.assertEqual(set(ignored), {ValueError})
        self.assertIn("sys.unraisablehook", attnjit.Runtime.__doc__)

    def test_wrong_options_are_named(self):
        with self.assertRaisesRegex(attnjit.InvalidArgumentError, "cache_sharing = 'all'"):
            attnjit.Runtime(cache_sharing="all")
        with self.assertRaisesRegex(attnjit.InvalidArgumentError, "given both, or neither"):
            attnjit.Runtime(allocate=lambda device, size: 0)
        with self.assertRaises(attnjit.AttnjitError):
            attnjit.Runtime(templates="/nowhere")

    def test_one_default_runtime_serves_a_device(self):
        self.assertIs(attnjit.default_runtime(0), attnjit.default_runtime(0))
        self.assertIsNot(attnjit.default_runtime(0), attnjit.default_runtime(1))


unittest.main()
