#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""rows.txt has each experiment that needs programs, once, and no other.

    check_rows.py EMUNIC ROWS
"""

import json
import pathlib
import subprocess
import sys


def main():
    listed = subprocess.run([sys.argv[1], "sim", "list", "--json"], stdout=subprocess.PIPE, check=True)
    wanted = {e["id"] for e in json.loads(listed.stdout)["experiments"] if e["needs"] == "live"}
    lines = [line.split(" ", 2) for line in pathlib.Path(sys.argv[2]).read_text().splitlines()
             if line and not line.startswith("#")]
    rows = [words[0] for words in lines]
    wrong = [f"{name}: no line" for name in sorted(wanted - set(rows))]
    wrong += [f"{name}: no experiment of kind F" for name in sorted(set(rows) - wanted)]
    wrong += [f"{name}: twice" for name in sorted({name for name in rows if rows.count(name) > 1})]
    wrong += [f"{words[0]}: no reason" for words in lines if words[1] == "none" and len(words) < 3]
    for line in wrong:
        print("rows.txt: " + line, file=sys.stderr)
    print(f"{len(rows)} rows, {sum(words[1] != 'none' for words in lines)} with a test")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
