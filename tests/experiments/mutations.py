#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which parameters of the machines do figures feel? Each is changed by 30 %, and a figure of kind S or P must fail.

    mutations.py EMUNIC MACHINES [--machine NAME,...] [--cost S] [--experiments ID,...] [--keys RE] [--unfelt]
                 [--jobs N] [--build BUILD] [--page PAGE]
    mutations.py EMUNIC MACHINES --sample
    mutations.py --check MACHINES PAGE
    mutations.py --self-test

MACHINES is the folder of the machine files. Each number of a file that is not 0 goes up by 30 % and, if nothing of kind
S or P fails, down by 30 %. The machine's experiments run at reduced size, of those that take up to --cost seconds each;
those that compare machines run with each of them. With --build, programs run in virtual time as well, and the rows of
kind F of Aries. The output is a table, a line for each parameter:

    S, P    the first figure of that kind that fails, or an experiment that does not come to its end
    own     the same, of the rows OWN- alone: measured, kind S, and held against arithmetic on the machine file
    K       the first fitted figure that fails: the parameter was chosen by it
    A       the first figure of structure that fails
    live    the first figure of a program in virtual time, or row of kind F, that fails
    refused the reader refuses the machine with either value: it holds them against others of the file
    none    nothing fails, with the figure that is another one, if there is one

A whole number that 30 % would not change goes up or down by one. What only a costlier experiment feels is not found. To
find what nobody reads, all parameters change at once, then halves of them, and so on.

--page keeps the page docs/generated/mutations.md: rows of the parameters that were tried are new, the others stay; so
do better ones if --experiments has part of the experiments only. A parameter that neither S nor P feels has a class
there and the reason (REASONS). --check tells what is wrong with the page: a number of a machine file without a row or
with another value, a row without a reason, counts that are not those of the rows. --sample tries SAMPLE only, one
experiment each, in seconds: for `make check`. Status 1: one of them is not felt, or the page is wrong.
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
import time

COMPARED = {"x1": ["CMP-1", "CMP-2"], "xd1": ["CMP-1", "CMP-2"], "xt3": ["CMP-1", "CMP-2"]}
# Experiments that load a machine which is not their own.
BORROWED = {"xd1-fat-tree": ["XD1-7", "XD1-8", "AUD-XD1"], "xt3": ["XT3-1", "AUD-XT3"]}
MACHINES = ("x1", "xd1", "xd1-fat-tree", "xt3", "seastar", "gemini", "aries", "bluegene-l")
# Runs of tests/live/figures.py, and rows of kind F.
PROGRAMS = {"aries": ["pingpong", "mpi-aries", "mpi-aries-gni"], "seastar": ["portals"], "xt3": ["mpi-xt3"],
            "x1": ["mpi-x1", "mpi-x1-intra"], "xd1": ["mpi-xd1", "mpi-xd1-intra"],
            "gemini": ["mpi-titan-x", "mpi-titan-y", "mpi-titan-z", "mpi-titan-across", "titan-x", "titan-y", "titan-z"]}
ROWS = {machine: ["xc_39"] for machine in MACHINES} | {"aries": ["xc_35", "xc_39", "xc_43", "xc_47", "xc_50"]}
SKIPPED = {"schema", "name", "topology.kind"}
# Changed with others, these would hide them: a faster clock hides more clocks.
ALONE = r"nic\.clock_mhz|hop_wire_ns|frame_overhead_flits"
LEAF = re.compile(r"( *)([a-z_0-9]+):\s*([^#\s]+)(.*)$")
LAUNCHED = {"xc_39": ["-n", "4", "--ppn", "2"], "xc_50": ["--mpi=portals", "-n", "2", "--ppn", "1", "--time", "virtual"]}
# Why neither S nor P feels a parameter: key, machines, class, reason. The first that matches. A row of kind K is fitted, and
# one of a program has a reason of its own.
LIMIT, CHOICE, SIZE, OTHER = "limit", "choice", "size", "other"
CLASSES = {
    "refused": "with another value the machine is not built: the reader holds it against the others",
    "fitted": "chosen so that a figure of its source comes out, which feels it (K)",
    LIMIT: "a limit or function of programs that no published figure reaches",
    CHOICE: "a choice of ours where the sources are silent, or a structure that no figure measures",
    SIZE: "the default size or name of a machine; experiments name theirs",
    OTHER: "felt by what did not run here: figures of programs, of another machine, long runs",
}
REASONS = ()  # today there is none
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

    def run(self, ids, machine=None, text=None, seconds=300):
        """Reports of the experiments, with a machine's file changed. None: the machine is refused."""
        with tempfile.TemporaryDirectory(prefix="emunic-mutations.") as folder:
            if not self.copy(folder, machine, text):
                return None
            command = [self.emunic, "sim", "run", *ids, "--quick", "--json", "--quiet", "--jobs", "1"]
            began = time.monotonic()
            out = self.call(command, folder, seconds)
            if out is None and time.monotonic() - began >= seconds:  # others had the processor: no figure has felt it
                out = self.call(command, folder, 10 * seconds)
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
                start = [self.emunic, "run", "-q", "--machine", machine, *LAUNCHED[name], "--"] if name in LAUNCHED else []
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


