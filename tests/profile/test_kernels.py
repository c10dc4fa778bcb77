"""Machine code as cuobjdump 13 prints it of kernels for compute capability 9.0, and text that
nobody printed.
"""

import pytest

from kevin_env.profile.kernels import KERNELS, is_library, read_sass, shorten

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

	code for sm_90
	.target	sm_90

		Function : _Z5spillPKfPfi
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0000*/                   LDC R1, c[0x0][0x28] ;                          /* 0x00000a00ff017b82 */
                                                                                   /* 0x000e220000000800 */
        /*00a0*/                   LDG.E R4, desc[UR4][R2.64] ;                    /* 0x0000000402047981 */
        /*04f0*/                   STL.128 [R1], R4 ;                              /* 0x0000000401007387 */
        /*0530*/                   STL.128 [R1+0x10], R8 ;                         /* 0x0000100801007387 */
        /*0a30*/                   LDL R6, [R9] ;                                  /* 0x0000000009067983 */
        /*1a30*/                   STG.E desc[UR4][R2.64], R6 ;                    /* 0x0000000602007986 */

		Function : _Z5copy4PK6float4PS_i
	.headerflags	@"EF_CUDA_SM90 EF_CUDA_VIRTUAL_SM(EF_CUDA_SM90)"
        /*0070*/               @P0 EXIT ;                                          /* 0x000000000000094d */
        /*00b0*/                   LDG.E.128 R8, desc[UR4][R2.64] ;                /* 0x0000000402087981 */
        /*00f0*/                   STG.E.128 desc[UR4][R4.64], R8 ;                /* 0x0000000804007986 */
"""

TRITON = """
Resource usage:
 Common:
  GLOBAL:0
 Function mm:
  REG:71 STACK:0 SHARED:1024 LOCAL:0 CONSTANT[0]:568 TEXTURE:0 SURFACE:0 SAMPLER:0

	code for sm_90a
		Function : mm
        /*0100*/              @!P0 LDG.E.128 R16, desc[UR16][R12.64] ;                    /* 0x000000100c107981 */
        /*0210*/                   LDG.E.U16.CONSTANT R3, desc[UR16][R12.64] ;            /* 0x000000100c107981 */
        /*0300*/                   LDGSTS.E.BYPASS.128 [R3], desc[UR6][R4.64] ;           /* 0x000000100c107981 */
        /*03a0*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4].tnspB, RZ, !UPT ;   /* 0x40e00000041879f0 */
        /*07a0*/                   STG.E.128 desc[UR16][R4.64], R8 ;                      /* 0x0000000804007986 */
        /*07f0*/                   UTMALDG.2D [UR8], [UR4] ;                              /* 0x0000000804007986 */
"""


def test_widths_and_local_memory_of_what_nvcc_built() -> None:
    spill, copy = read_sass(NVCC)
    assert (spill.kernel, spill.registers, spill.local_memory, spill.local_accesses) == (
        "spill",
        92,
        256,
        3,
    )
    assert (spill.load_bytes, spill.store_bytes, spill.tensor_cores) == ((4,), (4,), ())
    assert (copy.kernel, copy.registers, copy.local_memory, copy.local_accesses) == (
        "copy4",
        14,
        0,
        0,
    )
    assert (copy.load_bytes, copy.store_bytes) == ((16,), (16,))
    assert spill.source == copy.source == "inside"


def test_tensor_cores_and_bulk_copies_of_what_triton_built() -> None:
    (mm,) = read_sass(TRITON)
    assert (mm.tensor_cores, mm.bulk_copies, mm.shared_memory) == (("HGMMA",), True, 1024)
    assert (mm.load_bytes, mm.store_bytes) == ((2, 16), (16,))


def test_kernels_of_libraries_are_left_out_and_few_are_kept() -> None:
    assert read_sass(NVCC.replace("_Z5copy4PK6float4PS_i", "_ZN2at6native4copyEv"))[1:] == ()
    many = "".join(
        f"\t\tFunction : f{n}\n        /*0000*/                   EXIT ;\n" for n in range(50)
    )
    assert len(read_sass(many)) == KERNELS


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Function : " + "x" * 3_000_000,
        "\t\tFunction : \x1b[31mred\n REG:" + "9" * 50,
        NVCC[:700],
    ],
)
def test_any_text_is_read_without_an_error(text: str) -> None:
    for facts in read_sass(text):
        assert len(facts.kernel) <= 50 and "\x1b" not in facts.kernel


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
