#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""TITAN-2, 3, 7, 9, 10 and 15 by the lines that examples/gni_topobw prints in virtual time: a line EXP for each figure.

    topobw.py BUILD [--quick]

The nodes are the thirty of docs/spec/machines.md, Appendix A; MB are 2^20 bytes. --quick sends less and leaves the
broken networks away: what `make check` has. Sources and tolerances are those of docs/spec/machines.md. Nothing random
enters, so there is no seed. Status 1: a figure is out of tolerance, or the program did not print it.

TITAN-15 has two jobs on a server in virtual time: one on the Geminis 1, 2, 5 and 6 of each cage, the foreign one from
Gemini 0 to Gemini 3 of the first, across a link of the other. The foreign job puts 1 MiB again and again from 9.5 to
14.2 ms (its trace); the first one begins 9.7 ms later and takes 2.1. Its answers cross the same link the other way. As
first read, that direction was "elsewhere", and missed; both readings are printed.

Not shown here: TITAN-7 by hashed choice of tiles (the program's puts are adaptive), the link loads of TITAN-10 (the
experiment has them).
"""

import json
import math
import re
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager

from figures import report, report_bound, run_as_command

LIMIT_S = 300
PROGRAM = "gni_topobw"
NODES = [53, 11, 10, 21, 20, 7, 6, 25, 24, 39, 38, 57, 56, 37, 36, 59, 58, 15, 63, 62, 33, 32, 35, 45, 48, 49, 46, 47,
         16, 17]
LINE = re.compile(r"(\S+) ([XYZ][+-])([CBMG])([SE]) (\S+) \((\d+) to (\d+)\): \S+ seconds = (\S+) MB/sec")
SUMMARY = re.compile(r"([XYZ]): min (\S+) \((\S+)\), max (\S+) \((\S+)\), avg (\S+) MB/sec")

# Part, code, nodes, MB/s, kind, tolerance.
ROWS = [
    ("2a", "X+CE", 11, 53, 5945.98, "K", 0.01), ("2b", "X+CS", 24, 38, 2974.83, "P", 0.01),
    ("2b", "X+CS", 25, 39, 2974.68, "P", 0.01), ("2c", "Y+ME", 15, 16, 5947.03, "P", 0.01),
    ("2d", "Y+MS", 33, 62, 5477.70, "P", 0.015), ("2e", "Y+GS", 6, 7, 6777.84, "K", 0.01),
    ("2f", "Z+BE", 45, 47, 6762.15, "P", 0.01), ("2g", "Z+BS", 58, 56, 4118.02, "K", 0.01),
    ("2g", "Z+BS", 59, 57, 4118.23, "K", 0.01), ("2h", "Z+CS", 48, 62, 2853.55, "P", 0.06),
]
# Dimension, average, tolerance, letters that the least and the largest have in their code.
AVERAGES = [("X", 3717.81, 0.01, "S", "E"), ("Y", 6124.41, 0.01, "M", "G"), ("Z", 4364.39, 0.03, "C", "BE")]

# The backplane link Z+ that two nodes share, and one that a single node uses.
SHARED = ("c0-0c1s2g0", "c0-0c1s3g0", 58, 56)
ALONE = ("c0-0c1s6g1", "c0-0c1s7g1", 45, 47)
LANES = 3   # of a tile
FOREIGN_FROM = 0    # the first Gemini's first node; its cage has the nodes up to 15 on the same Y


def run(build, nodes, amount_mib, network=(), machine="gemini"):
    """Its output; empty, after a line: it failed."""
    command = [build / "emunic/emunic", "run", "-q", "-n", str(len(nodes)), "--place",
               "nids:" + ",".join(map(str, nodes)), "--time", "virtual", "--machine", machine]
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as faults:
        if network:
            faults.write("schema: 1\nnetwork:\n")
            faults.writelines(f"  - at_ms: 0\n    fail: {part}\n" for part in network)
            faults.flush()
            command += ["--faults", faults.name]
        try:
            done = subprocess.run(command + ["--", build / "examples" / PROGRAM, "-a", str(amount_mib)], text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            print(f"# {PROGRAM}: {error}")
            return ""
    for line in done.stderr.splitlines():
        print(f"# {PROGRAM}: {line}")   # lag, above all
    if done.returncode != 0:
        print(f"# {PROGRAM} ended with status {done.returncode}")
        return ""
    return done.stdout


def pairs(text):
    """{(from nid, to nid, direction): (code, MB/s)}; and codes by the sender's name and dimension."""
    found = {}
    for line in text.splitlines():
        match = LINE.fullmatch(line)
        if match:
            _, direction, kind, share, _, src, dst, rate = match.groups()
            found[int(src), int(dst), direction] = direction + kind + share, float(rate)
    return found


