#!/usr/bin/env python3
"""attnjit without any framework: arrays are memory of the driver behind __cuda_array_interface__,
as CuPy's and Numba's are. Runs MLA decode and prefill, and holds both against plain Python.
"""

from __future__ import annotations

import ctypes
import math
import pathlib
import random
import struct
import sys
from typing import Callable, List, Sequence, Tuple

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "python"))

import attnjit  # noqa: E402

PAGE, HEADS = 64, 4
# Of an output's largest element, for fp16: 11 bits, and as many of the weights.
TOLERANCE = 4 * 2.0 ** -11
Matrix = List[List[float]]

cuda = ctypes.CDLL("libcuda.so.1")


def driver(name: str, *arguments: object) -> None:
    status = getattr(cuda, name)(*arguments)
    if status:
        raise RuntimeError(f"{name} failed with CUDA error {status}")


def open_device() -> None:
    device, context = ctypes.c_int(), ctypes.c_void_p()
    driver("cuInit", 0)
    driver("cuDeviceGet", ctypes.byref(device), 0)
    driver("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    driver("cuCtxSetCurrent", context)


class DeviceArray:
    """What attnjit sees of a CuPy array: the interface. fp16 is "<f2", int32 "<i4"."""

    _FORMATS = {"<f2": "e", "<f4": "f", "<i4": "i", "|u1": "B"}

    def __init__(self, typestr: str, shape: Sequence[int], values: Sequence[float] = ()) -> None:
        self._format = self._FORMATS[typestr]
        self._count = math.prod(shape)
        size = self._count * int(typestr[2])
        self._address = ctypes.c_uint64()
        driver("cuMemAlloc_v2", ctypes.byref(self._address), ctypes.c_size_t(max(size, 1)))
        if values:
            packed = struct.pack(f"{self._count}{self._format}", *values)
            driver("cuMemcpyHtoD_v2", self._address, packed, ctypes.c_size_t(size))
        self._size = size
        self.__cuda_array_interface__ = {"typestr": typestr, "shape": tuple(shape), "version": 3,
                                         "data": (self._address.value, False)}

    def values(self) -> Tuple[float, ...]:
        """Waits for all work on the default stream, and copies."""
        buffer = ctypes.create_string_buffer(self._size)
        driver("cuMemcpyDtoH_v2", buffer, self._address, ctypes.c_size_t(self._size))
        return struct.unpack(f"{self._count}{self._format}", buffer.raw)


def random_values(count: int) -> List[float]:
    """Numbers that fp16 holds exactly."""
    return [random.randrange(-128, 129) / 128 for _ in range(count)]


def rows_of(values: Sequence[float], columns: int) -> Matrix:
    return [list(values[at:at + columns]) for at in range(0, len(values), columns)]


def attend(q: Sequence[float], keys: Matrix, values: Matrix) -> Tuple[List[float], float]:
    """One query row over its keys: out and LSE."""
    scores = [sum(a * b for a, b in zip(q, key)) / math.sqrt(len(q)) for key in keys]
    largest = max(scores)
    weights = [math.exp(score - largest) for score in scores]
    total = sum(weights)
    out = [sum(weight * value[column] for weight, value in zip(weights, values)) / total
           for column in range(len(values[0]))]
    return out, largest + math.log(total)


def report(name: str, out: Matrix, lse: Sequence[float],
           expected: Callable[[int], Tuple[List[float], float]]) -> bool:
    """Holds every row of a result against expected(row)."""
    worst = 0.0
    for row, (values, value) in enumerate(zip(out, lse)):
        expected_out, expected_lse = expected(row)
        scale = max(map(abs, expected_out))
        worst = max(worst, abs(value - expected_lse) / 1e-3,
                    *(abs(a - b) / (TOLERANCE * scale) for a, b in zip(values, expected_out)))
    print(f"{name}: {len(out)} rows, {worst:.2f} of the tolerance")
    return worst <= 1


def decode(runtime: attnjit.Runtime) -> bool:
    """Latent decode: pages of 576 columns, whose first 512 are v."""
    lengths, table = [3, 70], [[2, -1], [0, 1]]
    q, pages = random_values(2 * HEADS * 576), random_values(3 * PAGE * 576)
    plan = runtime.prepare(attnjit.descriptors.mla_decode_descriptor(
        num_q_heads=HEADS, page_size=PAGE, dtype="fp16")).plan_decode(max_batch=2)
    seq_lens = DeviceArray("<i4", (2,), lengths)
    out, lse = DeviceArray("<f2", (2, 1, HEADS, 512)), DeviceArray("<f4", (2, HEADS, 1))
    plan.update(seq_lens)
    plan.run(q=DeviceArray("<f2", (2, 1, HEADS, 576), q),
             k_cache=DeviceArray("<f2", (3, PAGE, 1, 576), pages), seq_lens=seq_lens,
             block_table=DeviceArray("<i4", (2, 2), sum(table, [])), out=out, lse=lse,
             workspace=DeviceArray("|u1", (plan.workspace_bytes,)))
    tokens, queries = rows_of(pages, 576), rows_of(q, 576)

    def expected(row: int) -> Tuple[List[float], float]:
        request = row // HEADS
        keys = [tokens[table[request][at // PAGE] * PAGE + at % PAGE]
                for at in range(lengths[request])]
        return attend(queries[row], keys, [key[:512] for key in keys])

    return report("MLA decode", rows_of(out.values(), 512), lse.values(), expected)


def prefill(runtime: attnjit.Runtime) -> bool:
    """Prefill with k and v projected up: ragged, heads of 192 and 128 columns, causal."""
    offsets = [0, 5, 17]
    total = offsets[-1]
    q, k, v = (random_values(total * HEADS * width) for width in (192, 192, 128))
    kernel = runtime.prepare(attnjit.descriptors.prefill_descriptor(
        num_q_heads=HEADS, num_kv_heads=HEADS, head_dim_qk=192, head_dim_v=128, dtype="fp16"))
    out, lse = DeviceArray("<f2", (total, HEADS, 128)), DeviceArray("<f4", (HEADS, total))
    tensors = {
        "q": DeviceArray("<f2", (total, HEADS, 192), q),
        "k": DeviceArray("<f2", (total, HEADS, 192), k),
        "v": DeviceArray("<f2", (total, HEADS, 128), v), "out": out, "lse": lse,
        "q_offsets": DeviceArray("<i4", (3,), offsets),
        "kv_offsets": DeviceArray("<i4", (3,), offsets)}
    split = kernel.plan_prefill(**tensors)
    workspace = DeviceArray("|u1", (split.workspace_bytes,)) if split.workspace_bytes else None
    kernel.run_prefill(**tensors, split=split, workspace=workspace)
    queries, keys, values = rows_of(q, 192), rows_of(k, 192), rows_of(v, 128)

    def expected(row: int) -> Tuple[List[float], float]:
        token, head = divmod(row, HEADS)
        first = max(offset for offset in offsets if offset <= token)
        seen = [at * HEADS + head for at in range(first, token + 1)]
        return attend(queries[row], [keys[at] for at in seen], [values[at] for at in seen])

    by_token = [value for token in range(total) for value in lse.values()[token::total]]
    return report("MLA prefill", rows_of(out.values(), 128), by_token, expected)


def main() -> int:
    open_device()
    random.seed(11)
    runtime = attnjit.default_runtime()
    results = [decode(runtime), prefill(runtime)]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
