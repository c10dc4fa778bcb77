"""What torch may do under the rules `kernel`: names, no logic. What is not listed here computes.

Paths are as imported and resolved (`F.relu` is `torch.nn.functional.relu`), never as spelled.
"""

from collections import OrderedDict, deque


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ALLOCATE = _words(
    "empty empty_like empty_strided empty_permuted zeros zeros_like ones ones_like full full_like tensor as_tensor "
    "asarray from_numpy frombuffer from_dlpack scalar_tensor clone Tensor FloatTensor DoubleTensor HalfTensor "
    "BFloat16Tensor LongTensor IntTensor ShortTensor CharTensor ByteTensor BoolTensor arange"
)
_VIEW = _words(
    "reshape transpose permute squeeze unsqueeze flatten unflatten ravel movedim moveaxis swapaxes swapdims t narrow "
    "select as_strided broadcast_to view_as_real view_as_complex real imag diagonal adjoint atleast_1d atleast_2d "
    "atleast_3d detach resolve_conj resolve_neg"
)
_PIECES = _words(
    "split chunk tensor_split hsplit vsplit dsplit unbind split_with_sizes broadcast_tensors unsafe_split unsafe_chunk "
    "unsafe_split_with_sizes"
)

TORCH_TENSOR = _ALLOCATE | _VIEW
"""Functions of `torch` that may be called and return a tensor."""
TORCH_TENSORS = _PIECES
"""Functions of `torch` that may be called and return several tensors."""
TORCH_OTHER = _words(
    "device dtype Size Generator finfo iinfo numel broadcast_shapes result_type promote_types can_cast typename "
    "no_grad enable_grad inference_mode autocast manual_seed initial_seed seed use_deterministic_algorithms "
    "are_deterministic_algorithms_enabled compiled_with_cxx11_abi __version__ _assert _check Stream Event"
)
"""Functions of `torch` that may be called and return no tensor; so may all `torch.is_*`, `get_*` and `set_*`, and the
methods of what these give (`torch.Size.numel`, `torch.Event.record`)."""
TORCH_CONSTANTS = _words(
    "float float16 float32 float64 half double bfloat16 bool uint8 uint16 uint32 uint64 int int8 int16 int32 int64 "
    "short long complex32 complex64 complex128 chalf cfloat cdouble float8_e4m3fn float8_e5m2 float8_e4m3fnuz "
    "float8_e5m2fnuz float8_e8m0fnu float4_e2m1fn_x2 quint8 qint8 qint32 quint4x2 strided sparse_coo sparse_csr "
    "contiguous_format channels_last channels_last_3d preserve_format inf nan pi e newaxis __version__ "
    "__file__ __path__ "
    "autograd compile distributed export fx hub init jit multiprocessing nn ops optim serialization testing types utils"
)
"""What of `torch` is a type, a layout, a number, or a package that may be handed on."""
_NAMESPACES = _words(
    "cuda. accelerator. cpu. xpu. version. backends. library. profiler. compiler. _dynamo. utils.cpp_extension. "
    "utils.dlpack. ops.load_library. overrides. amp. _C._cuda autograd.profiler. nn.Module. "
    "nn.modules.utils. random. utils._triton. utils.weak. utils._pytree. _inductor.runtime. _C._dynamo.guards. "
    "_C._get_tracing_state. __config__. _check_is_size. _check_index. UntypedStorage."
)
TORCH_NAMESPACES = tuple(f"torch.{name}" for name in sorted(_NAMESPACES))
"""Namespaces for devices, streams, events, graphs and building, in which everything may be called ..."""
TORCH_COMPUTING_NAMESPACES = (
    *("torch.cuda.comm.", "torch.cuda.nccl.", "torch.overrides.handle_torch_function", "torch.nn.Module.__call__"),
    *("torch.nn.Module._call_impl", "torch.nn.Module._wrapped_call_impl", "torch.library.opcheck"),
    *("torch.overrides.get_testing_overrides", "torch._dynamo.utils.", "torch._dynamo.polyfills."),
    *("torch.overrides.get_overridable_functions", "torch.amp.GradScaler", "torch.cuda.amp.GradScaler"),
)
"""... but these."""

