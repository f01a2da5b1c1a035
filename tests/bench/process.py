# SPDX-License-Identifier: BSD-3-Clause
"""Running measuring programs: figures from their output, and failures as one line."""

import os
import pathlib
import re
import subprocess
import time

FIGURE = re.compile(r"^(\w+)(?:/(\d+))? (-?[0-9.]+) (\S+)$")

# A program that hangs must not take the whole run with it.
LIMIT_S = 60
START_LIMIT_S = 15


class Failed(Exception):
    """A measurement gave nothing; the text says why."""


class Missing(Exception):
    """What a measurement needs is not installed."""


def last_line(text):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no output"


def run(command, env=None, limit_s=LIMIT_S):
    """Output of a program that has to succeed."""
    name = " ".join(pathlib.Path(word).name if i == 0 else str(word) for i, word in enumerate(command))
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s,
                              env=dict(os.environ, **env or {}), stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"{name}: no end after {limit_s} s") from None
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not there") from None
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if line.strip()), last_line(done.stdout))
        raise Failed(f"{name}: status {done.returncode}: {first.strip()}")
    return done.stdout


def run_ms(command, env=None, limit_s=START_LIMIT_S):
    """Time of a short program from its start to its end."""
    start = time.monotonic()
    run(command, env, limit_s)
    return 1e3 * (time.monotonic() - start)


def idle_program(n_ranks):
    """Debian's mpirun often does not end when a hundred ranks have ended at once, less often if they said something."""
    return "true" if n_ranks < 64 else "hostname"


def figures(text):
    """[(metric, size or None, value, unit)] of the lines `metric[/size] value unit`."""
    found = [match.groups() for match in map(FIGURE.match, text.splitlines()) if match]
    return [(metric, int(size) if size else None, float(value), unit) for metric, size, value, unit in found]


def cpus():
    """CPUs this run may use; the first two get the two sides of a measurement."""
    return sorted(os.sched_getaffinity(0))


def cpu_s(pid):
    """CPU time of a process. The scheduler's nanoseconds where the kernel counts them; stat has ticks of 10 ms."""
    try:
        tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) * 1e-9
    except OSError:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident_kib(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB$", status, re.M).group(1))