def is_own(figure):
    return figure.startswith("OWN-")


def lost(good, now, kinds):
    """The first figure of these kinds that passed before, and fails now or is not there; of OWN- if no other."""
    for name in sorted(good, key=lambda name: (is_own(name[0]), name)):
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
        reports = bench.run([i for i in ids if not only or i in only], seconds=7200)
        if not reports:
            raise SystemExit(f"{machine}: no experiment came to its end")
        cheap = sorted((report for report in reports if report["cpu_seconds"] <= cost), key=lambda r: r["cpu_seconds"])
        half = len(cheap) * 2 // 3
        self.stages = [[r["id"] for r in cheap[:half]], [r["id"] for r in cheap[half:]]]
        self.good = [figures_of(cheap[:half]), figures_of(cheap[half:])]
        self.good_live = bench.run_live(machine)
        self.has_values = any(r["id"].startswith("OWN-") for r in cheap)
        self.has_only_values = all(r["id"].startswith("OWN-") for r in cheap)

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
        """(S or P that fails, one of OWN-, K, another, figure that moves). None: refused or the same."""
        new = changed(leaf[2], factor)
        text = with_values(self.text, [(leaf, new)]) if new else None
        own = fitted = other = moved = None
        for ids, good in zip(self.stages, self.good):
            reports = self.bench.run(ids, self.machine, text) if text and ids else None
            if reports is None and (not text or ids):
                return None
            now = figures_of(reports or [])
            hard = lost(good, now, "SP")
            if hard and not is_own(hard):
                return hard, None, None, None, None
            own = own or hard
            fitted = fitted or lost(good, now, "K")
            other = other or lost(good, now, "AQF")
            moved = moved or next((" ".join(name) for name in sorted(good) if now.get(name) != good[name]), None)
        return None, own, fitted, other, moved

    def judge(self, leaf, is_mover):
        """(word, change, what) for the table."""
        tried = {}
        for factor in (1.3, 0.7):
            if is_mover and not any(t and (t[0] or self.has_only_values and (t[1] or t[3])) for t in tried.values()):
                tried[factor] = self.try_one(leaf, factor)
        done = {factor: t for factor, t in tried.items() if t}
        for place, word in enumerate(("S, P", "own", "K", "A")):
            for factor, t in done.items():
                if t[place]:
                    return word, changed(leaf[2], factor), t[place]
        new = changed(leaf[2], 1.3)
        moved = next((t[4] for t in done.values() if t[4]), None)
        if new and self.bench.build:
            now = self.bench.run_live(self.machine, with_values(self.text, [(leaf, new)]))
            if now or not self.good_live:
                figure = lost(self.good_live, now, "SPKAQF")
                if figure:
                    return "live", new, figure
                moved = moved or next((f"live {' '.join(name)}" for name in sorted(self.good_live)
                                       if self.good_live[name] != now.get(name)), None)
        if moved:
            return "none", "both", f"{moved} is another one"
        if tried and not done and new:
            return "refused", "both", ""
        if not new:
            return "none", "both", "next to nothing"
        return "none", "both", "no figure is another one"


