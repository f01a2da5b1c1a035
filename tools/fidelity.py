#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs experiments of `emunic sim` and writes docs/generated/fidelity.md: sources, our figures, verdicts, classes.

    fidelity.py BUILD [--quick] [--seeds N] [--jobs N] [--threads N] [--limit S] [--resume] [--output FILE] [ID...]
    fidelity.py BUILD --from RESULT.json... [--keep PAGE [--drop ID,...]] [--output FILE]

Full size and three seeds unless told otherwise. A figure of several seeds passes if it passes with each. Experiments
run one after another, their seeds side by side; what is done is kept in BUILD/fidelity.json, and --resume goes on
from there. An experiment that takes longer than the limit is listed as not run.

--from takes results of `emunic sim run --json`, too; of the same experiment the last one counts. --keep takes rows of a
page before: those of full runs whose source, tolerance and kind are still what the experiments say, instead of a
reduced run of now, and reduced ones of experiments that did not run now. --drop names experiments whose model has changed since, which are not kept. The page tells of each
row with which version of the sources and at which size it ran. The status is 0 also if a figure failed: the table is
the result.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

MACHINES = {"aries": "Cray XC (Aries)", "gemini": "Titan (Gemini)", "seastar": "Red Storm (SeaStar)",
            "xt3": "Cray XT3 (SeaStar)", "bluegene-l": "Blue Gene/L", "x1": "Cray X1", "xd1": "Cray XD1",
            "xd1-fat-tree": "Cray XD1 (fat tree)", "all": "Comparisons and audits of all"}


CLASSES = ("measured", "counted", "fitted", "formula")
LETTERS = {"M": "measured", "C": "counted", "K": "fitted", "F": "formula"}
HEADER = ["id", "figure", "source", "ours", "tolerance", "kind", "class", "verdict", "run"]


