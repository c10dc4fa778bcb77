"""A short compile path for `torch.utils.cpp_extension.load` and `load_inline`.

Nearly all of such a build is the compiler reading torch's headers. Here are short ones that declare
what kernels use (`headers/`), found before torch's own, and implemented by what torch's libraries
export. They are tried first; when anything fails, the extension is built as torch builds it, and
only what that says is ever shown.
"""

from kevin_env.extension.build import ShortPath, install

__all__ = ["ShortPath", "install"]
