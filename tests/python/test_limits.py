"""Each documented limit, broken: the message names the kernel's line, the call, the operand, the value and the limit."""

from __future__ import annotations

import re
import unittest
from typing import Any, NamedTuple
from unittest import mock

import recorder
from recorder import tracing
from trace_support import NO_NATIVE, ROOT

if recorder.NATIVE:
    from trnsim import collectives as ncoll
    from trnsim import nisa, nisa_old, nl, session

LINE = 42
REFERENCE = ROOT / "docs" / "reference" / "isa.md"


class Case(NamedTuple):
    """A call that breaks a limit, and what its message has to say besides the place and the call."""

    breaks: str  # INSTRUCTION.operand kind, as in the reference of instructions; or a rule's name
    call: str  # s(shape, dtype), p(...), h(...) make tiles in SBUF, PSUM and HBM
    operand: str
    value: str
    limit: str


CASES = [
    # Tiles.
    Case("partitions", "s(129, 4)", "shape", "129", "128 partitions"),
    Case("sbuf size", "s(128, 65536)", "shape", "262144", "bytes per partition of sbuf"),
    Case("psum size", "p(128, 4097)", "shape", "16388", "16384 bytes per partition of psum"),
    # Where operands begin, and how they step.
    Case("start of 32", "nisa.memset(s(128, 8)[16:48], 0)", "dst", "got 16", "0, 32, 64 or 96"),
    Case("start of 64", "nisa.memset(s(128, 8)[32:96], 0)", "dst", "got 32", "0 or 64"),
    Case("start of more", "nisa.memset(s(128, 8)[32:128], 0)", "dst", "got 32", "start at 0"),
    Case("partition steps", "nisa.memset(s(128, 8)[0:128:2], 0)", "dst", "2", "consecutive"),
    Case(
        "free dimensions",
        "nisa.memset(s(128, 3, 4, 4, 4, 4)[:, :, 0:3, 0:3, 0:3, 0:3], 0)",
        "dst",
        "got 5",
        "at most 4 free dimensions",
    ),
    Case("psum elements", "nisa.memset(p(128, 8192, nl.uint8), 0)", "dst", "8192", "4096"),
    Case("hbm operand", "nisa.reciprocal(s(128, 8), h(128, 8))", "data", "in hbm", "sbuf or psum"),
    # Products.
    Case("contraction", "nisa.nc_matmul(p(128, 8), b(64, 128), b(128, 8))", "moving", "128", "64"),
    Case(
        "LDWEIGHTS.src memory",
        "nisa.nc_matmul(p(128, 8), p(128, 128), b(128, 8))",
        "stationary",
        "psum",
        "sbuf",
    ),
    Case(
        "LDWEIGHTS.src elements",
        "nisa.nc_matmul(p(128, 8), b(128, 256), b(128, 8))",
        "stationary",
        "256",
        "128",
    ),
    Case(
        "LDWEIGHTS.src dtype",
        "nisa.nc_matmul(p(128, 8), s(128, 128, nl.int32), b(128, 8))",
        "stationary",
        "int32",
        "bf16",
    ),
    Case(
        "MATMUL.src memory",
        "nisa.nc_matmul(p(128, 8), b(128, 128), p(128, 8))",
        "moving",
        "psum",
        "sbuf",
    ),
    Case(
        "MATMUL.src elements",
        "nisa.nc_matmul(p(128, 513), b(128, 128), b(128, 513))",
        "moving",
        "513",
        "512",
    ),
    Case(
        "MATMUL.src dtype",
        "nisa.nc_matmul(p(128, 8), b(128, 128), s(128, 8, nl.int8))",
        "moving",
        "int8",
        "bf16",
    ),
    Case(
        "MATMUL.dst memory",
        "nisa.nc_matmul(s(128, 8), b(128, 128), b(128, 8))",
        "dst",
        "sbuf",
        "psum",
    ),
    Case(
        "MATMUL.dst elements",
        "nisa.nc_matmul(p(128, 600), b(128, 128), b(128, 512))",
        "dst",
        "600",
        "512",
    ),
    Case(
        "bank",
        "nisa.nc_matmul(p(128, 1024)[:, 256:768], b(128, 128), b(128, 512))",
        "dst",
        "1024..3071",
        "2048",
    ),
    Case(
        "fp32 mixed",
        "nisa.nc_matmul(p(128, 8), s(128, 128), b(128, 8))",
        "moving",
        "bfloat16",
        "fp32",
    ),
    Case(
        "matmul dst dtype",
        "nisa.nc_matmul(p(128, 8, nl.bfloat16), b(128, 128), b(128, 8))",
        "dst",
        "bf16",
        "fp32",
    ),
    Case(
        "double row dtype",
        "nisa.nc_matmul(p(128, 8), b(128, 2, 128), b(128, 2, 8), perf_mode='double_row')",
        "perf_mode",
        "bf16",
        "fp8",
    ),
    Case(
        "PE tile",
        "nisa.nc_matmul(p(32, 8), b(32, 32), b(32, 8), tile_position=(16, 0), tile_size=(32, 32))",
        "tile_position",
        "(16, 0)",
        "(32, 32)",
    ),
    Case(
        "PE tile size",
        "nisa.nc_matmul(p(32, 8), b(32, 32), b(32, 8), tile_position=(0, 0), tile_size=(48, 32))",
        "tile_size",
        "(48, 32)",
        "32, 64 or 128",
    ),
    Case(
        "tensor transpose",
        "nisa.nc_transpose(p(128, 128), s(128, 256), engine=nisa.tensor_engine)",
        "data",
        "256",
        "128",
    ),
    Case(
        "vector transpose",
        "nisa.nc_transpose(s(64, 32), s(32, 64), engine=nisa.vector_engine)",
        "data",
        "64",
        "32",
    ),
    # Pairs of operands.
    Case(
        "both in psum",
        "nisa.tensor_tensor(s(128, 8), p(128, 8), p(128, 8), nl.add)",
        "data2",
        "psum",
        "sbuf",
    ),
    Case(
        "both in psum, stt",
        "nisa.scalar_tensor_tensor(s(128, 8), p(128, 8), nl.add, 1.0, nl.add, p(128, 8))",
        "operand1",
        "psum",
        "sbuf",
    ),
    Case(
        "both in psum, scan",
        "nisa.tensor_tensor_scan(s(128, 8), p(128, 8), p(128, 8), 0.0, nl.add, nl.add)",
        "data1",
        "psum",
        "sbuf",
    ),
    Case(
        "both in psum, predicate",
        "nisa.tensor_copy_predicated(s(128, 8), p(128, 8), p(128, 8, nl.uint8))",
        "predicate",
        "psum",
        "sbuf",
    ),
    Case(
        "both in psum, select",
        "nisa.select_reduce(s(128, 8), p(128, 8, nl.uint8), p(128, 8), 0.0)",
        "predicate",
        "psum",
        "sbuf",
    ),
    Case("sizes", "nisa.tensor_tensor(s(128, 8), s(128, 8), s(128, 9), nl.add)", "data2", "9", "8"),
    Case(
        "partitions differ",
        "nisa.tensor_tensor(s(128, 8), s(128, 8), s(64, 8), nl.add)",
        "data2",
        "64",
        "128",
    ),
    Case(
        "one value a partition",
        "nisa.tensor_scalar(s(128, 8), s(128, 8), nl.add, s(128, 2))",
        "operand0",
        "[128, 2]",
        "[128, 1]",
    ),
    # Engines.
    Case(
        "gpsimd and psum",
        "nisa.tensor_tensor(s(128, 8), p(128, 8), s(128, 8), nl.add, engine=nisa.gpsimd_engine)",
        "data1",
        "psum",
        "sbuf",
    ),
    Case(
        "engine",
        "nisa.tensor_tensor(s(128, 8), s(128, 8), s(128, 8), nl.add, engine=nisa.scalar_engine)",
        "engine",
        "scalar",
        "vector",
    ),
    Case(
        "gpsimd operations",
        "nisa.tensor_scalar(s(128, 8), s(128, 8), nl.add, 1.0, engine=nisa.gpsimd_engine)",
        "op0",
        "ADD",
        "RSQRT",
    ),
    Case(
        "scalar operations",
        "nisa.tensor_scalar(s(128, 8), s(128, 8), nl.max, 1.0, engine=nisa.scalar_engine)",
        "op0",
        "MAX",
        "MULTIPLY",
    ),
    Case(
        "bitwise",
        "nisa.tensor_tensor(s(128, 8), s(128, 8), s(128, 8), nl.bitwise_and)",
        "op",
        "float32",
        "integers",
    ),
    Case(
        "reduction on scalar",
        "nisa.activation(s(128, 8), nl.exp, s(128, 8), reduce_op=nl.max, reduce_res=s(128, 1))",
        "reduce_op",
        "max",
        "add",
    ),
    # Transfers.
    Case(
        "DMA_DIRECT2D.src memory",
        "nisa.dma_copy(s(128, 8), p(128, 8))",
        "src",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "DMA_DIRECT2D.dst memory",
        "nisa.dma_copy(p(128, 8), s(128, 8))",
        "dst",
        "psum",
        "hbm or sbuf",
    ),
    Case("dma sizes", "nisa.dma_copy(s(128, 8), h(128, 9))", "src", "9", "8"),
    Case(
        "hardware cast",
        "nisa.dma_copy(s(128, 8), b_h(128, 8), dge_mode=nisa.dge_mode.hwdge)",
        "dst",
        "float32",
        "bfloat16",
    ),
    Case(
        "hardware engine",
        "nisa.dma_copy(s(128, 8), h(128, 8), dge_mode=nisa.dge_mode.hwdge, engine=nisa.vector_engine)",
        "engine",
        "Vector",
        "Sync or Scalar",
    ),
    Case(
        "software engine",
        "nisa.dma_copy(s(128, 8), h(128, 8), dge_mode=nisa.dge_mode.swdge, engine=nisa.sync_engine)",
        "engine",
        "Sync",
        "GpSimd",
    ),
    Case(
        "DMA_TRANSPOSE.src memory",
        "nisa.dma_transpose(s(8, 128), p(128, 8))",
        "src",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "DMA_TRANSPOSE.dst memory", "nisa.dma_transpose(h(8, 128), h(128, 8))", "dst", "hbm", "sbuf"
    ),
    Case(
        "dma transpose dtype",
        "nisa.dma_transpose(s(16, 128, nl.uint8), h(128, 16, nl.uint8))",
        "src",
        "uint8",
        "2 or 4 bytes",
    ),
    Case(
        "DMA_COMPUTE.src memory",
        "nisa.dma_compute(h(128, 8), [p(128, 8), h(128, 8)])",
        "srcs",
        "psum",
        "sbuf",
    ),
    Case(
        "DMA_COMPUTE.dst memory",
        "nisa.dma_compute(p(128, 8), [h(128, 8), h(128, 8)])",
        "dst",
        "psum",
        "sbuf",
    ),
    Case(
        "DMA_COMPUTE.sources range",
        "nisa.dma_compute(h(128, 8), [h(128, 8)] * 17)",
        "srcs",
        "17",
        "16",
    ),
    # Limits of single instructions.
    Case(
        "TENSOR_COPY_PREDICATED.predicate dtype",
        "nisa.tensor_copy_predicated(s(128, 8), s(128, 8), s(128, 8))",
        "predicate",
        "fp32",
        "uint8",
    ),
    Case(
        "TENSOR_PARTITION_REDUCE.src memory",
        "nisa.tensor_partition_reduce(s(1, 8), nl.add, p(128, 8))",
        "data",
        "psum",
        "sbuf",
    ),
    Case(
        "TENSOR_PARTITION_REDUCE.dst memory",
        "nisa.tensor_partition_reduce(p(1, 8), nl.add, s(128, 8))",
        "dst",
        "psum",
        "sbuf",
    ),
    Case(
        "partition reduce op",
        "nisa.tensor_partition_reduce(s(1, 8), nl.multiply, s(128, 8))",
        "op",
        "MULTIPLY",
        "ADD",
    ),
    Case(
        "TENSOR_SCALAR_CUMULATIVE.src dtype",
        "nisa.tensor_scalar_cumulative(s(128, 8), s(128, 8, nl.int32), nl.multiply, nl.add, 1.0)",
        "src",
        "int32",
        "fp32",
    ),
    Case(
        "TENSOR_SCALAR_CUMULATIVE.dst dtype",
        "nisa.tensor_scalar_cumulative(s(128, 8, nl.int32), s(128, 8), nl.multiply, nl.add, 1.0)",
        "dst",
        "int32",
        "fp32",
    ),
    Case(
        "TENSOR_SCALAR_REDUCE.result elements",
        "nisa.tensor_scalar_reduce(s(128, 8), s(128, 8), nl.add, 1.0, nl.add, s(128, 2))",
        "reduce_res",
        "2",
        "1",
    ),
    Case("BN_STATS.src elements", "nisa.bn_stats(s(128, 6), s(128, 513))", "data", "513", "512"),
    Case("BN_STATS.dst elements", "nisa.bn_stats(s(128, 7), s(128, 512))", "dst", "7", "6"),
    Case("BN_AGGR.src multiple", "nisa.bn_aggr(s(128, 2), s(128, 7))", "data", "7", "3"),
    Case("BN_AGGR.dst elements", "nisa.bn_aggr(s(128, 3), s(128, 6))", "dst", "3", "2"),
    Case(
        "shuffle dtype",
        "nisa.nc_stream_shuffle(b(128, 8), s(128, 8), [0] * 32)",
        "dst",
        "bfloat16",
        "float32",
    ),
    Case(
        "shuffle mask",
        "nisa.nc_stream_shuffle(s(128, 8), s(128, 8), [32] * 32)",
        "shuffle_mask",
        "32",
        "31",
    ),
    Case("MAX8.src elements", "nisa.max8(s(128, 8), s(128, 7))", "src", "7", "8"),
    Case("MAX8.src elements", "nisa.max8(b(128, 8), b(128, 16385))", "src", "16385", "16384"),
    Case("MAX8.dst elements", "nisa.max8(s(128, 9), s(128, 16))", "dst", "9", "8"),
    Case(
        "NC_FIND_INDEX8.src elements",
        "nisa.nc_find_index8(s(128, 8, nl.uint32), s(128, 7), s(128, 8))",
        "data",
        "7",
        "8",
    ),
    Case(
        "NC_FIND_INDEX8.values elements",
        "nisa.nc_find_index8(s(128, 8, nl.uint32), s(128, 16), s(128, 9))",
        "vals",
        "9",
        "8",
    ),
    Case(
        "NC_FIND_INDEX8.dst elements",
        "nisa.nc_find_index8(s(128, 9, nl.uint32), s(128, 16), s(128, 8))",
        "dst",
        "9",
        "8",
    ),
    Case(
        "NC_FIND_INDEX8.dst dtype",
        "nisa.nc_find_index8(s(128, 8), s(128, 16), s(128, 8))",
        "dst",
        "fp32",
        "uint32",
    ),
    Case(
        "NC_MATCH_REPLACE8.src elements",
        "nisa.nc_match_replace8(s(128, 7), s(128, 7), s(128, 8), 0.0)",
        "data",
        "7",
        "8",
    ),
    Case(
        "NC_MATCH_REPLACE8.values elements",
        "nisa.nc_match_replace8(s(128, 16), s(128, 16), s(128, 9), 0.0)",
        "vals",
        "9",
        "8",
    ),
    Case(
        "NC_MATCH_REPLACE8.dst elements",
        "nisa.nc_match_replace8(s(128, 7), s(128, 16), s(128, 8), 0.0)",
        "dst",
        "7",
        "8",
    ),
    Case(
        "NC_MATCH_REPLACE8.indices elements",
        "nisa.nc_match_replace8(s(128, 16), s(128, 16), s(128, 8), 0.0, s(128, 9, nl.uint32))",
        "dst_idx",
        "9",
        "8",
    ),
    Case("dropout dtype", "nisa.dropout(b(128, 8), s(128, 8), 0.5)", "dst", "bf16", "fp32"),
    Case(
        "RANGE_SELECT.src dtype",
        "rs(on_true_tile=s(128, 8, nl.int32))",
        "on_true_tile",
        "int32",
        "fp32",
    ),
    Case("RANGE_SELECT.dst dtype", "rs(dst=s(128, 8, nl.int32))", "dst", "int32", "fp32"),
    Case("RANGE_SELECT.bound0 dtype", "rs(bound0=b(128, 1))", "bound0", "bf", "fp32"),
    Case("RANGE_SELECT.bound0 elements", "rs(bound0=s(128, 2))", "bound0", "2", "1"),
    Case("RANGE_SELECT.bound1 dtype", "rs(bound1=b(128, 1))", "bound1", "bf", "fp32"),
    Case("RANGE_SELECT.bound1 elements", "rs(bound1=s(128, 2))", "bound1", "2", "1"),
    Case(
        "RANGE_SELECT.range_start range",
        "rs(range_start=16777216)",
        "range_start",
        "16777216",
        "16777215",
    ),
    Case("RANGE_SELECT.result elements", "rs(reduce_res=s(128, 2))", "reduce_res", "2", "1"),
    Case(
        "SELECT_REDUCE.predicate dtype",
        "nisa.select_reduce(s(128, 8), s(128, 8), s(128, 8), 0.0)",
        "predicate",
        "fp32",
        "uint8",
    ),
    Case(
        "SELECT_REDUCE.src dtype",
        "nisa.select_reduce(s(128, 8), s(128, 8, nl.uint8), s(128, 8, nl.int32), 0.0)",
        "on_true",
        "int32",
        "fp32",
    ),
    Case(
        "SELECT_REDUCE.result elements",
        "nisa.select_reduce(s(128, 8), s(128, 8, nl.uint8), s(128, 8), 0.0, s(128, 2))",
        "reduce_res",
        "2",
        "1",
    ),
    Case("RNG.dst dtype", "nisa.rng(s(128, 8))", "dst", "fp32", "uint32"),
    Case("SET_RNG_SEED.src dtype", "nisa.set_rng_seed(b(1, 1))", "src_seeds", "bf16", "uint32"),
    Case(
        "SET_RNG_SEED.src partitions",
        "nisa.set_rng_seed(s(2, 1, nl.uint32))",
        "src_seeds",
        "2",
        "1",
    ),
    Case(
        "SET_RNG_SEED.src elements", "nisa.set_rng_seed(s(1, 2, nl.uint32))", "src_seeds", "2", "1"
    ),
    Case(
        "ACT_READ_ACCUMULATOR.dst elements",
        "nisa.activation(s(128, 8), nl.exp, s(128, 8), reduce_op=nl.add, reduce_res=s(128, 2))",
        "reduce_res",
        "2",
        "1",
    ),
    Case("IOTA.dst memory", "nisa.iota(p(128, 8, nl.int32), [[1, 8]])", "dst", "psum", "sbuf"),
    Case("iota pattern", "nisa.iota(s(128, 8, nl.int32), [[1, 9]])", "pattern", "9", "8"),
    Case(
        "AFFINE_SELECT.src memory",
        "nisa.affine_select(s(128, 8), [[1, 8]], 0, 1, p(128, 8), 0.0, nl.equal)",
        "on_true_tile",
        "psum",
        "sbuf",
    ),
    Case(
        "AFFINE_SELECT.dst memory",
        "nisa.affine_select(p(128, 8), [[1, 8]], 0, 1, s(128, 8), 0.0, nl.equal)",
        "dst",
        "psum",
        "sbuf",
    ),
    Case("LOCAL_GATHER.src memory", "lg(src_buffer=p(128, 64))", "src_buffer", "psum", "sbuf"),
    Case(
        "LOCAL_GATHER.src multiple",
        "lg(src_buffer=s(24, 64), index=s(24, 8, nl.uint16), dst=s(24, 128))",
        "src_buffer",
        "24",
        "16",
    ),
    Case("LOCAL_GATHER.index memory", "lg(index=p(128, 8, nl.uint16))", "index", "psum", "sbuf"),
    Case("LOCAL_GATHER.index dtype", "lg(index=s(128, 8, nl.int32))", "index", "int32", "uint16"),
    Case("LOCAL_GATHER.index multiple", "lg(index=s(24, 8, nl.uint16))", "index", "24", "16"),
    Case("LOCAL_GATHER.dst memory", "lg(dst=p(128, 128))", "dst", "psum", "sbuf"),
    Case("LOCAL_GATHER.dst multiple", "lg(dst=s(24, 128))", "dst", "24", "16"),
    Case(
        "LOCAL_GATHER.elements_per_index range",
        "lg(num_elem_per_idx=64)",
        "num_elem_per_idx",
        "64",
        "32",
    ),
    Case(
        "elements per index",
        "lg(num_elem_per_idx=3)",
        "num_elem_per_idx",
        "3",
        "1, 2, 4, 8, 16 or 32",
    ),
    Case(
        "LOCAL_GATHER.indices range",
        "lg(num_valid_indices=4097)",
        "num_valid_indices",
        "4097",
        "4096",
    ),
    Case(
        "NC_N_GATHER.src memory",
        "nisa.nc_n_gather(s(128, 8), p(128, 64), s(128, 8, nl.uint32))",
        "data",
        "psum",
        "sbuf",
    ),
    Case(
        "NC_N_GATHER.index memory",
        "nisa.nc_n_gather(s(128, 8), s(128, 64), p(128, 8, nl.uint32))",
        "indices",
        "psum",
        "sbuf",
    ),
    Case(
        "NC_N_GATHER.index dtype",
        "nisa.nc_n_gather(s(128, 8), s(128, 64), s(128, 8, nl.int32))",
        "indices",
        "int32",
        "uint32",
    ),
    Case(
        "NC_N_GATHER.dst memory",
        "nisa.nc_n_gather(p(128, 8), s(128, 64), s(128, 8, nl.uint32))",
        "dst",
        "psum",
        "sbuf",
    ),
    Case(
        "gather sizes",
        "nisa.nc_n_gather(s(128, 9), s(128, 64), s(128, 8, nl.uint32))",
        "dst",
        "9",
        "8",
    ),
    Case(
        "NONZERO_WITH_COUNT.src memory",
        "nisa.nonzero_with_count(s(128, 9, nl.int32), p(128, 8))",
        "src",
        "psum",
        "sbuf",
    ),
    Case(
        "NONZERO_WITH_COUNT.src dtype",
        "nisa.nonzero_with_count(s(128, 9, nl.int32), b(128, 8))",
        "src",
        "bf16",
        "fp32",
    ),
    Case(
        "NONZERO_WITH_COUNT.dst memory",
        "nisa.nonzero_with_count(p(128, 9, nl.int32), s(128, 8))",
        "dst",
        "psum",
        "sbuf",
    ),
    Case(
        "NONZERO_WITH_COUNT.dst dtype",
        "nisa.nonzero_with_count(s(128, 9), s(128, 8))",
        "dst",
        "fp32",
        "int32",
    ),
    Case(
        "nonzero sizes", "nisa.nonzero_with_count(s(128, 8, nl.int32), s(128, 8))", "dst", "8", "9"
    ),
    Case(
        "SEQUENCE_BOUNDS.src memory",
        "nisa.sequence_bounds(s(1, 2, 8), p(1, 8))",
        "segment_ids",
        "psum",
        "sbuf",
    ),
    Case(
        "SEQUENCE_BOUNDS.src dtype",
        "nisa.sequence_bounds(s(1, 2, 8), b(1, 8))",
        "segment_ids",
        "bf16",
        "fp32",
    ),
    Case(
        "SEQUENCE_BOUNDS.src partitions",
        "nisa.sequence_bounds(s(2, 2, 8), s(2, 8))",
        "segment_ids",
        "2",
        "1",
    ),
    Case(
        "SEQUENCE_BOUNDS.dst memory",
        "nisa.sequence_bounds(p(1, 2, 8), s(1, 8))",
        "dst",
        "psum",
        "sbuf",
    ),
    Case(
        "SEQUENCE_BOUNDS.dst dtype",
        "nisa.sequence_bounds(b(1, 2, 8), s(1, 8))",
        "dst",
        "bf16",
        "fp32",
    ),
    Case(
        "SEQUENCE_BOUNDS.dst partitions",
        "nisa.sequence_bounds(s(2, 2, 8), s(1, 8))",
        "dst",
        "2",
        "1",
    ),
    Case("TOPK.src memory", "topk(src=p(16, 64, nl.bfloat16))", "src", "psum", "sbuf"),
    Case("TOPK.src dtype", "topk(src=s(16, 64))", "src", "fp32", "bf16"),
    Case(
        "TOPK.src multiple",
        "topk(src=b(17, 64), val_dst=b(17, 8), idx_dst=s(17, 8, nl.uint32))",
        "src",
        "17",
        "16",
    ),
    Case("TOPK.dst memory", "topk(val_dst=p(16, 8, nl.bfloat16))", "val_dst", "psum", "sbuf"),
    Case("TOPK.dst dtype", "topk(val_dst=s(16, 8))", "val_dst", "fp32", "bf16"),
    Case("TOPK.dst multiple", "topk(val_dst=b(17, 8))", "val_dst", "17", "16"),
    Case("TOPK.indices memory", "topk(idx_dst=p(16, 8, nl.uint32))", "idx_dst", "psum", "sbuf"),
    Case("TOPK.indices dtype", "topk(idx_dst=s(16, 8, nl.int32))", "idx_dst", "int32", "uint32"),
    Case("TOPK.indices multiple", "topk(idx_dst=s(17, 8, nl.uint32))", "idx_dst", "17", "16"),
    Case("TOPK.n range", "topk(n=7, k=4)", "n", "7", "8"),
    Case("TOPK.k range", "topk(k=0)", "k", "0", "1"),
    Case("k of n", "topk(k=65, n=64)", "k", "65", "64"),
    Case(
        "RAND_SET_STATE.src memory",
        "nisa.rand_set_state(p(128, 6, nl.uint32))",
        "src_seeds",
        "psum",
        "sbuf",
    ),
    Case(
        "RAND_SET_STATE.src dtype", "nisa.rand_set_state(s(128, 6))", "src_seeds", "fp32", "uint32"
    ),
    Case(
        "RAND_SET_STATE.src elements",
        "nisa.rand_set_state(s(128, 7, nl.uint32))",
        "src_seeds",
        "7",
        "6",
    ),
    Case(
        "RAND_GET_STATE.dst memory",
        "nisa.rand_get_state(p(128, 6, nl.uint32))",
        "dst",
        "psum",
        "sbuf",
    ),
    Case("RAND_GET_STATE.dst dtype", "nisa.rand_get_state(s(128, 6))", "dst", "fp32", "uint32"),
    Case(
        "RAND_GET_STATE.dst elements", "nisa.rand_get_state(s(128, 5, nl.uint32))", "dst", "5", "6"
    ),
    Case("SENDRECV.src memory", "nisa.sendrecv(p(128, 8), s(128, 8), 1, 1)", "src", "psum", "sbuf"),
    Case("SENDRECV.dst memory", "nisa.sendrecv(s(128, 8), p(128, 8), 1, 1)", "dst", "psum", "sbuf"),
    Case("sendrecv dtype", "nisa.sendrecv(s(128, 8), b(128, 8), 1, 1)", "dst", "bf", "float32"),
]

