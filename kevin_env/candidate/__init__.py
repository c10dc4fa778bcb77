"""The untrusted side: the process that imports and runs one submission.

Standard library and torch only; nothing here imports anything else of ours. Nothing here is trusted
either: a submission shares the interpreter with this code and may rewrite all of it. What it sends
is a claim, and the judge treats it as one. `wire`, `tree` and `cuda` are also used by the judge, in
its own process.
"""
