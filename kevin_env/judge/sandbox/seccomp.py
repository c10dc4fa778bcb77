"""Which system calls a candidate may make: a seccomp filter in the kernel's classic BPF.

Everything is allowed except what is named here, which no compiler, torch or CUDA needs: access to
other processes' memory, the machine's clock, mounts, modules, new namespaces, tracing, the page
cache, kinds of memory and sockets that no other layer bounds, and work that the kernel does later,
in the time of others.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

from kevin_env.judge.sandbox.system import LIBC, NEW, Refused, check, prctl

_SAME = {  # from 424 on all architectures agree
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427, "open_tree": 428,
    "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "quotactl_fd": 443,
    "memfd_secret": 447, "cachestat": 451, "open_tree_attr": 467,
}  # fmt: skip
NUMBERS = {
    "x86_64": _SAME | {
        "ptrace": 101, "syslog": 103, "vhangup": 153, "modify_ldt": 154, "pivot_root": 155,
        "adjtimex": 159, "chroot": 161, "acct": 163, "settimeofday": 164, "mount": 165,
        "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "sethostname": 170,
        "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
        "quotactl": 179, "clock_settime": 227, "kexec_load": 246, "add_key": 248,
        "request_key": 249, "keyctl": 250, "migrate_pages": 256, "unshare": 272,
        "perf_event_open": 298, "fanotify_init": 300, "name_to_handle_at": 303,
        "open_by_handle_at": 304, "clock_adjtime": 305, "setns": 308, "process_vm_readv": 310,
        "process_vm_writev": 311, "kcmp": 312, "finit_module": 313, "kexec_file_load": 320,
        "bpf": 321, "userfaultfd": 323, "shmget": 29, "msgget": 68, "semget": 64, "mincore": 27,
        "timer_create": 222, "timerfd_create": 283, "epoll_create": 213, "epoll_create1": 291,
        "io_setup": 206, "sendmsg": 46, "sendmmsg": 307, "memfd_create": 319, "clone3": 435,
        "clone": 56, "socket": 41, "socketpair": 53, "connect": 42, "bind": 49, "mmap": 9,
        "seccomp": 317, "sched_setaffinity": 203, "sched_setscheduler": 144, "sched_setparam": 142,
        "sched_setattr": 314, "prlimit64": 302, "setpriority": 141, "ioprio_set": 251, "fcntl": 72,
    },
    "aarch64": _SAME | {
        "ptrace": 117, "syslog": 116, "vhangup": 58, "pivot_root": 41, "adjtimex": 171,
        "chroot": 51, "acct": 89, "settimeofday": 170, "mount": 40, "umount2": 39, "swapon": 224,
        "swapoff": 225, "reboot": 142, "sethostname": 161, "setdomainname": 162, "init_module": 105,
        "delete_module": 106, "quotactl": 60, "clock_settime": 112, "kexec_load": 104,
        "add_key": 217, "request_key": 218, "keyctl": 219, "migrate_pages": 238, "unshare": 97,
        "perf_event_open": 241, "fanotify_init": 262, "name_to_handle_at": 264,
        "open_by_handle_at": 265, "clock_adjtime": 266, "setns": 268, "process_vm_readv": 270,
        "process_vm_writev": 271, "kcmp": 272, "finit_module": 273, "kexec_file_load": 294,
        "bpf": 280, "userfaultfd": 282, "shmget": 194, "msgget": 186, "semget": 190, "mincore": 232,
        "timer_create": 107, "timerfd_create": 85, "epoll_create1": 20, "io_setup": 0,
        "sendmsg": 211, "sendmmsg": 269, "memfd_create": 279, "clone3": 435, "clone": 220,
        "socket": 198, "socketpair": 199, "connect": 203, "bind": 200, "mmap": 222, "seccomp": 277,
        "sched_setaffinity": 122, "sched_setscheduler": 119, "sched_setparam": 118,
        "sched_setattr": 274, "prlimit64": 261, "setpriority": 140, "ioprio_set": 30, "fcntl": 25,
    },
}  # fmt: skip
LATER = (
    "timer_create",
    "timerfd_create",
    "epoll_create",
    "epoll_create1",
    "io_setup",
    "sendmsg",
    "sendmmsg",
)
"""Makes the kernel do work later, even while its caller is stopped.

