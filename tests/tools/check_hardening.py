#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that installed programs and libraries are built so that a fault in them is hard to abuse.

Each has full RELRO (GNU_RELRO and BIND_NOW) and a stack that is not executable; a program is position independent.
Stack protector and FORTIFY_SOURCE show as symbols in a program: __stack_chk_fail, and a __*_chk if it calls a function
that has such a form. A small library may need neither, so all code is also asked for the flags it was compiled with.

    check_hardening.py BUILD        one line per finding; status 1 if there are any
    check_hardening.py --self-test  tries the checks on small programs with known faults
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

KINDS = {"executable", "shared library", "shared module"}
FLAGS = {"-fstack-protector-strong", "-fstack-clash-protection", "-D_FORTIFY_SOURCE=3"}
# With a constant size that fits, the compiler takes the plain form all the same: what is checked is that not all are.
FORTIFIED = {"memcpy", "memmove", "memset", "strcpy", "strcat", "snprintf", "sprintf", "vsnprintf", "printf", "fprintf",
             "read", "pread", "recv", "readlink", "poll"}
SOURCE = """
#include <stdio.h>
#include <string.h>
int main(int argc, char **argv)
{
    char text[64];
    snprintf(text, sizeof(text), "%s", argv[argc - 1]);
    strcpy(text, argv[0]);
    return text[0];
}
"""
SOFT = ["-O2", "-fno-stack-protector", "-U_FORTIFY_SOURCE", "-no-pie", "-fno-pie",
        "-Wl,-z,norelro", "-Wl,-z,lazy", "-Wl,-z,execstack"]
HARD = ["-O2", "-fstack-protector-strong", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3", "-pie", "-fPIE",
        "-Wl,-z,relro", "-Wl,-z,now"]


def readelf(path):
    """Headers, dynamic section, dynamic symbols and notes."""
    return subprocess.run(["readelf", "-W", "-h", "-l", "-d", "--dyn-syms", "-n", path], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}
                          ).stdout


def findings_of(path, is_program):
    """What is missing in a file."""
    text = readelf(path)
    names = set(re.findall(r" UND (\w+)", text))
    found = []
    if "GNU_RELRO" not in text or not re.search(r"BIND_NOW|Flags:.* NOW", text):
        found.append("no full RELRO")
    if re.search(r"GNU_STACK.* RWE ", text):
        found.append("its stack is executable")
    if is_program and not re.search(r"Type: +DYN", text):
        found.append("not position independent")
    # A static program has the symbols of the C library in it, whatever it was compiled with: there the flags tell.
    is_dynamic = " INTERP " in text
    if is_program and is_dynamic and "__stack_chk_fail" not in names:
        found.append("no stack protector")
    if is_program and names & FORTIFIED and not any(name.endswith("_chk") for name in names):
        found.append("no FORTIFY_SOURCE")
    return found


def targets_of(build):
    """What is built, but for tests."""
    for target in json.loads((build / "meson-info" / "intro-targets.json").read_text()):
        if target["filename"] and pathlib.Path(target["filename"][0]).relative_to(build.resolve()).parts[0] != "tests":
            yield target


def check_flags(target):
    """Flags that code of a target was compiled without."""
    for source in target["target_sources"]:
        missing = FLAGS - set(source.get("parameters", FLAGS))
        if source.get("language") == "c" and source.get("sources") and missing:
            yield f"{target['filename'][0]}: compiled without {' '.join(sorted(missing))}"


def check(build):
    """Findings of a build folder, as lines."""
    targets = list(targets_of(build))
    files = [(t["filename"][0], t["type"] == "executable") for t in targets if t["installed"] and t["type"] in KINDS]
    lines = [line for target in targets for line in check_flags(target)]
    lines += [f"{path}: {finding}" for path, is_program in files for finding in findings_of(path, is_program)]
    return lines if files else [f"{build}: nothing is installed"]


def self_test():
    """Tries both kinds of programs. Exit status."""
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / "a.c"
        source.write_text(SOURCE)
        soft, hard = f"{folder}/soft", f"{folder}/hard"
        subprocess.run(["gcc", *SOFT, "-o", soft, source], check=True, stderr=subprocess.DEVNULL)
        subprocess.run(["gcc", *HARD, "-o", hard, source], check=True)
        if len(findings_of(soft, True)) != 5 or findings_of(hard, True):
            print(f"soft: {findings_of(soft, True)}, hard: {findings_of(hard, True)}")
            return 1
    return 0


def main():
    """Command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    lines = check(args.build)
    print("\n".join(lines))
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
