"""Profiles and sanitizer runs of a submission, made after its verdict in a fresh candidate.

`look` decides what is done. `kernels` reads the claims of the candidate's profiler and its machine
code; `target` makes the submission a program for external tools, which `outside` runs (`ncu`,
`ncu_session`). Parsers take untrusted text, and never raise.
"""
