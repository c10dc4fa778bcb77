"""Kernels for modules like the task's, from an index, to be shown in the first prompt. Needs the
extra `retrieval`.

It lies below `kevin_env.context`, which asks it for what to show; what it needs is imported where
it is used, so that everything else works without the extra.
"""
