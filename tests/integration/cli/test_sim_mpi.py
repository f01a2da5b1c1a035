#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`mpirun -n N emunic sim traffic --mpi`: the same bits as one process, and one clear line for each error.

    test_sim_mpi.py EMUNIC [CASE]...   EMUNIC: the command of a build folder, with emunic-sim-mpi beside it
"""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile

EMUNIC = os.path.abspath(sys.argv[1])
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1")
SHARES = [(2, 1), (3, 2)]  # processes, threads of each; tests/unit/fabric/test_sim_world.c has more

SMALL = "aries:groups=3,chassis=2,blades=4"
TRACE = """emunic-trace 2
0 0 5 9000
10 5 17 4000 1
0 20 5 100
5 5 0 70000 1 3
"""

# What is simulated, by name: words of `emunic sim traffic`.
CASES = {
    "dragonfly": [SMALL, "--time", "3", "--load", "0.5", "--mode", "adaptive-0,valiant,min-hash", "--per-node"],
    "dragonfly-shift": [SMALL, "--time", "3", "--load", "0.9", "--pattern", "shift", "--mode", "adaptive-3,minimal",
                        "--response", "1", "--window", "4"],
    "dragonfly-periods": [SMALL + ",router.load_period_clocks=7", "--time", "3", "--load", "0.7", "--pattern", "hot"],
    "whole-groups": ["aries:groups=4,chassis=1,blades=4", "--time", "3", "--load", "0.6", "--pattern", "tornado"],
    "torus": ["seastar:x=6,y=4,z=4", "--time", "20", "--load", "0.6,max", "--pattern", "neighbour"],
    "torus-gemini": ["gemini:x=4,y=4,z=3", "--time", "5", "--load", "0.6", "--pattern", "transpose"],
    "torus-bgl": ["bluegene-l:x=4,y=4,z=4", "--packets", "3", "--load", "0.5", "--mode", "adaptive-0,deterministic"],
    "hypercube": ["x1", "--time", "5", "--load", "0.5", "--pattern", "complement", "--sizes", "5:3,33"],
    "fat-tree": ["xd1-fat-tree", "--time", "10", "--load", "0.6", "--burst", "4:0.25"],
    "graph": ["dragonfly-plus", "--time", "3", "--load", "0.6", "--job", "uniform:30:random", "--job", "hot:8"],
    "all-to-all": ["x1:dimensions=3,nodes_per_vertex=2", "--pattern", "all-to-all", "--load", "max"],
    "trace": [SMALL, "--trace", "TRACE"],
    "steady": ["x1:dimensions=3,nodes_per_vertex=2", "--load", "0.3", "--seeds", "2"],
}

folder = tempfile.mkdtemp()
failures = []


class Wrong(Exception):
    """A test's reason to fail."""


def words_of(case):
    files = {"TRACE": TRACE}
    words = []
    for word in case:
        if word in files:
            path = os.path.join(folder, word)
            with open(path, "w", encoding="utf-8") as file:
                file.write(files[word])
            word = path
        words.append(word)
    return words


def call(n, words, timeout=300, apart=None):
    """Runs n processes; `apart`: other words of the last one. Status, stdout and our own lines of stderr."""
    command = [EMUNIC, "sim", "traffic"] + words
    if n is not None:
        command = ["mpirun", "-n", str(n - bool(apart))] + command + ["--mpi"]
        if apart:
            command += [":", "-n", "1", EMUNIC, "sim", "traffic"] + apart + ["--mpi"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=timeout, check=False)
    return done.returncode, done.stdout, [line for line in done.stderr.split("\n") if line.startswith("emunic")]


def figures(text):
    """The object without what depends on the host."""
    found = json.loads(text)
    found.pop("threads")
    found.pop("processes")
    for run in found["runs"]:
        run.pop("speed")
    return json.dumps(found, sort_keys=True)


def expect(condition, *why):
    if not condition:
        raise Wrong(" ".join(str(word) for word in why))


def run_case(name):
    words = words_of(CASES[name]) + ["--json", "--seed", "3"]
    status, out, said = call(None, words)
    expect(status == 0, "alone: status", status, said)
    one = figures(out)
    for n, threads in SHARES:
        status, out, said = call(n, words + ["--threads", str(threads)])
        expect(status == 0, n, "x", threads, ": status", status, said)
        got = json.loads(out)
        expect(got["processes"] == n and got["threads"] == threads, "not", n, "x", threads)
        expect(figures(out) == one, n, "processes of", threads, "threads differ from one")


def case_files_are_the_same():
    """Of each link and channel, too."""
    words = [SMALL, "--time", "3", "--load", "0.6", "--record", "latency,links,vcs", "--output"]
    names = [what + "-adaptive-0-0.6.tsv" for what in ("latency", "links", "vcs")]
    texts = []
    for n in (None, 3):
        place = os.path.join(folder, "files-" + str(n))
        status, _, said = call(n, words + [place])
        expect(status == 0, "status", status, said)
        texts.append([open(os.path.join(place, name), encoding="utf-8").read() for name in names])
    expect(texts[0] == texts[1], "files differ")
    expect(len(texts[0][1].split("\n")) > 200, "no links")


