"""Random inputs of the grid's calls, made where they are used. All follow from a seed."""

from __future__ import annotations

import math
import random
from typing import List, Optional, Sequence, Tuple

import torch

# A page that no cache has: a table's entries past a request's last page.
NO_PAGE = 2147480000


class Source:
    """Random numbers of one case, on the host and on `device`."""

    def __init__(self, seed: int, device: torch.device) -> None:
        self.device = device
        self._host = random.Random(seed)
        self._numbers = torch.Generator(device)
        self._numbers.manual_seed(seed)

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.randn(shape, dtype=dtype, device=self.device, generator=self._numbers)

    def uniform(self, *shape: int) -> torch.Tensor:
        return torch.rand(shape, device=self.device, generator=self._numbers)

    def integers(self, end: int, *shape: int) -> torch.Tensor:
        """int32 in [0, end)."""
        return torch.randint(end, shape, dtype=torch.int32, device=self.device,
                             generator=self._numbers)

    def permutation(self, count: int) -> torch.Tensor:
        return torch.randperm(count, dtype=torch.int64, device=self.device,
                              generator=self._numbers)

    def lengths(self, batch: int, mean: int, least: int, *, varies: bool,
                may_be_zero: bool = False) -> List[int]:
        """`mean` each, or normal about it with half of it for deviation; with `may_be_zero` each
        is 0 with probability a half."""
        lengths = [mean] * batch
        if varies:
            lengths = [max(int(self._host.normalvariate(mean, mean / 2)), least)
                       for _ in range(batch)]
        if may_be_zero:
            lengths = [0 if self._host.gauss(0, 1) > 0 else length for length in lengths]
        return lengths

    def sinks(self, heads: int) -> torch.Tensor:
        """fp32 [heads], normal; some three tenths are +inf, as many -inf."""
        sinks, kind = self.normal(heads), self.normal(heads)
        sinks[kind > 0.5] = math.inf
        sinks[kind < -0.5] = -math.inf
        return sinks

    def subsets(self, rows: int, lengths: torch.Tensor, size: int) -> Tuple[torch.Tensor,
                                                                           torch.Tensor]:
        """Per row `size` distinct numbers below its length, in random order, and which of them are
        any: fewer where the length is less. int64 and bool [rows, size]."""
        longest = max(int(lengths.max()), size, 1)
        places = torch.arange(longest, device=self.device)
        keys = self.uniform(rows, longest)
        keys.masked_fill_(places >= lengths.unsqueeze(1), 2.0)
        order = torch.argsort(keys, dim=1)[:, :size]
        return order, places[:size] < lengths.unsqueeze(1)


def table_of_pages(source: Source, batch: int, columns: int) -> torch.Tensor:
    """int32 [batch, columns]: every page once, in random order."""
    return source.permutation(batch * columns).view(batch, columns).int()


def unseen_tokens(table: torch.Tensor, lengths: torch.Tensor, page_size: int) -> torch.Tensor:
    """bool [pages, page_size] of a table's pages: the tokens at or past their request's length."""
    batch, columns = table.shape
    place = torch.arange(columns * page_size, device=table.device).view(columns, page_size)
    unseen = torch.empty((batch * columns, page_size), dtype=torch.bool, device=table.device)
    unseen[table.flatten().long()] = (place >= lengths.view(-1, 1, 1)).flatten(0, 1)
    return unseen


def spread(tensor: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
    """A copy within a larger tensor: each dimension one longer there, the last one by 128."""
    if tensor is None:
        return None
    larger = tensor.new_empty([extent + 1 for extent in tensor.shape[:-1]]
                              + [tensor.shape[-1] + 128])
    view = larger[tuple(slice(extent) for extent in tensor.shape)]
    view.copy_(tensor)
    return view


def ints(numbers: Sequence[int], device: torch.device) -> torch.Tensor:
    return torch.tensor(numbers, dtype=torch.int32, device=device)


def spoil_freed_memory(like: Sequence[Tuple[Tuple[int, ...], torch.dtype]],
                       device: torch.device) -> None:
    """Leaves NaN in the blocks that the next allocations of these shapes will get, so that a result
    of an earlier call cannot stand in for one that was not written."""
    blocks = [torch.full(shape, math.nan, dtype=dtype, device=device) for shape, dtype in like]
    del blocks
