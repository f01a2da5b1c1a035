#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The same job in virtual time, or the same jobs, on hosts that treat its processes differently: the same output,
links and operations.

    same.py BUILD [--quick] [--runs N] [--only PROGRAM]

Each program runs N times (20; --quick: 5 of some programs), in turn

- calm: alone;
- loaded: beside three busy processes a core;
- launcher: mpirun, which is the server of PMIx, is stopped again and again, 40 ms each;
- emunic: so is the job's emunic, and requests to it wait meanwhile (of a job that has one of its own);
- stalled: processes of the job, one to four at a time, are stopped, up to 60 ms each;
- narrow: on one core, where Open MPI yields because there are fewer cores than ranks;
- slow (not with --quick): one process at a time is stopped for up to 400 ms, so that the others may be through a fence
  of the job, or in the next one, before it goes on.

Each second run has two threads of the simulator (--threads 2). On a calm host these share every window of it.

Compared are the output (its lines in any order: ranks write at once), the links by name and bytes (--json), and the
operations with all their times (--trace). Several jobs of one server begin together (--jobs), started in any order;
compared are the output of each, the links by windows (--link-trace) and the operations. A line for each program, or
group of jobs. What is stopped, and when, comes of a seed and of the host's clock. Status 1: a run differs from the
first one, or failed, or did not end in two minutes; the line tells these apart.
"""

import argparse
import contextlib
import difflib
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
TIMED_OUT = 124         # status of timeout(1)
HOGS_PER_CORE = 3
SERVER_STOP_S = 0.04
STALL_MAX_S = 0.06
PAUSE_MAX_S = 0.002
SLOW_MAX_S = 0.4
SLOW_PAUSE_MAX_S = 0.05

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
    ("mpi_six", ["--mpi", "-n", "6", "--ppn", "2", "--machine", "aries"], "tests/integration/mpi/mpi_suite", ["order"]),
    ("mpi_pair", ["--mpi", "-n", "2", "--ppn", "1", "--machine", "aries"], "tests/integration/mpi/mpi_suite",
     ["order"]),
    ("mpi_pair_portals", ["--mpi=portals", "-n", "2", "--ppn", "1", "--machine", "aries"],
     "tests/integration/mpi/mpi_suite", ["order"]),
]
# Name, options of `emunic serve`, and of each job options of `emunic run`, program, arguments.
GROUPS = [
    ("two_jobs", ["--machine", "gemini:z=4"], [
        (["-n", "2", "--place", "nids:0,4"], "examples/gni_pingpong", ["-i", "1", "-m", "16384"]),
        (["-n", "2", "--place", "nids:1,5"], "examples/gni_pingpong", ["-i", "1", "-m", "16384"]),
    ]),
    ("three_jobs", ["--machine", "gemini:z=4"], [
        (["-n", "2", "--place", "nids:0,4"], "examples/gni_pingpong", ["-i", "2", "-m", "65536"]),
        (["-n", "4", "--place", "nids:1,2,5,7"], "examples/gni_topobw", ["-a", "1"]),
        (["-n", "6", "--place", "nids:3,6,8,9,10,11", "--begin-after", "30us"], "examples/gni_smsg_ring", ["-n", "4"]),
    ]),
    ("mpi_jobs", ["--machine", "aries"], [
        (["--mpi", "-n", "4", "--place", "nids:0,1,2,3"], "tests/integration/mpi/mpi_suite", ["order", "collectives"]),
        (["-n", "4", "--place", "nids:4,5,6,7"], "examples/dmapp_gups", ["-l", "12", "-n", "200"]),
        (["-n", "4", "--place", "nids:8,9,10,11", "--begin-after", "7us"], "examples/gni_allreduce", ["-n", "10"]),
    ]),
]
QUICK = ("gni_topobw", "gni_allreduce", "two_jobs")
MODES = ("calm", "launcher", "emunic", "stalled", "loaded", "narrow", "slow")
QUICK_RUNS = 6
DIFFERENCES_MAX = 6  # lines of an output


def children(pid):
    """Of a process, and theirs."""
    found = []
    with contextlib.suppress(OSError):
        for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children(int(child))]
    return found


def is_mpirun(pid):
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/comm").read_text().strip() == "mpirun"
    return False


def is_emunic(pid):
    """The server: `emunic serve` and its arguments."""
    with contextlib.suppress(OSError):
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        return len(words) > 1 and words[0].endswith(b"emunic") and words[1] == b"serve"
    return False


SERVERS = {"launcher": is_mpirun, "emunic": is_emunic}


def stop_for(pids, seconds):
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGSTOP:
            time.sleep(seconds)   # what the test does to the job


def disturb(jobs, mode, rng):
    """Until they have ended."""
    while running := [job for job in jobs if job.poll() is None]:
        pids = [pid for job in running for pid in children(job.pid)]
        if mode in SERVERS:
            pids, seconds = [pid for pid in pids if SERVERS[mode](pid)], SERVER_STOP_S
        elif mode == "slow":
            pids, seconds = rng.sample(pids, min(len(pids), 1)), rng.random() * SLOW_MAX_S
        else:
            pids, seconds = rng.sample(pids, min(len(pids), rng.randint(1, 4))), rng.random() * STALL_MAX_S
        stop_for(pids, seconds)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running[0].wait(rng.random() * (SLOW_PAUSE_MAX_S if mode == "slow" else PAUSE_MAX_S))


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


def simulator(mode, n_threads):
    """Options of a command, and its environment."""
    shares_all = n_threads > 1 and mode == "calm"
    return ["--threads", str(n_threads)], {**os.environ, **({"EMUNIC_SIM_SHARED": "0"} if shares_all else {})}


def run(commands, mode, rng, env):
    """At once: the output of each. None: one failed, after a line."""
    count = HOGS_PER_CORE * (os.cpu_count() or 1) if mode == "loaded" else 0
    if mode == "narrow":
        commands = [["taskset", "--cpu-list", str(min(os.sched_getaffinity(0))), *command] for command in commands]
    with contextlib.ExitStack() as stack:
        stack.enter_context(hogs(count))
        outs = [stack.enter_context(tempfile.TemporaryFile("w+")) for _ in commands]
        jobs = [stack.enter_context(subprocess.Popen(["timeout", str(LIMIT_S), *command], stdout=out,
                                                     stderr=subprocess.STDOUT, env=env))
                for command, out in zip(commands, outs)]
        if mode in (*SERVERS, "stalled", "slow"):
            disturb(jobs, mode, rng)
        statuses = [job.wait() for job in jobs]
        texts = []
        for out in outs:
            out.seek(0)
            texts.append(out.read())
    for status, text in zip(statuses, texts):
        if status != 0:
            print(f"# {mode}: " + (f"no end in {LIMIT_S} s" if status == TIMED_OUT else f"status {status}")
                  + f": {text.strip()}")
    return None if any(statuses) else texts


def digests(**texts):
    return {name: hashlib.sha256(text.encode()).hexdigest()[:12] for name, text in texts.items()}


def in_any_order(text):
    return "\n".join(sorted(text.splitlines()))


def result(build, program, mode, n_threads, rng):
    """What is compared: the output, and digests of what is long. None: the run failed."""
    _, options, binary, arguments = program
    words, env = simulator(mode, n_threads)
    with tempfile.TemporaryDirectory() as folder:
        report, trace = pathlib.Path(folder, "report"), pathlib.Path(folder, "trace")
        texts = run([[build / "emunic/emunic", "run", "-q", "--time", "virtual", *words, *options, "--json", report,
                      "--trace", trace, "--", build / binary, *arguments]], mode, rng, env)
        if texts is None:
            return None
        return {"output": in_any_order(texts[0]),
                **digests(links=json.dumps(json.loads(report.read_text())["links"]), operations=trace.read_text())}


@contextlib.contextmanager
def server(build, name, options, env):
    """Ready, and ended behind the block: what it writes is whole then."""
    with subprocess.Popen([build / "emunic/emunic", "serve", "--name", name, *options], text=True,
                          stderr=subprocess.PIPE, env=env) as serve:
        line = serve.stderr.readline()
        try:
            if "is ready" not in line:
                raise RuntimeError(line)
            yield
        finally:
            serve.terminate()
            errors = serve.communicate()[1]
    if serve.returncode != 0 or "virtual time" in errors:
        print(f"# the server: status {serve.returncode}: {errors.strip()}")


def result_of_group(build, group, mode, n_threads, rng):
    """Likewise, of several jobs."""
    title, options, jobs = group
    words, env = simulator(mode, n_threads)
    name = f"same-{title}-{os.getpid()}"
    order = rng.sample(range(len(jobs)), len(jobs))
    with tempfile.TemporaryDirectory() as folder:
        trace, links = pathlib.Path(folder, "trace"), pathlib.Path(folder, "links")
        with server(build, name, ["--time", "virtual", *words, *options, "--jobs", str(len(jobs)), "--trace", trace,
                                  "--link-trace", links], env):
            texts = run([[build / "emunic/emunic", "run", "-q", "--server", name, *jobs[i][0], "--",
                          build / jobs[i][1], *jobs[i][2]] for i in order], mode, rng, env)
        if texts is None:
            return None
        outputs = {f"output {i + 1}": in_any_order(text) for i, text in sorted(zip(order, texts))}
        return {**outputs, **digests(links=links.read_text(), operations=trace.read_text())}


def tell_difference(key, mode, first, got):
    """Of the output, which tells more than its digest: the lines of the first run alone (-) and of this one alone (+)."""
    if not key.startswith("output"):
        return
    lines = [line for line in difflib.unified_diff(first.splitlines(), got.splitlines(), lineterm="", n=0)
             if not line.startswith(("---", "+++", "@@"))]
    for line in lines[:DIFFERENCES_MAX]:
        print(f"# {mode}: {key}: {line}")


def is_same(build, program, n_runs):
    rng = random.Random(program[0])
    first = None
    n_same = 0
    differing, failed = set(), []
    for number in range(n_runs):
        mode, n_threads = MODES[number % len(MODES)], 1 + number % 2
        one_run = result_of_group if program in GROUPS else result
        got = one_run(build, program, mode, n_threads, rng)
        how = f"{mode}, {n_threads} threads"
        first = first or got
        if not got:
            failed.append(how)
            continue
        n_same += got == first
        for key in first:
            if got[key] != first[key]:
                differing.add(f"{key} ({how})")
                tell_difference(key, how, first[key], got[key])
    print(f"{program[0]}: {n_same} of {n_runs} runs the same"
          + (f"; differs: {', '.join(sorted(differing))}" if differing else "")
          + (f"; failed: {', '.join(failed)}" if failed else ""))
    return n_same == n_runs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int)
    parser.add_argument("--only", help="of the programs")
    args = parser.parse_args()
    n_runs = args.runs or (QUICK_RUNS if args.quick else 20)
    chosen = [p for p in PROGRAMS + GROUPS if (not args.quick or p[0] in QUICK) and args.only in (None, p[0])]
    good = [is_same(args.build.resolve(), program, n_runs) for program in chosen]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
