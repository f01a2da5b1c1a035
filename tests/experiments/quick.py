#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""All experiments at reduced size as one TAP program: a test per experiment.

    quick.py EMUNIC KNOWN

A figure that fails fails its experiment, unless KNOWN names it: lines "<id> <metric>", "#" starts a comment. Those are
figures that the model cannot meet, each explained in docs/generated/fidelity.md; they show as expected failures. An
experiment whose known figures all pass fails too, so that the list stays true.
"""

import json
import subprocess
import sys


def read_known(path):
    known = set()
    with open(path) as file:
        for line in file:
            words = line.split("#")[0].split()
            if words:
                known.add(tuple(words))
    return known


def main():
    emunic, known = sys.argv[1], read_known(sys.argv[2])
    done = subprocess.run([emunic, "sim", "run", "all", "--quick", "--json"], stdout=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        print(f"Bail out! emunic sim run all ended with status {done.returncode}")
        return 1
    result = json.loads(done.stdout)
    status = 0
    seen = set()
    print(f"1..{len(result['experiments']) + 1}")
    for number, report in enumerate(result["experiments"], 1):
        lines = [line for line in report["lines"] if "metric" in line]
        names = {(line["id"], line["metric"]) for line in lines}
        failed = [line for line in lines if line["verdict"] != "PASS"]
        unknown = [line for line in failed if (line["id"], line["metric"]) not in known]
        mended = known & names - {(line["id"], line["metric"]) for line in failed}
        seen |= names
        for line in failed:
            print(f"# FAIL {line['id']} {line['metric']}: source {line['src']}, got {line['got']}, "
                  f"tolerance {line['tol']}{'; ' + line['why'] if 'why' in line else ''}")
        for name in sorted(mended):
            print(f"# {' '.join(name)} passes: take it off the list of known failures")
        bad = unknown or mended
        status |= bool(bad)
        # TAP's directive for what is known to fail.
        note = " # TODO known not to be met" if failed and not bad else ""
        print(f"{'not ' if failed or mended else ''}ok {number} - {report['id']}, {len(lines)} figures, "
              f"{report['cpu_seconds']:.1f} s{note}")
    stale = sorted(known - seen)
    for name in stale:
        print(f"# {' '.join(name)} is on the list of known failures, but nobody reports it")
    print(f"{'not ' if stale else ''}ok {len(result['experiments']) + 1} - each known failure is still reported")
    return 1 if status or stale else 0


if __name__ == "__main__":
    sys.exit(main())
