"""What public kernels use of NKI's private modules."""

from __future__ import annotations

from enum import Enum
from typing import Any

from trnsim import collectives, loops, nisa
from trnsim.calls import DONE, Call, dma, not_supported, source
from trnsim.errors import fail
from trnsim.session import current
from trnsim.tensor import Register, Tensor, begin

__all__ = ["NormType", "cc_div", "core_barrier", "sendrecv", "sync_program"]

MEMCPY = Call("nisa._tiled_offloaded_memcpy", src="src", dst="dst")
FMA = Call("nisa._tiled_offloaded_fma", src="srcs", dst="dst", sources="srcs")


def _given(call: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The destination, by keyword, and all sources."""
    dst = next((kwargs[n] for n in ("dst", "dest", "out", "output") if n in kwargs), None)
    sources: list[Any] = []
    for value in list(args) + [v for n, v in kwargs.items() if n not in ("dst", "dest", "out")]:
        parts = value if isinstance(value, (list, tuple)) else [value]
        sources += [part for part in parts if isinstance(part, Tensor)]
    if dst is None:
        if call == MEMCPY.name and len(sources) == 2:
            dst, sources = sources[0], sources[1:]  # the order of dma_copy
        else:
            fail(call, "dst", None, "a destination by keyword")
    return dst, [s for s in sources if s is not dst]


def _tiled_offloaded_memcpy(*args: Any, **kwargs: Any) -> Any:
    """A copy by the DMA engines."""
    dst, sources = _given(MEMCPY.name, args, kwargs)
    if len(sources) != 1:
        fail(MEMCPY.name, "src", len(sources), "one source")
    builder = begin()
    nisa.check_dma(MEMCPY.name, sources[0], dst)
    dma(builder, MEMCPY, dst, sources[0])
    return DONE


def _tiled_offloaded_fma(*args: Any, **kwargs: Any) -> Any:
    """A scaled sum by the DMA engines; scales are 1."""
    dst, sources = _given(FMA.name, args, kwargs)
    builder = begin()
    for t in sources:
        nisa.check_dma(FMA.name, t, dst)
    nisa.emit_dma_add(builder, FMA.name, FMA, dst, sources, None)
    return DONE


class NormType(Enum):
    """Normalisations of the private kernels."""

    NO_NORM = 0
    RMS_NORM = 1
    LAYER_NORM = 2
    RMS_NORM_SKIP_GAMMA = 3


def core_barrier(*args: Any, **kwargs: Any) -> Any:
    """Waits until both cores of a logical core are here."""
    return nisa.core_barrier()


def sendrecv(*args: Any, src: Any = None, dst: Any = None, **kwargs: Any) -> Any:
    """Swaps tiles with the other core."""
    given = [a for a in args if isinstance(a, Tensor)]
    if len(given) == 2:
        src, dst = given
    peer = kwargs.get("send_to_rank", 1 - int(getattr(current(), "core", 0)))
    return nisa.sendrecv(src, dst, peer, kwargs.get("recv_from_rank"))


def cc_div(a: Any, b: Any, *args: Any, **kwargs: Any) -> Any:
    """A quotient of known numbers; how it rounds is not documented."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        from trnsim import nl

        return nl.divide(a, b)
    if a % b:
        fail("private_api.cc_div", "a", a, f"a multiple of {b}")
    return a // b


def sync_program(*args: Any, **kwargs: Any) -> Any:
    """Waits for the grid's other programs, and gives its arguments' iterations, in order.

    Nothing on it is published but its name and that it stands among the iterators, so both uses
    are our reading: `sync_program()` as a barrier, `for i in sync_program(n)` as a sequential
    loop. Programs of one core run one after the other, and have nothing to wait for.
    """
    if current().cores > 1:
        nisa.core_barrier()
    if args and all(isinstance(a, (int, Register)) for a in args):
        return loops.sequential_range(*args)
    return DONE


_UNKNOWN = "a private kernel of AWS's library, on whose arguments nothing is published"
attention_kernel = not_supported("private_api.attention_kernel", _UNKNOWN)
column_tiled_mm_kernel = not_supported("private_api.column_tiled_mm_kernel", _UNKNOWN)
row_tiled_mm_kernel = not_supported("private_api.row_tiled_mm_kernel", _UNKNOWN)
mlp_kernel = not_supported("private_api.mlp_kernel", _UNKNOWN)
mlp_fused_add_kernel = not_supported("private_api.mlp_fused_add_kernel", _UNKNOWN)
qkv_kernel = not_supported("private_api.qkv_kernel", _UNKNOWN)
qkv_fused_add_kernel = not_supported("private_api.qkv_fused_add_kernel", _UNKNOWN)
rmsnorm_qkv_isa_kernel = not_supported("_private_kernels.qkv.rmsnorm_qkv_isa_kernel", _UNKNOWN)
_TOOL = "belongs to AWS's compiler, which trn-sim takes the place of"
CompileOptions = not_supported("nki.compiler.ncc_driver.CompileOptions", _TOOL)
CompiledKernel = not_supported("nki.compiler.ncc_driver.CompiledKernel", _TOOL)
do_while = not_supported("private_api.do_while", "use nl.while_loop")

all_gather = collectives.all_gather
all_reduce = collectives.all_reduce
reduce_scatter = collectives.reduce_scatter
collective_permute = collectives.collective_permute
