# SPDX-License-Identifier: BSD-3-Clause
"""The test suite of mpi4py: what passes over vader passes over the machine, but for the differences that are listed."""

import collections
import os
import pathlib
import re
import subprocess

from packages import HERE, Failed, Skip

PACKAGES = ["python3-mpi4py"]
VERIFIED = ["python3-mpi4py"]

# Without threads: osc/pt2pt refuses windows after MPI_THREAD_MULTIPLE. Processes that are spawned have no node.
OPTIONS = ["--no-builddir", "--verbose", "--no-threads", "--exclude", "spawn", "--exclude", "dynproc"]
# The part for `make check`: seconds instead of minutes.
PART = ["p2p", "cco_buf", "cco_obj", "cco_vec", "rma", "win", "request", "comm", "test_io"]
# All tests: a job for each of these patterns of files, slow ones alone, so that each job ends. Then all others. Each
# has tests that send messages: a job that has carried nothing counts as failed.
JOBS = ["test_p2p", "test_rma|test_win$", "test_cco_(obj|ngh)", "test_cco_buf", "test_cco_vec", "test_cco_nb_buf",
        "test_cco_nb_vec", "test_io|test_file|test_util_dtlib"]
EXPLAINED = {
    # Pattern of class and test, why it fails on the machine.
    r"TestWinAllocateSharedWorld\.": "ranks of several nodes share no memory: MPI_ERR_RMA_SHARED",
}
RESULT = re.compile(r"^(ERROR|FAIL): (\w+) \(([\w.]+)\)", re.MULTILINE)
# The end of a rank's output; that of another one may stand in the middle of it.
TOTAL = re.compile(r"^Ran (\d+) tests in [\d.]+s(?:\s|Ran \d+ tests in [\d.]+s)*(?:OK|FAILED)(?: \((.*?)\))?", re.MULTILINE)
# Its testMProbe drops receives that are under way, and their buffers, after one look at them. Where data take longer
# than a look, they come into memory that has been freed, and the process crashes.
DROPS_RECEIVES = "test_util_pkl5"


def judge(ours, theirs):
    """The failures of ours that vader has not, each explained."""
    counts = {}
    for name, text in (("machine", ours), ("vader", theirs)):
        totals = TOTAL.findall(text)
        if not totals or int(totals[0][0]) == 0:
            raise Failed(f"mpi4py, {name}: no total of its tests")
        counts[name] = totals[0]
    if counts["machine"][0] != counts["vader"][0]:
        raise Failed(f"mpi4py: {counts['machine'][0]} tests, over vader {counts['vader'][0]}")
    known = {name for _, _, name in RESULT.findall(theirs)}
    reasons = collections.Counter()
    for _, _, name in set(RESULT.findall(ours)):
        why = [reason for pattern, reason in EXPLAINED.items() if re.search(pattern, name)]
        if name not in known and not why:
            raise Failed(f"mpi4py: {name} fails, over vader it does not")
        reasons[why[0] if why else "fails over vader, too"] += 1
    said = [f"{n}: {why}" for why, n in reasons.items()] or ["no failure"]
    return (f"{counts['machine'][0]} tests ({counts['machine'][1] or 'all passed'}; over vader "
            f"{counts['vader'][1] or 'all passed'}); {'; '.join(said)}")


def tests_folder(work):
    """Of the source package; MPI4PY_TEST_DIR names one that is there already."""
    if "MPI4PY_TEST_DIR" in os.environ:
        return pathlib.Path(os.environ["MPI4PY_TEST_DIR"])
    done = subprocess.run([HERE / "mpi4py_source.sh", work / "mpi4py"], check=False)
    if done.returncode == 77:
        raise Skip("the tests of mpi4py 3.1.4 cannot be had: no mirror has the source; MPI4PY_TEST_DIR may name them")
    if done.returncode != 0:
        raise Failed("mpi4py_source.sh has failed")
    return work / "mpi4py" / "src" / "test"


def jobs_of(setting):
    """Name and options of each job."""
    if not setting.is_whole:
        return [("part", [word for pattern in PART for word in ("--include", pattern)])]
    jobs = [(f"job-{number}", ["--include", pattern]) for number, pattern in enumerate(JOBS)]
    excluded = [*JOBS, DROPS_RECEIVES] if setting.datapath == "routed" and not setting.is_over_gni else JOBS
    return jobs + [("others", [word for pattern in excluded for word in ("--exclude", pattern)])]


def check(setting):
    """Both runs of each job; rank 0 says most. A failed job does not keep the others from running."""
    # /usr/bin/python3 by its full name: another Python has no mpi4py.
    command = ["/usr/bin/python3", "-B", str(tests_folder(setting.work) / "runtests.py"), *OPTIONS]
    jobs = jobs_of(setting)
    n_failed = 0
    for name, options in jobs:
        try:
            theirs = setting.over_vader(f"{name}-vader", *command, *options, statuses=(0, 1))
            said = judge(setting.on_machine(f"{name}-machine", *command, *options, statuses=(0, 1)), theirs)
        except Failed as fault:
            n_failed += 1
            said = f"failed: {fault}"
        print(f"mpi4py {' '.join(options)}: {said}", flush=True)
    if n_failed > 0:
        raise Failed(f"mpi4py: {n_failed} of {len(jobs)} jobs have failed")
    return f"{len(jobs)} jobs passed"
