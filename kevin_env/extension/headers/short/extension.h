// The rest of torch/extension.h: the binding, which CUDA sources without bindings omit.
#pragma once

#include "torch.h"

#if !defined(__CUDACC__) || defined(KEVIN_SHORT_PYTHON)
#include "pybind.h"
namespace py = pybind11;
namespace torch {
template <typename Return, typename... Args>
kevin_short::Wrapped<Return (*)(Args...)> wrap_pybind_function(Return (*target)(Args...)) {
  return {target};
}
}  // namespace torch
#endif
