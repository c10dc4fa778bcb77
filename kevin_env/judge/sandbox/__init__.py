"""What a candidate process may do, restricted between the fork and the submission's first line.

Each module is one layer: `filesystem` (what it can see and open; `readable` lists what), `seccomp`
(which system calls it may make), `system` (namespaces, capabilities and limits), `cgroups` (memory
and processes counted by the kernel). `levels` finds which of them this machine allows. What they
protect together is tried (`attempts`): a protection that an attempt broke is reported as missing.
`command` puts a coding agent in the same sandbox, with the network.

The steps are direct system calls, because a warmed interpreter cannot pass through a program such
as bwrap that ends in exec (docs/decisions.md has the figures).
"""
