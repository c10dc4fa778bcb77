"""Profiles and sanitizer runs of a submission, made on request and after its verdict, from a fresh
candidate.

`look` decides what is done. `inside` asks the candidate's own profiler; `target` makes the
submission a program of its own for tools that start one (`ncu`, `sanitizer`); `code` reads its
machine code. Parsers take text that anyone may have written, and never raise.
"""
