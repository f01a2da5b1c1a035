#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""without_call.py CALL PROGRAM [ARGUMENT]...: becomes the program; the system call fails with EPERM, as in containers.
CALL: personality or unshare."""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
NUMBERS = {"personality": 135, "unshare": 272}        # x86-64
RET_ALLOW, RET_EPERM = 0x7FFF0000, 0x00050001
LOAD_NR, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06


def main():
    # (code, jump if true, jump if false, value)
    steps = [(LOAD_NR, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, NUMBERS[sys.argv[1]]), (RETURN, 0, 0, RET_EPERM),
             (RETURN, 0, 0, RET_ALLOW)]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        sys.exit(f"without_call: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[2], sys.argv[2:])


main()
