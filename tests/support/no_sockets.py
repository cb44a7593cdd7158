"""Runs a program under a filter of system calls, which it and its children cannot take off, that kills
whoever asks for a socket, of whatever kind: SIGSYS.

    python3 no_sockets.py PROGRAM [ARGUMENT…]"""

import ctypes
import os
import platform
import struct
import sys

# asm/unistd.h, linux/audit.h; of x86-64 no number of the x32 ABI either.
ABIS = {"x86_64": (41, 0xC000003E), "aarch64": (198, 0xC00000B7)}
LOAD, JUMP_EQUAL, JUMP_LESS, RETURN = 0x20, 0x15, 0x35, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, …|JGE|K, BPF_RET|K
KILL, ALLOW = 0x80000000, 0x7FFF0000  # SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_ALLOW
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2


def step(code, value, yes=0, no=0):
    return struct.pack("=HBBI", code, yes, no, value)


def program():
    number, arch = ABIS[platform.machine()]
    return [step(LOAD, 4), step(JUMP_EQUAL, arch, no=3),  # seccomp_data.arch, then .nr
            step(LOAD, 0), step(JUMP_LESS, 0x40000000, yes=1), step(JUMP_EQUAL, number, no=1),
            step(RETURN, KILL), step(RETURN, ALLOW)]


class Filter(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def forbid():
    libc = ctypes.CDLL(None, use_errno=True)
    steps = program()
    for words in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                  (PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(Filter(len(steps), b"".join(steps))), 0, 0)):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "the filter cannot be set")


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
