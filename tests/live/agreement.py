#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Random mixes of operations: each arrives and ends in a live run when the model alone says, to the picosecond.

    agreement.py BUILD

Ten mixes on each of three machines: a line for each. Status 1: an operation differs, or a program failed.
"""

import pathlib
import subprocess
import sys
import tempfile

LIMIT_S = 120
MACHINES = ["aries", "gemini", "seastar"]
SEEDS = range(1, 11)


def run(command):
    """Its output, and whether it succeeded."""
    try:
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error), False
    return done.stdout.strip(), done.returncode == 0


def agrees(build, machine, seed):
    machines = pathlib.Path(__file__).resolve().parent.parent.parent / "emunic/machines"
    with tempfile.NamedTemporaryFile(suffix=".csv") as trace:
        output, is_good = run([build / "emunic/emunic", "run", "-q", "-n", "6", "--ppn", "2", "--place", "scatter",
                               "--machine", machine, "--time", "virtual", "--trace", trace.name, "--",
                               build / "tests/live/random_mix", "-s", str(seed)])
        if is_good:
            output, is_good = run([build / "tests/live/replay", machine, machines, trace.name])
    print(f"{machine}, seed {seed}: {output}")
    return is_good


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    build = pathlib.Path(sys.argv[1]).resolve()
    results = [agrees(build, machine, seed) for machine in MACHINES for seed in SEEDS]
    print(f"{sum(results)} of {len(results)} mixes agree")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
