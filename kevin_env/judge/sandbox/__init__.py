"""What a candidate process may do, restricted between the fork and the submission's first line.

Each module is one layer: `filesystem` (what it can see and open), `seccomp` (which system calls it
may make), `system` (namespaces, capabilities and limits), `cgroups` (memory and processes counted
by the kernel). `levels` finds which of them this machine allows and what they protect together; a
step that is refused is reported as missing, never skipped in silence.

The steps are direct system calls, because a warmed interpreter cannot pass through a program such
as bwrap that ends in exec (docs/decisions.md has the figures).
"""