Examples are timers, file change events, and collecting descriptors that were sent but never
received. A timer with hundreds of waiters keeps a processor busy for a millisecond, and so do
gigabytes of a file that goes with its last descriptor: either made a reference half as fast.
"""
_SCHEDULING = ("sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
_CONDITIONAL = {
    *LATER,
    *(
        "memfd_create",
        "clone3",
        "clone",
        "socket",
        "socketpair",
        "connect",
        "bind",
        "mmap",
        "seccomp",
    ),
    *(*_SCHEDULING, "prlimit64", "setpriority", "ioprio_set", "fcntl"),
}
DENIED = tuple(sorted(set(NUMBERS["x86_64"]) - _CONDITIONAL))
"""Refused whatever the arguments."""
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32 = 0x40000000

_LOAD, _AND, _RETURN, _IF_EQUAL, _IF_AT_LEAST = 0x20, 0x54, 0x06, 0x15, 0x35
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NR, _ARCH, _ARGUMENTS = 0, 4, 16  # offsets in struct seccomp_data
_AF_UNIX, _SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_TYPES = 1, 1, 5, 0xF
_SHARED_ANONYMOUS, _SHARED_ANONYMOUS_MASK = 0x21, 0x23
_SET_LEASE = 1024
_NO_NEW_PRIVS, _SET_MODE_FILTER, _SPEC_ALLOW = 38, 1, 4

Instruction = tuple[int, int, int, int]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def restrict(isolated: bool, processes: bool, device: str, internet: Sequence[int] = ()) -> None:
    """Installs the filter for the caller and all that it starts.

    Args:
        isolated: Whether it has a network namespace and its own root directory. Without
            them it can connect no
            sockets but pairs.
        processes: Whether it has a process namespace. Without it, it may change only its
            own priority.
        device: `cpu` or `cuda:0`. On a CPU memory can be shared only in files; CUDA's
            pinned memory is
            shared.
        internet: With namespaces, address families besides Unix sockets. With any, also `LATER`,
            so that nothing is timed: NVIDIA's tools and coding agents need both.

    Raises:
        Refused: if the kernel has no such filters.
    """
    machine = os.uname().machine
    if machine not in NUMBERS:
        raise Refused(f"no system call numbers for {machine}")
    instructions = program(machine, isolated, processes, device == "cpu", internet)
    code = b"".join(struct.pack("HBBI", *each) for each in instructions)
    prctl(_NO_NEW_PRIVS, 1)
    filled = _Program(len(code) // 8, code)
    # without the flag, kernels before 5.16 switch off speculative store bypass, and every candidate
    # runs slower
    call = NUMBERS[machine]["seccomp"]
    check("seccomp", LIBC.syscall(call, _SET_MODE_FILTER, _SPEC_ALLOW, ctypes.byref(filled)))


def program(
    machine: str, isolated: bool, processes: bool, on_cpu: bool, internet: Sequence[int] = ()
) -> list[Instruction]:
    """The filter's instructions: operation, jump if true, jump if not, operand."""
    numbers = NUMBERS[machine]
    code = [
        (_LOAD, 0, 0, _ARCH),
        (_IF_EQUAL, 1, 0, _AUDIT_ARCH[machine]),
        _return(_KILL),
        (_LOAD, 0, 0, _NR),
    ]
    if machine == "x86_64":
        code += [(_IF_AT_LEAST, 0, 1, _X32), _return(_KILL)]
    for name in DENIED:
        if name in numbers:
            code += _when(numbers[name], [_deny()])
    for name in LATER if not internet else ():
        if name in numbers:
            code += _when(numbers[name], [_deny()])
    # its flags are in memory; libraries fall back to clone
    code += _when(numbers["clone3"], [_deny(errno.ENOSYS)])
    # memory that only a control group would count
    code += _when(numbers["memfd_create"], [_deny(errno.ENOSYS)])
    code += _when(
        numbers["clone"],
        [_argument(0), (_AND, 0, 0, NEW), (_IF_EQUAL, 1, 0, 0), _deny(), _return(_ALLOW)],
    )
    # a file's owner, as uid 0 of the system's, could delay others' open() by most of a minute
    code += _when(
        numbers["fcntl"], [_argument(1), (_IF_EQUAL, 0, 1, _SET_LEASE), _deny(), _return(_ALLOW)]
    )
    code += _sockets(numbers, isolated, on_cpu, internet) + _foreign_processes(numbers, processes)
    if on_cpu:
        masked = [
            _argument(3),
            (_AND, 0, 0, _SHARED_ANONYMOUS_MASK),
            (_IF_EQUAL, 0, 1, _SHARED_ANONYMOUS),
        ]
        code += _when(numbers["mmap"], [*masked, _deny(), _return(_ALLOW)])
    return [*code, _return(_ALLOW)]


