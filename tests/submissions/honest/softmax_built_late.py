"""Softmax by an extension on Python's C API that is only built when the model is first called.

problem: softmax.py
device: cpu
rules: kernel
expect: correct
"""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <Python.h>
#include <cmath>

static PyObject* softmax(PyObject*, PyObject* arguments) {
    Py_ssize_t from, to, rows, columns;
    if (!PyArg_ParseTuple(arguments, "nnnn", &from, &to, &rows, &columns)) return nullptr;
    const float* in = reinterpret_cast<const float*>(from);
    float* out = reinterpret_cast<float*>(to);
    for (Py_ssize_t row = 0; row < rows; ++row, in += columns, out += columns) {
        float most = in[0], sum = 0;
        for (Py_ssize_t i = 1; i < columns; ++i) most = in[i] > most ? in[i] : most;
        for (Py_ssize_t i = 0; i < columns; ++i) sum += out[i] = std::exp(in[i] - most);
        for (Py_ssize_t i = 0; i < columns; ++i) out[i] /= sum;
    }
    Py_RETURN_NONE;
}

static PyMethodDef methods[] = {{"softmax", softmax, METH_VARARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "softmax_late", nullptr, -1, methods};
PyMODINIT_FUNC PyInit_softmax_late() { return PyModule_Create(&module); }
"""

_ext = None


def extension():
    global _ext
    if _ext is None:
        _ext = load_inline("softmax_late", SOURCE, extra_cflags=["-O3"], no_implicit_headers=True)
    return _ext


class ModelNew(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        extension().softmax(x.data_ptr(), out.data_ptr(), x.shape[0], x.shape[1])
        return out
