#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The packet simulator over processes and threads of one host: cost of a packet hop, memory, weak scaling.

    sim_processes.py BUILD [--rounds N]

Rows are taken in turns, so that they share what else the host does; the quickest round counts. All rows of a machine
must give the same packets. Needs emunic-sim-mpi and mpirun.
"""
import argparse
import json
import os
import subprocess
import sys

SHARES = [(1, 1), (1, 2), (2, 1), (2, 2)]  # processes, threads of each
CASES = [
    ("seastar:x=16,y=16,z=16", ["--time", "20", "--load", "0.5"]),
    ("aries:groups=8", ["--time", "2", "--load", "0.5", "--mode", "minimal"]),
]
BIG = [("aries:groups=241", ["--time", "0.5", "--load", "0.1", "--mode", "minimal", "--pattern", pattern])
       for pattern in ("uniform", "shift")]
# So many nodes for each process.
WEAK = [(1, "seastar:x=16,y=16,z=8"), (2, "seastar:x=16,y=16,z=16")]
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_hwloc_base_binding_policy="none")


def run(emunic, processes, threads, words):
    command = [emunic, "sim", "traffic"] + words + ["--threads", str(threads), "--json"]
    if processes > 1:
        command = ["mpirun", "-n", str(processes)] + command + ["--mpi"]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["runs"][0]


def table(emunic, title, rows, rounds):
    """rows: processes, threads, words. Says whether those with the same words gave the same packets."""
    best = {}
    hashes = {}
    print("\n# " + title)
    print("%9s %7s %12s %9s %12s %16s" % ("PROCESSES", "THREADS", "NS/HOP", "SECONDS", "CPU_SECONDS", "MB/PROCESS"))
    for _ in range(rounds):
        for row, (processes, threads, words) in enumerate(rows):
            found = run(emunic, processes, threads, words)
            hashes.setdefault(" ".join(words), set()).add(found["trace_hash"])
            if row not in best or found["speed"]["seconds"] < best[row]["seconds"]:
                best[row] = found["speed"]
    for row, (processes, threads, _) in enumerate(rows):
        speed = best[row]
        print("%9d %7d %12.1f %9.3f %12.3f %16.1f" % (processes, threads, speed["ns_per_packet_hop"], speed["seconds"],
                                                     speed["cpu_seconds"], speed["memory_bytes_of_a_process"] / 1e6))
    return all(len(values) == 1 for values in hashes.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    emunic = os.path.join(given.build, "emunic", "emunic")
    are_same = True
    for spec, words in CASES + BIG:
        rows = [(processes, threads, [spec] + words) for processes, threads in SHARES]
        are_same &= table(emunic, " ".join([spec] + words), rows, given.rounds)
    rows = [(processes, 1, [spec] + CASES[0][1]) for processes, spec in WEAK]
    are_same &= table(emunic, "weak scaling: 2048 nodes for each process", rows, given.rounds)
    if not are_same:
        print("the same traffic gave different packets", file=sys.stderr)
    return 0 if are_same else 1


sys.exit(main())