COLLECTIVE_CASES = [
    Case(
        "ALL_REDUCE.src memory",
        "ncoll.all_reduce([p(128, 8)], [h(128, 8)], g, nl.add)",
        "srcs",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "ALL_REDUCE.dst memory",
        "ncoll.all_reduce([s(128, 8)], [p(128, 8)], g, nl.add)",
        "dsts",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "reduction",
        "ncoll.all_reduce([h(128, 8)], [h(128, 8)], g, nl.multiply)",
        "op",
        "multiply",
        "add",
    ),
    Case(
        "priority",
        "ncoll.all_reduce([h(128, 8)], [h(128, 8)], g, nl.add, priority=1)",
        "priority",
        "1",
        "trn3",
    ),
    Case(
        "ALL_GATHER.src memory",
        "ncoll.all_gather([p(128, 8)], [h(256, 8)], g)",
        "srcs",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "ALL_GATHER.dst memory",
        "ncoll.all_gather([s(64, 8)], [p(128, 8)], g)",
        "dsts",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "ALL_GATHER.dimension range",
        "ncoll.all_gather([s(64, 8)], [s(128, 8)], g, 2)",
        "collective_dim",
        "2",
        "0 or 1",
    ),
    Case(
        "ALL_GATHER_V.src memory",
        "ncoll.all_gather_v([s(64, 8)], [h(128, 8)], g, h(2, 2))",
        "srcs",
        "sbuf",
        "hbm",
    ),
    Case(
        "ALL_GATHER_V.dst memory",
        "ncoll.all_gather_v([h(64, 8)], [s(128, 8)], g, h(2, 2))",
        "dsts",
        "sbuf",
        "hbm",
    ),
    Case(
        "ALL_GATHER_V.metadata memory",
        "ncoll.all_gather_v([h(64, 8)], [h(128, 8)], g, s(2, 2))",
        "metadata_tensor",
        "sbuf",
        "hbm",
    ),
    Case(
        "REDUCE_SCATTER.src memory",
        "ncoll.reduce_scatter([p(128, 8)], [h(64, 8)], g, 0, nl.add)",
        "srcs",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "REDUCE_SCATTER.dst memory",
        "ncoll.reduce_scatter([s(128, 8)], [p(64, 8)], g, 0, nl.add)",
        "dsts",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "REDUCE_SCATTER.dimension range",
        "ncoll.reduce_scatter([s(128, 8)], [s(64, 8)], g, 2, nl.add)",
        "collective_dim",
        "2",
        "0 or 1",
    ),
    Case(
        "ALL_TO_ALL.src memory",
        "ncoll.all_to_all([s(128, 8)], [h(128, 8)], g)",
        "srcs",
        "sbuf",
        "hbm",
    ),
    Case(
        "ALL_TO_ALL.dst memory",
        "ncoll.all_to_all([h(128, 8)], [s(128, 8)], g)",
        "dsts",
        "sbuf",
        "hbm",
    ),
    Case(
        "ALL_TO_ALL.dimension range",
        "ncoll.all_to_all([h(128, 8)], [h(128, 8)], g, 1)",
        "collective_dim",
        "1",
        "0 in hbm",
    ),
    Case(
        "ALL_TO_ALL_V.src memory",
        "ncoll.all_to_all_v([s(128, 8)], [h(128, 8)], g, h(2, 2))",
        "srcs",
        "sbuf",
        "hbm",
    ),
    Case(
        "ALL_TO_ALL_V.dst memory",
        "ncoll.all_to_all_v([h(128, 8)], [s(128, 8)], g, h(2, 2))",
        "dsts",
        "sbuf",
        "hbm",
    ),
    Case(
        "ALL_TO_ALL_V.metadata memory",
        "ncoll.all_to_all_v([h(128, 8)], [h(128, 8)], g, s(2, 2))",
        "metadata_tensor",
        "sbuf",
        "hbm",
    ),
    Case(
        "COLLECTIVE_PERMUTE.src memory",
        "ncoll.collective_permute([s(128, 8)], [h(128, 8)], [[0, 1], [1, 0]])",
        "srcs",
        "sbuf",
        "hbm",
    ),
    Case(
        "COLLECTIVE_PERMUTE.dst memory",
        "ncoll.collective_permute([h(128, 8)], [s(128, 8)], [[0, 1], [1, 0]])",
        "dsts",
        "sbuf",
        "hbm",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT.src memory",
        "ncoll.collective_permute_implicit([[p(128, 8)]], [[h(128, 8)]], g)",
        "srcs_by_channel",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT.dst memory",
        "ncoll.collective_permute_implicit([[s(128, 8)]], [[p(128, 8)]], g)",
        "dsts_by_channel",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT.channels range",
        "ncoll.collective_permute_implicit([[h(8, 8)]] * 5, [[h(8, 8)]] * 5, g, (0, 1, 2, 3, 4))",
        "channel_ids",
        "5",
        "4 channels",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT_REDUCE.src0 memory",
        "ncoll.collective_permute_implicit_reduce([[p(8, 8)]], [[h(8, 8)]], [[h(8, 8)]], g, nl.add)",
        "srcs0_by_channel",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT_REDUCE.src1 memory",
        "ncoll.collective_permute_implicit_reduce([[s(8, 8)]], [[p(8, 8)]], [[s(8, 8)]], g, nl.add)",
        "srcs1_by_channel",
        "psum",
        "sbuf or hbm",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT_REDUCE.dst memory",
        "ncoll.collective_permute_implicit_reduce([[s(8, 8)]], [[s(8, 8)]], [[p(8, 8)]], g, nl.add)",
        "dsts_by_channel",
        "psum",
        "hbm or sbuf",
    ),
    Case(
        "COLLECTIVE_PERMUTE_IMPLICIT_REDUCE.channels range",
        "ncoll.collective_permute_implicit_reduce(*[[[h(8, 8)]] * 5] * 3, g, nl.add, (0, 1, 2, 3, 4))",
        "channel_ids",
        "5",
        "4 channels",
    ),
]

