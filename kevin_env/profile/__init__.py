"""What is found out about a submission after its verdict, and the roofline of its problem.

`look` decides what is done. `kernels` reads the claims of the candidate's profiler; `target` makes
the submission a program for external tools, which `outside` runs (`ncu`, `sanitizer`). Parsers take
untrusted text, and never raise. `roofline` counts the work of a problem, `ceilings` measures the
limits of the device.
"""