def classes(text, dim, rate):
    """Letters (kind and share) of the pairs of a dimension that have this rate as it is printed."""
    lines = [LINE.fullmatch(line) for line in text.splitlines()]
    return {m.group(3) + m.group(4) for m in lines if m and m.group(2)[0] == dim and m.group(8) == rate}


def report_class(row, metric, source, kind, got):
    is_good = bool(got) and all(set(source) <= set(letters) for letters in got)
    print(f"EXP {row} {metric} src={source} got={','.join(sorted(got)) or 'none'} unit=class tol=0% kind={kind} "
          f"program={PROGRAM} verdict={'PASS' if is_good else 'FAIL'}")
    return is_good


def show_whole(text):
    rates = pairs(text)
    good = []
    for part, code, src, dst, source, kind, tolerance in ROWS:
        got_code, got = rates.get((src, dst, code[:2]), (None, None))
        good.append(report(f"TITAN-{part}", f"{code}_{src}_to_{dst}", source, "MB/s", tolerance, kind, PROGRAM,
                           got if got_code == code else None))
    summaries = {match.group(1): match for match in map(SUMMARY.fullmatch, text.splitlines()) if match}
    for dim, average, tolerance, least, most in AVERAGES:
        match = summaries.get(dim)
        good.append(report("TITAN-3", f"{dim}_average", average, "MB/s", tolerance, "P", PROGRAM,
                           float(match.group(6)) if match else None))
        good.append(report_class("TITAN-3", f"{dim}_min_class", least, "P",
                                 classes(text, dim, match.group(2)) if match else set()))
        good.append(report_class("TITAN-3", f"{dim}_max_class", most, "P",
                                 classes(text, dim, match.group(4)) if match else set()))
    return good


