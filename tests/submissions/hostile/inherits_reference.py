"""Inherits everything from the reference, which it hopes to find beside it.

problem: softmax.py
device: any
rules: kernel
expect: rules/inherits_reference
"""

from problem import Model


class ModelNew(Model):
    pass
