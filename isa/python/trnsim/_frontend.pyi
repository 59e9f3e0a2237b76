"""The kernel builder of isa/frontend, as Python sees it.

Dtypes are the ISA's names ("fp32", "tf32", "bf16", "fp16", "fp8_e3m4", "fp8_e4m3", "fp8_e5m2",
"int32", "uint32", "int16", "uint16", "int8", "uint8"), memories "hbm", "sbuf", "psum", engines
"tensor", "vector", "scalar", "gpsimd", "sync" or None (the builder chooses). Wrong use raises
TraceError (a ValueError); its text names the kernel's file:line, the call, the operand, the value
and the limit. Too much for SBUF or PSUM raises CapacityError, when the builder finishes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

class TraceError(ValueError): ...
class CapacityError(TraceError): ...

class Slice:
    """`nl.ds(start, size)`, with an optional step."""

    start: int
    size: int
    step: int
    def __init__(self, start: int, size: int, step: int = 1) -> None: ...

class Register:
    """A 32-bit register of every sequencer (each engine keeps its own copy)."""

class View:
    """A part of a tensor: dimensions with strides over its storage. Costs nothing to make."""

    shape: tuple[int, ...]
    dtype: str
    memory: str
    name: str
    strides: tuple[int, ...]  # elements; 0 for the partition dimension of an on-chip tensor
    offset: int  # elements, within a partition when on chip
    partition: int  # first partition; 0 in HBM
    partition_dim: int  # index in shape of the partition dimension; -1: none (HBM)
    ndim: int
    size: int
    contiguous: bool
    storage: int  # equal for views of one tensor

    # ints, slices with step > 0, Slice, Ellipsis and None; one of them or a tuple. An int drops its
    # dimension, but the partition dimension keeps size 1. Slices are clamped as Python's are.
    def __getitem__(self, key: Any) -> View: ...
    # element[i0, i1, ...] is at index base[d] + sum(i_a * axes[a][1][d]) of dimension d. This is
    # what arange and mgrid come to. axes: (size, step for each dimension of this view).
    def affine(self, base: Sequence[int], axes: Sequence[tuple[int, Sequence[int]]]) -> View: ...
    def reshape(self, shape: Sequence[int]) -> View: ...  # one -1 allowed
    def permute(self, dims: Sequence[int]) -> View: ...
    def broadcast_to(self, shape: Sequence[int]) -> View: ...
    def expand_dim(self, dim: int) -> View: ...
    def squeeze_dim(self, dim: int) -> View: ...
    def retype(self, dtype: str) -> View: ...  # same bits; the innermost dimension is rescaled
    # pattern: [[stride, count], ...] in elements of dtype, outermost first, over the whole storage.
    # On chip the first stride steps over partitions (its value must be one partition's elements).
    def ap(
        self, pattern: Sequence[Sequence[int]], offset: int | None = None, dtype: str | None = None
    ) -> View: ...

class Builder:
    """Makes one core's program. Calls come in program order; nothing is computed."""

    def __init__(self, name: str, options: Mapping[str, Any] = {}) -> None: ...

    # Frames of files under these folders are not the kernel's: places name the caller's line.
    def hide_frames(self, folder: str) -> None: ...
    # kind: "input", "output", "weight", "constant", "internal". On chip, shape[partition_dim] is
    # spread over partitions and the dimensions left of it are blocks along the free axis.
    # address: (partition, byte) fixes the place; None lets the builder find one.
    def tensor(
        self,
        memory: str,
        shape: Sequence[int],
        dtype: str,
        *,
        name: str = "",
        kind: str = "internal",
        partition_dim: int = 0,
        address: tuple[int, int] | None = None,
    ) -> View: ...
    # Forgets the tensor: a use after this is an error ("released"), e.g. at the end of a scope.
    def release(self, view: View) -> None: ...

    # `call` names the API call for messages: call("nisa.tensor_tensor", src0="data1", ...) says
    # which parameter of the call each operand of the instruction comes from. Make it once.
    @staticmethod
    def call(name: str, **operands: str) -> int: ...

    # One instruction: mnemonic as in docs/reference/isa.md, operands by position in its order.
    # View or None for tiles; number or View or None for scalar operands; str for enumerators
    # ("ADD", "EXP", "XY" ...); bool; int; a list of 32 ints for a shuffle mask; (base, channel,
    # [(step, size), ...] innermost first) for an index pattern. Trailing operands may be left out.
    def emit(self, call: int, mnemonic: str, engine: str | None, *operands: Any) -> None: ...

    # LDWEIGHTS + MATMUL (two passes for fp32). accumulate False overwrites PSUM, True adds, None
    # overwrites at the first write to the region since it was last read and adds after that.
    # stationary [K, M], moving [K, N], dst [M, N]; free dimensions may be several.
    def matmul(
        self,
        call: int,
        dst: View,
        stationary: View,
        moving: View,
        *,
        accumulate: bool | None = None,
        transpose: bool = False,
        one_zero: bool = False,
        double_row: bool = False,
        tile: tuple[int, int, int, int] | None = None,  # PE row, column, rows, columns
    ) -> None: ...
    # Tensor: LDWEIGHTS + MATMUL against an identity (made once a builder); Vector: TRANSPOSE.
    def transpose(self, call: int, dst: View, src: View, engine: str | None = None) -> None: ...
    # ACTIVATE, and ACT_READ_ACCUMULATOR when reduce_result is given. function: "EXP", ...
    def activation(
        self,
        call: int,
        dst: View,
        function: str,
        src: View,
        *,
        bias: Any = None,
        scale: Any = None,
        reduce_result: View | None = None,
        reduce_command: str = "IDLE",
    ) -> None: ...
    # COPY, or CAST when the dtypes differ.
    def copy(self, call: int, dst: View, src: View, engine: str | None = None) -> None: ...
    # mode: "hardware", "software", "static" or None (by the rules of docs/concepts/scheduling.md).
    # index: uint32/int32 [P, 1] tile in SBUF that gathers (rows of src) or scatters (rows of dst).
    def dma_copy(
        self,
        call: int,
        dst: View,
        src: View,
        *,
        mode: str | None = None,
        engine: str | None = None,
        index: View | None = None,
        index_on: str = "src",
        skip_out_of_bounds: bool = False,
    ) -> None: ...
    def dma_transpose(
        self,
        call: int,
        dst: View,
        src: View,
        *,
        mode: str | None = None,
        engine: str | None = None,
        index: View | None = None,
    ) -> None: ...
    def dma_compute(
        self,
        call: int,
        dst: View,
        sources: Sequence[View],
        *,
        index: View | None = None,
        mode: str | None = None,
        engine: str | None = None,
    ) -> None: ...

    # Registers and device loops. value: what a run that knows no contents finds in memory.
    def register(self, initial: int | Register | None = None) -> Register: ...
    def register_move(self, dst: Register, src: int | Register) -> None: ...
    def register_alu(
        self, op: str, dst: Register, a: int | Register, b: int | Register
    ) -> None: ...
    def register_load(self, dst: Register, src: View, value: int = 0) -> None: ...
    def register_store(self, dst: View, src: Register) -> None: ...
    # Between the two calls lies the body; the counter is a register that counts start, start+step...
    def begin_loop(
        self, start: int | Register, stop: int | Register, step: int = 1
    ) -> Register: ...
    def end_loop(self) -> None: ...
    # A view whose offset moves by `steps[d]` of dimension d for each unit of the register.
    def dynamic(self, view: View, register: Register, steps: Sequence[int]) -> View: ...

    # Two cores of a logical core.
    def core_barrier(self, call: int, engine: str | None = None) -> None: ...
    def sendrecv(
        self, call: int, dst: View, src: View, *, peer: int, gpsimd: bool = False
    ) -> None: ...

    # Inside, instructions keep program order over all engines (`nl.no_reorder`).
    def fence(self) -> None: ...
    # A place in the kernel for the calls to come, until an empty file asks the frames again.
    def at(self, file: str, line: int) -> None: ...

    # Counts and names for --explain and the report: instructions by mnemonic, tiles by size.
    def summary(self) -> dict[str, Any]: ...

# Places tiles, finds dependences, orders, sets semaphores and rolls loops; one program a builder,
# for cores 0, 1 ...; work: [(amount, unit)] of one run; warnings go into the trace, and from there
# into the run's report. Returns {"bytes": the trace, "loops": [{"program", "engine", "at",
# "instructions", "iterations", "depth"}], "spills": [{"name", "at", "bytes", "saves", "reloads"}],
# "warnings": [...], "instructions": before rolling, "written": after it, "dependences", "waits",
# "event_semaphores", "semaphores", "sbuf_peak_bytes", "psum_peak_bytes"}. Raises TraceError or
# CapacityError. drop_wait leaves out the n-th wait, for the test of the checker.
def finish(
    builders: Sequence[Builder],
    *,
    name: str,
    target: str = "NeuronCore-v3",
    work: Sequence[tuple[float, str]] = (),
    warnings: Sequence[str] = (),
    drop_wait: int = -1,
) -> dict[str, Any]: ...
def options() -> dict[str, tuple[Any, str, str]]: ...  # name: (default, unit, meaning)

version: str
