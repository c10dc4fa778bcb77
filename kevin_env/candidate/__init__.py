"""The untrusted process that imports and runs one submission.

It uses the standard library and torch only, `kevin_env.extension` and `kevin_env.languages`.
Nothing here is trusted: a submission shares the interpreter with this code and may rewrite all of
it. The judge treats what it sends as claims. It also uses `wire`, `tree`, `region`, `cuda` and
`replay` in its own process.
"""