TENSOR_TENSOR = _VIEW | _words(
    "view view_as reshape_as expand expand_as contiguous unfold detach detach_ data requires_grad_ clone copy_ zero_ "
    "fill_ resize_ set_ squeeze_ unsqueeze_ transpose_ t_ as_strided_ to type type_as float double half bfloat16 int "
    "long short char byte bool cfloat cdouble chalf cuda cpu pin_memory share_memory_ new_empty new_empty_strided "
    "new_zeros new_ones new_full new_tensor new numpy astype T mT H mH resolve_conj resolve_neg __getitem__ "
    "untyped_storage storage copy"
)
"""Methods of a tensor that may be called and return a tensor (or what stands for one)."""
TENSOR_TENSORS = _PIECES
TENSOR_OTHER = _words(
    "size stride shape numel nelement dim ndimension ndim element_size itemsize nbytes storage_offset data_ptr dtype "
    "device layout get_device is_cuda is_cpu is_contiguous is_floating_point is_complex is_signed is_pinned is_shared "
    "is_conj is_neg is_set_to is_sparse is_leaf is_inference is_meta is_quantized is_same_size _is_view _version "
    "requires_grad dim_order record_stream item tolist ctypes names strides flags __cuda_array_interface__ "
    "__array_interface__ __dlpack__ __dlpack_device__ __len__ __repr__ __str__ __format__ __setitem__ register_hook "
    "fill tobytes"
)
"""Methods and attributes of a tensor that ask for something and return no tensor."""
TENSOR_NAMES = TENSOR_TENSOR | TENSOR_TENSORS | TENSOR_OTHER
TENSOR_VIEWS_AS_ATTRIBUTES = _words("T mT H mH data real imag grad")
TENSOR_MARKS = _words("shape device dtype data_ptr contiguous stride numel is_contiguous is_cuda")
"""What is only ever asked of a tensor: a parameter of `forward` of which it is asked is one."""

