"""Judges the kernels of a KernelBench run again and compares the verdicts."""
