#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Meson's tests of a build folder and adds up what CMocka and Meson say.

Then the time that each suite took, and the tests that took longest. The last line is `N passed, N failed, N skipped`
over all suites of this build (and of an earlier run kept with --save, given with --also). A CMocka program counts with
each of its test functions, any other test as one.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

TAP_LINE = re.compile(r"^(not )?ok \d+(?: -)?[^#]*(# *(SKIP|TODO).*)?$", re.IGNORECASE)
TAP_SKIP_ALL = re.compile(r"^1\.\.0 # *SKIP", re.IGNORECASE)
GOOD = {"OK", "EXPECTEDFAIL"}
SAVED = "test-totals.json"
PATIENCE = 3                # limits end what hangs; a machine that others load is only slow
TAIL_LINES = 60             # of a failed test's output
SLOWEST = 20


def count_tap(text):
    """Passed, failed, skipped of one TAP output; None if it is not one."""
    passed = failed = skipped = 0
    for line in text.splitlines():
        if TAP_SKIP_ALL.match(line):
            return 0, 0, 1
        found = TAP_LINE.match(line)
        if not found:
            continue
        if found.group(2):
            skipped += 1
        elif found.group(1):
            failed += 1
        else:
            passed += 1
    return (passed, failed, skipped) if passed + failed + skipped else None


def add_up(log):
    """Totals of a testlog.json: of CMocka's functions, of Meson's tests, and of both together."""
    cmocka = [0, 0, 0]
    meson = [0, 0, 0]
    total = [0, 0, 0]
    for line in log.read_text().splitlines():
        test = json.loads(line)
        kind = 0 if test["result"] in GOOD else 2 if test["result"] == "SKIP" else 1
        meson[kind] += 1
        counts = count_tap(test.get("stdout") or "")
        if counts is None:
            total[kind] += 1
            continue
        counts = list(counts)
        for i in range(3):
            cmocka[i] += counts[i]
        if kind == 1 and counts[1] == 0:
            counts[1] = 1   # the program failed outside its test functions: crash, leak, timeout
        for i in range(3):
            total[i] += counts[i]
    return {"cmocka": cmocka, "meson": meson, "total": total}


def tell_failures(log):
    """The end of what each failed test said, once more: who reads only the end of a long log finds the cause there."""
    for line in log.read_text().splitlines():
        test = json.loads(line)
        if test["result"] in GOOD | {"SKIP"}:
            continue
        said = [line for stream in ("stdout", "stderr") for line in (test.get(stream) or "").splitlines()]
        print(f"---- {test['name']}: {test['result']}, {test['duration']:.0f} s; its last lines:")
        print("\n".join(said[-TAIL_LINES:]))


def tell_times(log, wall_s):
    """Seconds of each suite, added up over tests that ran side by side, and of the slowest tests."""
    suites = {}
    slowest = []
    for line in log.read_text().splitlines():
        test = json.loads(line)
        where, _, name = test["name"].rpartition(" / ")
        suite = where.rpartition(":")[2].partition("+")[0] or "none"
        count, seconds = suites.get(suite, (0, 0))
        suites[suite] = (count + 1, seconds + test["duration"])
        slowest.append((test["duration"], name))
    slowest.sort(reverse=True)
    print(f"---- {wall_s:.0f} s; seconds of each suite, side by side:")
    for suite, (count, seconds) in sorted(suites.items(), key=lambda item: -item[1][1]):
        print(f"{seconds:8.0f}  {suite} ({count} tests)")
    print("---- the slowest tests, in seconds:")
    for seconds, name in slowest[:SLOWEST]:
        print(f"{seconds:8.1f}  {name}")


def run(build, suites, no_suites, jobs):
    log = build / "meson-logs" / "testlog.json"
    log.unlink(missing_ok=True)
    command = ["meson", "test", "-C", str(build), "--no-rebuild", "--print-errorlogs", "--timeout-multiplier",
               str(PATIENCE), "--num-processes", str(jobs)]
    for suite in suites:
        command += ["--suite", suite]
    for suite in no_suites:
        command += ["--no-suite", suite]
    begin = time.monotonic()
    status = subprocess.run(command).returncode
    if not log.exists():
        sys.exit(f"run_tests: {log} is missing: no test ran")
    tell_times(log, time.monotonic() - begin)
    if status:
        tell_failures(log)
    return status, add_up(log)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--suite", action="append", default=[])
    parser.add_argument("--no-suite", action="append", default=[])
    parser.add_argument("--jobs", type=int, default=(os.cpu_count() or 1) + 1,
                        help="tests side by side; one more than there are processors, as many tests wait")
    parser.add_argument("--save", action="store_true", help="keep the totals for a later --also and print no last line")
    parser.add_argument("--also", type=pathlib.Path, action="append", default=[],
                        help="build folder whose saved totals are added")
    args = parser.parse_args()

    status, sums = run(args.build, args.suite, args.no_suite, args.jobs)
    for name in ("cmocka", "meson"):
        passed, failed, skipped = sums[name]
        what = "CMocka test functions" if name == "cmocka" else "Meson tests"
        print(f"{args.build}: {what}: {passed} ok, {failed} not ok, {skipped} left out")
    saved = args.build / SAVED
    if args.save:
        saved.write_text(json.dumps(sums["total"]))
        return 1 if status else 0
    total = sums["total"]
    for folder in args.also:
        if (folder / SAVED).exists():
            total = [a + b for a, b in zip(total, json.loads((folder / SAVED).read_text()))]
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped")
    return 1 if status or total[1] else 0


if __name__ == "__main__":
    sys.exit(main())
