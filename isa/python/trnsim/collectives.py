"""nki.collectives and the older neuronxcc.nki.nccl: one instruction for each collective."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

from trnsim.calls import DONE, Call, Instruction, source
from trnsim.errors import fail
from trnsim.nl import NKIObject
from trnsim.ops import alu_of
from trnsim.session import current
from trnsim.tensor import Register, Tensor, begin

__all__ = [
    "ReplicaGroup",
    "all_gather",
    "all_gather_v",
    "all_reduce",
    "all_to_all",
    "all_to_all_v",
    "collective_permute",
    "collective_permute_implicit",
    "collective_permute_implicit_current_processing_rank_id",
    "collective_permute_implicit_reduce",
    "rank_id",
    "reduce_scatter",
    "rg_partition_op",
]


class rg_partition_op(Enum):
    """How ranks are put into lists: by rank & operand, rank // operand or rank % operand."""

    bitwise_and = 0
    div = 1
    mod = 2


class ReplicaGroup(NKIObject):
    """The lists of ranks within each of which a collective runs."""

    groups: Any = None

    def __init__(self, groups: Any = None, *args: Any, **kwargs: Any) -> None:
        given = groups if groups is not None else next(iter(kwargs.values()), None)
        self.groups = [[int(r) for r in ranks] for ranks in (given or [])]
        seen = [r for ranks in self.groups for r in ranks]
        if len(seen) != len(set(seen)):
            fail("ReplicaGroup", "groups", self.groups, "lists that do not overlap")

    @staticmethod
    def from_partition_op(world_size: int, op: rg_partition_op, operand: int) -> ReplicaGroup:
        lists: dict[int, list[int]] = {}
        for rank in range(int(world_size)):
            if op is rg_partition_op.bitwise_and:
                key = rank & int(operand)
            elif op is rg_partition_op.div:
                key = rank // int(operand)
            else:
                key = rank % int(operand)
            lists.setdefault(key, []).append(rank)
        return ReplicaGroup([lists[key] for key in sorted(lists)])

    def __len__(self) -> int:
        return len(self.groups)

    def __iter__(self) -> Any:
        return iter(self.groups)

    def __getitem__(self, at: int) -> list[int]:
        return self.groups[at]


def _calls(name: str) -> Call:
    return Call(
        f"ncoll.{name}",
        src="srcs",
        dst="dsts",
        group="replica_group",
        op="op",
        metadata="metadata_tensor",
    )


ALL_REDUCE = _calls("all_reduce")
ALL_GATHER = _calls("all_gather")
ALL_GATHER_V = _calls("all_gather_v")
REDUCE_SCATTER = _calls("reduce_scatter")
ALL_TO_ALL = _calls("all_to_all")
ALL_TO_ALL_V = _calls("all_to_all_v")
PERMUTE = _calls("collective_permute")
RING = Call(
    "ncoll.collective_permute_implicit",
    src="srcs_by_channel",
    dst="dsts_by_channel",
    group="replica_group",
)
RING_REDUCE = Call(
    "ncoll.collective_permute_implicit_reduce",
    src="srcs0_by_channel",
    src0="srcs0_by_channel",
    src1="srcs1_by_channel",
    dst="dsts_by_channel",
    group="replica_group",
    op="op",
)
RING_RANK = _calls("collective_permute_implicit_current_processing_rank_id")
RANK = _calls("rank_id")

_TRIGGER = "sync"  # the stream that starts a collective


def _list(call: str, operand: str, given: Any) -> list[Tensor]:
    tensors = list(given) if isinstance(given, (list, tuple)) else [given]
    for t in tensors:
        source(call, operand, t)
    return tensors


def _pairs(
    call: str,
    srcs: Any,
    dsts: Any,
    memories: tuple[str, ...] = ("hbm", "sbuf"),
    names: tuple[str, str] = ("srcs", "dsts"),
) -> list[tuple[Tensor, Tensor]]:
    a, b = _list(call, names[0], srcs), _list(call, names[1], dsts)
    if len(a) != len(b):
        fail(call, names[1], len(b), f"{len(a)} tensors as {names[0]} has")
    for operand, tensors in zip(names, (a, b)):
        for t in tensors:
            if t.memory not in memories:
                fail(call, operand, t.memory, " or ".join(memories))
            if t.memory != a[0].memory:
                fail(call, operand, t.memory, f"{a[0].memory} as the first source")
    if len(a) > 1 and a[0].memory == "sbuf":
        fail(call, names[0], len(a), "one tensor in sbuf (several only in hbm)")
    return list(zip(a, b))


