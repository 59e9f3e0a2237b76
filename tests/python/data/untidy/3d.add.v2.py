"""A name with dots and a leading digit; imports what is not installed."""

import torch
import torch.nn.functional as F
import jax.numpy as jnp
from torch_xla.core import xla_model as xm
from ml_dtypes import bfloat16

import nki
import nki.isa as nisa
import nki.language as nl


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    @torch.no_grad()
    def forward(self, x: torch.Tensor) -> "torch.Tensor | None":
        return F.relu(self.linear(x))


@nki.jit
def add(a, b, dtype=bfloat16):
    """Adds two tensors of one tile."""
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    left = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    right = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=left, src=a)
    nisa.dma_copy(dst=right, src=b)
    nisa.tensor_tensor(dst=left, data1=left, data2=right, op=nl.add)
    nisa.dma_copy(dst=out, src=left)
    return out


@nki.jit
def scaled_by_torch(a):
    return a * torch.tensor(3.0).item()


@nki.jit
def branches_on_torch(a):
    if torch.cuda.is_available():
        return a
    return None
