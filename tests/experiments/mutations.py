#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which parameters of the machines do figures feel? Each is changed by 30 %, and a figure of kind S or P must fail.

    mutations.py EMUNIC MACHINES [--machine NAME,...] [--cost S] [--experiments ID,...] [--keys RE] [--jobs N]
                 [--build BUILD] [--output FILE]
    mutations.py EMUNIC MACHINES --sample

MACHINES is the folder of the machine files. Each number of a file that is not 0 goes up by 30 % and, if nothing of kind
S or P fails, down by 30 %. The machine's experiments run at reduced size, of those that take up to --cost seconds each;
those that compare machines run with each of them. With --build, programs run in virtual time as well, and the rows of
kind F of Aries. The output is a table, a line for each parameter:

    S, P    the first figure of that kind that fails, or an experiment that does not come to its end
    K, A... the first figure of another kind that fails. A parameter that was fitted to a figure is felt by that one (K)
    live    the first figure of a program in virtual time, or row of kind F, that fails
    moves   nothing fails, and this figure is another one
    still   no figure is another one, with the reason if UNUSED knows it
    fixed   it cannot be changed: refused either way, or off

A whole number that 30 % would not change goes up or down by one. What only a costlier experiment feels is not found. To find what nobody reads, all parameters change at once, then halves
of them, and so on. --sample tries SAMPLE only, one experiment each, in seconds: for `make check`. Status 1: one of them is
not felt.
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
# Experiments that load a machine which is not their own.
BORROWED = {"xd1-fat-tree": ["XD1-7", "XD1-8", "AUD-XD1"], "xt3": ["XT3-1", "AUD-XT3"]}
# Runs of tests/live/figures.py, and rows of kind F.
PROGRAMS = {"aries": ["pingpong", "mpi-aries", "mpi-aries-gni"], "seastar": ["portals"], "xt3": ["mpi-xt3"],
            "x1": ["mpi-x1", "mpi-x1-intra"], "xd1": ["mpi-xd1", "mpi-xd1-intra"],
            "gemini": ["mpi-titan-x", "mpi-titan-y", "mpi-titan-z", "mpi-titan-across", "titan-x", "titan-y", "titan-z"]}
ROWS = {"aries": ["xc_35", "xc_39", "xc_43", "xc_47", "xc_50"]}
SKIPPED = {"schema", "name", "topology.kind"}
# Changed with others, these would hide them: a faster clock hides more clocks.
ALONE = r"nic\.clock_mhz|hop_wire_ns|frame_overhead_flits"
LEAF = re.compile(r"( *)([a-z_0-9]+):\s*([^#\s]+)(.*)$")
LAUNCHED = {"xc_39": ["-n", "4", "--ppn", "2"], "xc_50": ["--mpi=portals", "-n", "2", "--ppn", "1", "--time", "virtual"]}
# Why no figure of a machine is another one: key, machines, reason. The first that matches.
UNUSED = (
    (r"links\.crc_bits", r".*", "the chance that damage escapes the check; figures of damage have checks of their own"),
    (r"nic\.(fma_descriptors|bte_bytes_max|ce_engines|ce_children_max)", r"(?!aries)",
     "a limit of uGNI programs, for which no source of this machine has a figure"),
    (r"nic\.(bte_channels|outstanding_packets|amo_.*)", r"(?!aries)",
     "of uGNI programs, for which no source of this machine has a figure"),
    (r"nic\.(clock_mhz|access_cycles|drain_cycles|reception_units)", r".*",
     "of free traffic and uGNI programs; figures have other rates in front"),
    (r"topology\.switch_ports", r".*", "room for the ports that there are; less is refused"),
    (r"router\.packet_units_max", r".*", "room for the longest packet; less is refused"),
    (r"links\.frame_flits", r".*", "without an overhead a frame of any length is the same"),
    (r"host\.tile_nics", r"(?!aries)", "tile_mbs is 0: tiles are no limit"),
    (r"topology\..*", r".*", "experiments name the sizes of their machines themselves"),
    (r"host\.eager_bytes_max", r".*", "longer than any message of a figure"),
    (r"routing\.adaptive_.*", r".*", "of modes that no figure uses: the source has no number for them"),
    (r"nic\.(ce_engines|bte_bytes_max)", r"aries", "a limit that no row goes to"),
    (r"host\.local_mbs", r"aries", "of long messages within a node; no source has a figure"),
    (r"host\.register_.*", r".*", "of buffers that the cache of registrations does not have; no source has a figure"),
)
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
    """The value as the file would have it; None: the same. A whole number changes by one at least."""
    new = float(value) * factor
    if "." not in value:
        new = round(new)
        return str(new if new != int(value) else int(value) + (1 if factor > 1 else -1))
    text = f"{new:.3f}".rstrip("0").rstrip(".")
    return None if float(text) == float(value) else text