WRAPPERS = _words(
    "torch.compile torch.jit.script torch.jit.trace torch.jit.ignore torch.fx.wrap torch.no_grad torch.enable_grad "
    "torch.inference_mode torch.autograd.no_grad torch.autograd.enable_grad torch.autograd.inference_mode "
    "torch.autograd.grad_mode.no_grad torch.autograd.grad_mode.enable_grad torch.autograd.grad_mode.inference_mode "
    "torch.cuda.make_graphed_callables torch.compiler.disable torch.autocast torch.vmap "
    "torch.func.vmap torch.jit.unused torch.jit.export torch.jit.script_if_tracing concurrent.futures.as_completed "
    "builtins.staticmethod builtins.classmethod builtins.property builtins.memoryview"
)
"""Calls that give back what they are given: what comes out does what went in does."""
EXTENSION_MAKERS = _words(
    "torch.utils.cpp_extension.load torch.utils.cpp_extension.load_inline torch.cuda._compile_kernel "
    "torch.utils.cpp_extension._import_module_from_library "
    "torch._inductor.async_compile.AsyncCompile torch._inductor.codecache.AsyncCompile "
    "torch._inductor.codecache.CppCodeCache.load torch.cuda.jiterator._create_jit_fn "
    "torch.cuda.jiterator._create_multi_output_jit_fn"
)
LIBRARY_MAKERS = _words(
    "ctypes.CFUNCTYPE ctypes.PYFUNCTYPE ctypes.CDLL ctypes.PyDLL ctypes.cdll.LoadLibrary "
    "ctypes.pydll.LoadLibrary numpy.ctypeslib.load_library cupy.RawKernel cupy.RawModule cupy.ElementwiseKernel "
    "cupy.ReductionKernel cffi.FFI pycuda.compiler.SourceModule"
)
"""Calls that give a kernel, or a library of kernels."""
LIBRARIES_BY_NAME = ("ctypes.cdll.", "ctypes.pydll.")
"""Where a library is an attribute or an entry, such as `ctypes.cdll["./kernel.so"]`, and each of its functions one."""
LAUNCHERS = _words("cuLaunchKernel cuLaunchKernelEx cuLaunchCooperativeKernel cudaLaunchKernel launch")
"""What in NVIDIA's package `cuda` launches a kernel that it is handed."""
MODULE_PATHS = _words("torch.nn.Module torch.nn.modules.Module torch.nn.modules.module.Module")
"""Where the class of all modules may be imported from."""
OF_KERNELS = _words("triton.autotune triton.heuristics")
"""Decorators of kernels. What else Triton is given it calls beside them: hooks, pruners, what its tuner asks."""
CONTAINERS = _words("ModuleList ModuleDict ParameterList ParameterDict Sequential")
PARAMETERS = _words("Parameter Buffer UninitializedParameter")
FREE_MODULES = _words("Identity Flatten Unflatten")
"""Modules whose call is a view."""
MODULE_ITSELF = _words(
    "train eval to cuda cpu xpu ipu mtia float half double bfloat16 type requires_grad_ share_memory to_empty apply "
    "_apply __copy__ __deepcopy__ _replicate_for_data_parallel"
)
"""Methods of an `nn.Module` that give the module itself, or a copy of it."""
LAYERS_WITHIN = _words(
    "encoder decoder layers self_attn multihead_attn out_proj linear1 linear2 norm norm1 norm2 norm3 dropout1 dropout2 "
    "dropout3 activation head tail module"
)
"""Attributes of torch's layers that are layers."""
MODULE_METHODS = (MODULE_ITSELF - {"apply"}) | _words(
    "zero_grad state_dict load_state_dict "
    "add_module register_module register_buffer register_parameter named_parameters named_buffers "
    "get_parameter get_buffer extra_repr compile training register_forward_hook "
    "register_forward_pre_hook register_load_state_dict_post_hook _register_load_state_dict_pre_hook __init__ __new__ "
    "__setattr__ save_for_backward mark_dirty mark_non_differentiable set_materialize_grads"
)
"""Methods that every `nn.Module` (or context of an autograd function) has, and that reach no kernel."""
MODULE_ENTRIES = _words("_modules _parameters _buffers __dict__")
"""Attributes of an `nn.Module` that hold its other attributes by name."""
MODULE_LISTS = _words("children modules parameters buffers named_children named_modules get_submodule")
"""Methods of an `nn.Module` that give its other attributes; with their names where the method's is `named_`."""
MODULE_CONTENTS = MODULE_ENTRIES | MODULE_LISTS

