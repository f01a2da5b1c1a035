#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""no_personality.py PROGRAM [ARGUMENT]...: becomes the program; personality() fails with EPERM, as in containers."""

import ctypes
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
NR_PERSONALITY = 135        # x86-64
RET_ALLOW, RET_EPERM = 0x7FFF0000, 0x00050001
LOAD_NR, JUMP_IF_EQUAL, RETURN = 0x20, 0x15, 0x06

# (code, jump if true, jump if false, value)
FILTER = [(LOAD_NR, 0, 0, 0), (JUMP_IF_EQUAL, 0, 1, NR_PERSONALITY), (RETURN, 0, 0, RET_EPERM),
          (RETURN, 0, 0, RET_ALLOW)]


def main():
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in FILTER))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(FILTER), ctypes.addressof(code)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        sys.exit(f"no_personality: {os.strerror(ctypes.get_errno())}")
    os.execvp(sys.argv[1], sys.argv[1:])


main()
