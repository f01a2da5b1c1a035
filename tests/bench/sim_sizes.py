#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The packet simulator's cost of a hop, from 512 to 92 544 nodes of Cray XC.

    sim_sizes.py BUILD [--load PERCENT] [--us LARGEST_US] [--rounds N] [--plot FILE] [--json]

Uniform random traffic with adaptive routing; all sizes offer as many packets in all. Processor time, so that others on
the host disturb it less; the quickest round counts. --plot needs matplotlib.
"""

import argparse
import json
import pathlib
import re
import sys

import process

METRIC = "machine_hop_time"
SHAPES = {512: "aries:groups=2,chassis=4", 2304: "aries:groups=6", 8448: "aries:groups=22", 23424: "aries:groups=61",
          92544: "aries:groups=241"}
LARGEST = max(SHAPES)
LOAD_PERCENT = 5  # of what a NIC's link carries
LARGEST_US = 0.5  # of the largest machine, whose network is still filling then
LIMIT_S = 300
COUNTS = re.compile(r"cpu_s ([0-9.]+) packet_hops (\d+)")


def hop_ns(build, nodes, load, largest_us):
    """Behind a tenth of the time, which fills the network."""
    machines = pathlib.Path(__file__).resolve().parents[2] / "emunic/machines"
    text = process.run([pathlib.Path(build) / "tests/bench/sim_speed", "--machine", SHAPES[nodes], "--machines", machines,
                        "--load", str(load), "--us", str(largest_us * LARGEST / nodes)], limit_s=LIMIT_S)
    found = COUNTS.search(text)
    if not found or f"nodes {nodes} " not in text:
        raise process.Failed(f"sim_speed of {nodes} nodes: {process.last_line(text)}")
    return 1e9 * float(found[1]) / int(found[2])


def hop_times(build):
    """For bench.py: [(metric, size, value, unit)]."""
    return [(METRIC, nodes, hop_ns(build, nodes, LOAD_PERCENT, LARGEST_US), "ns") for nodes in SHAPES]


def draw(path, best, load):
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(6, 3.5), layout="constrained")
    axes.plot(list(best), list(best.values()), marker="o")
    axes.axhline(3 * best[min(best)], linestyle="--", color="tab:grey", label="3 x the smallest machine's")
    axes.set_xscale("log", base=2)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("nodes of Cray XC")
    axes.set_ylabel(f"ns of a packet hop, load {load:g} %")
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--load", type=float, default=LOAD_PERCENT)
    parser.add_argument("--us", type=float, default=LARGEST_US, metavar="LARGEST_US")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plot")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    best = {}
    for _ in range(given.rounds):
        for nodes in SHAPES:
            ns = hop_ns(given.build, nodes, given.load, given.us)
            best[nodes] = min(ns, best.get(nodes, ns))
    ratio = best[LARGEST] / best[min(best)]
    if given.json:
        print(json.dumps({"schema": 1, "hop_ns": best, "ratio": ratio}))
    else:
        print("%8s %10s" % ("NODES", "NS/HOP"))
        for nodes, ns in best.items():
            print("%8d %10.1f" % (nodes, ns))
        print("%8s %10.2f" % ("RATIO", ratio))
    if given.plot:
        draw(given.plot, best, given.load)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (process.Failed, process.Missing) as reason:
        print(f"sim_sizes.py: {reason}", file=sys.stderr)
        sys.exit(1)
