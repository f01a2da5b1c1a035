#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`emunic run --mpi --hosts`: messages of MPI between hosts go over the machine. `test_mpi.py EMUNIC SUITE WINDOWS`"""

import sys

from testing import Launch, choose, enter, run_tests

CASES = ["modes", "lengths", "order", "flood", "many", "intercommunicators", "datatypes", "collectives", "small"]
launch = None
suite = None
windows = None


def expect_cases(cluster, options, cases, program=None):
    words = ["-q", "--hosts", "h0,h1", "-n", "6", "--ppn", "2", *options, "--", program or suite, *cases]
    done = launch.expect(cluster, words, seconds=120)
    told = sorted(line.removeprefix("ok ") for line in done.stdout.splitlines())
    assert told == sorted(cases), done.stdout + done.stderr


def test_messages_over_gni(cluster):
    expect_cases(cluster, ["--mpi=gni"], CASES)
    expect_cases(cluster, ["--mpi=gni"], ["threads"])


def test_windows_over_gni(cluster):
    expect_cases(cluster, ["--mpi=gni"], ["onesided", "windows", "atomics", "epochs"], windows)
    expect_cases(cluster, ["--mpi=gni", "-x", "PPN=2"], ["shared"], windows)


def test_collective_engines_between_hosts(cluster):
    expect_cases(cluster, ["--mpi=gni", "-x", "OMPI_MCA_coll_ce_enable=1"], ["small", "collectives"])


def test_messages_over_portals(cluster):
    expect_cases(cluster, ["--mpi=portals"], CASES)


if __name__ == "__main__":
    enter()
    launch = Launch(sys.argv[1])
    suite, windows = sys.argv[2:4]
    sys.exit(run_tests(choose(globals(), sys.argv[4:]), n_hosts=2))