def _group(call: str, group: Any) -> list[list[int]]:
    groups = group.groups if isinstance(group, ReplicaGroup) else group
    if not groups:
        fail(call, "replica_group", group, "a ReplicaGroup")
    if isinstance(groups[0], int):
        groups = [groups]
    return [[int(r) for r in ranks] for ranks in groups]


def _dim(call: str, dim: Any, memory: str) -> int:
    limit = (0,) if memory == "hbm" else (0, 1)
    if int(dim) not in limit:
        fail(call, "collective_dim", dim, " or ".join(str(d) for d in limit) + f" in {memory}")
    return int(dim)


def _priority(call: str, priority: Any) -> None:
    if priority is not None:
        fail(call, "priority", priority, "none: it needs trn3 (NeuronCore-v4)")


def _op(call: str, op: Any) -> str:
    alu = alu_of(call, "op", op)
    if alu not in ("ADD", "MAX", "MIN"):
        fail(call, "op", alu.lower(), "add, maximum or minimum")
    return alu


def all_reduce(
    srcs: Any, dsts: Any, replica_group: Any, op: Any, priority: Any = None, **kwargs: Any
) -> Instruction:
    """Every rank gets the reduction of all."""
    call = "ncoll.all_reduce"
    builder = begin()
    _priority(call, priority)
    for a, b in _pairs(call, srcs, dsts):
        builder.emit(
            ALL_REDUCE.id,
            "ALL_REDUCE",
            _TRIGGER,
            a.view_,
            b.view_,
            _op(call, op),
            _group(call, replica_group),
        )
    return DONE


def all_gather(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: int = 0,
    priority: Any = None,
    **kwargs: Any,
) -> Instruction:
    """Every rank gets the parts of all."""
    call = "ncoll.all_gather"
    builder = begin()
    _priority(call, priority)
    for a, b in _pairs(call, srcs, dsts):
        builder.emit(
            ALL_GATHER.id,
            "ALL_GATHER",
            _TRIGGER,
            a.view_,
            b.view_,
            _group(call, replica_group),
            None,
            _dim(call, collective_dim, a.memory),
        )
    return DONE


def all_gather_v(
    srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Tensor, *args: Any, **kwargs: Any
) -> Instruction:
    """all_gather of parts that differ in size."""
    call = "ncoll.all_gather_v"
    builder = begin()
    for a, b in _pairs(call, srcs, dsts, ("hbm",)):
        builder.emit(
            ALL_GATHER_V.id,
            "ALL_GATHER_V",
            _TRIGGER,
            a.view_,
            b.view_,
            source(call, "metadata_tensor", metadata_tensor).view_,
            _group(call, replica_group),
        )
    return DONE


def reduce_scatter(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: Any = 0,
    op: Any = "add",
    priority: Any = None,
    **kwargs: Any,
) -> Instruction:
    """Every rank gets its part of the reduction of all."""
    call = "ncoll.reduce_scatter"
    builder = begin()
    _priority(call, priority)
    if not isinstance(collective_dim, int):
        collective_dim, op = (op if isinstance(op, int) else 0), collective_dim
    for a, b in _pairs(call, srcs, dsts):
        builder.emit(
            REDUCE_SCATTER.id,
            "REDUCE_SCATTER",
            _TRIGGER,
            a.view_,
            b.view_,
            _op(call, op),
            _group(call, replica_group),
            None,
            _dim(call, collective_dim, a.memory),
        )
    return DONE


def all_to_all(
    srcs: Any,
    dsts: Any,
    replica_group: Any,
    collective_dim: int = 0,
    priority: Any = None,
    **kwargs: Any,
) -> Instruction:
    """Every rank gives each rank one part."""
    call = "ncoll.all_to_all"
    builder = begin()
    _priority(call, priority)
    for a, b in _pairs(call, srcs, dsts, ("hbm",)):
        builder.emit(
            ALL_TO_ALL.id,
            "ALL_TO_ALL",
            _TRIGGER,
            a.view_,
            b.view_,
            _group(call, replica_group),
            None,
            _dim(call, collective_dim, "hbm"),
        )
    return DONE


def all_to_all_v(
    srcs: Any, dsts: Any, replica_group: Any, metadata_tensor: Tensor, *args: Any, **kwargs: Any
) -> Instruction:
    """all_to_all of parts that differ in size."""
    call = "ncoll.all_to_all_v"
    builder = begin()
    for a, b in _pairs(call, srcs, dsts, ("hbm",)):
        builder.emit(
            ALL_TO_ALL_V.id,
            "ALL_TO_ALL_V",
            _TRIGGER,
            a.view_,
            b.view_,
            source(call, "metadata_tensor", metadata_tensor).view_,
            _group(call, replica_group),
        )
    return DONE


