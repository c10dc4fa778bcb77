"""A short compile path for `torch.utils.cpp_extension.load` and `load_inline`.

Most of such a build is reading torch's headers. The short headers in `headers/` declare what
kernels use; torch's libraries implement it. They are tried first. If anything fails, the extension
is built as torch builds it, and only errors of that build are shown.
"""

from kevin_env.extension.build import ShortPath, install

__all__ = ["ShortPath", "install"]
