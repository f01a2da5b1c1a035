#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`mpirun --host h0,h1 emunic sim traffic --mpi`: two hosts find what one process does. `test_simulator.py EMUNIC`"""

import json
import pathlib
import subprocess
import sys

from testing import choose, enter, run_tests

SMALL = "aries:groups=3,chassis=2,blades=4"
# Routers next to each other on different hosts ask for each other's loads; responses and windows go both ways.
CASES = [
    [SMALL, "--time", "2", "--load", "0.5", "--mode", "adaptive-0,valiant", "--per-node"],
    [SMALL, "--time", "2", "--load", "0.9", "--pattern", "shift", "--mode", "adaptive-3", "--response", "1", "--window", "4"],
    ["seastar:x=6,y=4,z=4", "--time", "10", "--load", "0.6", "--pattern", "neighbour"],
]
SHARES = [(1, 1), (2, 2)]  # processes of each host, threads of each process
emunic = None


def simulate(cluster, words, before=(), after=()):
    """What `emunic sim traffic` found, without what depends on the host, and the hosts that it ran on."""
    command = [*before, "sh", "-c", 'hostname >&2; exec "$0" "$@"', emunic, "sim", "traffic", *words, "--json", *after]
    done = cluster.run(0, ["timeout", "-k", "5", "120", *command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    n_processes = found.pop("processes")
    found.pop("threads")
    for run in found["runs"]:
        run.pop("speed")
    hosts = sorted(line for line in done.stderr.splitlines() if line in ("h0", "h1"))
    assert len(hosts) == n_processes, (n_processes, hosts)
    return json.dumps(found, sort_keys=True), hosts


def test_two_hosts_find_the_bits_of_one_process(cluster):
    for words in CASES:
        alone, _ = simulate(cluster, words)
        assert json.loads(alone)["runs"][0]["packet_hops"] > 0
        for ppn, threads in SHARES:
            before = ["mpirun", "--host", f"h0:{ppn},h1:{ppn}", "-n", 2 * ppn, "--bind-to", "none"]
            found, hosts = simulate(cluster, words, before, ["--mpi", "--threads", threads])
            assert hosts == ["h0"] * ppn + ["h1"] * ppn, hosts
            assert found == alone, f"{ppn} processes of {threads} threads on each host: {' '.join(words)}"


if __name__ == "__main__":
    enter()
    emunic = str(pathlib.Path(sys.argv[1]).resolve())
    sys.exit(run_tests(choose(globals(), sys.argv[2:]), n_hosts=2))
