# SPDX-License-Identifier: BSD-3-Clause
"""NetPIPE: its integrity check of each length passes, and its measurement has a row for each."""

import re

from packages import Failed

PACKAGES = ["netpipe-openmpi"]
VERIFIED = ["netpipe-openmpi"]
LARGEST = 131072
ROW = re.compile(r"^ *(\d+): +(\d+) bytes +\d+ times --> (.*)$", re.MULTILINE)


def judge_integrity(text):
    """Each length has passed."""
    rows = ROW.findall(text)
    bad = [row for row in rows if row[2].strip() != "Integrity check passed"]
    if bad or not rows or int(rows[-1][1]) < LARGEST // 2:
        raise Failed(f"integrity: {bad[:3] or 'rows are missing'}")
    return len(rows)


def judge_rows(text):
    """Each length has a rate."""
    rows = ROW.findall(text)
    bad = [row for row in rows if not re.search(r"[1-9].* Mbps in ", row[2])]
    if bad or not rows or int(rows[-1][1]) < LARGEST:
        raise Failed(f"measurement: {bad[:3] or 'rows are missing'}")
    return len(rows)


def check(setting):
    """Two ranks exchange."""
    lengths = ["-u", str(LARGEST), "-n", "10"]
    n_checked = judge_integrity(setting.on_machine("integrity", "NPopenmpi", "-i", *lengths, "-o", "integrity.txt"))
    n_rows = judge_rows(setting.on_machine("measured", "NPopenmpi", *lengths, "-o", "measured.txt"))
    return f"{n_checked} lengths checked, {n_rows} measured"
