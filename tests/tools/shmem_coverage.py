#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which test program calls which function of libsma: checks that none is missing, and writes the page.

    shmem_coverage.py ROOT PROGRAM...           one line per finding; status 1 if there are any
    shmem_coverage.py ROOT PROGRAM... --write   writes docs/generated/shmem-coverage.md

What a program calls are the undefined names in its table of dynamic symbols. What there is comes from the table that
the library is generated from, mpi-shim/shmem/table.py; Fortran's functions from fortran.py. A name counts as called if
one of the programs has it, or the same with a p before it.
"""

import argparse
import pathlib
import re
import subprocess
import sys

import page

TABLE = "docs/generated/shmem-coverage.md"


def called(program):
    text = subprocess.run(["nm", "-D", "--undefined-only", program], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split("@")[0] for line in text.splitlines()}


def without_type(generate, family):
    return family.name.format(C="[ctx_]" if family.has_ctx else "", T="SIZE" if isinstance(family.types, dict) else "TYPE")


def tests_of(name, programs):
    return sorted(test for test, names in programs.items() if name in names or "p" + name in names)


def look(root, paths):
    """Findings and the page."""
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(root / "mpi-shim/shmem"))
    import fortran
    import generate
    import table
    programs = {re.sub(r"^conformance-shmem-", "", path.name): called(path) for path in paths}
    findings, rows, n = [], [], 0
    for family in table.FAMILIES:
        names = [f.name for f in generate.expanded(family)]
        n += len(names)
        common = None
        for name in names:
            tests = tests_of(name, programs)
            if not tests:
                findings.append(f"mpi-shim/shmem/table.py: {name} is called by no test")
            common = set(tests) if common is None else common | set(tests)
        rows.append(f"| `{without_type(generate, family)}` | {len(names)} | {', '.join(f'`{t}`' for t in sorted(common))} |")
    for _, _, name, _, _ in fortran.FUNCTIONS:
        tests = tests_of(name + "_", programs)
        if not tests:
            findings.append(f"mpi-shim/shmem/fortran.py: {name}_ is called by no test")
        rows.append(f"| Fortran `{name.upper()}` | 1 | {', '.join(f'`{t}`' for t in tests)} |")
    text = ("# SHMEM conformance coverage\n\n"
            "Which program of `tests/conformance/shmem` calls which function. Made by `tests/tools/shmem_coverage.py` from "
            "the programs and the tables of `mpi-shim/shmem`; `make check` fails if a function of the table has no caller or "
            "this page is not what they give. TYPE, SIZE and [ctx_] stand for all of the family.\n\n"
            f"{n} functions of C, {len(fortran.FUNCTIONS)} of Fortran.\n\n"
            "| function | names | tests |\n|---|---|---|\n" + "\n".join(rows) + "\n")
    return findings, text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("programs", type=pathlib.Path, nargs="+")
    parser.add_argument("--write", action="store_true")
    args = parser.parse_args()
    findings, text = look(args.root, args.programs)
    if args.write:
        (args.root / TABLE).write_text(text)
    return page.show(findings + page.stale(args.root, TABLE, text))


if __name__ == "__main__":
    sys.exit(main())
