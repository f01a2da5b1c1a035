#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which parameters of the machines do figures feel? Each is changed by 30 %, and figures of kind S or P must fail.

    mutations.py EMUNIC MACHINES [--machine NAME,...] [--cost S] [--jobs N] [--output FILE]
    mutations.py EMUNIC MACHINES --sample

MACHINES is the folder of the machine files. For each number of a file that is not 0: up by 30 %, or down where the file
is then refused or the whole number stays the same. The machine's experiments with figures S or P run at reduced size, of
those that take up to --cost seconds each; CMP-1 and CMP-2 run with the machines that they compare. A parameter is felt
if a figure S or P fails that passes without the change, or an experiment does not come to its end. The output lists those
that are not felt, and those that cannot be changed. What only a costlier experiment feels is listed as not felt.

--sample tries SAMPLE only, one experiment each, in seconds: for `make check`. Status 1: one of them is not felt.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

COMPARED = {"x1": ["CMP-1", "CMP-2"], "xd1": ["CMP-1", "CMP-2"], "xt3": ["CMP-1", "CMP-2"]}
SKIPPED = {"schema", "name", "topology.kind"}
LEAF = re.compile(r"( *)([a-z_0-9]+):\s*([^#\s]+)(.*)$")
# Machine, parameter, an experiment that feels it.
SAMPLE = (("x1", "host.interface_mbs", "X1-4"), ("xd1", "host.local_mbs", "XD1-3"),
          ("xt3", "links.y.gbps_per_lane", "XT3-4"), ("seastar", "host.packet_gap_ns", "SEASTAR-3"),
          ("aries", "router.hop_ns", "XC-20"), ("gemini", "links.x.gbps_per_lane", "TITAN-17"),
          ("x1", "links.edge.gbps_per_lane", "LOAD-2"), ("xd1", "links.external.gbps_per_lane", "LOAD-4"),
          ("seastar", "links.x.gbps_per_lane", "LOAD-8"))


def leaves(text):
    """Line number, path and value of each number of a machine file."""
    path = []
    for n, line in enumerate(text.splitlines()):
        match = LEAF.match(line)
        section = re.match(r"( *)([a-z_0-9]+):\s*(#.*)?$", line)
        if match or section:
            found = match or section
            depth = len(found.group(1)) // 2
            path = path[:depth] + [found.group(2)]
        if match and re.fullmatch(r"[0-9.]+", match.group(3)) and ".".join(path) not in SKIPPED:
            yield n, ".".join(path), match.group(3)


def changed(value, factor):
    """The value as the file would have it; None: the same."""
    new = float(value) * factor
    text = f"{new:.3f}".rstrip("0").rstrip(".") if "." in value else str(round(new))
    return None if float(text) == float(value) else text


class Bench:
    def __init__(self, emunic, folder):
        self.emunic = emunic
        self.folder = folder

    def run(self, ids, machine=None, text=None):
        """Reports of the experiments, with a machine's file changed. None: the machine is refused."""
        with tempfile.TemporaryDirectory(prefix="emunic-mutations.") as folder:
            for path in self.folder.glob("*.yaml"):
                (pathlib.Path(folder) / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
            if text is not None:
                (pathlib.Path(folder) / f"{machine}.yaml").write_text(text, encoding="utf-8")
                known = subprocess.run([self.emunic, "sim", "explain", machine], stdout=subprocess.DEVNULL, check=False,
                                       stderr=subprocess.DEVNULL, env=os.environ | {"EMUNIC_MACHINES": folder})
                if known.returncode != 0:
                    return None
            try:
                done = subprocess.run([self.emunic, "sim", "run", *ids, "--quick", "--json", "--quiet", "--jobs", "1"],
                                      stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False, timeout=120,
                                      env=os.environ | {"EMUNIC_MACHINES": folder})
            except subprocess.TimeoutExpired:
                return []
        return json.loads(done.stdout)["experiments"] if done.stdout else []


def passing(reports):
    """Names of the figures S and P that pass."""
    return {(line["id"], line["metric"]) for report in reports for line in report["lines"]
            if line.get("kind") in ("S", "P") and line["verdict"] == "PASS"}


def mutate(bench, machine, text, leaf, ids, good):
    """("felt", first figure), ("not felt", ""), or ("fixed", why)."""
    n, _, value = leaf
    lines = text.splitlines()
    for factor in (1.3, 0.7):
        new = changed(value, factor)
        if new is None:
            continue
        lines[n] = re.sub(r":(\s*)" + re.escape(value), rf":\g<1>{new}", lines[n], count=1)
        reports = bench.run(ids, machine, "\n".join(lines) + "\n")
        lines[n] = text.splitlines()[n]
        if reports is None:
            continue
        lost = sorted(good - passing(reports))
        return ("felt", " ".join(lost[0])) if lost else ("not felt", "")
    return "fixed", "0" if float(value) == 0 else "refused, or a whole number that stays"


def experiments_of(bench, machine, cost):
    done = subprocess.run([bench.emunic, "sim", "list", "--json"], stdout=subprocess.PIPE, check=True)
    ids = [e["id"] for e in json.loads(done.stdout)["experiments"]
           if e["machine"] == machine and e["needs"] == "packets" and set(e["kinds"]) & set("SP")]
    reports = bench.run(ids + COMPARED.get(machine, []))
    cheap = [report for report in reports if report["cpu_seconds"] <= cost]
    return [report["id"] for report in cheap], passing(cheap)


def sweep(bench, machine, args, write):
    text = (bench.folder / f"{machine}.yaml").read_text(encoding="utf-8")
    ids, good = experiments_of(bench, machine, args.cost)
    found = list(leaves(text))
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = list(pool.map(lambda leaf: mutate(bench, machine, text, leaf, ids, good), found))
    felt = [leaf[1] for leaf, (what, _) in zip(found, results) if what == "felt"]
    not_felt = [leaf[1] for leaf, (what, _) in zip(found, results) if what == "not felt"]
    fixed = [leaf[1] for leaf, (what, why) in zip(found, results) if what == "fixed" and why != "0"]
    write(f"{machine}: {len(felt)} felt, {len(not_felt)} not felt, {len(fixed)} cannot be changed, by {len(good)} figures "
          f"of {' '.join(ids)}")
    write(f"  felt: {' '.join(felt)}")
    write(f"  not felt: {' '.join(not_felt)}")
    write(f"  cannot be changed: {' '.join(fixed)}")
    return len(felt), len(not_felt)


def sample(bench):
    status = 0
    for machine, key, experiment in SAMPLE:
        text = (bench.folder / f"{machine}.yaml").read_text(encoding="utf-8")
        leaf = next(leaf for leaf in leaves(text) if leaf[1] == key)
        what, figure = mutate(bench, machine, text, leaf, [experiment], passing(bench.run([experiment])))
        print(f"{machine} {key}: {what} {figure}")
        status |= what != "felt"
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emunic")
    parser.add_argument("machines", type=pathlib.Path)
    parser.add_argument("--machine", default="x1,xd1,xt3,seastar,gemini,aries,bluegene-l")
    parser.add_argument("--cost", type=float, default=0.8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true")
    args = parser.parse_args()
    bench = Bench(args.emunic, args.machines)
    if args.sample:
        return sample(bench)
    lines = []
    for machine in args.machine.split(","):
        sweep(bench, machine, args, lambda line: (print(line, flush=True), lines.append(line)))
    if args.output:
        args.output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
