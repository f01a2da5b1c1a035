# SPDX-License-Identifier: BSD-3-Clause
"""HPC Challenge, all of it with a small problem: its own verification has to pass."""

import pathlib
import re

from packages import Failed

PACKAGES = ["hpcc"]
VERIFIED = ["hpcc"]
INPUT = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
GRIDS = {1: (1, 1), 2: (1, 2), 4: (2, 2), 16: (4, 4)}
SIZE, BLOCK = 200, 32
HPL_PASSED = re.compile(r"^\|\|Ax-b\|\|.*\.\.\. PASSED$", re.MULTILINE)


def input_text(ranks):
    """Debian's example with our sizes and grid."""
    rows, columns = GRIDS[ranks]
    lines = INPUT.read_text(encoding="utf-8").splitlines()
    for value, word in ((SIZE, "Ns"), (BLOCK, "NBs"), (rows, "Ps"), (columns, "Qs")):
        at = next(i for i, line in enumerate(lines) if line.split()[1:] == [word])
        lines[at] = f"{value} {word}"
    return "\n".join(lines) + "\n"


def judge(report):
    """What its report says of each part."""
    summary = dict(re.findall(r"^(\w+)=(.*)$", report, re.MULTILINE))
    ptrans = re.search(r"^ *(\d+) tests completed and passed residual checks\.$", report, re.MULTILINE)
    if re.search(r"\bFAILED\b|^FAIL|Failed$", report, re.MULTILINE):
        raise Failed("a part of hpcc has failed")
    if summary.get("Success") != "1":
        raise Failed("hpcc does not say Success=1")
    if not HPL_PASSED.search(report) or not ptrans or int(ptrans.group(1)) == 0:
        raise Failed("HPL or PTRANS did not check its result")
    for part in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
        if float(summary[f"{part}_ErrorsFraction"]) > 0.01:
            raise Failed(f"{part}: too many errors: {summary[f'{part}_Errors']}")
    if not 0 <= float(summary["MPIFFT_maxErr"]) < 1e-10:
        raise Failed(f"MPIFFT: error {summary['MPIFFT_maxErr']}")
    return f"HPL, {ptrans.group(1)} PTRANS, MPIFFT, MPIRandomAccess verified"


def check(setting):
    """Runs and judges it."""
    (setting.folder / "hpccinf.txt").write_text(input_text(setting.ranks), encoding="utf-8")
    setting.on_machine("hpcc", "hpcc")
    return judge((setting.folder / "hpccoutf.txt").read_text())