def collective_permute(
    srcs: Any = None, dsts: Any = None, source_target_pairs: Any = None, **kwargs: Any
) -> Instruction:
    """Every rank gives one rank its tensor: pairs of (source, target) at one distance."""
    call = "ncoll.collective_permute"
    builder = begin()
    srcs = kwargs.get("src", srcs)
    dsts = kwargs.get("dst", dsts)
    pairs = [(int(a), int(b)) for a, b in (source_target_pairs or [])]
    if not pairs:
        fail(call, "source_target_pairs", source_target_pairs, "pairs of ranks")
    ranks = sorted({r for pair in pairs for r in pair})
    shifts = {(ranks.index(b) - ranks.index(a)) % len(ranks) for a, b in pairs}
    if len(shifts) != 1 or len(pairs) != len(ranks):
        current().unsupported(call, "pairs that are not one rotation of the ranks")
        return DONE
    for a, b in _pairs(call, srcs, dsts, ("hbm",)):
        builder.emit(
            PERMUTE.id, "COLLECTIVE_PERMUTE", _TRIGGER, a.view_, b.view_, [ranks], shifts.pop()
        )
    return DONE


def _channels(call: str, channel_ids: Any, count: int) -> int:
    channels = [int(c) for c in channel_ids]
    if len(channels) != count:
        fail(call, "channel_ids", channels, f"{count} channels as srcs_by_channel has")
    if count > 4:
        fail(call, "channel_ids", count, "at most 4 channels")
    return count


def collective_permute_implicit(
    srcs_by_channel: Sequence[Any],
    dsts_by_channel: Sequence[Any],
    replica_group: Any,
    channel_ids: Any = (0,),
    priority: Any = None,
    **kwargs: Any,
) -> Instruction:
    """One step of a ring whose order is chosen at run time."""
    call = "ncoll.collective_permute_implicit"
    builder = begin()
    _priority(call, priority)
    channels = _channels(call, channel_ids, len(srcs_by_channel))
    for srcs, dsts in zip(srcs_by_channel, dsts_by_channel):
        for a, b in _pairs(call, srcs, dsts, names=("srcs_by_channel", "dsts_by_channel")):
            builder.emit(
                RING.id,
                "COLLECTIVE_PERMUTE_IMPLICIT",
                _TRIGGER,
                a.view_,
                b.view_,
                _group(call, replica_group),
                channels,
            )
    return DONE


def collective_permute_implicit_reduce(
    srcs0_by_channel: Sequence[Any],
    srcs1_by_channel: Sequence[Any],
    dsts_by_channel: Sequence[Any],
    replica_group: Any,
    op: Any,
    channel_ids: Any = (0,),
    priority: Any = None,
    **kwargs: Any,
) -> Instruction:
    """One step of a ring that gives on the reduction of two tensors."""
    call = "ncoll.collective_permute_implicit_reduce"
    builder = begin()
    _priority(call, priority)
    channels = _channels(call, channel_ids, len(srcs0_by_channel))
    for first, second, dsts in zip(srcs0_by_channel, srcs1_by_channel, dsts_by_channel):
        others = _list(call, "srcs1_by_channel", second)
        names = ("srcs0_by_channel", "dsts_by_channel")
        for (a, b), other in zip(_pairs(call, first, dsts, names=names), others):
            builder.emit(
                RING_REDUCE.id,
                "COLLECTIVE_PERMUTE_IMPLICIT_REDUCE",
                _TRIGGER,
                a.view_,
                other.view_,
                b.view_,
                _op(call, op),
                _group(call, replica_group),
                channels,
            )
    return DONE


def collective_permute_implicit_current_processing_rank_id(
    iteration_id: Any, channel_id: Any = 0, replica_group: Any = None, **kwargs: Any
) -> Register:
    """A register with the rank whose data this step of the ring holds."""
    call = "ncoll.collective_permute_implicit_current_processing_rank_id"
    builder = begin()
    made = Register(builder.register())
    builder.emit(
        RING_RANK.id,
        "COLLECTIVE_PERMUTE_IMPLICIT_CURRENT_PROCESSING_RANK_ID",
        _TRIGGER,
        made.native,
        iteration_id.native if isinstance(iteration_id, Register) else int(iteration_id),
        int(channel_id),
        _group(call, replica_group),
    )
    return made


def rank_id(**kwargs: Any) -> Register:
    """A register with the own rank."""
    builder = begin()
    made = Register(builder.register())
    builder.emit(RANK.id, "RANK_ID", _TRIGGER, made.native)
    return made