# The same limits hold in the older API, whose results are returned.
OLD_CASES = [
    Case(
        "both in psum", "nisa.tensor_tensor(p(128, 8), p(128, 8), nl.add)", "data2", "psum", "sbuf"
    ),
    Case("contraction", "nisa.nc_matmul(b(64, 128), b(128, 8))", "moving", "128", "64"),
    Case("stationary", "nisa.nc_matmul(b(128, 256), b(128, 8))", "stationary", "256", "128"),
    Case("moving", "nisa.nc_matmul(b(128, 128), b(128, 513))", "moving", "513", "512"),
    Case(
        "transpose",
        "nisa.nc_transpose(s(128, 256), engine=nisa.tensor_engine)",
        "data",
        "256",
        "128",
    ),
    Case("sizes", "nisa.tensor_tensor(s(128, 8), s(128, 9), nl.add)", "data2", "9", "8"),
    Case(
        "values",
        "nisa.tensor_scalar(s(128, 8), nl.add, s(128, 2))",
        "operand0",
        "[128, 2]",
        "[128, 1]",
    ),
    Case("bn_stats", "nisa.bn_stats(s(128, 513))", "data", "513", "512"),
    Case("bn_aggr", "nisa.bn_aggr(s(128, 7))", "data", "7", "3"),
    Case("max8", "nisa.max8(src=s(128, 7))", "src", "7", "8"),
    Case(
        "predicate",
        "nisa.tensor_copy_predicated(src=s(128, 8), dst=s(128, 8), predicate=s(128, 8))",
        "predicate",
        "fp32",
        "uint8",
    ),
    Case(
        "partition reduce",
        "nisa.tensor_partition_reduce(nl.add, p(128, 8))",
        "data",
        "psum",
        "sbuf",
    ),
    Case("start", "nisa.reciprocal(s(128, 8)[16:48])", "data", "got 16", "0, 32, 64 or 96"),
    Case("partitions of a load", "nl.load(h(256, 8))", "src", "256", "128"),
    Case("load from psum", "nl.load(p(128, 8))", "src", "psum", "hbm"),
    Case(
        "bitwise",
        "nisa.tensor_tensor(s(128, 8), s(128, 8), nl.bitwise_and)",
        "op",
        "float32",
        "integers",
    ),
    Case(
        "engine",
        "nisa.tensor_tensor(s(128, 8), s(128, 8), nl.add, engine=nisa.scalar_engine)",
        "engine",
        "scalar",
        "vector",
    ),
]

