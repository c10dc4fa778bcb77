"""Correct kernels broken automatically, to measure what the comparison of a verdict finds.

`code` changes the source of a reference, or of a rewrite that is as right, by its syntax tree;
`values` changes right outputs as broken kernels do; `precision` runs the reference in narrower
arithmetic, with `functions`, and with `arithmetic.py` and `rounding.py` of the tests, which must be
importable. `samples` draws the input sets, `jury` gives the verdicts and sorts out the mutants that
are as right as the reference. `tokens` changes the text of C++ and Triton kernels for a real
candidate.
"""