def listed(emunic):
    """Experiments and ledger, as `emunic sim list` has them."""
    done = subprocess.run([emunic, "sim", "list", "--json"], stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def version():
    """Of the sources: the commit, and whether there is more than that."""
    done = subprocess.run(["git", "-C", str(pathlib.Path(__file__).resolve().parent), "describe", "--always", "--dirty",
                           "--abbrev=7", "--exclude=*"], stdout=subprocess.PIPE, check=False, text=True)
    return done.stdout.strip() or "unknown"


def chosen(emunic, words):
    """Ids of the experiments that these words mean, in the order of the list."""
    experiments = listed(emunic)["experiments"]
    ids = [e["id"] for e in experiments if e["needs"] != "live"
           and (not words or any(w in (e["id"], "all") or e["id"].startswith(w + "-") for w in words))]
    live = [e for e in experiments if e["needs"] == "live"]
    return ids, live


def merge(results):
    """One result of several; of the same experiment the last one counts."""
    whole = dict(results[-1])
    reports = {}
    for result in results:
        for name in dict.fromkeys(report["id"] for report in result["experiments"]):
            reports[name] = [{"mode": result["mode"], "seeds": result["seeds"],
                              "version": result.get("version", version())} | report
                             for report in result["experiments"] if report["id"] == name]
    whole["experiments"] = sorted((report for name in reports for report in reports[name]),
                                  key=lambda report: (list(MACHINES).index(report["machine"]), natural(report["id"])))
    whole["mode"] = "full" if any(result["mode"] == "full" for result in results) else "quick"
    whole["seeds"] = max(result["seeds"] for result in results)
    whole["not_run"] = [entry for result in results
                        for entry in result.get("not_run", []) if entry["id"] not in reports]
    return whole


def run_one(emunic, name, args):
    command = [emunic, "sim", "run", name, "--quick" if args.quick else "--full", "--seeds", str(args.seeds),
               "--threads", str(args.threads), "--json", "--quiet"]
    if args.jobs:
        command += ["--jobs", str(args.jobs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            text, _ = process.communicate(timeout=args.limit)
        except subprocess.TimeoutExpired:
            process.terminate()     # it ends its experiments with it
            process.communicate()
            return None
    if process.returncode not in (0, 1) or not text:
        sys.exit(f"fidelity: {' '.join(command)} ended with status {process.returncode}")
    return json.loads(text)


def run(build, args):
    emunic = str(build / "emunic" / "emunic")
    kept = build / "fidelity.json"
    mode = "quick" if args.quick else "full"
    ids, live = chosen(emunic, args.ids)
    if not ids:
        sys.exit("fidelity: no such experiment")
    result = {"mode": mode, "seed": 1, "seeds": args.seeds, "experiments": [], "live": live, "not_run": [],
              "version": version()}
    if args.resume and kept.exists():
        before = json.loads(kept.read_text())
        if (before["mode"], before["seeds"]) == (mode, args.seeds):
            result = before | {"not_run": []}
    have = {report["id"] for report in result["experiments"]}
    for number, name in enumerate(ids, 1):
        if name in have:
            continue
        print(f"fidelity: {number} of {len(ids)}: {name}", file=sys.stderr, flush=True)
        one = run_one(emunic, name, args)
        if one:
            result["experiments"] += one["experiments"]
        else:
            result["not_run"].append({"id": name, "reason": f"longer than the limit of {args.limit} s"})
        kept.write_text(json.dumps(result))
    order = {name: place for place, name in enumerate(ids)}
    result["experiments"].sort(key=lambda report: order.get(report["id"], len(order)))
    return result


def number(value):
    """As the EXP lines print it."""
    if value is None:
        return "none"
    if isinstance(value, str):
        return value.replace("_", " ")
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    return f"{value:.4g}"


def span(values):
    """One value, or the smallest and largest of several seeds."""
    if any(isinstance(value, str) or value is None for value in values):
        return " / ".join(dict.fromkeys(number(value) for value in values))
    low, high = min(values), max(values)
    return number(low) if number(low) == number(high) else f"{number(low)} to {number(high)}"


def cell(text):
    return text.replace("|", "\\|").replace("\n", " ")


class Figure:
    """One metric over all its seeds."""

    def __init__(self, machine, line, run):
        self.machine = machine
        self.line = line
        self.run = run
        self.got = []
        self.verdicts = []
        self.before = []
        self.whys = []

    def add(self, line):
        self.got.append(line["got"])
        self.verdicts.append(line["verdict"])
        if "before" in line:
            self.before.append(line["before"])
        if "why" in line and line["why"] not in self.whys:
            self.whys.append(line["why"])

    @property
    def passed(self):
        return all(verdict == "PASS" for verdict in self.verdicts)

    @property
    def verdict(self):
        bad = self.verdicts.count("FAIL")
        of = "" if bad == len(self.verdicts) else f" ({bad} of {len(self.verdicts)})"
        text = "PASS" if bad == 0 else f"**FAIL**{of}"
        if self.before:
            text += f" (before: {'FAIL' if any(b['verdict'] == 'FAIL' for b in self.before) else 'PASS'})"
        return text

    @property
    def source(self):
        return source_of(self.line)

    def cells(self):
        """Of the row, by HEADER."""
        line = self.line
        kind = line["kind"]
        if "param" in line:
            kind += f" ({line['param']['name']} = {number(line['param']['value'])})"
        unit = "" if line["unit"] == "1" else " " + line["unit"]
        return [line["id"], cell(line["metric"].replace("_", " ")), cell(self.source) + unit,
                cell(span(self.got)) + unit, cell(line["tol"]), kind, line["class"], self.verdict, self.run]

    def row(self):
        return "| " + " | ".join(self.cells()) + " |"

    def revised(self):
        """Cells of the table of what was revised, or None."""
        if not self.before:
            return None
        b = self.before
        return [self.line["id"], self.cells()[1], f"{b[0]['tol']} {source_of(b[0])}", span([x["got"] for x in b]),
                "FAIL" if any(x["verdict"] == "FAIL" for x in b) else "PASS", f"{self.line['tol']} {self.source}",
                cell(b[0]["text"])]


def source_of(line):
    text = number(line["src"])
    return text + " to " + number(line["src_high"]) if "src_high" in line else text


class Kept:
    """A row of a page before."""

    def __init__(self, machine, cells, whys, revised):
        self.machine = machine
        self.line = {"id": cells[0], "metric": cells[1].replace(" ", "_"), "kind": cells[5][0], "class": cells[6]}
        self.own_cells = cells
        self.run = cells[8]
        self.own_revised = revised
        self.whys = whys

    @property
    def passed(self):
        return self.own_cells[7].startswith("PASS")

    def cells(self):
        return self.own_cells

    def row(self):
        return "| " + " | ".join(self.own_cells) + " |"

    def revised(self):
        return self.own_revised


ROW_ID = re.compile(r"[A-Z0-9]+-[A-Z0-9]+[a-z]*$")
REVISED = "Bounds and readings of ours that were revised"


def cells_of(text):
    return [part.strip() for part in re.split(r"(?<!\\)\|", text.strip())[1:-1]]


def revised_of(page):
    """{(id, figure): cells} of the table of what was revised."""
    _, _, rest = page.partition(f"## {REVISED}\n")
    rows = (cells_of(text) for text in rest.partition("\n## ")[0].splitlines())
    return {(cells[0], cells[1]): cells for cells in rows if len(cells) == 7 and ROW_ID.match(cells[0])}


def rows_of(page):
    """Machine's heading and cells of each figure on a page, and the reasons of those that fail."""
    rows, whys, heading = [], {}, ""
    for text in page.splitlines():
        cells = cells_of(text)
        if text.startswith("## "):
            heading = text[3:]
        elif heading == REVISED:
            continue
        elif len(cells) in (7, 9) and ROW_ID.match(cells[0]):
            rows.append((heading, cells))
        elif text.startswith("- ") and ": " in text:
            name, why = text[2:].split(": ", 1)
            whys[name] = why
    return rows, whys


def is_weaker(mine, cells):
    """Has the figure of a reduced run a one-sided bound below that of the full row? Then it cannot replace that."""
    now, before = mine.cells(), cells
    if not mine.run.startswith("reduced") or now[4] not in (">", ">=") or now[5][0] != before[5][0]:
        return False
    bounds = [re.match(r"-?[0-9.]+", text) for text in (now[2], before[2])]
    return all(bounds) and before[4] != now[4] and float(bounds[0][0]) <= float(bounds[1][0])


def kept_figures(page, figures, experiments, dropped, old_run):
    """Rows on a page before that are still true of the experiments, with classes of now: of full runs, and reduced ones
    of experiments that did not run now."""
    ran = {experiment_of(f) for f in figures}
    names = {title: machine for machine, title in MACHINES.items()}
    by_id = {e["id"]: e for e in experiments}
    now = {(f.line["id"], f.cells()[1]): f for f in figures}
    rows, whys = rows_of(page)
    revised = revised_of(page)
    for heading, cells in rows:
        experiment = by_id.get(re.sub(r"(?<=\d)[a-z]+$", "", cells[0]))
        run = cells[8] if len(cells) == 9 else old_run
        if not experiment or experiment["id"] in dropped or not (run.startswith("full") or experiment["id"] not in ran):
            continue
        mine = now.get((cells[0], cells[1]))
        place = experiment["kinds"].find(cells[5][0])
        if place < 0 or (mine and (mine.cells()[2], mine.cells()[4], mine.line["kind"]) !=
                         (cells[2], cells[4], cells[5][0]) and not is_weaker(mine, cells)):
            continue
        klass = (mine.line["class"] if mine else cells[6] if len(cells) == 9
                 else LETTERS.get(experiment["classes"][place]))
        why = whys.get(f"{cells[0]} {cells[1]}")
        yield Kept(names[heading], [*cells[:6], klass, cells[7] if len(cells) == 9 else cells[6], run],
                   [why] if why else [], revised.get((cells[0], cells[1])))


def with_kept(figures, kept):
    """Full rows of before instead of reduced rows of now; an experiment that ran at full size keeps nothing."""
    full = {experiment_of(f) for f in figures if f.run.startswith("full")}
    kept = [f for f in kept if experiment_of(f) not in full]
    named = {(f.line["id"], f.cells()[1]) for f in kept}
    split = {experiment_of(f) for f in kept if f.line["id"] != experiment_of(f)}
    mine = [f for f in figures if (f.line["id"], f.cells()[1]) not in named
            and not (f.line["id"] in split and not f.run.startswith("full"))]
    return sorted(mine + kept, key=lambda f: (list(MACHINES).index(f.machine), natural(experiment_of(f)),
                                              f.line["id"] != experiment_of(f) and natural(f.line["id"]) or []))


def live_tests():
    """Of each row that needs programs: its test, and who says whether it passes."""
    rows = pathlib.Path(__file__).resolve().parent.parent / "tests" / "live" / "rows.txt"
    tests = {}
    for line in rows.read_text().splitlines():
        if line and not line.startswith("#"):
            name, kind, *reason = line.split(" ", 2)
            tests[name] = (("none", "not run: " + reason[0]) if kind == "none"
                           else (f"`live-{name.lower()}`", "run by `make check`"))
    return tests


def natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def collect(result):
    figures = {}
    for report in result["experiments"]:
        size = "full" if report.get("mode", result["mode"]) == "full" else "reduced"
        run = f"{size} {report.get('version', result.get('version', version()))}"
        for line in report["lines"]:
            if "metric" in line:
                key = report["id"], line["id"], line["metric"]
                if key not in figures:
                    figures[key] = Figure(report["machine"], line, run)
                figures[key].add(line)
    return list(figures.values())


def experiment_of(figure):
    """TITAN-2a is of TITAN-2."""
    return re.sub(r"(?<=\d)[a-z]+$", "", figure.line["id"])


def share(mine):
    good = sum(f.passed for f in mine)
    return f"{good} of {len(mine)}" if mine else ""


def is_own(figure):
    return figure.line["id"].startswith("OWN-")


GROUPS = (("S, P, Q: held against the source", lambda f: f.line["kind"] in "SPQ" and not is_own(f)),
          ("OWN-: held against the machine file", is_own),
          ("K: fitted to the source", lambda f: f.line["kind"] == "K"),
          ("A: structure", lambda f: f.line["kind"] == "A" and not f.line["id"].startswith("AUD-")),
          ("audits", lambda f: f.line["id"].startswith("AUD-")))


def counts(figures, write):
    """The table by class, which the page leads with."""
    write("| figures that pass | " + " | ".join(CLASSES) + " | all |")
    write("|---|" + "---|" * (len(CLASSES) + 1))
    for name, belongs in GROUPS:
        mine = [f for f in figures if belongs(f)]
        write(f"| {name} | " + " | ".join(share([f for f in mine if f.line["class"] == c]) for c in CLASSES)
              + f" | {share(mine)} |")
    write("")


def by_machine(figures, write):
    write("| machine | " + " | ".join(name.split(":")[0] for name, _ in GROUPS) + " | failing |")
    write("|---" * (len(GROUPS) + 2) + "|")
    for machine in dict.fromkeys(f.machine for f in figures):
        mine = [f for f in figures if f.machine == machine]
        bad = sorted({experiment_of(f) for f in mine if not f.passed}, key=natural)
        write(f"| {MACHINES.get(machine, machine)} | "
              + " | ".join(share([f for f in mine if belongs(f)]) for _, belongs in GROUPS) + f" | {', '.join(bad)} |")
    write("")


def by_run(figures, write):
    write("| run | S, P, Q | all figures |")
    write("|---|---|---|")
    for run in sorted({f.run for f in figures}):
        mine = [f for f in figures if f.run == run]
        write(f"| {run} | {share([f for f in mine if f.line['kind'] in 'SPQ' and not is_own(f)])} | {share(mine)} |")
    write("")


def tuned(ledger, write):
    write("| machine | parameter | sort | chosen by |")
    write("|---|---|---|---|")
    for row in ledger:
        value = f" = {row['value']:.6g}" if "value" in row else ""
        write(f"| {row['machine']} | {row['parameter']}{value} | {row['sort']} | {row['experiment']}: "
              f"{cell(row['chosen_by'])} |")
    write("")


INTRODUCTION = """Each figure has a *class*, which the code checks. *Measured*: read off simulated packets. *Counted*:
counted on the built machine. *Fitted*: a parameter was chosen so that it comes out, so it proves nothing. *Formula*:
computed from parameters or other figures. Its *kind* is what the source has: A a structure, S a simulated value, P a
value to predict with parameters fitted elsewhere, Q a shape or an order, K a value to fit to. The first row of the
first table is the evidence; audits look for deadlock and have no source. The rows OWN- are measured and held against
arithmetic on the machine file, so they show that the model does what the file says, and nothing of a machine. They are
here so that no value can change unseen ([mutations](mutations.md)).""".replace("\n", " ")

RUNS = """A row's last cell names the size of its run and the version of the sources that ran; "-dirty" is
with changes that were not yet in that version. *Full* runs have three
seeds where packets are simulated, and a figure passes if it does with each; *reduced* ones have one seed and smaller machines. Full rows of an
older version are kept where the source's figure is the same and nobody has named the experiment as changed since:
they are evidence for that version only. Where full figures of an experiment are kept, those of the same name are not
shown from reduced runs.""".replace("\n", " ")


def write_report(result, figures, ledger, out):
    def write(line=""):
        out.write(line + "\n")

    write("<!-- Made by tools/fidelity.py (make fidelity). -->")
    write("# Fidelity: what the sources say, what the model gives")
    write()
    write(INTRODUCTION)
    write()
    counts(figures, write)
    by_machine(figures, write)
    write("## Versions")
    write()
    write(RUNS)
    write()
    by_run(figures, write)
    write("## Parameters that results have chosen")
    write()
    write("The ledger. *Fitted*: so that a figure of the source comes out. *Tuned*: by results of ours, or to what a "
          "source shows without a number. *Assumed*: of an experiment, where the source is silent. All others are in "
          "the machine files with a source or as a choice [OUR].")
    write()
    tuned(ledger, write)
    revised = [f.revised() for f in figures if f.revised()]
    if revised:
        write(f"## {REVISED}")
        write()
        write("| id | figure | before | ours | verdict before | now | reason |")
        write("|---|---|---|---|---|---|---|")
        for cells in revised:
            write("| " + " | ".join(cells) + " |")
        write()
    for machine in dict.fromkeys(f.machine for f in figures):
        machine_table([f for f in figures if f.machine == machine], MACHINES.get(machine, machine), write)
    if result.get("not_run"):
        write("## Not run")
        write()
        for e in result["not_run"]:
            write(f"- {e['id']}: {e['reason']}")
        write()
    if result.get("live"):
        write("## Shown by real processes")
        write()
        write("Not run by `emunic sim`; they need the live emulation. The table is `tests/live/rows.txt`.")
        write()
        write("| id | row | test | verdict |")
        write("|---|---|---|---|")
        tests = live_tests()
        for e in result["live"]:
            write(f"| {e['id']} | {cell(e['summary'])} | {' | '.join(tests[e['id']])} |")


def machine_table(mine, title, write):
    write(f"## {title}")
    write()
    write("| " + " | ".join(HEADER) + " |")
    write("|" + "---|" * len(HEADER))
    for f in mine:
        write(f.row())
    write()
    bad = [f for f in mine if not f.passed]
    if bad:
        write("Why those fail:")
        write()
        for f in bad:
            write(f"- {f.line['id']} {f.cells()[1]}: {' '.join(f.whys) or 'not looked into yet.'}")
        write()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("ids", nargs="*")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--limit", type=float, help="seconds for one experiment with all its seeds")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--from", dest="saved", type=pathlib.Path, nargs="+",
                        help="results that were kept, instead of a run")
    parser.add_argument("--keep", type=pathlib.Path, help="a page before, whose full rows are kept")
    parser.add_argument("--drop", default="", help="experiments that have changed since, by commas: not kept")
    parser.add_argument("--kept-run", default="full 85183ad", help="size and version of a page that does not tell them")
    parser.add_argument("--output", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "docs" / "generated" / "fidelity.md")
    args = parser.parse_intermixed_args()
    result = merge([json.loads(path.read_text()) for path in args.saved]) if args.saved else run(args.build, args)
    about = listed(str(args.build / "emunic" / "emunic"))
    figures = collect(result)
    if args.keep:
        page = args.keep.read_text(encoding="utf-8")
        figures = with_kept(figures, kept_figures(page, figures, about["experiments"], args.drop.split(","),
                                                  args.kept_run))
    result["live"] = [e for e in about["experiments"] if e["needs"] == "live"]
    with open(args.output, "w", encoding="utf-8") as out:
        write_report(result, figures, about["ledger"], out)
    print(f"{args.output}: {sum(f.passed for f in figures)} figures passed, "
          f"{sum(not f.passed for f in figures)} failed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
