"""What a candidate process may do, applied by itself between the fork and the first line of the
submission.

Each module is one layer: `namespaces` and `root` (what it can see), `landlock` (which of that it
may open), `calls` (which system calls it may make), `privileges` (capabilities and limits),
`groups` (memory and processes that the kernel counts). `levels` says which of them this machine
allows and what they protect together; a step that is refused is reported as missing, never skipped
in silence. The steps are direct system calls because a warmed interpreter cannot be handed through
a program such as bwrap that ends in exec (docs/decisions.md has the figures).
"""
