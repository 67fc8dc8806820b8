"""The two formats of cached tokens in fp8, written and read.

656 bytes, a row each: 512 e4m3, 4 fp32 scales of 128 of them each, 64 columns of rope in bf16.
584 bytes, planar within a page: of every token 448 e4m3 and 64 columns of rope in bf16, then of
every token 7 scales of 64 columns each as exponents (e8m0), and a byte of padding.
"""

from __future__ import annotations

import torch

ROW_BYTES_584 = 576
_E4M3 = torch.float8_e4m3fn
_LARGEST = 448.0
_SMALLEST_SCALE = 1e-4
_BIAS = 127
_NAN_EXPONENT = 255


def _scaled(columns: torch.Tensor, tile: int) -> tuple:
    """Bytes [..., n] of e4m3, and scales [..., n / tile]: powers of two that fit the largest."""
    tiles = columns.float().unflatten(-1, (-1, tile))
    largest = tiles.abs().amax(-1)
    scales = torch.exp2(torch.ceil(torch.log2(torch.clamp_min(largest / _LARGEST,
                                                              _SMALLEST_SCALE))))
    codes = (tiles / scales.unsqueeze(-1)).to(_E4M3)
    return codes.flatten(-2).view(torch.uint8), scales


def _bytes_of(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.contiguous().view(torch.uint8)


def encode_656(tokens: torch.Tensor) -> torch.Tensor:
    """A pool uint8 [pages, page_size, 1, 656] of tokens bf16 [pages, page_size, 576]. Pages lie one
    row more apart than they need to."""
    pages, page_size, _ = tokens.shape
    pool = torch.zeros((pages, page_size + 1, 656), dtype=torch.uint8, device=tokens.device)
    pool = pool[:, :page_size]
    codes, scales = _scaled(tokens[..., :512], 128)
    pool[..., :512] = codes
    pool[..., 512:528] = _bytes_of(scales)
    pool[..., 528:] = _bytes_of(tokens[..., 512:])
    return pool.unsqueeze(2)


def _planes_584(pool: torch.Tensor) -> tuple:
    """Rows [pages, page_size, 576] and scales [pages, page_size, 8] of a pool."""
    pages, page_size, stride = pool.shape[0], pool.shape[1], pool.stride(0)
    start = pool.storage_offset()
    rows = pool.as_strided((pages, page_size, ROW_BYTES_584), (stride, ROW_BYTES_584, 1), start)
    scales = pool.as_strided((pages, page_size, 8), (stride, 8, 1),
                             start + page_size * ROW_BYTES_584)
    return rows, scales


def encode_584(tokens: torch.Tensor) -> torch.Tensor:
    """A pool uint8 [pages, page_size, 1, 584] of tokens bf16 [pages, page_size, 512]. Pages are
    padded to multiples of 576 bytes."""
    pages, page_size, _ = tokens.shape
    stride = -(-page_size * 584 // ROW_BYTES_584) * ROW_BYTES_584
    storage = torch.zeros((pages, stride), dtype=torch.uint8, device=tokens.device)
    pool = storage.as_strided((pages, page_size, 1, 584), (stride, 584, 584, 1))
    rows, exponents = _planes_584(pool)
    codes, scales = _scaled(tokens[..., :448], 64)
    rows[..., :448] = codes
    rows[..., 448:] = _bytes_of(tokens[..., 448:])
    exponents[..., :7] = torch.where(scales.isnan(), _NAN_EXPONENT,
                                     torch.log2(scales) + _BIAS).to(torch.uint8)
    return pool


def _unscaled(codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
    values = codes.contiguous().view(_E4M3).float()
    tiles = values.unflatten(-1, (scales.shape[-1], -1))
    return (tiles * scales.unsqueeze(-1)).flatten(-2)


def _rope(columns: torch.Tensor) -> torch.Tensor:
    return columns.contiguous().view(torch.bfloat16).float()


def gather_tokens(pool: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """The tokens [..., d] that `indices`, int64, name: fp32 of bytes, else as they are."""
    page, row = indices // pool.shape[1], indices % pool.shape[1]
    if pool.element_size() > 1:
        return pool[page, row, 0]
    pool = pool.view(torch.uint8)
    if pool.shape[-1] == 656:
        token = pool[page, row, 0]
        scales = token[..., 512:528].contiguous().view(torch.float32)
        return torch.cat([_unscaled(token[..., :512], scales), _rope(token[..., 528:])], -1)
    rows, exponents = _planes_584(pool)
    token, exponent = rows[page, row], exponents[page, row, :7].int()
    scales = torch.where(exponent == _NAN_EXPONENT, torch.nan,
                         torch.exp2((exponent - _BIAS).float()))
    return torch.cat([_unscaled(token[..., :448], scales), _rope(token[..., 448:])], -1)
