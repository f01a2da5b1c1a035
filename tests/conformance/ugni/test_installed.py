#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The installed conformance suite: `test_installed.py MESON BUILD PREFIX BINDIR LIBEXECDIR DATADIR`.

Installs the build below a folder of its own (DESTDIR), runs some programs from there, with an emunic of their own and
as launched jobs, and tries the driver's report on programs that fail on purpose.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

meson, build, prefix, bin_dir, libexec_dir, data_dir = sys.argv[1:]
n_wrong = 0


def check(name, is_true, output=""):
    global n_wrong
    print(f"{'ok' if is_true else 'not ok'} {check.n} - {name}", flush=True)
    check.n += 1
    if not is_true:
        n_wrong += 1
        print("\n".join(f"# {line}" for line in output.splitlines()))


check.n = 1


def row(output, name):
    """Passed, failed, skipped of an object, or None."""
    for line in output.splitlines():
        words = line.split()
        if len(words) >= 4 and words[0] == name:
            return [int(word) for word in words[1:4]]
    return None


def add_program(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


with tempfile.TemporaryDirectory() as destination:
    done = subprocess.run([meson, "install", "-C", build, "--no-rebuild", "--quiet"], text=True,
                          env=dict(os.environ, DESTDIR=destination), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    root = pathlib.Path(destination + prefix)
    driver = root / bin_dir / "emunic-conformance-ugni"
    suite = root / libexec_dir / "emunic" / "conformance-ugni"
    check("the suite can be installed", done.returncode == 0 and driver.exists(), done.stdout)

    def run(*arguments):
        done = subprocess.run([driver, *arguments], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout

    status, output = run("ep", "cq_write")
    check("programs start an emunic of their own", status == 0 and row(output, "ep")[0] > 15 and
          row(output, "ep")[1:] == [0, 0] and row(output, "cq_write")[0] > 10, output)
    status, output = run("--datapath", "routed", "chain")
    check("and one that moves everything itself", status == 0 and row(output, "chain")[0] > 15, output)
    status, output = run("--launcher", f"{build}/emunic/emunic run -n 1 --", "ep", "cdm")
    check("programs run in launched jobs", status == 0 and row(output, "ep")[0] > 15 and row(output, "ep")[1] == 0 and
          row(output, "cdm")[0] > 15, output)
    status, output = run("--job", "ep")
    check("without a job they are left out", status == 0 and row(output, "ep") == [0, 0, 0] and "left out" in output,
          output)
    status, output = run("nothing")
    check("an unknown program is a wrong usage", status == 2, output)

    done = subprocess.run([root / bin_dir / "emunic-conformance-dmapp", "--launcher",
                           f"{build}/emunic/emunic run -q -n 2 --", "lock", "refusals"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("DMAPP's programs run in jobs", done.returncode == 0 and row(done.stdout, "lock")[0] > 5 and
          row(done.stdout, "refusals")[1:] == [0, 0], done.stdout)

    done = subprocess.run([root / bin_dir / "emunic-conformance-portals", "--launcher",
                           f"{build}/emunic/emunic run -q -n 2 --", "cray-limits", "ref-limits"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    check("Portals' programs run in jobs, in both dialects", done.returncode == 0 and
          row(done.stdout, "cray-limits")[0] > 5 and row(done.stdout, "ref-limits")[0] > 5, done.stdout)

    assertions = json.loads((root / data_dir / "emunic" / "conformance-ugni.json").read_text())
    place, about = next((key, value) for key, value in assertions.items() if value == ["GNI_EpBind", "INVALID_PARAM"])
    file, line = place.split(":")
    add_program(suite / "job", "conformance-job-bad", f"""
echo 1..3; echo 'ok 1 - test_good'; echo 'not ok 2 - test_bad'; echo '# 0x9 != 0x2'
echo '# ../tests/{file}:{line}: error: Failure!'; echo 'not ok 3 # SKIP test_other'; exit 1""")
    add_program(suite / "job", "conformance-job-crash", "echo 1..2; echo 'ok 1 - test_good'; kill -SEGV $$")
    add_program(suite / "job", "conformance-job-silent", "exit 0")
    status, output = run("--job", "bad", "crash", "silent")
    check("failed, skipped and lost tests are counted", status == 1 and row(output, "bad") == [1, 1, 1] and
          row(output, "crash") == [1, 1, 0] and row(output, "silent") == [0, 1, 0] and row(output, "all") == [2, 3, 1],
          output)
    check("a failure names call, code expected and code seen",
          f"test_bad ({place}): GNI_EpBind expected GNI_RC_INVALID_PARAM, got GNI_RC_NO_MATCH" in output, output)
    check("a program that ends early says how far it came", "after 1 of 2 tests" in output, output)

print(f"1..{check.n - 1}")
sys.exit(1 if n_wrong else 0)
