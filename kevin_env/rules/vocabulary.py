"""Names of torch, Python and other packages, by what their calls do.

Paths are resolved through imports (`F.relu` is `torch.nn.functional.relu`), never as spelled.
"""

import functools
from importlib import resources


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ALLOCATE = _words(
    "empty empty_strided empty_permuted zeros ones full tensor as_tensor asarray from_numpy frombuffer from_dlpack "
    "scalar_tensor Tensor FloatTensor DoubleTensor HalfTensor BFloat16Tensor LongTensor IntTensor BoolTensor "
    "arange linspace eye rand rand_like randn randn_like randint randperm tril_indices triu_indices complex"
)
"""Functions of `torch` that make a tensor of what is no tensor."""
SAME_SIZE = _words(
    "empty_like zeros_like ones_like full_like clone reshape transpose permute squeeze unsqueeze flatten unflatten "
    "ravel movedim moveaxis swapaxes swapdims t adjoint view view_as reshape_as contiguous detach detach_ data copy_ "
    "requires_grad_ zero_ fill_ squeeze_ unsqueeze_ transpose_ t_ to type type_as float double half bfloat16 int long "
    "bool cuda cpu pin_memory numpy astype copy T mT H mH resolve_conj resolve_neg view_as_real view_as_complex "
    "broadcast_to expand expand_as atleast_1d atleast_2d atleast_3d"
)
"""Functions and methods that give a tensor of as many elements as they are given, or more."""
PARTS = _words(
    "narrow select as_strided diagonal real imag unfold split chunk tensor_split hsplit vsplit dsplit unbind "
    "split_with_sizes new_empty new_empty_strided new_zeros new_ones new_full new_tensor new grad"
)
"""Those that give a part of it, several parts, or a new tensor."""
SEVERAL = _words("split chunk tensor_split hsplit vsplit dsplit unbind split_with_sizes")
MOVES = _words(
    "cat concat concatenate stack hstack vstack dstack column_stack row_stack pad constant_pad_nd repeat tile roll "
    "flip fliplr flipud rot90 repeat_interleave"
)
"""Operations that only move elements. Moving weights into a cache is preparation; moving an input
is not.
"""
REDUCTIONS = _words(
    "sum mean max min amax amin argmax argmin any all norm prod var std logsumexp median mode nansum nanmean trace "
    "count_nonzero aminmax vector_norm matrix_norm mse_loss l1_loss cross_entropy nll_loss kl_div item equal allclose"
)
"""Operations whose result is small."""
CONTAINERS = _words("ModuleList ModuleDict ParameterList ParameterDict Sequential")
PARAMETERS = _words("Parameter Buffer UninitializedParameter")
NO_LAYERS = PARAMETERS | _words("Module Identity Flatten Unflatten")
"""Classes of `torch.nn` whose call computes nothing."""
ITSELF = _words(
    "train eval to cuda cpu xpu ipu mtia float half double bfloat16 type requires_grad_ share_memory to_empty apply "
    "_apply __copy__ __deepcopy__ _replicate_for_data_parallel"
)
"""Methods of an `nn.Module` that give the module itself, or a copy of it."""
CONTENTS = _words(
    "children modules named_children named_modules get_submodule parameters named_parameters buffers"
)
"""Methods of an `nn.Module` that give what it holds."""
MODULE_METHODS = _words(
    "zero_grad state_dict load_state_dict add_module register_module register_buffer register_parameter "
    "named_buffers get_parameter get_buffer extra_repr compile training register_forward_hook "
    "register_forward_pre_hook register_load_state_dict_post_hook _register_load_state_dict_pre_hook __init__ "
    "save_for_backward mark_dirty mark_non_differentiable set_materialize_grads _get_name"
)
"""Other methods that every `nn.Module`, or context of an autograd function, has, and that launch no
kernel.
"""
LAYERS_WITHIN = _words(
    "encoder decoder layers self_attn multihead_attn out_proj linear1 linear2 norm norm1 norm2 norm3 dropout1 dropout2 "
    "dropout3 activation head tail module"
)
"""Attributes of torch's layers that are layers."""
PLAIN_METHODS = frozenset(
    name for kind in (str, bytes, list, dict, set, tuple, int, float) for name in dir(kind)
) | _words(
    "popleft appendleft move_to_end record synchronize wait_stream wait_event elapsed_time query wait numel"
)
"""Methods of Python's own types, of streams and of events: none launches a kernel."""

