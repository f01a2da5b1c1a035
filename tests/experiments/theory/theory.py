#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The packet simulator against closed formulas, as one TAP program: a test per machine and check.

    theory.py EMUNIC

Each formula stands here in full and takes nothing from the simulator but the sizes of the machine, which the test
sets. Each test prints the formula's number and the simulator's.
"""

import json
import os
import subprocess
import sys
import tempfile


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


# All that makes the delay of a hop: the router's part is 70 - 20 ns, the wire's 31.
HOP = "router.hop_ns=70,router.hop_wire_ns=20,links.{}.wire_ns=31"
HOP_NS = 70 - 20 + 31

# Name, machine, class of the links on the way, nodes whose distances from node 0 are told with them.
LINES = [
    ("torus-x", "xt3:x=8,y=1,z=1", "x", {1: 1, 2: 2, 3: 3, 4: 4}),
    ("mesh-y", "xt3:x=1,y=8,z=1", "y", {1: 1, 2: 2, 5: 5, 7: 7}),
    ("bubble-torus", "bluegene-l", "x", {1: 1, 2: 2, 3: 3, 4: 4}),
    ("hypercube", "x1", "edge", {8: 1, 8 * 3: 2, 8 * 7: 3, 8 * 15: 4}),
    ("hyperx", "hyperx:x=2,y=2,z=2", "edge", {4: 1, 4 * 3: 2, 4 * 7: 3}),
    ("tree", "k-ary-n-tree", "edge", {4: 2, 16: 4}),
    ("dragonfly", "aries:groups=1,chassis=1,blades=4", "green", {4: 1, 8: 1, 12: 1}),
]

# Name, machine with two routers that one link joins, rate of that link in GB/s. Nodes 0 to n - 1 are at the first
# router, the others at the second, and no node's own link is slower.
LINKS = [
    # 4 lanes of 25 Gbit/s.
    ("hyperx", "hyperx:x=2,y=1,z=1", 4, 4 * 25 / 8),
    # 16 lanes of 12.8 Gbit/s.
    ("hypercube", "x1:dimensions=1,links.edge.gbps_per_lane=12.8", 8, 16 * 12.8 / 8),
    # 4 lanes of 7.6 Gbit/s, of which frames leave 79 of 100.
    ("mesh", "xt3:x=2,y=1,z=1,wrap_x=0", 1, 4 * 7.6 / 8 * 0.79),
]

# Flows from nodes 0 to 3 of a line to nodes 7 to 4 join one after another. In turns each new one gets half, and those
# before it share the rest (W. Dally and B. Towles, Principles and Practices of Interconnection Networks, 2004: the
# parking lot).
PARKING_LOT = (1 / 8, 1 / 8, 1 / 4, 1 / 2)

# Dragonfly of 9 groups with N = 8 x 4 nodes each. A bundle of one cable, four links of three lanes of 12.5 Gbit/s,
# joins two groups. Frames leave 9 of 10 flits.
GROUPS = 9
GROUP_NODES = 8 * 4
DRAGONFLY = f"aries:groups={GROUPS},chassis=1,blades=8,cables_per_bundle=1"
BUNDLE = 4 * 3 * 12.5 / 8 * 0.9


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


def messages(emunic, machine, lines, *options):
    """The run of a trace; lines are (source, destination, bytes), all at time 0."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace")
        with open(path, "w", encoding="ascii") as trace:
            trace.write("emunic-trace 1\n")
            trace.writelines(f"0 {source} {destination} {n_bytes}\n" for source, destination, n_bytes in lines)
        got = runs(emunic, machine, "-x", path, "-m", "minimal", *options)
    return got[0] if got else None


def received(emunic, machine, lines):
    """GB/s on the wire that each node receives between 20 and 100 us; none when a run fails."""
    early, late = (messages(emunic, machine, lines, "-T", str(us), "--per-node") for us in (20, 100))
    if not early or not late:
        return None
    rates = [(b * 100 - a * 20) / 80 for a, b in zip(early["nodes"]["received_gb_per_s"],
                                                     late["nodes"]["received_gb_per_s"])]
    return [rates[destination] for _, destination, _ in lines]