_COLLECTIONS = {*dir(list), *dir(dict), *dir(set), *dir(OrderedDict), *dir(deque), "_replace", "_asdict", "_make"}
CONTAINER_METHODS = frozenset({*_COLLECTIONS, *MODULE_METHODS, *MODULE_CONTENTS})
"""What a list, a dictionary, a named tuple or a container of modules has besides its entries."""
BUILT_IN_OPERATORS = _words(
    "aten prims prim rngprims debugprims _native mkl mkldnn mkldnn_prepacked onednn cudnn quantized _quantized "
    "quantization quantized_decomposed sparse static_runtime inductor inductor_prims c10d c10d_functional "
    "_c10d_functional _c10d_functional_autograd _dtensor symm_mem fsdp flex_lib higher_order xnnpack torchvision "
    "torchaudio"
)
"""Namespaces of `torch.ops` that are torch's own, whatever a submission registers there."""
VIEWING_OPERATORS = _words("torch.ops.inductor._reinterpret_tensor")
"""Those of them that make a view."""
FAKES = _words("register_fake impl_abstract register_autograd register_vmap")
"""What of `torch.library` takes functions that do not run when the operator is called."""
NUMPY_VIEWS = _words("frombuffer ctypeslib.as_array memmap ndarray")
"""Functions of NumPy that make an array of memory, of which nobody knows whose it is."""
NUMPY_PRODUCTS = ("matmul", "dot", "vdot", "inner", "tensordot", "einsum", "linalg.", "fft.", "convolve", "correlate")
"""Those that have no honest use on anything but what a kernel should compute."""
NUMPY_HARMLESS = _words(
    "from_dlpack cuda.Stream cuda.ExternalStream "
    "empty empty_like zeros zeros_like ones ones_like full full_like array asarray ascontiguousarray frombuffer "
    "asanyarray asfortranarray require reshape transpose swapaxes moveaxis expand_dims squeeze ravel broadcast_to "
    "rearrange copyto shape ndim size dtype ctypeslib.as_array ctypeslib.ndpointer ctypeslib.as_ctypes"
)
SCALARS = _words(
    "void bool char short int long unsigned signed float double size_t ssize_t ptrdiff_t intptr_t uintptr_t int8_t "
    "int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t string std::string std::size_t std::int32_t "
    "std::int64_t std::uint8_t std::uint32_t std::uint64_t"
)
"""Types that a function in C++ returns when it returns no tensor ..."""
SEVERAL = _words("std::vector std::array std::tuple std::pair vector array tuple pair const")
"""... and containers of them."""
OPERATIONS = _words(
    "abs adaptive_avg_pool2d add addbmm addcdiv addcmul addmm addmv addr all amax amin aminmax any argmax argmin "
    "argsort avg_pool1d avg_pool2d avg_pool3d baddbmm batch_norm bernoulli bilinear binary_cross_entropy bincount "
    "bmm cat cdist celu clamp clip concat conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
    "convolution cos cross_entropy cumprod cumsum div dot einsum elu embedding eq erf exp fft flip floor gather ge "
    "gelu glu group_norm gru gt hardswish hardtanh histc index_add index_select instance_norm inverse kron "
    "layer_norm leaky_relu lerp linear log log_softmax logcumsumexp logsumexp lstm lt masked_fill masked_select "
    "matmul max max_pool1d max_pool2d max_pool3d maximum mean median min minimum mish mm mse_loss mul "
    "multi_head_attention_forward mv native_layer_norm neg nll_loss norm outer pow prod reciprocal relu relu6 "
    "repeat_interleave rms_norm roll rsqrt scaled_dot_product_attention scatter scatter_add selu sigmoid silu sin "
    "softmax softmin softplus softsign sort sqrt square stack std sub sum tan tanh tensordot topk trapz tril triu "
    "unique var vector_norm where"
)
"""Operations that compute, as they are called on any side of torch. Not all: only where it takes a name to tell."""
ANYBODYS = _words(
    "add sub mul div sum prod mean any all sort clamp clip dot inverse reciprocal eq ne lt le gt ge neg addr"
)
"""Operations whose names other classes in C++ have for methods of their own."""
TENSOR_CLASSES = _words("torch.Tensor torch.nn.Parameter torch.nn.parameter.Parameter")
COMPUTING_PACKAGES = _words(
    "einops opt_einsum jax tensorflow sklearn cv2 torchvision torchaudio xformers flash_attn transformers numexpr "
    "nvmath skcuda onnxruntime apex transformer_engine bitsandbytes flashinfer liger_kernel vllm sgl_kernel deep_gemm "
    "kornia torchmetrics tinygrad mlx paddle keras mxnet pandas polars triton_kernels cuml torch_scatter torch_sparse "
    "tensorrt openvino dask aitemplate cupyx nvidia cudnn thunder quack torchao fla causal_conv1d mamba_ssm natten "
    "torch_geometric spconv"
)
"""Packages whose functions compute when they are handed a tensor."""
COMPUTING_LIBRARIES = (
    *("libcublas", "libcudnn", "libcusparse", "libcusolver", "libcufft", "libtorch"),
    *("libmkl", "libdnnl", "libopenblas", "libblas", "libcblas"),
)
"""How the names of libraries begin that compute what is asked for."""
MODEL = "ModelNew"
NAMESPACES = _words("torch torch.nn.functional torch.ops torch.ops.aten torch._C._VariableFunctions")
"""Modules that give operations to whoever is handed them, or looks a name up in them that is not written out."""