WRAPPERS = _words(
    "torch.compile torch.jit.script torch.jit.trace torch.jit.ignore torch.jit.unused torch.jit.export torch.fx.wrap "
    "torch.no_grad torch.enable_grad torch.inference_mode torch.autocast torch.vmap torch.func.vmap "
    "torch.cuda.make_graphed_callables torch.compiler.disable torch._dynamo.disable copy.copy copy.deepcopy "
    "torch.library.wrap_triton functools.wraps functools.lru_cache functools.cache contextlib.contextmanager "
    "torch.amp.custom_fwd torch.amp.custom_bwd torch.cuda.amp.custom_fwd torch.cuda.amp.custom_bwd "
    "torch.nn.utils.weight_norm torch.nn.utils.spectral_norm torch.nn.utils.fusion.fuse_conv_bn_eval "
    "torch.nn.utils.parametrizations.weight_norm torch.nn.utils.parametrizations.spectral_norm "
    "torch.autograd.function.once_differentiable builtins.list builtins.tuple builtins.set builtins.reversed "
    "builtins.iter builtins.next builtins.sorted builtins.enumerate builtins.zip builtins.dict "
    "collections.OrderedDict collections.defaultdict collections.deque types.SimpleNamespace"
)
"""Calls, and decorators, that give back what they are given or hold it: what comes out does what
went in does.
"""
EXTENSION_MAKERS = _words(
    "torch.utils.cpp_extension.load torch.utils.cpp_extension.load_inline torch.cuda._compile_kernel "
    "torch.utils.cpp_extension._import_module_from_library torch.cuda.CUDAGraph torch.ops.load_library "
    "torch.cuda.jiterator._create_jit_fn torch.cuda.jiterator._create_multi_output_jit_fn "
    "ctypes.CFUNCTYPE ctypes.PYFUNCTYPE ctypes.CDLL ctypes.PyDLL numpy.ctypeslib.load_library"
)
"""Calls that give a kernel, a library of kernels, or a graph of them."""
FAKES = _words("register_fake impl_abstract register_autograd register_vmap")
"""Functions of `torch.library` that take functions which do not run when the operator is called."""
BUILTINS_COMPUTE = _words("abs sum min max pow round")
PLAIN_BUILTINS = BUILTINS_COMPUTE | _words(
    "all any ascii bin bool bytes callable chr complex divmod float format hasattr hash hex id input int isinstance "
    "issubclass len oct ord print range repr slice str setattr delattr property staticmethod classmethod"
)
PLAIN_MODULES = _words(
    "math time os sys logging warnings hashlib re json struct pathlib tempfile subprocess ctypes typing"
)
"""What of Python's own gives nothing that could be called and launch a kernel."""
COMPUTING_PACKAGES = _words(
    "einops opt_einsum jax tensorflow sklearn cv2 torchvision torchaudio xformers flash_attn transformers numexpr "
    "onnxruntime apex transformer_engine bitsandbytes flashinfer liger_kernel vllm kornia torchmetrics pandas polars "
    "torch_scatter torch_sparse tensorrt torch_geometric mamba_ssm causal_conv1d fla triton_kernels"
)
"""Packages whose functions compute when they are handed a tensor."""
BUILT_IN_OPERATORS = _words(
    "aten prims prim mkl mkldnn mkldnn_prepacked onednn cudnn quantized _quantized sparse inductor xnnpack torchvision "
    "torchaudio"
)
"""Namespaces of `torch.ops` that are torch's own."""
NUMPY_PRODUCTS = _words("matmul vdot inner tensordot einsum convolve correlate")
"""Functions of NumPy that have no use but what a kernel should compute, whatever array they are
given.
"""
REFERENCE_PACKAGES = _words("kevin_env reference problem problems")
"""Where `Model` could be imported from."""


@functools.cache
def torch_operations() -> frozenset[str]:
    """Stems of the names of torch's own operators that compute: `add` for `add_` and `add_out`,
    too.

    A test names those of a new torch that are missing; views, questions and casts stay out.
    """
    return _words(
        (resources.files("kevin_env.rules") / "torch_operations.txt").read_text(encoding="utf-8")
    )


def stem(name: str) -> str:
    """`add` for `add_` and `add_out`."""
    return name.removesuffix("_out").strip("_")


def computes(name: str) -> bool:
    """Whether a function or a method of torch of that name, without its namespace, computes."""
    return stem(name) in torch_operations()
