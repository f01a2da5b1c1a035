#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where namespaces are not permitted, what needs them is left out and says why. `test_skip.py`

Everywhere, that is: a command of ours takes the place of one that is needed, and fails as the kernel would make it.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
WHY = "not permitted"


def run(folder, command):
    path = f"{folder}:{os.environ['PATH']}"
    return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env=os.environ | {"PATH": path})


def is_skipped(done):
    """One line of TAP, with the reason."""
    lines = done.stdout.splitlines()
    return done.returncode == 0 and len(lines) == 1 and lines[0].startswith("1..0 # SKIP ") and WHY in lines[0]


def refuse(folder):
    """unshare(1) fails, with two lines as mount(8) says them."""
    command = folder / "unshare"
    command.write_text(f"#!/bin/sh\necho 'unshare: {WHY}.'\n"
                       "echo '       dmesg(1) may have more information.' >&2\nexit 1\n")
    command.chmod(0o755)


def cases(folder):
    cluster = HERE / "cluster.py"
    ways = {"command": [], "command told as TAP": ["--tap", "name"], "program above": ["--above"]}
    for name, options in ways.items():
        done = run(folder, [sys.executable, cluster, "-n", "2", *options, "--", "true"])
        yield f"{name} is skipped", is_skipped(done), done
    for script in sorted(HERE.glob("test_*.py")):
        if script.name != pathlib.Path(__file__).name:
            done = run(folder, [sys.executable, script, *["true"] * 5])
            yield f"{script.name} is skipped", is_skipped(done), done
    (folder / "thirdparty" / "ucx").mkdir(parents=True)
    (folder / "thirdparty" / "ucx" / "stamp").touch()
    done = run(folder, [HERE / "third_party.sh", folder, "/bin/true", cluster, "ucx", "put_lat"])
    yield "case of another library is skipped", done.returncode == 77 and WHY in done.stderr, done


def main():
    with tempfile.TemporaryDirectory() as name:
        refuse(pathlib.Path(name))
        n_bad = 0
        number = 0
        for number, (what, is_good, done) in enumerate(cases(pathlib.Path(name)), 1):
            print(f"{'ok' if is_good else 'not ok'} {number} - {what}")
            if not is_good:
                print("".join(f"# {line}\n" for line in [f"status {done.returncode}", *done.stdout.splitlines(),
                                                         *done.stderr.splitlines()]), end="")
            n_bad += not is_good
        print(f"1..{number}")
    return 1 if n_bad else 0


if __name__ == "__main__":
    sys.exit(main())
