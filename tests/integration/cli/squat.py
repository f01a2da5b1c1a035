#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Takes names of emunics before their users do, as another user, who must be root at first.

    squat.py UID NAME...    listens under each as control and admin socket and takes no connection;
                            NAME may be BEFORE{FIRST..LAST}, for numbers

Writes "ready" and how many names it has, and waits for the end of its standard input.
"""

import os
import re
import socket
import sys


def spread(word):
    found = re.fullmatch(r"(.*)\{(\d+)\.\.(\d+)\}", word)
    if not found:
        return [word]
    return [f"{found[1]}{number}" for number in range(int(found[2]), int(found[3]) + 1)]


def main():
    user = int(sys.argv[1])
    names = [name for word in sys.argv[2:] for name in spread(word)]
    held = []
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    for name in names:
        for kind in ("ctl", "admin"):
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            listener.bind(f"\0emunic/{name}/{kind}")
            listener.listen(0)
            held.append(listener)
            if len(names) == 1:  # full: the next connection waits
                visitor = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                visitor.connect(f"\0emunic/{name}/{kind}")
                held.append(visitor)
    print("ready", len(held), flush=True)
    sys.stdin.read()


main()