def with_values(text, new_values):
    """The file with other values; new_values are (leaf, value)."""
    lines = text.splitlines()
    for (n, _, value), new in new_values:
        lines[n] = re.sub(r":(\s*)" + re.escape(value), rf":\g<1>{new}", lines[n], count=1)
    return "\n".join(lines) + "\n"


class Bench:
    """Runs experiments and programs with a folder of machine files of its own."""

    def __init__(self, emunic, folder, build=None):
        self.emunic = str(pathlib.Path(emunic).resolve())
        self.folder = folder
        self.build = build

    def call(self, command, folder, seconds=300):
        """Standard output. None: it did not end well in time."""
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False,
                                  timeout=seconds, env=os.environ | {"EMUNIC_MACHINES": str(folder)}, text=True)
        except subprocess.TimeoutExpired:
            return None
        return done.stdout if done.returncode in (0, 1) else None

    def copy(self, folder, machine, text):
        """False: the machine is refused."""
        for path in self.folder.glob("*.yaml"):
            (pathlib.Path(folder) / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
        if text is None:
            return True
        (pathlib.Path(folder) / f"{machine}.yaml").write_text(text, encoding="utf-8")
        return bool(self.call([self.emunic, "sim", "explain", machine], folder))

    def run(self, ids, machine=None, text=None):
        """Reports of the experiments, with a machine's file changed. None: the machine is refused."""
        with tempfile.TemporaryDirectory(prefix="emunic-mutations.") as folder:
            if not self.copy(folder, machine, text):
                return None
            out = self.call([self.emunic, "sim", "run", *ids, "--quick", "--json", "--quiet", "--jobs", "1"], folder)
        return json.loads(out)["experiments"] if out else []

    def run_live(self, machine, text=None):
        """{(row, metric): (kind, passes, number)} of programs in virtual time and rows of kind F."""
        found = {}
        if not self.build:
            return found
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "live"))
        import figures
        with tempfile.TemporaryDirectory(prefix="emunic-mutations.") as folder:
            if not self.copy(folder, machine, text):
                return found
            for name in PROGRAMS.get(machine, []):
                run = figures.RUNS[name]
                command = [self.emunic, "run", "-q", "-n", "2", "--time", "virtual", "--machine", run.machine,
                           *run.options, "--", self.build / run.folder / run.program,
                           *figures.QUICK.get(name, run.arguments)]
                out = self.call(command, folder)
                for row, metric, source, _, tolerance, kind, program, *place in figures.TABLES:
                    got = figures.cell(out, *place) if program == name else None
                    if program == name and (got is not None or out is None):
                        found[row, metric] = (kind, out is not None and abs(got - source) <= tolerance * source, got)
                if name.startswith("titan-") and out is not None:
                    found[name, "bandwidth"] = ("P", True, figures.cable(out))
            for name in ROWS.get(machine, []):
                program = str(self.build / "tests/live" / f"live-{name.replace('_', '-')}")
                start = [self.emunic, "run", "-q", *LAUNCHED[name], "--"] if name in LAUNCHED else []
                out = self.call([*start, program], folder) or ""
                found[name.upper().replace("_", "-"), "row"] = ("F", "not ok" not in out and "FAILED" not in out and
                                                                out != "", None)
        return found


def figures_of(reports):
    """{(id, metric): (kind, passes, number)}."""
    return {(line["id"], line["metric"]): (line.get("kind", "?"), line["verdict"] == "PASS", line.get("got"))
            for report in reports for line in report["lines"] if "metric" in line}


def passing(reports):
    """Names of the figures S and P that pass."""
    return {name for name, (kind, passes, _) in figures_of(reports).items() if kind in "SP" and passes}


def lost(good, now, kinds):
    """The first figure of these kinds that passed before, and fails now or is not there."""
    for name in sorted(good):
        kind, passes, _ = good[name]
        if passes and kind in kinds and (name not in now or not now[name][1]):
            return f"{' '.join(name)} ({kind})"
    return None


