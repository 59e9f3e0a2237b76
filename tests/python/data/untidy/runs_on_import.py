"""Runs a demonstration when imported, on tensors of a package that may be missing."""

import sys

import torch

import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def copy(a):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=a)
    nisa.dma_copy(dst=out, src=tile)
    return out


device = torch.device("cpu")
x = torch.rand((128, 64), dtype=torch.float32).to(device)
y = copy(x)
assert torch.allclose(x, y), "never"
print("largest difference", (x - y).abs().max())
for row in y:
    print(row)
undefined_name + 1
sys.exit(3)


@nki.jit
def after_the_exit(a):
    return copy(a)


if __name__ == "__main__":
    raise RuntimeError("a guard is not executed")