def case_faults_are_the_same():
    """Lost packets are told to senders of other processes."""
    path = os.path.join(folder, "faults")
    with open(path, "w", encoding="utf-8") as file:
        file.write("router 3\nlanes 140 3\n")
    words = [SMALL, "--time", "3", "--load", "0.4", "--faults", path, "--json"]
    status, out, said = call(None, words)
    expect(status == 0, "status", status, said)
    one = figures(out)
    expect(json.loads(out)["runs"][0]["unroutable"] + json.loads(out)["runs"][0]["lost"] > 0, "nothing was lost")
    for n, threads in ((2, 1), (4, 2)):
        status, out, said = call(n, words + ["--threads", str(threads)])
        expect(status == 0 and figures(out) == one, n, "x", threads, "differ:", status, said)


def refused(n, words, status, part, apart=None):
    got, out, said = call(n, words, apart=apart)
    expect(got == status, "status", got, "not", status, said)
    expect(out == "", "output:", out)
    expect(len(said) == 1 and part in said[0], "said", said, "not", part)


def case_errors_are_one_line():
    refused(2, ["x1", "--load", "nine"], 2, "is neither a number")
    refused(2, ["no-such-machine"], 2, "no-such-machine")
    refused(3, ["x1:dimensions=1"], 1, "3 processes of 1 threads are more than the 2 routers")
    refused(2, ["x1:dimensions=1", "--threads", "2"], 1, "2 processes of 2 threads are more than the 2 routers")
    refused(2, ["x1"], 2, "different arguments", apart=["x1", "--seed", "4"])
    refused(2, ["x1", "--time", "1", "--output", "/proc/none"], 1, "--output")


def case_machines_that_differ():
    """A folder of one host has another file."""
    source = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "..", "emunic",
                          "machines", "x1.yaml")
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for rank, gbps in (("0", "12.8"), ("1", "12.9")):
        place = os.path.join(folder, "machines-" + rank)
        os.mkdir(place)
        with open(os.path.join(place, "x1.yaml"), "w", encoding="utf-8") as file:
            file.write(text.replace("gbps_per_lane: 12.8", "gbps_per_lane: " + gbps))
    script = 'EMUNIC_MACHINES=%s/machines-$OMPI_COMM_WORLD_RANK exec %s sim traffic x1 --time 1 --mpi' % (folder, EMUNIC)
    done = subprocess.run(["mpirun", "-n", "2", "sh", "-c", script], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120, check=False)
    said = [line for line in done.stderr.split("\n") if line.startswith("emunic")]
    expect(done.returncode == 1 and len(said) == 1 and "different files of this machine" in said[0], done.returncode, said)


def case_a_killed_process_ends_all():
    """mpirun says which; nobody waits for ever."""
    command = ["mpirun", "-n", "3", EMUNIC, "sim", "traffic", SMALL, "--load", "0.9", "--time", "1000000", "--mpi"]
    with subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as job:
        victim = None
        while not victim and job.poll() is None:
            children = open("/proc/%d/task/%d/children" % (job.pid, job.pid), encoding="utf-8").read().split()
            ready = [child for child in children if is_simulating(child)]
            victim = int(ready[-1]) if len(ready) == 3 else None
        expect(victim, "mpirun ended")
        os.kill(victim, signal.SIGKILL)
        out = job.communicate(timeout=120)[0].decode()
        expect(job.returncode != 0, "status", job.returncode)
        expect("signal 9" in out, out)


def is_simulating(process):
    try:
        name = os.readlink("/proc/%s/exe" % process)
        ticks = open("/proc/%s/stat" % process, encoding="utf-8").read().rsplit(")", 1)[1].split()[11]
    except OSError:
        return False
    return name.endswith("/emunic-sim-mpi") and int(ticks) > 10


def case_too_little_memory():
    """One process has less than it needs: it says so, and mpirun ends the others."""
    limited = 'test "$OMPI_COMM_WORLD_RANK" = 1 && ulimit -v 400000; exec %s sim traffic aries:groups=120 --mpi' % EMUNIC
    done = subprocess.run(["mpirun", "-n", "2", "sh", "-c", limited], env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=120, check=False)
    said = [line for line in done.stderr.split("\n") if line.startswith("emunic")]
    expect(done.returncode != 0 and len(said) == 1 and "memory" in said[0].lower(), done.returncode, said)


def case_one_process_needs_no_mpirun():
    status, out, said = call(None, ["x1", "--time", "1", "--json", "--mpi"])
    expect(status == 0 and json.loads(out)["processes"] == 1, status, said)


def main():
    tests = [("same bits: " + name, lambda name=name: run_case(name)) for name in CASES]
    tests += [(name[5:].replace("_", " "), test) for name, test in sorted(globals().items()) if name.startswith("case_")]
    wanted = sys.argv[2:]
    tests = [test for test in tests if not wanted or any(word in test[0] for word in wanted)]
    print("1..%d" % len(tests), flush=True)
    for number, (name, test) in enumerate(tests, 1):
        try:
            test()
            print("ok %d - %s" % (number, name), flush=True)
        except (Wrong, OSError, ValueError, subprocess.TimeoutExpired) as error:
            failures.append(name)
            print("not ok %d - %s\n# %s" % (number, name, str(error).replace("\n", "\n# ")), flush=True)
    shutil.rmtree(folder)
    return 1 if failures else 0


sys.exit(main())
