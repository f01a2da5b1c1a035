# SPDX-License-Identifier: BSD-3-Clause
"""Pages that are made from the tree: is the one that is there what it should be? For coverage.py and programs.py."""

import difflib
import pathlib
import sys
import tempfile


def stale(root, page, text):
    """One finding if the page is not that text."""
    path = root / page
    present = path.read_text() if path.exists() else ""
    if present == text:
        return []
    change = [line for line in difflib.unified_diff(present.splitlines(), text.splitlines(), lineterm="", n=0)
              if line[0] in "+-" and not line.startswith(("+++", "---"))]
    return [f"{page} is stale; write it anew with {sys.argv[0]} {root} --write. First: {change[0] if change else '?'}"]


def self_test(files, folders, expected, check, more):
    """Tries `check` on a small tree. more(root): what else is wrong, after the page was written by it."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name in folders:
            (root / name).mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        findings = check(root)
        wrong = [e for e in expected if not any(e in f for f in findings)]
        surplus = [f for f in findings if not any(e in f for e in expected)]
        wrong += more(root)
        wrong += ["a fresh page is stale"] if any("stale" in f for f in check(root)) else []
    for line in wrong:
        print(f"self-test: not found: {line}")
    for line in surplus:
        print(f"self-test: found, but fine: {line}")
    return 1 if wrong or surplus else 0


def show(findings):
    for line in findings:
        print(line)
    return 1 if findings else 0