def _sockets(
    numbers: dict[str, int], isolated: bool, on_cpu: bool, internet: Sequence[int]
) -> list[Instruction]:
    """With namespaces, Unix sockets and `internet`: others, such as vsock, belong to none."""
    unix = [_argument(0), (_IF_EQUAL, 1, 0, _AF_UNIX), _deny()]
    if isolated:
        more = [each for kind in internet for each in ((_IF_EQUAL, 0, 1, kind), _return(_ALLOW))]
        return _when(numbers["socket"], [_argument(0), *more, *unix[1:], _return(_ALLOW)])
    # a datagram socket could send to any path without being connected
    connected = [
        _argument(1),
        (_AND, 0, 0, _SOCK_TYPES),
        (_IF_EQUAL, 2, 0, _SOCK_STREAM),
        (_IF_EQUAL, 1, 0, _SOCK_SEQPACKET),
        _deny(),
        _return(_ALLOW),
    ]
    return [
        # cuInit opens and binds sockets, and fails with error 304 if it cannot
        *_when(numbers["socket"], [*unix, *connected]),
        *(_when(numbers["bind"], [_deny()]) if on_cpu else []),
        *_when(numbers["connect"], [_deny(errno.ECONNREFUSED)]),
        *_when(numbers["socketpair"], [*unix, *connected]),
    ]


def _foreign_processes(numbers: dict[str, int], processes: bool) -> list[Instruction]:
    """No limits for other processes, no priorities of groups, users or the supervisor (pid 1)."""
    one = (_IF_EQUAL, 0, 1, 1) if processes else (_IF_EQUAL, 1, 0, 0)
    code = _when(
        numbers["prlimit64"], [_argument(0), (_IF_EQUAL, 1, 0, 0), _deny(), _return(_ALLOW)]
    )
    for name in _SCHEDULING:
        code += _when(numbers[name], [_argument(0), one, _deny(), _return(_ALLOW)])
    for name, process in (("setpriority", 0), ("ioprio_set", 1)):
        kind = [_argument(0), (_IF_EQUAL, 1, 0, process), _deny()]
        code += _when(numbers[name], [*kind, _argument(1), one, _deny(), _return(_ALLOW)])
    return code


def _when(number: int, then: list[Instruction]) -> list[Instruction]:
    """Instructions for one system call; `then` returns."""
    return [(_IF_EQUAL, 0, len(then), number), *then]


def _argument(index: int) -> Instruction:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _return(value: int) -> Instruction:
    return (_RETURN, 0, 0, value)


def _deny(code: int = errno.EPERM) -> Instruction:
    return _return(_ERROR | code)
