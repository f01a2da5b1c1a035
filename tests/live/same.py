#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same job in virtual time, on hosts that treat its processes differently: the same output, links and operations.

    same.py BUILD [--quick] [--runs N] [--only PROGRAM]

Each program runs N times (20; --quick: 4 of two programs), in turn

- calm: alone;
- loaded: beside three busy processes a core;
- launcher: mpirun, which is the server of PMIx, is stopped again and again, 40 ms each;
- stalled: processes of the job, one to four at a time, are stopped, up to 60 ms each.

Compared are the output (its lines in any order: ranks write at once), the links by name and bytes (--json), and the operations with all their times (--trace). A line
for each program. What is stopped, and when, comes of a seed and of the host's clock. Status 1: a run differs from the
first one, or failed.
"""

import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

LIMIT_S = 120
HOGS_PER_CORE = 3
LAUNCHER_STOP_S = 0.04
STALL_MAX_S = 0.06
PAUSE_MAX_S = 0.002

NIDS = "nids:53,11,10,21,20,7,6,25,24,39,38,57,56,37,36,59,58,15,63,62,33,32,35,45,48,49,46,47,16,17"

# Name, options of `emunic run`, program below the build folder, arguments.
PROGRAMS = [
    ("gni_topobw", ["-n", "30", "--place", NIDS, "--machine", "gemini"], "examples/gni_topobw", ["-a", "1"]),
    ("gni_allreduce", ["-n", "16", "--ppn", "4", "--machine", "aries"], "examples/gni_allreduce", ["-n", "10"]),
    ("gni_smsg_ring", ["-n", "8", "--ppn", "2", "--machine", "aries"], "examples/gni_smsg_ring", []),
    ("dmapp_gups", ["-n", "8", "--ppn", "2", "--machine", "aries"], "examples/dmapp_gups", ["-l", "12", "-n", "2000"]),
    ("portals_perf", ["-n", "2", "--machine", "seastar"], "examples/portals_perf", ["-i", "20"]),
    ("shmem_sort", ["-n", "8", "--machine", "aries"], "examples/shmem_sort", []),
    ("random_mix", ["-n", "6", "--ppn", "2", "--machine", "gemini"], "tests/live/random_mix", ["-s", "7"]),
    ("random_datagrams", ["-n", "6", "--ppn", "2", "--machine", "aries"], "tests/live/random_datagrams", ["-s", "3"]),
    ("mpi_suite", ["--mpi", "-n", "4", "--ppn", "2", "--machine", "aries"], "tests/integration/mpi/mpi_suite",
     ["order", "flood", "collectives"]),
]
QUICK = ("gni_topobw", "gni_allreduce")
MODES = ("calm", "launcher", "stalled", "loaded")


def children(pid):
    """Of a process, and theirs."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def is_named(pid, name):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == name
    return False


def stop_for(pids, seconds):
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(seconds)   # what the test does to the job


def disturb(job, mode, rng):
    """Until the job has ended."""
    while job.poll() is None:
        pids = children(job.pid)
        if mode == "launcher":
            pids, seconds = [pid for pid in pids if is_named(pid, "mpirun")], LAUNCHER_STOP_S
        else:
            pids, seconds = rng.sample(pids, min(len(pids), rng.randint(1, 4))), rng.random() * STALL_MAX_S
        stop_for(pids, seconds)
        with contextlib.suppress(subprocess.TimeoutExpired):
            job.wait(rng.random() * PAUSE_MAX_S)


@contextlib.contextmanager
def hogs(count):
    """Processes that use a core each as far as they get it."""
    running = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for hog in running:
            hog.kill()
            hog.wait()


def run(command, mode, rng):
    """Its output. None: it failed, after a line."""
    count = HOGS_PER_CORE * (os.cpu_count() or 1) if mode == "loaded" else 0
    with hogs(count), tempfile.TemporaryFile("w+") as out:
        with subprocess.Popen(["timeout", str(LIMIT_S), *command], text=True, stdout=out,
                              stderr=subprocess.STDOUT) as job:
            if mode in ("launcher", "stalled"):
                disturb(job, mode, rng)
            status = job.wait()
        out.seek(0)
        text = out.read()
    if status == 0:
        return text
    print(f"# {mode}: status {status}: {text.strip()}")
    return None


def result(build, program, mode, rng):
    """Digests of what is compared. None: the run failed."""
    _, options, binary, arguments = program
    with tempfile.TemporaryDirectory() as folder:
        report, trace = pathlib.Path(folder, "report"), pathlib.Path(folder, "trace")
        text = run([build / "emunic/emunic", "run", "-q", "--time", "virtual", *options, "--json", report, "--trace",
                    trace, "--", build / binary, *arguments], mode, rng)
        if text is None:
            return None
        links = json.loads(report.read_text())["links"]
        return {name: hashlib.sha256(data.encode()).hexdigest()[:12]
                for name, data in (("output", "\n".join(sorted(text.splitlines()))), ("links", json.dumps(links)), ("operations", trace.read_text()))}


def is_same(build, program, n_runs):
    rng = random.Random(program[0])
    first = None
    n_same = 0
    differing = set()
    for number in range(n_runs):
        mode = MODES[number % len(MODES)]
        got = result(build, program, mode, rng)
        first = first or got
        if got and got == first:
            n_same += 1
        else:
            differing |= {f"{key} ({mode})" for key in first or {} if not got or got[key] != first[key]}
    print(f"{program[0]}: {n_same} of {n_runs} runs the same"
          + (f"; differs: {', '.join(sorted(differing))}" if differing else ""))
    return n_same == n_runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only", help="of the programs")
    args = parser.parse_args()
    n_runs = args.runs or (4 if args.quick else 20)
    chosen = [p for p in PROGRAMS if (not args.quick or p[0] in QUICK) and args.only in (None, p[0])]
    good = [is_same(args.build.resolve(), program, n_runs) for program in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