# Limits that no call of a kernel can break, and why.
NOT_REACHED = {
    r"(DMA_\w+)\.queue range": "the builder chooses the ring",
    r"DMA_\w+\.index (memory|elements)": "the form of a vector offset is checked in test_language",
    r"(EVENT_SEMAPHORE_RANGE_CLEAR|REGISTER_\w+|TENSOR_LOAD|LOOP|END_LOOP|RANK_ID)\..*": "sequencer",
    r"ACT_TABLE_LOAD\.table_sel range": "the builder chooses the table",
    r"\w+\.stream range": "the builder chooses the stream",
    r"COLLECTIVE_PERMUTE\.(source|target) range": "ranks of a replica group",
    r"COLLECTIVE_PERMUTE_IMPLICIT_CURRENT_PROCESSING_RANK_ID\..*": "sequencer",
    r"CORE_BARRIER\.semaphore range": "the builder chooses the semaphore",
}


def documented() -> set[str]:
    """INSTRUCTION.operand kind, for each limit of the generated reference that narrows what every tile has to keep."""
    found: set[str] = set()
    instruction = ""
    for line in REFERENCE.read_text().splitlines():
        if line.startswith("## "):
            instruction = line[3:].strip()
        row = re.match(r"\| `(\w+)` \| ([^|]*) \| ([^|]*) \|", line)
        if not row:
            continue
        for limit in (part.strip() for part in row[3].split(";")):
            name = f"{instruction}.{row[1]}"
            if re.fullmatch(r"(sbuf|psum|hbm|sbuf, hbm)", limit):
                found.add(f"{name} memory")
            elif re.fullmatch(r"(at most )?[\d.]+ elements", limit):
                found.add(f"{name} elements")
            elif limit.startswith("multiples of"):
                found.add(f"{name} multiple")
            elif re.fullmatch(r"-?\d+\.\.\d+", limit):
                found.add(f"{name} range")
            elif (
                re.fullmatch(r"at most \d+ partitions", limit) and limit != "at most 128 partitions"
            ):
                found.add(f"{name} partitions")
            elif re.search(r"\b(fp32|bf16|u?int(8|16|32))\b", limit):
                found.add(f"{name} dtype")
            elif limit not in ("", "sbuf, psum", "at most 128 partitions", "optional"):
                if not limit.startswith("may be"):
                    raise AssertionError(f"{name}: a limit of a new kind: {limit}")
    return found