def lanes_lost(place, n):
    """Schedule entries: n lanes of the link from place[0] to place[1], a tile after the other, none as a whole."""
    entries = []
    for tile in range((n + LANES - 2) // (LANES - 1)):
        lost = min(LANES - 1, n - tile * (LANES - 1))
        entries.append(f"lanes {place[0]} {place[1]} backplane {tile} {(1 << (LANES - lost)) - 1}")
    return entries


def show_lanes(build, amount_mib):
    """A lane of 24: seen where two nodes send, hidden where one does, which sees from the fifth on."""
    nodes = [58, 59, 56, 57, 45, 47]
    whole = pairs(run(build, nodes, amount_mib))
    one = pairs(run(build, nodes, amount_mib, lanes_lost(SHARED, 1) + lanes_lost(ALONE, 1)))
    four = pairs(run(build, nodes, amount_mib, lanes_lost(ALONE, 4)))
    five = pairs(run(build, nodes, amount_mib, lanes_lost(ALONE, 5)))

    def lost(other, place):
        key = (*place[2:], "Z+")
        return 1 - other[key][1] / whole[key][1] if key in other and key in whole else None

    left = None if lost(one, SHARED) is None else 1 - lost(one, SHARED)
    return [
        report("TITAN-7", "adaptive_left_without_a_lane", 23 / 24, "1", 0.02, "S", PROGRAM, left),
        report_bound("TITAN-9", "shared_loss_of_a_lane", ">=", 0.03, "P", PROGRAM, lost(one, SHARED)),
        report_bound("TITAN-9", "single_loss_of_a_lane", "<=", 0.002, "P", PROGRAM, lost(one, ALONE)),
        report_bound("TITAN-9", "single_loss_of_four_lanes", "<=", 0.002, "P", PROGRAM, lost(four, ALONE)),
        report_bound("TITAN-9", "single_loss_of_five_lanes", ">=", 0.005, "P", PROGRAM, lost(five, ALONE)),
    ]


def show_missing(build, amount_mib):
    """A Gemini and two of them removed: all remaining pairs get their data, which the program checks. None of these
    pairs needs a detour, because neighbours are one link apart."""
    good = []
    for missing in ([11], [11, 14]):
        nodes = [nid for nid in range(64) if nid // 2 not in missing][:40]
        text = run(build, nodes, amount_mib, [f"router {number}" for number in missing], "gemini:x=4,y=4,z=8")
        expected = len(pairs(run(build, nodes, amount_mib, (), "gemini:x=4,y=4,z=8")))
        got = len(pairs(text)) / expected if expected else None
        good.append(report_bound("TITAN-10", f"delivered_without_{len(missing)}", ">=", 1, "S", PROGRAM, got))
    return good


@contextmanager
def server(build, name, n_jobs):
    """A server in virtual time, and the nids of its nodes by slot."""
    command = [build / "emunic/emunic", "serve", "--name", name, "--machine", "gemini", "--time", "virtual", "--jobs",
               str(n_jobs), "--nodes", "96", "--domain", "200:1"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        if "is ready" not in line:
            raise OSError(line.strip())
        status = subprocess.run([build / "emunic/emunic", "status", "--server", name, "--json"], check=True, text=True,
                                stdout=subprocess.PIPE)
        nodes = json.loads(status.stdout)["servers"][0]["domains"][0]["nodes"]
        yield {node["nid"]: int(re.search(r"s(\d+)n", node["cname"]).group(1)) for node in nodes}
    finally:
        process.terminate()
        process.communicate()


def job(build, name, nids, words, program):
    command = [build / "emunic/emunic", "run", "-q", "--server", name, "--timeout", str(LIMIT_S), "-n", str(len(nids)),
               "--place", "nids:" + ",".join(map(str, nids)), *words, "--", *program]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def run_jobs(build, has_foreign):
    """Pairs of the job on half of the nodes, beside a foreign one or alone."""
    name = f"topobw-{has_foreign}-{time.monotonic_ns()}"
    with server(build, name, 1 + has_foreign) as slots:
        own = [nid for nid, slot in slots.items() if slot in (1, 2, 5, 6)]
        foreign = [FOREIGN_FROM, next(nid for nid, slot in slots.items() if slot == 3)]
        jobs = [job(build, name, own, ["--begin-after", "9700us"], [build / "examples" / PROGRAM, "-a", "1"])]
        if has_foreign:
            jobs.append(job(build, name, foreign, [], [build / "examples/gni_pingpong", "-i", "1", "-m", "1048576"]))
        texts = [each.communicate()[0] for each in jobs]
    if any(each.returncode for each in jobs):
        print(f"# {PROGRAM} and its neighbour ended with {[each.returncode for each in jobs]}")
        return {}, {}
    return pairs(texts[0]), slots


def show_neighbour(build):
    """A foreign job crosses the link of slots 1 and 2 of the first cage: its data Z+, its answers Z-."""
    quiet, slots = run_jobs(build, False)
    beside, _ = run_jobs(build, True)
    first_cage = range(FOREIGN_FROM, FOREIGN_FROM + 16)
    lost = {"data": [], "answers": [], "nothing": []}
    for (src, dst, direction), (_, rate) in quiet.items():
        from_to = (slots[src], slots[dst]) if src in first_cage and direction[0] == "Z" else None
        crossed_by = {(1, 2): "data", (2, 1): "answers"}.get(from_to, "nothing")
        got = beside.get((src, dst, direction))
        lost[crossed_by].append(1 - got[1] / rate if got else math.inf)
    most = {by: max(map(abs, parts), default=math.inf) for by, parts in lost.items()}
    print(f"# TITAN-15: where its answers cross the job loses {most['answers']:.4g}; as first read, that was loss_elsewhere, "
          "at most 0.01: a miss")
    return [
        report_bound("TITAN-15", "loss_where_data_cross", ">=", 0.1, "S", PROGRAM,
                     min(lost["data"], default=None)),
        report_bound("TITAN-15", "loss_where_nothing_crosses", "<=", 0.01, "S", PROGRAM, most["nothing"]),
    ]


def show(build, is_quick):
    good = show_whole(run(build, NODES, 2 if is_quick else 16))
    if not is_quick:
        good += show_lanes(build, 16) + show_missing(build, 1) + show_neighbour(build)
    return good


if __name__ == "__main__":
    sys.exit(run_as_command(__doc__, show))
