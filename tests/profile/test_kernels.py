"""What cuobjdump 13 prints of kernels for compute capability 9.0, and text that nobody printed."""

import pytest

from kevin_env.profile.kernels import read_local_memory, shorten
from kevin_env.rules.vocabulary import is_library

NVCC = """
Fatbin elf code:
================
arch = sm_90
code version = [1,8]
host = linux
compile_size = 64bit

Resource usage:
 Common:
  GLOBAL:0
 Function _Z5spillPKfPfi:
  REG:92 STACK:256 SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
 Function _Z5copy4PK6float4PS_i:
  REG:14 STACK:0 SHARED:0 LOCAL:0 CONSTANT[0]:548 TEXTURE:0 SURFACE:0 SAMPLER:0
"""


def test_local_memory_of_what_nvcc_built() -> None:
    assert read_local_memory(NVCC) == {"spill": 256, "copy4": 0}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Function : " + "x" * 3_000_000,
        "\t\tFunction : \x1b[31mred\n REG:" + "9" * 50,
        " REG:92 STACK:256 SHARED:0 LOCAL:0\n",
        NVCC[:200],
    ],
)
def test_any_other_text_is_nothing(text: str) -> None:
    assert read_local_memory(text) == {}


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("softmax_kernel(const float *, float *, int)", "softmax_kernel"),
        ("void block_reduce<(bool)0, float4>(T2 *, unsigned long)", "block_reduce"),
        ("_Z5spillPKfPfi", "spill"),
        ("_ZN12_GLOBAL__N_14rowsEPf", "(anonymous)::rows"),
        ("_Z99999999999999999999a", "_Z99999999999999999999a"),
        ("a`b\n\x1bc", "a'b \x1bc"),
        ("", ""),
    ],
)
def test_names_are_shortened(name: str, short: str) -> None:
    assert shorten(name) == short


LIBRARIES = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)",
    "Memcpy DtoD (Device -> Device)", "nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", "ampere_sgemm_128x64_nn",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_warpgroupsize1x1x1_cublas",
    "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(T1::Params)",
    "void vector_fft<32u, 8u, 64u>(kernel_arguments_t<unsigned>)", "triton_poi_fused_add_0",
)  # fmt: skip


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_are_known_by_their_names(name: str) -> None:
    assert is_library(name)


@pytest.mark.parametrize(
    "name",
    ["softmax_kernel", "flash_fwd_kernel", "triton_matmul", "dot_kernel<float>(int)", "void own::gemm<4>(at)",
     "attention", "void cutlass::device_kernel<own::Gemm>(int)", "memory_bound", "format_at"],
)  # fmt: skip
def test_a_submissions_kernels_are_its_own(name: str) -> None:
    assert not is_library(name)


def test_a_name_of_megabytes_takes_no_time() -> None:
    assert (
        len(shorten("<" * 3_000_000 + "x")) <= 50 and len(shorten("_ZN" + "1a" * 1_000_000)) <= 50
    )
    assert not is_library("x" * 5_000_000)
