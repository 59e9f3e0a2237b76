"""What the packages that kernels import show of our modules: names of the API and no helpers."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from types import ModuleType
from typing import Any

from trnsim import private

LANGUAGE = """
NKIObject NkiTensor VirtualRegister abs abs_max abs_min add affine_range all all_reduce any arange
arctan arithmetic_shift_right atomic_rmw bfloat16 bfp16 bitwise_and bitwise_invert bitwise_or
bitwise_xor bool bool_ broadcast_to ceil copy cos device_print divide dropout ds dynamic_range
empty_like equal erf erf_dx exp expand_dims finfo float16 float32 float4_e2m1fn_x4 float8_e3m4
float8_e4m3 float8_e4m3fn float8_e4m3fn_x4 float8_e5m2 float8_e5m2_x4 float8_e8m0fnu floor fmod
fori_loop fp32 full full_like gather_flattened gelu gelu_apprx_sigmoid gelu_apprx_sigmoid_dx
gelu_apprx_tanh gelu_dx gemm_grid gemm_moving_grid gemm_stationary_grid greater greater_equal hbm
identity int16 int32 int8 invert left_shift less less_equal load load_transpose2d log logical_and
logical_not logical_or logical_xor loop_reduce matmul max maximum mean mgrid min minimum mish mod
multiply nc ndarray negative no_reorder not_equal num_programs ones ones_like par_dim power
private_hbm prod program_id program_ndim psum rand random_seed range reciprocal relu right_shift
rms_norm rsqrt sbuf sequential_range shared_constant shared_hbm shared_identity_matrix sigmoid sign
silu silu_dx sin sizeinbytes softmax softplus spmd_dim sqrt square static_cast static_range store subtract sum
tan tanh tensor tfloat32 tile_size transpose trunc uint16 uint32 uint8 var where while_loop zeros
zeros_like
""".split()

ISA = """
VirtualRegister activate2 activation activation_reduce affine_select bn_aggr bn_stats core_barrier
dge_mode dma_compute dma_copy dma_engine dma_transpose dropout engine exponential get_nc_sub_version
get_nc_version gpsimd_engine iota local_gather matmul_perf_mode max8 memset nc_find_index8
nc_match_replace8 nc_matmul nc_matmul_mx nc_n_gather nc_stream_shuffle nc_transpose nc_version
nonzero_with_count oob_mode quantize_mx rand2 rand_get_state rand_set_state range_select reciprocal
reduce_cmd register_alloc register_load register_move register_store rng scalar_engine
scalar_tensor_tensor select_reduce sendrecv sequence_bounds set_rng_seed sync_engine
tensor_copy tensor_copy_predicated tensor_engine tensor_partition_reduce tensor_reduce
tensor_scalar tensor_scalar_cumulative tensor_scalar_reduce tensor_tensor tensor_tensor_scan topk
unknown_engine vector_engine
""".split()

ISA_OLD = ISA + ["builtin_custom_op", "tensor_copy_dynamic_dst", "tensor_copy_dynamic_src"]


def names(module: ModuleType, listed: list[str]) -> dict[str, Any]:
    """The listed names of a module, for a package's globals()."""
    return {name: getattr(module, name) for name in listed}


def offloaded() -> dict[str, Any]:
    """Two private instructions that public kernels of the older generation use."""
    return {
        "_tiled_offloaded_memcpy": private._tiled_offloaded_memcpy,
        "_tiled_offloaded_fma": private._tiled_offloaded_fma,
    }


def unknown(package: str, known: list[str]) -> Callable[[str], Any]:
    """A module's `__getattr__`: names what is missing, and what is like it."""

    def missing(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        near = difflib.get_close_matches(name, known, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise AttributeError(f"{package}.{name} is not supported by trn-sim{hint}")

    return missing


def supported() -> list[tuple[str, str, str]]:
    """(name, "supported" or why it is refused, what it does) of all that the packages show."""
    from trnsim import collectives, compiler, kernel_types, nisa_old, nl

    rows = []
    for prefix, module, listed in (
        ("nl", nl, LANGUAGE),
        ("nisa", nisa_old, ISA_OLD),
        ("ncoll", collectives, collectives.__all__),
        ("ncc", compiler, compiler.__all__),
        ("nt", kernel_types, kernel_types.__all__),
    ):
        for name in sorted(listed):
            text = (getattr(getattr(module, name), "__doc__", "") or "").strip().split("\n")[0]
            if isinstance(getattr(module, name), (str, int)):
                text = ""
            state = "supported"
            if text.startswith("Refused: "):
                state, text = text[len("Refused: ") :].rstrip("."), ""
            rows.append((f"{prefix}.{name}", state, text))
    return rows
