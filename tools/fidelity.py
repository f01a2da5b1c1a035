#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs all experiments of `emunic sim` and writes docs/generated/fidelity.md: sources, our figures, verdicts.

    fidelity.py BUILD [--quick] [--seeds N] [--jobs N] [--threads N] [--limit S] [--resume] [--output FILE] [ID...]
    fidelity.py BUILD --from RESULT.json... [--output FILE]

Full size and three seeds unless told otherwise. A figure of several seeds passes if it passes with each. Experiments
run one after another, their seeds side by side; what is done is kept in BUILD/fidelity.json, and --resume goes on
from there. An experiment that takes longer than the limit is listed as not run. --from takes results of `emunic sim run
--json`, too; of the same experiment the last one counts, and the page tells which ran at reduced size. The status is 0
also if a figure failed: the table is the result.
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


def chosen(emunic, words):
    """Ids of the experiments that these words mean, in the order of the list."""
    done = subprocess.run([emunic, "sim", "list", "--json"], stdout=subprocess.PIPE, check=True)
    experiments = json.loads(done.stdout)["experiments"]
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
            reports[name] = [{"mode": result["mode"], "seeds": result["seeds"]} | report
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
    result = {"mode": mode, "seed": 1, "seeds": args.seeds, "experiments": [], "live": live, "not_run": []}
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

    def __init__(self, machine, line):
        self.machine = machine
        self.line = line
        self.got = []
        self.verdicts = []
        self.whys = []

    def add(self, line):
        self.got.append(line["got"])
        self.verdicts.append(line["verdict"])
        if "why" in line and line["why"] not in self.whys:
            self.whys.append(line["why"])

    @property
    def passed(self):
        return all(verdict == "PASS" for verdict in self.verdicts)

    @property
    def verdict(self):
        bad = self.verdicts.count("FAIL")
        of = "" if bad == len(self.verdicts) else f" ({bad} of {len(self.verdicts)})"
        return "PASS" if bad == 0 else f"**FAIL**{of}"

    @property
    def source(self):
        text = number(self.line["src"])
        if "src_high" in self.line:
            text += " to " + number(self.line["src_high"])
        return text

    def row(self):
        line = self.line
        kind = line["kind"]
        if "param" in line:
            kind += f" ({line['param']['name']} = {number(line['param']['value'])})"
        unit = "" if line["unit"] == "1" else " " + line["unit"]
        return (f"| {line['id']} | {cell(line['metric'].replace('_', ' '))} | {cell(self.source)}{unit} "
                f"| {cell(span(self.got))}{unit} | {cell(line['tol'])} | {kind} | {self.verdict} |")


def natural(text):
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def collect(result):
    figures = {}
    for report in result["experiments"]:
        for line in report["lines"]:
            if "metric" in line:
                key = report["id"], line["id"], line["metric"]
                if key not in figures:
                    figures[key] = Figure(report["machine"], line)
                figures[key].add(line)
    return list(figures.values())


def experiment_of(figure):
    """TITAN-2a is of TITAN-2."""
    return re.sub(r"(?<=\d)[a-z]+$", "", figure.line["id"])


def share(part, whole):
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def summary(figures, write):
    write("| machine | experiments that pass | figures that pass | failing |")
    write("|---|---|---|---|")
    machines = list(dict.fromkeys(f.machine for f in figures))
    for machine in machines + [None]:
        mine = [f for f in figures if machine in (f.machine, None)]
        experiments = {}
        for f in mine:
            experiments.setdefault(experiment_of(f), []).append(f.passed)
        good = sum(all(verdicts) for verdicts in experiments.values())
        bad = sorted((name for name, verdicts in experiments.items() if not all(verdicts)), key=natural)
        name = "**all**" if machine is None else MACHINES.get(machine, machine)
        write(f"| {name} | {share(good, len(experiments))} | {share(sum(f.passed for f in mine), len(mine))} | "
              f"{', '.join(bad) if machine is not None else ''} |")
    write("")


def write_report(result, out):
    def write(line=""):
        out.write(line + "\n")

    figures = collect(result)
    seeds = [str(result["seed"] + k) for k in range(result["seeds"])]
    write("<!-- Made by tools/fidelity.py (make fidelity). -->")
    write("# Fidelity: what the sources say, what the model gives")
    write()
    names = {"full": "full", "quick": "reduced (--quick)"}
    modes = {report["id"]: report.get("mode", result["mode"]) for report in result["experiments"]}
    size = names[result["mode"]]
    if len(set(modes.values())) > 1:    # the fewer are named
        few = min(names, key=list(modes.values()).count)
        listed = ", ".join(sorted((name for name in modes if modes[name] == few), key=natural))
        most = "quick" if few == "full" else "full"
        size = f"{names[most]}; {names[few]} for {listed}. What is reduced ran with one seed"
    fewer = sorted((f"{report['id']} ({report['seeds']})" for report in result["experiments"]
                    if report.get("mode") == "full" and report["seeds"] < result["seeds"]), key=natural)
    but = f" (fewer: {', '.join(dict.fromkeys(fewer))})" if fewer else ""
    write(f"Size of the runs: {size}. Seeds: {', '.join(seeds)}{but}; what is counted runs once. Kinds: A counted or "
          "computed on the built machine, S simulated, K fitted (proves nothing by itself; the parameter is shown), P "
          "predicted with fitted parameters, Q shape only. Tolerances are those of the machine specification. An "
          "experiment passes if all its figures do, with each seed.")
    write()
    summary(figures, write)
    for machine in dict.fromkeys(f.machine for f in figures):
        mine = [f for f in figures if f.machine == machine]
        write(f"## {MACHINES.get(machine, machine)}")
        write()
        write("| id | figure | source | ours | tolerance | kind | verdict |")
        write("|---|---|---|---|---|---|---|")
        for f in mine:
            write(f.row())
        write()
        bad = [f for f in mine if not f.passed]
        if bad:
            write("Why those fail:")
            write()
        for f in bad:
            why = " ".join(f.whys) or "not looked into yet."
            write(f"- {f.line['id']} {f.line['metric'].replace('_', ' ')}: {why}")
        if bad:
            write()
    if result.get("not_run"):
        write("## Not run")
        write()
        for e in result["not_run"]:
            write(f"- {e['id']}: {e['reason']}")
        write()
    if result.get("live"):
        write("## Shown by real processes")
        write()
        write("Not run by `emunic sim`; they need the live emulation.")
        write()
        for e in result["live"]:
            write(f"- {e['id']}: {e['summary']}")


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
    parser.add_argument("--output", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent / "docs" / "generated" / "fidelity.md")
    args = parser.parse_intermixed_args()
    result = merge([json.loads(path.read_text()) for path in args.saved]) if args.saved else run(args.build, args)
    with open(args.output, "w") as out:
        write_report(result, out)
    figures = collect(result)
    print(f"{args.output}: {sum(f.passed for f in figures)} figures passed, "
          f"{sum(not f.passed for f in figures)} failed", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