def check_slope(tap, emunic):
    """One packet in an idle network: each hop costs the router and the wire, and nothing else grows."""
    for name, machine, link, distances in LINES:
        machine += (":" if ":" not in machine else ",") + HOP.format(link)
        times = []
        for node, hops in distances.items():
            run = messages(emunic, machine, [(0, node, 64)])
            if not run or run["mean_hops"] != hops:
                break
            times.append((hops, run["latency_max_ns"]))
        (h0, t0), rest = times[0] if times else (0, 0), times[1:]
        good = len(times) == len(distances) and all(abs(t - t0 - (h - h0) * HOP_NS) < 0.01 for h, t in rest)
        tap.test(f"slope-{name}", good, f"formula {HOP_NS} ns a hop, simulated " +
                 ", ".join(f"{h} hops {t} ns" for h, t in times))


def check_shares(tap, emunic):
    """One flow gets the link, two get half of it each, four a quarter."""
    for name, machine, nodes, rate in LINKS:
        for flows in (1, 2, 4):
            if flows > nodes:
                continue
            got = received(emunic, machine, [(node, nodes + node, 10 ** 7) for node in range(flows)])
            good = got and all(abs(g / (rate / flows) - 1) < 0.005 for g in got)
            tap.test(f"link-of-{name}-{flows}-flows", good, f"formula {rate / flows:.4f} GB/s each, simulated " +
                     " ".join(f"{g:.4f}" for g in got or []))


def check_parking_lot(tap, emunic):
    rate = 4 * 7.6 / 8 * 0.79
    got = received(emunic, "xt3:x=8,y=1,z=1,wrap_x=0,router.arbitration=round-robin",
                   [(node, 7 - node, 10 ** 7) for node in range(4)])
    good = got and all(abs(g / (rate * share) - 1) < 0.02 for g, share in zip(got, PARKING_LOT))
    tap.test("parking-lot-round-robin", good, "formula " + " ".join(f"{rate * s:.4f}" for s in PARKING_LOT) +
             " GB/s, simulated " + " ".join(f"{g:.4f}" for g in got or []))
    # The oldest in the network first: whoever joins late has waited least, so nobody gets less than in turns.
    got = received(emunic, "xt3:x=8,y=1,z=1,wrap_x=0", [(node, 7 - node, 10 ** 7) for node in range(4)])
    tap.test("parking-lot-age", got and min(got) >= rate / 8 and abs(sum(got) / rate - 1) < 0.005,
             f"formula at least {rate / 8:.4f} each and {rate:.4f} GB/s in all, simulated " +
             " ".join(f"{g:.4f}" for g in got or []))


def check_dragonfly(tap, emunic):
    """Group shift on minimal ways has one bundle, N nodes share it. Valiant's roots are routers of all groups alike:
    two of g lie in the source's or the destination's group and cost one bundle, the others two, and all bundles carry
    2 / g of a group's traffic. Uniform traffic: each of the g - 1 bundles has its part of what leaves the group."""
    nodes = GROUPS * GROUP_NODES
    minimal = BUNDLE / GROUP_NODES
    valiant = BUNDLE * GROUPS / (2 * GROUP_NODES)
    uniform = BUNDLE * (GROUPS - 1) / GROUP_NODES * (nodes - 1) / (nodes - GROUP_NODES)
    # Pattern, mode, load, bound, least and most of it that is accepted.
    cases = [
        ("shift", "minimal", "max", minimal, 0.99, 1.01),
        ("shift", "valiant", "max", valiant, 0.85, 1.0),
        ("uniform", "valiant", "max", valiant, 0.85, 1.0),
        ("uniform", "minimal", "max", uniform, 0.6, 1.0),
        # Load 1 is the bound, and 0.7 of it passes.
        ("uniform", "minimal", "0.7", 0.7 * uniform, 0.99, 1.01),
    ]
    for pattern, mode, load, bound, least, most in cases:
        got = runs(emunic, DRAGONFLY, "-p", pattern, "-m", mode, "-l", load)
        rate = got[0]["accepted_gb_per_s"] if got else 0
        tap.test(f"dragonfly-{pattern}-{mode}-load-{load}", least <= rate / bound <= most,
                 f"formula {bound:.4f} GB/s a node, simulated {rate:.4f} ({rate / bound:.3f} of it)")


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
    for check in (check_hops, check_antipodes, check_threads, check_slope, check_shares, check_parking_lot,
                  check_dragonfly):
        check(tap, sys.argv[1])
    print(f"1..{tap.number}")
    return 1 if tap.failed else 0


if __name__ == "__main__":
    sys.exit(main())