def sweep(bench, machine, args, write):
    """Rows of the page by parameter."""
    s = Sweep(bench, machine, args.cost, args.experiments)
    felt = felt_on(args.page) if args.unfelt else set()
    found = [leaf for leaf in leaves(s.text)
             if float(leaf[2]) != 0 and re.search(args.keys, leaf[1]) and (machine, leaf[1]) not in felt]
    # With values held against their arithmetic nearly all of them move a figure.
    movers = {leaf for leaf in found if re.search(ALONE, leaf[1]) or s.has_values}
    for factor in (1.3, 0.7):
        movers |= set(s.movers([leaf for leaf in found if leaf not in movers], factor))
    write(f"{machine}, by {' '.join(s.stages[0] + s.stages[1])}")
    rows = {}
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for leaf, (word, change, what) in zip(found, pool.map(lambda leaf: s.judge(leaf, leaf in movers), found)):
            write(f"  {leaf[1]:36} {leaf[2]:>10}  {word:5} {change:>10}  {what}")
            rows[machine, leaf[1]] = [leaf[2], change, word, what]
            if args.page:
                update(args.page, bench.folder, rows, bool(args.experiments))
    count = {word: sum(row[2] == word for row in rows.values()) for word in WORDS}
    write(f"  {len(found)} parameters that are not 0: " + ", ".join(f"{n} {w}" for w, n in count.items()) + "\n")
    return rows


# ---- the page ----

WORDS = ("S, P", "own", "K", "live", "A", "refused", "none")
UNKNOWN = "not recorded which"
LEAD = """# Which figures feel the parameters of the machines

Each number of a machine file that is not 0, changed by 30 % (a whole number by one at least): the first figure of kind
S or P that then fails, at reduced size. A figure fails if it misses its tolerance, or if the machine is refused in the
middle of its experiment. *own*: only figures OWN- of kind S do. They are measured on packets and held against arithmetic
on the machine file, so they are no evidence of a machine; they show that the model does what the file says. Where none of
these feels a parameter, the row names what does: the figure that it was fitted to (K), a figure of structure (A), a
program in virtual time (live), or nothing; and why: a class, and the reason. *refused*: with either value there is no
machine. `make mutations` makes the page, `tests/experiments/mutations.py` tells how.
"""


def read_page(text):
    """{(machine, key): [value, change, word, what, version]}."""
    rows = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 9 and re.match(r"[a-z0-9-]+$", cells[0]) and "." in cells[1]:
            word = "refused" if cells[5] == "refused" else cells[4]
            rows[cells[0], cells[1]] = [cells[2], cells[3], word, "" if word == "refused" else cells[5], cells[8]]
    return rows


def felt_on(page):
    """Parameters that a figure S or P feels, of which the page tells which."""
    return {name for name, row in read_page(page.read_text(encoding="utf-8")).items()
            if row[2] in ("S, P", "own") and row[3] != UNKNOWN}


def reason(machine, key, word, what):
    """(class, reason) of a parameter that neither S nor P feels."""
    if word == "refused":
        return "refused", ""
    if word in ("S, P", "own"):
        return "", ""
    if word == "K":
        return "fitted", ""
    if word == "live":
        return OTHER, "of programs; nothing of the network is in its way"
    return next(((kind, why) for pattern, machines, kind, why in REASONS
                 if re.fullmatch(pattern, key) and re.fullmatch(machines, machine)), ("", ""))


def numbers(folder):
    """{(machine, key): value} of all numbers that are not 0, in the order of the files."""
    return {(machine, key): value for machine in MACHINES
            for _, key, value in leaves((folder / f"{machine}.yaml").read_text(encoding="utf-8")) if float(value) != 0}


def counts(rows):
    """Lines of the table by machine, and of that by class."""
    lines = ["| machine | parameters | " + " | ".join(WORDS) + " |", "|---" * (len(WORDS) + 2) + "|"]
    for machine in [*MACHINES, "all"]:
        mine = [row[2] for (of, _), row in rows.items() if machine in (of, "all")]
        lines.append(f"| {machine} | {len(mine)} | " + " | ".join(str(mine.count(word)) for word in WORDS) + " |")
    lines += ["", "| class | parameters | what it means |", "|---|---|---|"]
    classes = [reason(machine, key, *row[2:4])[0] for (machine, key), row in rows.items()]
    return lines + [f"| {name} | {classes.count(name)} | {text} |" for name, text in CLASSES.items()]