class Sweep:
    """One machine."""

    def __init__(self, bench, machine, cost, only):
        self.bench = bench
        self.machine = machine
        self.text = (bench.folder / f"{machine}.yaml").read_text(encoding="utf-8")
        out = subprocess.run([bench.emunic, "sim", "list", "--json"], stdout=subprocess.PIPE, check=True)
        ids = [e["id"] for e in json.loads(out.stdout)["experiments"] if e["machine"] == machine and e["needs"] != "live"]
        ids += COMPARED.get(machine, []) + BORROWED.get(machine, [])
        reports = bench.run([i for i in ids if not only or i in only])
        cheap = sorted((report for report in reports if report["cpu_seconds"] <= cost), key=lambda r: r["cpu_seconds"])
        half = len(cheap) * 2 // 3
        self.stages = [[r["id"] for r in cheap[:half]], [r["id"] for r in cheap[half:]]]
        self.good = [figures_of(cheap[:half]), figures_of(cheap[half:])]
        self.good_live = bench.run_live(machine)

    def run_all(self, new_values):
        """Figures of both stages. None: refused."""
        reports = self.bench.run(self.stages[0] + self.stages[1], self.machine, with_values(self.text, new_values))
        return None if reports is None else figures_of(reports)

    def movers(self, found, factor):
        """The leaves that make a figure another one, or are refused, with this factor."""
        changes = [(leaf, changed(leaf[2], factor)) for leaf in found]
        changes = [change for change in changes if change[1]]
        if not changes or self.run_all(changes) == self.good[0] | self.good[1]:
            return []
        if len(changes) == 1:
            return [changes[0][0]]
        middle = len(changes) // 2
        return [leaf for part in (changes[:middle], changes[middle:])
                for leaf in self.movers([change[0] for change in part], factor)]

    def try_one(self, leaf, factor):
        """(S or P that fails, other that fails, figure that moves). None: refused or the same."""
        new = changed(leaf[2], factor)
        text = with_values(self.text, [(leaf, new)]) if new else None
        other = moved = None
        for ids, good in zip(self.stages, self.good):
            reports = self.bench.run(ids, self.machine, text) if text and ids else None
            if reports is None and (not text or ids):
                return None
            now = figures_of(reports or [])
            hard = lost(good, now, "SP")
            if hard:
                return hard, None, None
            other = other or lost(good, now, "KAQF")
            moved = moved or next((" ".join(name) for name in sorted(good) if now.get(name) != good[name]), None)
        return None, other, moved

    def judge(self, leaf, is_mover):
        """(word, what) for the table."""
        tried = []
        for factor in (1.3, 0.7):
            if is_mover and not any(t[0] for t in tried):
                tried += [t for t in [self.try_one(leaf, factor)] if t]
        for place, word in ((0, "S, P"), (1, "K, A")):
            figure = next((t[place] for t in tried if t[place]), None)
            if figure:
                return word, figure
        new = changed(leaf[2], 1.3)
        if new and self.bench.build:
            now = self.bench.run_live(self.machine, with_values(self.text, [(leaf, new)]))
            if now or not self.good_live:
                figure = lost(self.good_live, now, "SPKAQF")
                if figure:
                    return "live", figure
                moved = next((name for name in sorted(self.good_live) if self.good_live[name] != now.get(name)), None)
                tried += [(None, None, f"live {' '.join(moved)}")] if moved else []
        moved = next((t[2] for t in tried if t[2]), None)
        if moved:
            return "moves", moved
        if not new or (is_mover and not tried):
            return "fixed", "refused" if new else "next to nothing"
        reason = next((why for key, machines, why in UNUSED if re.fullmatch(key, leaf[1]) and re.match(machines,
                                                                                                     self.machine)), "")
        return "still", reason


def sweep(bench, machine, args, write):
    s = Sweep(bench, machine, args.cost, args.experiments)
    found = [leaf for leaf in leaves(s.text) if float(leaf[2]) != 0 and re.search(args.keys, leaf[1])]
    movers = {leaf for leaf in found if re.search(ALONE, leaf[1])}
    for factor in (1.3, 0.7):
        movers |= set(s.movers([leaf for leaf in found if leaf not in movers], factor))
    write(f"{machine}, by {' '.join(s.stages[0] + s.stages[1])}")
    count = dict.fromkeys(("S, P", "K, A", "live", "moves", "still", "fixed"), 0)
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for leaf, (word, what) in zip(found, pool.map(lambda leaf: s.judge(leaf, leaf in movers), found)):
            write(f"  {leaf[1]:36} {leaf[2]:>10}  {word:5} {what}".rstrip())
            count[word] += 1
    write(f"  {len(found)} parameters that are not 0: " + ", ".join(f"{n} {w}" for w, n in count.items()) + "\n")


def sample(bench):
    status = 0
    for machine, key, experiment in SAMPLE:
        text = (bench.folder / f"{machine}.yaml").read_text(encoding="utf-8")
        leaf = next(leaf for leaf in leaves(text) if leaf[1] == key)
        now = passing(bench.run([experiment], machine, with_values(text, [(leaf, changed(leaf[2], 1.3))])) or [])
        gone = sorted(passing(bench.run([experiment])) - now)
        print(f"{machine} {key}: {'felt ' + ' '.join(gone[0]) if gone else 'not felt'}")
        status |= not gone
    return status


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emunic")
    parser.add_argument("machines", type=pathlib.Path)
    parser.add_argument("--machine", default="x1,xd1,xd1-fat-tree,xt3,seastar,gemini,aries,bluegene-l")
    parser.add_argument("--cost", type=float, default=1.0)
    parser.add_argument("--experiments", type=lambda text: text.split(","), help="these alone")
    parser.add_argument("--keys", default="", help="parameters with this regular expression alone")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true")
    args = parser.parse_args()
    bench = Bench(args.emunic, args.machines, args.build)
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
