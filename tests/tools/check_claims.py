#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Has each promise of docs/security.md a test? `check_claims.py ROOT` or `check_claims.py --self-test`

Each row of the table below "Promises and their tests" names at least one test function, and each one that it names is
defined below tests/.
"""

import pathlib
import re
import sys
import tempfile

HEADING = "## Promises and their tests"
NAME = re.compile(r"`(test_\w+)`")
DEFINED = re.compile(r"^(?:static void )?(test_\w+)\s*\((?:void \*\*state)?\)\s*\{?$", re.MULTILINE)
IN_PYTHON = re.compile(r"^def (test_\w+)\(\w*\):$", re.MULTILINE)


def defined(root):
    names = set()
    for path in (root / "tests").rglob("*"):
        if path.suffix in {".c", ".h", ".sh"}:
            names.update(DEFINED.findall(path.read_text()))
        elif path.suffix == ".py":
            names.update(IN_PYTHON.findall(path.read_text()))
    return names


def findings(root):
    page = (root / "docs/security.md").read_text()
    rows = [line for line in page.partition(HEADING)[2].partition("\n## ")[0].splitlines() if line.startswith("|")][2:]
    known = defined(root)
    if not rows:
        yield "docs/security.md: no promises below its heading"
    for row in rows:
        promise = row.split("|")[1].strip()
        names = NAME.findall(row)
        if not names:
            yield f"docs/security.md: no test for: {promise}"
        for name in names:
            if name not in known:
                yield f"docs/security.md: {name} is no test"


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / "docs").mkdir()
        (root / "tests").mkdir()
        (root / "tests/a.c").write_text("static void test_a(void **state)\n{\n}\n")
        (root / "tests/b.sh").write_text("test_b() {\n}\n")
        page = f"{HEADING}\n\n| promise | test |\n|---|---|\n| p | `test_a`, `test_b` |\n"
        wrong = "| q | `test_c` |\n| r | none |\n"
        (root / "docs/security.md").write_text(page + "\n## Next\n\n| x | y |\n|---|---|\n| z | none |\n")
        good = list(findings(root))
        (root / "docs/security.md").write_text(page + wrong)
        bad = list(findings(root))
        (root / "docs/security.md").write_text("")
        empty = list(findings(root))
    if good or len(bad) != 2 or len(empty) != 1:
        print(f"self-test: {good} {bad} {empty}")
        return 1
    return 0


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    found = list(findings(pathlib.Path(sys.argv[1])))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
