"""Runs a program for which making a namespace fails with EPERM, as where they are switched off."""

import ctypes
import os
import struct
import sys

UNSHARE, CLONE = {"x86_64": (272, 56), "aarch64": (97, 220)}[os.uname().machine]
CLONE3 = 435
# Every flag of clone(2) that makes a namespace.
NAMESPACES = 0x7E020000
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, JUMP_IF_SET, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, EPERM, ENOSYS = 0x7FFF0000, 0x00050001, 0x00050026
NUMBER, FIRST_ARGUMENT = 0, 16

program = b"".join(
    struct.pack("=HBBI", *instruction)
    for instruction in [
        (LOAD, 0, 0, NUMBER),
        (JUMP_IF_EQUAL, 4, 0, UNSHARE),
        (JUMP_IF_EQUAL, 4, 0, CLONE3),
        (JUMP_IF_EQUAL, 0, 4, CLONE),
        (LOAD, 0, 0, FIRST_ARGUMENT),
        (JUMP_IF_SET, 0, 2, NAMESPACES),
        (RETURN, 0, 0, EPERM),
        (RETURN, 0, 0, ENOSYS),
        (RETURN, 0, 0, ALLOW),
    ]
)
instructions = ctypes.create_string_buffer(program, len(program))


class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p)]


libc = ctypes.CDLL(None, use_errno=True)
argument = Filter(len(program) // 8, ctypes.addressof(instructions))
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
    sys.exit("cannot refuse new rights")
if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(argument), 0, 0) != 0:
    sys.exit(f"cannot install the filter: errno {ctypes.get_errno()}")
os.execvp(sys.argv[1], sys.argv[1:])
