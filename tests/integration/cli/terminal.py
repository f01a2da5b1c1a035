# SPDX-License-Identifier: BSD-3-Clause
"""terminal.py PIPE N COMMAND...: run a command on a terminal of its own, wait for N lines on the named pipe, press
Ctrl-C, and return the command's status as a shell would. What it printed goes to stderr."""
import os
import pty
import sys

pipe, n_lines, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
up = os.open(pipe, os.O_RDWR | os.O_CLOEXEC)
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(command[0], command)
seen = b""
while seen.count(b"\n") < n_lines:
    seen += os.read(up, 100)
os.write(terminal, b"\x03")
while True:
    try:
        text = os.read(terminal, 4096)
    except OSError:     # the last one has left the terminal
        break
    if not text:
        break
    os.write(2, text)
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(status if status >= 0 else 128 - status)