def page_text(rows, folder):
    order = {name: i for i, name in enumerate(numbers(folder))}
    rows = dict(sorted(((name, row) for name, row in rows.items() if name in order), key=lambda item: order[item[0]]))
    lines = ["<!-- Made by tests/experiments/mutations.py (make mutations). -->", LEAD, *counts(rows), "",
             "| machine | key | value | change | felt by | first figure that fails | class | reason | version |",
             "|---|---|---|---|---|---|---|---|---|"]
    for (machine, key), (value, change, word, what, version) in rows.items():
        kind, why = reason(machine, key, word, what)
        lines.append(f"| {machine} | {key} | {value} | {change} | {word} | {what} | {kind} | {why} | {version} |")
    return "\n".join(lines) + "\n"


def sources_version():
    done = subprocess.run(["git", "-C", str(pathlib.Path(__file__).resolve().parent), "describe", "--always", "--dirty",
                           "--abbrev=7", "--exclude=*"], stdout=subprocess.PIPE, check=False, text=True)
    return done.stdout.strip() or "unknown"


def update(page, folder, rows, is_part):
    """Part of the experiments do not replace what others felt."""
    old = read_page(page.read_text(encoding="utf-8")) if page.exists() else {}
    version = sources_version()
    for name, row in rows.items():
        before = old.get(name)
        is_better = (before and before[0] == row[0] and WORDS.index(before[2]) < WORDS.index(row[2])
                     and not (before[3] == UNKNOWN and row[2] == "own"))
        if not (is_part and is_better):
            old[name] = [*row, version]
    page.write_text(page_text(old, folder), encoding="utf-8")


def findings(page, folder):
    """What is wrong with the page, as text."""
    rows = read_page(page)
    for name, value in numbers(folder).items():
        if name not in rows:
            yield f"{' '.join(name)}: no row"
        elif rows[name][0] != value:
            yield f"{' '.join(name)}: {value} in the machine file, {rows[name][0]} on the page"
        elif rows[name][2] not in WORDS or (rows[name][2] not in ("S, P", "own") and not reason(*name, *rows[name][2:4])[0]):
            yield f"{' '.join(name)}: neither S nor P feels it, and no reason is known"
    for name in set(rows) - set(numbers(folder)):
        yield f"{' '.join(name)}: no such parameter"
    if page != page_text(rows, folder):
        yield "the text is not that of the rows: mutations.py --page makes it"


def self_test():
    bad = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for machine in MACHINES:
            (folder / f"{machine}.yaml").write_text("router:\n  hop_ns: 5\n  paths: 0\n", encoding="utf-8")
        rows = {(machine, "router.hop_ns"): ["5", "6.5", "S, P", "X-1 a (S)", "v"] for machine in MACHINES}
        good = page_text(rows, folder)
        for text, n in {good: 0, good.replace("| xt3 | router.hop_ns | 5 ", "| xt3 | router.hop_ns | 6 "): 1,
                        good.replace("| xt3 | 1 | 1 |", "| xt3 | 1 | 0 |"): 1,
                        "".join(line for line in good.splitlines(True) if "| xt3 | router" not in line): 2,
                        good.replace("| 6.5 | S, P |", "| 6.5 | felt |", 1): 2}.items():
            found = list(findings(text, folder))
            if len(found) != n:
                bad = print(f"self-test: {found} instead of {n} findings") or 1
    return bad


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
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    if sys.argv[1:2] == ["--check"]:
        found = list(findings(pathlib.Path(sys.argv[3]).read_text(encoding="utf-8"), pathlib.Path(sys.argv[2])))
        for finding in found:
            print(finding)
        return 1 if found else 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emunic")
    parser.add_argument("machines", type=pathlib.Path)
    parser.add_argument("--machine", default=",".join(MACHINES))
    parser.add_argument("--cost", type=float, default=1.0)
    parser.add_argument("--experiments", type=lambda text: text.split(","), help="these alone")
    parser.add_argument("--keys", default="", help="parameters with this regular expression alone")
    parser.add_argument("--unfelt", action="store_true", help="those alone that no figure S or P of the page feels")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--sample", action="store_true")
    args = parser.parse_args()
    bench = Bench(args.emunic, args.machines, args.build)
    if args.sample:
        return sample(bench)
    for machine in args.machine.split(","):
        sweep(bench, machine, args, lambda line: print(line, flush=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