def names() -> dict[str, Any]:
    """What the calls of the cases use."""

    def made(memory: Any, dtype: Any) -> Any:
        def make(*given: Any) -> Any:
            shape = [size for size in given if isinstance(size, int)]
            kind = given[-1] if not isinstance(given[-1], int) else dtype
            return nl.ndarray(tuple(shape), kind, buffer=memory)

        return make

    s, b, p = made(nl.sbuf, nl.float32), made(nl.sbuf, nl.bfloat16), made(nl.psum, nl.float32)
    h, b_h = made(nl.shared_hbm, nl.float32), made(nl.shared_hbm, nl.bfloat16)

    def with_defaults(call: Any, **usual: Any) -> Any:
        return lambda **given: call(**{**{k: v() for k, v in usual.items()}, **given})

    rs = with_defaults(
        nisa.range_select,
        dst=lambda: s(128, 8),
        on_true_tile=lambda: s(128, 8),
        comp_op0=lambda: nl.greater_equal,
        comp_op1=lambda: nl.less,
        bound0=lambda: s(128, 1),
        bound1=lambda: s(128, 1),
    )
    lg = with_defaults(
        nisa.local_gather,
        dst=lambda: s(128, 128),
        src_buffer=lambda: s(128, 64),
        index=lambda: s(128, 8, nl.uint16),
    )
    topk = with_defaults(
        nisa.topk,
        val_dst=lambda: b(16, 8),
        idx_dst=lambda: s(16, 8, nl.uint32),
        src=lambda: b(16, 64),
        k=lambda: 8,
    )
    return dict(
        nisa=nisa,
        nl=nl,
        s=s,
        b=b,
        p=p,
        h=h,
        b_h=b_h,
        rs=rs,
        lg=lg,
        topk=topk,
        ncoll=ncoll,
        g=ncoll.ReplicaGroup([[0, 1]]),
    )


