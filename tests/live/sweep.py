#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""TITAN-18: two slow Geminis of a whole Titan are named, by bandwidths to neighbours and by the watcher's log.

    sweep.py BUILD [--quick]

Servers in virtual time have the machine, one after another. Every tile of the links of two Geminis has two lanes of three. Jobs of
examples/gni_topobw go over all nodes one after another, in the order of their numbers. A pair is low if it has less than
LOW of the median of its class (direction, kind of link, sharing). The Geminis that account for all low pairs are named,
and so are those that account for all lines of the watcher's log. Both have to be the two planted.

Without --quick the machine has 9600 Geminis: 200 jobs of a cabinet's 96 ranks. Larger jobs fit, but in a PMI_Barrier
each rank reads a word of each other rank from PMIx, in whatever time: jobs of 384 ranks take 55 s on two cores.
--quick, which is what `make check` has, takes a machine of 128.
Pairs whose ends are in two jobs are not measured; those of a cabinet are along Y and Z. Nothing random enters. Status
1: other Geminis are named, or a job failed.
"""

import collections
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

from figures import run_as_command
from topobw import LINE, PROGRAM

LIMIT_S = 900
LOW = 0.9
LANES_LEFT = 0b011
AMOUNT = ["-a", "0.0625", "-s", "8192"]  # of each pair
SERVER_JOBS = 20    # a server keeps the flows of all that have sent, and each job's report goes through them
CLASSES = {"XC": "x", "YC": "y", "ZC": "z", "YM": "mezzanine", "ZB": "backplane"}
TILES = {"X": 8, "Y": 4, "Z": 8}
GEMINI_OF_SLOT = re.compile(r"(c\d+-\d+c\d+s\d+)n(\d)")
GEMINI = re.compile(r"c\d+-\d+c\d+s\d+g\d")

Shape = collections.namedtuple("Shape", "machine n_nodes job_nodes planted")
# The planted ones lie in different jobs.
WHOLE = Shape("gemini:x=25,y=16,z=24", 19200, 96, ("c5-3c1s4g1", "c17-6c2s2g0"))
QUICK = Shape("gemini:x=4,y=4,z=8", 256, 64, ("c0-0c0s4g1", "c2-1c0s2g0"))


def gemini_of(node):
    """Of a node's name: nodes 0 and 1 of a blade are on its Gemini 0."""
    slot, number = GEMINI_OF_SLOT.fullmatch(node).groups()
    return f"{slot}g{int(number) // 2}"


