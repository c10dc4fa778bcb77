"""Retrieval of kernels for similar references, for the first prompt. Needs the extra `retrieval`.

Modules of the extra are imported where they are used, so that everything else works without it.
"""