def message_of(call: str, generation: str = "new") -> str:
    """What breaking a limit in line LINE of limits_kernel.py says."""
    ours = mock.patch.object(session, "_HIDDEN", (*session._HIDDEN, __file__))
    code = compile("\n" * (LINE - 1) + call, "limits_kernel.py", "exec")
    try:
        with ours, tracing(generation) as builder:
            builder.real.hide_frames(__file__)
            space = names()
            if generation == "old":
                space["nisa"] = nisa_old
            exec(code, space)
    except Exception as error:
        if type(error).__name__ != "TraceError":
            raise
        return str(error)
    return "nothing: it was accepted"


@unittest.skipUnless(recorder.NATIVE, NO_NATIVE)
class Limits(unittest.TestCase):
    def test_each_message_names_place_call_operand_value_and_limit(self) -> None:
        self.check(CASES, "new")

    def test_collectives_do_so_too(self) -> None:
        self.check(COLLECTIVE_CASES, "new")

    def test_the_older_api_says_the_same(self) -> None:
        self.check(OLD_CASES, "old")

    def check(self, cases: list[Case], generation: str) -> None:
        for case in cases:
            with self.subTest(case.breaks, call=case.call):
                text = message_of(case.call, generation)
                api = re.match(r"((?:nisa|nl|ncoll)\.\w+|\w+)\(", case.call)
                assert api is not None
                call = {
                    "rs": "nisa.range_select",
                    "lg": "nisa.local_gather",
                    "topk": "nisa.topk",
                    "s": "ndarray",
                    "p": "ndarray",
                }.get(api[1], api[1])
                self.assertRegex(
                    text,
                    rf"^limits_kernel\.py:{LINE}: (nl\.)?{re.escape(call)}: {case.operand}(\[0\])?: ",
                )
                said = text.split(": ", 3)[3]  # behind place, call and operand
                self.assertIn(case.value, said)
                self.assertIn(case.limit, said)

    def test_no_documented_limit_is_left_out(self) -> None:
        tested = {case.breaks for case in CASES + COLLECTIVE_CASES}
        left = {
            limit
            for limit in documented() - tested
            if not any(re.fullmatch(pattern, limit) for pattern in NOT_REACHED)
        }
        self.assertEqual(sorted(left), [])

    def test_no_case_is_for_a_limit_that_is_gone(self) -> None:
        known = documented()
        for case in CASES + COLLECTIVE_CASES:
            if re.match(r"[A-Z0-9_]+\.", case.breaks):
                self.assertIn(case.breaks, known)

    def test_what_later_hardware_has_is_refused_by_its_name(self) -> None:
        for name in ("nc_matmul_mx", "quantize_mx", "activate2", "rand2", "exponential"):
            with self.subTest(name):
                text = message_of(f"nisa.{name}()")
                self.assertRegex(text, rf"^limits_kernel\.py:{LINE}: nisa\.{name}: ")
                self.assertIn("trn3", text)


if __name__ == "__main__":
    unittest.main()