@contextmanager
def server(build, shape, options):
    """The name of a server with these further options."""
    name = f"sweep-{time.monotonic_ns()}"
    command = [build / "emunic/emunic", "serve", "--name", name, "--machine", shape.machine, "--time", "virtual",
               "--compute", "none", "--nodes", str(shape.n_nodes), "--domain", "200:1", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        if "is ready" not in line:
            raise OSError(line.strip())
        yield name
    finally:
        process.terminate()
        process.communicate()


def jobs_of(build, shape, geminis):
    """The first nodes of the jobs that these Geminis are in."""
    with server(build, shape, []) as name:
        status = subprocess.run([build / "emunic/emunic", "status", "--server", name, "--json"], check=True, text=True,
                                stdout=subprocess.PIPE)
    nodes = json.loads(status.stdout)["servers"][0]["domains"][0]["nodes"]
    return sorted({node["nid"] // shape.job_nodes * shape.job_nodes for node in nodes if gemini_of(node["cname"]) in geminis})


def job(build, name, shape, first):
    """Pairs of a job on the nodes from the first one on: {(node, node, class): MB/s}."""
    last = min(first + shape.job_nodes, shape.n_nodes) - 1
    done = subprocess.run([build / "emunic/emunic", "run", "-q", "--server", name, "-n", str(last - first + 1), "--place",
                           f"nids:{first}-{last}", "--", build / "examples" / PROGRAM, *AMOUNT], text=True,
                          stdout=subprocess.PIPE, timeout=LIMIT_S, check=True)
    found = {}
    for match in filter(None, map(LINE.fullmatch, done.stdout.splitlines())):
        src, direction, kind, share, dst, _, _, rate = match.groups()
        found[src, dst, direction[0] + kind + share] = float(rate)
    return found


def lanes_of(pairs, gemini):
    """Parts to fail: a lane of each tile between this Gemini and its neighbours in the job."""
    links = {(gemini_of(src), gemini_of(dst), kind) for src, dst, kind in pairs
             if gemini in (gemini_of(src), gemini_of(dst)) and kind[:2] in CLASSES}
    return sorted({f"lanes {a} {b} {CLASSES[kind[:2]]} {tile} {LANES_LEFT}" for a, b, kind in links
                   for tile in range(TILES[kind[0]])})


def culprits(accused):
    """Geminis that account for all of these pairs of Geminis: the most often accused one, and so on with the rest."""
    named = []
    left = list(accused)
    while left:
        worst, _ = max(collections.Counter(end for pair in left for end in set(pair)).items(),
                       key=lambda item: (item[1], item[0]))
        named.append(worst)
        left = [pair for pair in left if worst not in pair]
    return sorted(named)


def sweep(build, shape, faults, firsts):
    """Pairs of the jobs that begin at these nodes, and the watcher's log."""
    pairs = {}
    log = set()
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write("schema: 1\nnetwork:\n")
        file.writelines(f"  - at_ms: 0\n    fail: {part}\n" for part in faults)
        file.flush()
        options = ["--faults", file.name] if faults else []
        for begin in range(0, len(firsts), SERVER_JOBS):
            with server(build, shape, options) as name:
                for first in firsts[begin:begin + SERVER_JOBS]:
                    began = time.monotonic()
                    pairs |= job(build, name, shape, first)
                    print(f"# nodes from {first} on: {len(pairs)} pairs so far, {time.monotonic() - began:.1f} s",
                          flush=True)
                listed = subprocess.run([build / "emunic/emunic", "fault", "--server", name, "--json", "list"], text=True,
                                        stdout=subprocess.PIPE, check=True)
            log |= set(json.loads(listed.stdout)["servers"][0]["network"]["watcher_log"])
    return pairs, sorted(log)


def low_pairs(pairs):
    rates = collections.defaultdict(list)
    for (_, _, kind), rate in pairs.items():
        rates[kind].append(rate)
    normal = {kind: statistics.median(found) for kind, found in rates.items()}
    return [(gemini_of(src), gemini_of(dst)) for (src, dst, kind), rate in pairs.items() if rate < LOW * normal[kind]]


def report_names(metric, planted, named):
    is_good = sorted(planted) == named
    print(f"EXP TITAN-18 {metric} src={','.join(sorted(planted))} got={','.join(named) or 'none'} unit=names tol=0% kind=F "
          f"program={PROGRAM} verdict={'PASS' if is_good else 'FAIL'}")
    return is_good


def show(build, is_quick):
    shape = QUICK if is_quick else WHOLE
    # What lies around the planted ones is asked of the healthy machine.
    around, log = sweep(build, shape, [], jobs_of(build, shape, shape.planted))
    faults = [part for gemini in shape.planted for part in lanes_of(around, gemini)]
    print(f"# planted: {len(faults)} tiles at {', '.join(shape.planted)}")
    if log or not faults:
        return [report_names("healthy", [], log)]
    pairs, log = sweep(build, shape, faults, range(0, shape.n_nodes, shape.job_nodes))
    accused = low_pairs(pairs)
    noted = [ends for ends in (GEMINI.findall(line) for line in log) if len(ends) == 2]
    print(f"# {len(pairs)} pairs, {len(accused)} low, {len(noted)} lines of the log name a link")
    return [report_names("by_bandwidth", shape.planted, culprits(accused)),
            report_names("by_log", shape.planted, culprits(noted))]


if __name__ == "__main__":
    sys.exit(run_as_command(__doc__, show))
