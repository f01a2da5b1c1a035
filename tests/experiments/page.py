#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that docs/generated/fidelity.md is of these experiments: ids, sources' figures, units, tolerances, kinds and
classes; that its counts by class are those of its rows; that its parameters are those of the ledger; that a figure with
another verdict before is in the table of what was revised.

    page.py EMUNIC PAGE     one line per finding; status 1 if there are any
    page.py --self-test     tries the check on pages with known faults

The ids are compared for all experiments. Figures are compared for those that count or compute, as far as they do it at
reduced size, which takes ten seconds; our own values are not compared. `make fidelity` writes the page.
"""

import io
import json
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import fidelity  # pylint: disable=wrong-import-position


def facts(row):
    """Id, figure, source, tolerance, kind and class of a row of the page, or None; ours and the verdict are left out."""
    cells = [cell.strip() for cell in row.strip().removeprefix("| ").removesuffix(" |").split(" | ")]
    return (*cells[:3], *cells[4:7]) if len(cells) == 9 and cells[0] != "id" else None


class Row:
    """What the table by class is made of."""

    def __init__(self, cells):
        self.line = {"id": cells[0], "kind": cells[5][0], "class": cells[6]}
        self.passed = cells[7].startswith("PASS")


def lead(page):
    """The lines that the page must lead with, from its own rows."""
    lines = []
    fidelity.counts([Row(cells) for _, cells in fidelity.rows_of(page)[0] if len(cells) == 9], lines.append)
    return lines


def lead_findings(page, ledger):
    lines = []
    fidelity.tuned(ledger, lines.append)
    for line in lead(page) + lines:
        if line and line not in page.splitlines():
            yield f"not on the page: {line}"


def revised_findings(page):
    """A figure that had another verdict before stands in the table that says why."""
    revised = fidelity.revised_of(page)
    for _, cells in fidelity.rows_of(page)[0]:
        if "(before:" in cells[-2] and (cells[0], cells[1]) not in revised:
            yield f"not in the table of what was revised: {cells[0]} {cells[1]}"


def kept_after(page, experiments, figures):
    """The page after a run of these figures that keeps the page's."""
    figures = fidelity.with_kept(figures, fidelity.kept_figures(page, figures, experiments, [], "full v"))
    out = io.StringIO()
    fidelity.write_report({}, figures, [], out)
    return out.getvalue()


def findings(experiments, result, page):
    """What is wrong with the page, as text."""
    on_page = {fact for fact in map(facts, page.splitlines()) if fact}
    figures = fidelity.collect(result)
    now = {facts(figure.row()) for figure in figures}
    ids = {experiment["id"] for experiment in experiments if experiment["needs"] != "live"}
    for fact in sorted(now - on_page):
        yield f"not on the page: {' | '.join(fact)}"
    shown = {owner(fact[0], ids) for fact in on_page}
    shown |= {line[2:].split(":")[0] for line in page.splitlines() if line.startswith("- ")}
    shown |= {line.split(" | ")[0].removeprefix("| ") for line in page.splitlines() if line.count(" | ") == 3}
    for name in sorted({experiment["id"] for experiment in experiments} - shown):
        yield f"experiment {name} is not on the page"
    for fact in sorted(on_page):
        if owner(fact[0], ids) not in ids:
            yield f"on the page, but no experiment: {fact[0]}"


def owner(row, ids):
    """TITAN-2a is of TITAN-2."""
    return row if row in ids else row.rstrip("abcdefghijklmnopqrstuvwxyz")


def run(emunic, *words):
    done = subprocess.run([emunic, "sim", *words, "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"page: emunic sim {words[0]} ended with status {done.returncode}")
    return json.loads(done.stdout)


def self_test():
    line = {"id": "A-1a", "metric": "hops", "src": 5, "unit": "hops", "got": 5, "tol": "exact", "kind": "A",
            "verdict": "PASS", "class": "counted"}
    experiments = [{"id": "A-1", "needs": "analytic"}, {"id": "A-2", "needs": "live"}]
    result = {"mode": "full", "version": "v", "experiments": [{"id": "A-1", "machine": "aries", "lines": [line]}]}
    good = "| A-1a | hops | 5 hops | 5 hops | exact | A | counted | PASS | full v |\n- A-2: live"
    expected = {good: 0, good.replace("| 5 hops | 5", "| 6 hops | 5"): 1, good.replace("exact", "5 %"): 1,
                good.replace("| A |", "| P |"): 1,
                good.replace("counted", "measured"): 1, good.replace("- A-2", "- A-3"): 1, good + "\n" + good: 0,
                good.replace("- A-2: live", "| A-2 | live | test | run |"): 0,
                good.replace("- A-2: live", "| A-3 | live | test | run |"): 1,
                good + "\n| B-1 | hops | 5 hops | 5 hops | exact | A | counted | PASS | full v |": 1,
                good.replace("| 5 hops | exact", "| 7 hops | exact"): 0}
    status = 0
    for page, n in expected.items():
        found = list(findings(experiments, result, page))
        if len(found) != n:
            print(f"self-test: {found} instead of {n} findings: {page}")
            status = 1
    parameters = []
    fidelity.tuned([], parameters.append)
    whole = "\n".join([good, *lead(good), *parameters])
    for page, is_bad in {whole: False, whole.replace("1 of 1", "0 of 1"): True,
                         whole.replace("| PASS |", "| **FAIL** |"): True, whole.replace("sort", "why"): True}.items():
        found = list(lead_findings(page, []))
        if bool(found) != is_bad:
            print(f"self-test: {found} in the counts of: {page}")
            status = 1
    return status | self_test_of_revised(line)


def self_test_of_revised(line):
    """A page with a figure that was revised, kept twice: once while another experiment runs, once while nothing does."""
    status = 0
    before = {"verdict": "FAIL", "got": 5, "tol": "exact", "src": 4, "text": "bound of ours | revised"}
    result = {"mode": "full", "version": "v",
              "experiments": [{"id": "A-1", "machine": "aries", "lines": [line | {"before": before}]}]}
    other = {"mode": "full", "version": "v",
             "experiments": [{"id": "A-3", "machine": "aries", "lines": [line | {"id": "A-3"}]}]}
    experiments = [{"id": name, "kinds": "A", "classes": "C", "needs": "analytic"} for name in ("A-1", "A-3")]
    first = kept_after("", experiments, fidelity.collect(result))
    second = kept_after(first, experiments, fidelity.collect(other))
    third = kept_after(second, experiments, [])
    row = "| A-1a | hops | exact 4 | 5 | FAIL | exact 5 | bound of ours \\| revised |"
    for page in (first, second, third):
        if page.splitlines().count(row) != 1 or list(revised_findings(page)):
            print(f"self-test: what was revised is not on the page once: {page}")
            status = 1
    if len(list(revised_findings(first.replace(row, "")))) != 1:
        print("self-test: a figure that was revised is not missed")
        status = 1
    return status


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    emunic, page = sys.argv[1:]
    about = run(emunic, "list")
    experiments = about["experiments"]
    text = pathlib.Path(page).read_text(encoding="utf-8")
    counted = [experiment["id"] for experiment in experiments if experiment["needs"] == "analytic"]
    status = 0
    result = run(emunic, "run", *counted, "--quick", "--quiet")
    for finding in [*findings(experiments, result, text), *lead_findings(text, about["ledger"]),
                    *revised_findings(text)]:
        print(f"{page}: {finding}; see `make fidelity`")
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
