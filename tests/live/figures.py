#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Published figures, as unmodified programs print them in virtual time: a line EXP for each.

    figures.py BUILD [--quick]

--quick has small transfers alone: what `make check` has.

The number compared is the one that the program prints, nothing inside emunic. Sources and tolerances are those of
docs/spec/machines.md. Nothing random enters these runs, so there is one run of each program and no seed. Status 1: a
figure is out of tolerance, or a program did not print it.
"""

import pathlib
import subprocess
import sys

LIMIT_S = 300
LAST = -1   # the last row of its table

# Program, machine, further options of `emunic run`, arguments. On aries `scatter` puts the two ranks one blue link
# apart, which is the H = 1 of XC-1.
RUNS = {
    "pingpong": ("gni_pingpong", "aries", ["--place", "scatter"], ["-i", "100"]),
    "gups": ("dmapp_gups", "aries", ["--place", "scatter"], []),
    "portals": ("portals_perf", "seastar", ["--first-nid", "1"], ["-i", "100"]),
}

QUICK = {
    "pingpong": ["-i", "20", "-m", "128"],
    "portals": ["-i", "3", "-m", "16"],
}

# Row, metric, source, unit, tolerance, kind, run, heading of the table, its line (first word), column.
TABLES = [
    ("XC-1", "put8_latency", 0.8, "us", 0.02, "K", "pingpong", "latency us", "8", 1),
    ("XC-8", "put_bandwidth", 10.0e3, "MB/s", 0.05, "P", "pingpong", "put MB/s", LAST, 1),
    ("SEASTAR-1a", "put0_us", 4.89, "us", 0.02, "K", "portals", "put, us", "0", 1),
    ("SEASTAR-1b", "get0_us", 6.09, "us", 0.02, "K", "portals", "put, us", "0", 2),
    ("SEASTAR-1c", "biput0_us", 8.39, "us", 0.02, "K", "portals", "put, us", "0", 3),
    ("SEASTAR-2", "put_asymptote", 1108.0, "MB/s", 0.02, "K", "portals", "put, MB/s", LAST, 1),
    ("SEASTAR-5", "biput_peak", 2216.0, "MB/s", 0.03, "P", "portals", "put, MB/s", LAST, 3),
]
QUICK_ROWS = ("XC-1", "SEASTAR-1a", "SEASTAR-1b", "SEASTAR-1c")


def run(build, name, is_quick):
    """Its output; None, after a line: it failed."""
    program, machine, options, arguments = RUNS[name]
    arguments = QUICK[name] if is_quick else arguments
    command = [build / "emunic/emunic", "run", "-q", "-n", "2", "--time", "virtual", "--machine", machine, *options,
               "--", build / "examples" / program, *arguments]
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT_S,
                              check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        print(f"# {program} on {machine}: {error}")
        return None
    if done.returncode != 0:
        print(f"# {program} on {machine} ended with status {done.returncode}: {done.stderr.strip()}")
        return None
    for line in done.stderr.splitlines():
        print(f"# {program}: {line}")   # lag, above all
    return done.stdout


def cell(text, heading, first, column):
    """A number of the table under that heading. None: there is none."""
    found = None
    is_in = False
    for line in (text or "").splitlines():
        words = line.split()
        if heading in line:
            is_in = True
        elif is_in and words and words[0].isdigit():
            if len(words) > column and first in (LAST, words[0]):
                found = float(words[column])
        elif is_in:
            break
    return found


def updates_per_second(text):
    """Of a PE, in millions, as dmapp_gups prints them."""
    words = (text or "").split()
    return float(words[words.index("M") - 1]) if "M" in words else None


def report(row, metric, source, unit, tolerance, kind, program, got):
    is_good = got is not None and abs(got - source) <= tolerance * source
    shown = "none" if got is None else f"{got:g}"
    print(f"EXP {row} {metric} src={source:g} got={shown} unit={unit} tol={tolerance:.0%} kind={kind} "
          f"program={program} verdict={'PASS' if is_good else 'FAIL'}")
    return is_good


def report_bound(row, metric, relation, limit, kind, program, got):
    is_good = got is not None and (got >= limit if relation == ">=" else got <= limit)
    shown = "none" if got is None else f"{got:.4g}"
    print(f"EXP {row} {metric} src={relation}{limit:g} got={shown} unit=1 tol=0% kind={kind} program={program} "
          f"verdict={'PASS' if is_good else 'FAIL'}")
    return is_good


def excess(small, large):
    """What the larger transfer takes longer, as a part of the smaller one's time."""
    return None if None in (small, large) else large / small - 1


def run_as_command(doc, show):
    """show(build folder, is_quick) answers a list of verdicts. Returns the status of the command."""
    is_quick = sys.argv[2:] == ["--quick"]
    if len(sys.argv) != 2 + is_quick:
        print(doc, file=sys.stderr)
        return 2
    good = show(pathlib.Path(sys.argv[1]).resolve(), is_quick)
    print(f"{sum(good)} of {len(good)} figures within their tolerance")
    return 0 if all(good) else 1


def show(build, is_quick):
    texts = {name: run(build, name, is_quick) for name in (QUICK if is_quick else RUNS)}
    good = [report(*line[:6], RUNS[line[6]][0], cell(texts[line[6]], *line[7:])) for line in TABLES
            if not is_quick or line[0] in QUICK_ROWS]
    if not is_quick:
        good.append(report("XC-11", "launch_rate_per_core", 7.5, "M/s", 0.02, "K", "dmapp_gups",
                           updates_per_second(texts["gups"])))
    latencies = (cell(texts["pingpong"], "latency us", size, 1) for size in ("8", "128"))
    good.append(report_bound("XC-4", "put128_beyond_put8", "<=", 0.1, "P", "gni_pingpong", excess(*latencies)))
    return good


if __name__ == "__main__":
    sys.exit(run_as_command(__doc__, show))
