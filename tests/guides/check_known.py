#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Every page that shows commands is one whose commands are run: `check_known.py SOURCE_DIR GUIDE.md...`.

Pages below tests/ are for those who work on the project, and show how tests are run. Those in docs/spec/ show interfaces
and other systems. A block that is "not run: a drawing" has no commands.
"""

import pathlib
import sys

import run_guide

# Drawings, and tables that a tool makes.
NO_COMMANDS = ["docs/architecture.md", "docs/generated/fidelity.md", "docs/generated/mutations.md"]


def pages(source):
    """All Markdown of the project, without build folders."""
    for path in sorted(source.rglob("*.md")):
        inside = path.relative_to(source)
        if not any((source / parent / "meson-info").exists() for parent in inside.parents):
            yield str(inside)


def main():
    source = pathlib.Path(sys.argv[1])
    guides = sys.argv[2:]
    n_bad = 0
    for page in pages(source):
        if page.startswith(("tests/", "docs/spec/")) or page in NO_COMMANDS or page in guides:
            continue
        try:
            blocks = run_guide.read_guide((source / page).read_text())
            n_blocks = sum(block.note("not run") != "a drawing" for block in blocks)
        except run_guide.Wrong as wrong:
            n_blocks = str(wrong)
        if n_blocks:
            print(f"{page} shows commands ({n_blocks}) that no test runs: tests/guides/meson.build")
            n_bad += 1
    for guide in guides:
        if not (source / guide).exists():
            print(f"{guide} is not there")
            n_bad += 1
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
