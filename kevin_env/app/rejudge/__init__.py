"""Judges a run of KernelBench again, and compares the verdicts."""
