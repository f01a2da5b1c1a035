#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The packet simulator against closed formulas, as one TAP program: a test per machine and check.

    theory.py EMUNIC

Each formula stands here in full and takes nothing from the simulator but the sizes of the machine, which the test
sets. Each test prints the formula's number and the simulator's.
"""

import json
import subprocess
import sys


def ring(k):
    """Mean distance on a ring of k routers, the router itself included."""
    return (k * k // 4) / k


# Name, machine, nodes, sum of the hops from one node to each other node. With C nodes at a router, a sum over routers
# counts C times, and the C - 1 nodes at the own router count nothing.
SHAPES = [
    # d 2^(d-1) is the sum of the distances from one vertex of a hypercube of d dimensions.
    ("hypercube-4", "x1:dimensions=4,nodes_per_vertex=8", 16 * 8, 4 * 2 ** 3 * 8),
    ("hypercube-3", "x1:dimensions=3,nodes_per_vertex=8", 8 * 8, 3 * 2 ** 2 * 8),
    ("torus-3x2x8", "gemini:x=3,y=2,z=8", 48 * 2, (ring(3) + ring(2) + ring(8)) * 48 * 2),
    ("torus-4x4x4", "gemini:x=4,y=4,z=4", 64 * 2, 3 * ring(4) * 64 * 2),
    # All of a line are one hop apart: (k - 1) / k for each dimension.
    ("hyperx-4x4", "hyperx:x=4,y=4,z=1", 16 * 4, (3 / 4 + 3 / 4) * 16 * 4),
    ("hyperx-3x4x5", "hyperx:x=3,y=4,z=5,nodes_per_router=4", 60 * 4, (2 / 3 + 3 / 4 + 4 / 5) * 60 * 4),
    # Up to the lowest common switch and down: 2 j hops to the k^(j+1) - k^j nodes that share level j alone.
    ("tree-4-3", "k-ary-n-tree:arity=4,levels=3", 64, 2 * (16 - 4) + 4 * (64 - 16)),
    ("tree-2-4", "k-ary-n-tree:arity=2,levels=4", 16, 2 * 2 + 4 * 4 + 6 * 8),
    # Diameter 2 and degree (3 q - 1) / 2 = 7: 7 routers at one hop, the other 42 at two.
    ("slim-fly-5", "slim-fly:q=5,nodes_per_router=4", 50 * 4, (7 + 42 * 2) * 4),
    # Leaf, spine, leaf inside the group; leaf, spine, spine, leaf to another.
    ("dragonfly-plus-5", "dragonfly-plus:groups=5,leaves=4,spines=4,nodes_per_leaf=4", 80, 2 * 12 + 3 * 64),
    # One group: one hop in the chassis and to the same slot of another chassis, else two.
    ("dragonfly-group", "aries:groups=1,chassis=6,blades=16", 96 * 4, (15 + 5 + 2 * 75) * 4),
]


class Tap:
    def __init__(self):
        self.number = 0
        self.failed = 0

    def test(self, name, good, numbers):
        self.number += 1
        self.failed += not good
        print(f"{'' if good else 'not '}ok {self.number} - {name}: {numbers}", flush=True)


def runs(emunic, machine, *options):
    """The runs of `sim traffic`; none when it fails."""
    command = [emunic, "sim", "traffic", machine, "--ideal-nic", "--quiet", "--json", *options]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, timeout=60)
    if done.returncode:
        print(f"# {' '.join(command[1:])}: {done.stdout.decode(errors='replace').strip()}")
        return []
    return json.loads(done.stdout)["runs"]


def check_hops(tap, emunic):
    """All-to-all on minimal routes: each pair once, so the mean of the hops is exact, and no packet may be missing."""
    for name, machine, nodes, hops in SHAPES:
        want = hops / (nodes - 1)
        got = runs(emunic, machine, "-p", "all-to-all", "-m", "minimal", "-l", "0.2")
        if not got:
            tap.test(f"hops-{name}", False, "no result")
            continue
        run = got[0]
        tap.test(f"hops-{name}", abs(run["mean_hops"] - want) < 1e-9 * want,
                 f"formula {want:.6f}, simulated {run['mean_hops']:.6f} hops")
        pairs = nodes * (nodes - 1)
        rest = run["lost"] + run["unroutable"] + run["in_network"]
        tap.test(f"conservation-{name}", run["delivered"] == pairs and not rest,
                 f"{pairs} packets sent, {run['delivered']} delivered, {rest} not")


def check_antipodes(tap, emunic):
    """Node i to n - 1 - i of a hypercube: each packet crosses every dimension."""
    for dimensions in (3, 4):
        got = runs(emunic, f"x1:dimensions={dimensions}", "-p", "complement", "-m", "minimal", "-l", "0.2", "-n", "20")
        hops = got[0]["mean_hops"] if got else -1
        tap.test(f"antipodes-hypercube-{dimensions}", hops == dimensions, f"formula {dimensions}, simulated {hops} hops")


def check_threads(tap, emunic):
    """The same packets at the same times with one, two and three threads."""
    for machine in ("gemini:x=4,y=4,z=4", "aries:groups=2,chassis=2,blades=4", "hyperx", "slim-fly", "k-ary-n-tree",
                    "dragonfly-plus", "x1"):
        hashes = []
        for threads in "123":
            got = runs(emunic, machine, "-m", "adaptive-0", "-l", "0.6", "-n", "20", "-t", threads)
            hashes.append(got[0]["trace_hash"] if got else f"none with {threads}")
        tap.test(f"threads-{machine.split(':')[0]}", len(set(hashes)) == 1, " ".join(hashes))


def main():
    tap = Tap()
    for check in (check_hops, check_antipodes, check_threads):
        check(tap, sys.argv[1])
    print(f"1..{tap.number}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
