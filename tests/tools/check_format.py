#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that C looks as .clang-format says, and applies it.

    check_format.py ROOT            one line per finding; status 1 if there are any
    check_format.py --apply ROOT    rewrites the files
    check_format.py --self-test     tries the checks on files with known faults

The check wants clang-format of the version named below: others lay some lines out otherwise. Where it is missing the
test is skipped and says so.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

VERSION = 14
SKIPPED = 77
FILES_A_RUN = 40
LINE_MAX = 120


def sources(root):
    """C files and headers of the tree, without build folders and what is hidden."""
    for folder, subfolders, names in os.walk(root):
        at = pathlib.Path(folder)
        subfolders[:] = [name for name in subfolders if not name.startswith(".") and
                         not (at / name / "meson-private").is_dir() and not (at == root and name.startswith("build"))]
        for name in sorted(names):
            if name.endswith((".c", ".h")):
                yield at / name


def find_tool():
    """clang-format of the wanted version, or None."""
    for name in (f"clang-format-{VERSION}", "clang-format"):
        tool = shutil.which(name)
        if tool and re.search(rf"version {VERSION}\.", subprocess.run([tool, "--version"], capture_output=True,
                                                                      text=True).stdout):
            return tool
    return None


def run_on(tool, arguments, paths):
    """What clang-format says of the files, in runs side by side."""
    runs = [paths[i:i + FILES_A_RUN] for i in range(0, len(paths), FILES_A_RUN)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda some: subprocess.run([tool, *arguments, *map(str, some)], capture_output=True,
                                                         text=True), runs))


def check(tool, root):
    """All findings in a tree, each once a line."""
    paths = list(sources(root))
    found = set()
    for done in run_on(tool, ["--dry-run", "--Werror"], paths):
        for line in done.stderr.splitlines():
            at = re.match(r"(.+?):(\d+):\d+: error: ", line)
            if at:
                found.add(f"{os.path.relpath(at[1], root)}:{at[2]}: not as .clang-format says; `make format` mends it")
        if done.returncode and not found:
            found.add(done.stderr.strip())
    for path in paths:
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if len(line) > LINE_MAX:
                found.add(f"{os.path.relpath(path, root)}:{number}: {len(line)} columns, {LINE_MAX} at most")
    return sorted(found)


def self_test(tool):
    good = "int f(int a)\n{\n    return a;\n}\n"
    bad = {"indent.c": good.replace("    return", "  return"), "brace.h": good.replace(")\n{", ") {"),
           "long.c": "/* " + "x" * LINE_MAX + " */\n" + good}
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        shutil.copy(pathlib.Path(__file__).parents[2] / ".clang-format", root)
        (root / "good.c").write_text(good)
        for name, text in bad.items():
            (root / name).write_text(text)
        (root / "build").mkdir()
        (root / "build" / "made.c").write_text(bad["indent.c"])
        found = {line.split(":")[0] for line in check(tool, root)}
        run_on(tool, ["-i"], [root / "indent.c", root / "brace.h"])
        left = {line.split(":")[0] for line in check(tool, root)}
    if found != set(bad) or left != {"long.c"}:
        print(f"found {sorted(found)}, after formatting {sorted(left)}")
        return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path)
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    tool = find_tool()
    if not tool:
        print(f"no clang-format of version {VERSION}: `make deps` installs it")
        return SKIPPED
    if args.self_test:
        return self_test(tool)
    if args.root is None or not (args.root / "emunic").is_dir():
        parser.error("ROOT is the folder that holds emunic/")
    if args.apply:
        return max(done.returncode for done in run_on(tool, ["-i"], list(sources(args.root))))
    findings = check(tool, args.root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
