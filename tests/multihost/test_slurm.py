#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""`emunic run` in allocations of a real Slurm, as docs/cluster.md has it. `test_slurm.py EMUNIC [TEST]...`"""

import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

from cluster import FOLDER, enter
from slurm import Slurm, why_not
from testing import choose, run_tests, wait_until

TELL = "echo rank $EMUNIC_RANK nid $EMUNIC_NID host $EMUNIC_HOST"
HOLD = 'echo $EMUNIC_RANK >> "$0"; read -r line < "$0.hold"'
emunic = None
slurm = None


def start_slurm(cluster):
    global slurm
    slurm = Slurm(cluster)
    return slurm


def run(cluster, words, status=0):
    done = cluster.run(0, ["timeout", "-k", "5", "90", *words], env=slurm.environment, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    said = done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode == status, f"status {done.returncode}, not {status}: {said}{slurm.logs()}"
    return done


def in_slurm():
    return [emunic, "run", "-q", "--hosts", "slurm", "--"]


def places(text):
    return sorted(tuple(map(int, found)) for found in re.findall(r"rank (\d+) nid (\d+) host h(\d+)", text))


def write_script(folder, words):
    script = folder / "job.sh"
    script.write_text("#!/bin/sh\nexec " + shlex.join(map(str, words)) + "\n")
    return script


def test_batch_script(cluster):
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
    script = write_script(folder, [emunic, "run", "-q", "--hosts", "slurm", "--ppn", "2", "--", "sh", "-c", TELL])
    run(cluster, ["sbatch", "-W", "-N", "3", "--ntasks-per-node=2", "-o", folder / "out", script])
    told = (folder / "out").read_text()
    assert places(told) == [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1), (4, 2, 2), (5, 2, 2)], told


def test_allocation_with_more_tasks_on_one_host(cluster):
    """Slurm itself says how many where: --hosts slurm must read it."""
    tasks = run(cluster, ["salloc", "-N", "3", "-n", "5", "sh", "-c", "echo $SLURM_TASKS_PER_NODE"]).stdout.strip()
    per_host = []
    for number, _, times in re.findall(r"(\d+)(\(x(\d+)\))?", tasks):
        per_host += [int(number)] * int(times or 1)
    expected = [host for host, n in enumerate(per_host) for _ in range(n)]
    told = run(cluster, ["salloc", "-N", "3", "-n", "5", *in_slurm(), "sh", "-c", TELL]).stdout
    assert [host for _, _, host in places(told)] == expected, (tasks, told)


def test_job_without_hosts_stays_on_its_own(cluster):
    told = run(cluster, ["salloc", "-N", "3", emunic, "run", "-q", "-n", "4", "--", "sh", "-c", TELL]).stdout
    assert places(told) == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (3, 3, 0)], told


def test_status_of_the_program_is_that_of_the_allocation(cluster):
    run(cluster, ["salloc", "-N", "2", *in_slurm(), "sh", "-c", "exit $((EMUNIC_RANK * 7))"], status=7)


def test_one_line_names_the_rank_that_failed_its_node_and_its_host(cluster):
    command = ["sh", "-c", "[ $EMUNIC_RANK = 2 ] && exit 7; exit 0"]
    done = run(cluster, ["salloc", "-N", "3", *in_slurm(), *command], status=7)
    told = [line for line in done.stderr.splitlines() if "salloc" not in line]
    assert told == ["emunic run: rank 2 on node c0-0c0s0n2 (nid 2, host h2) ended with status 7"], told


def test_other_hosts_of_a_step_are_told_why_not(cluster):
    done = run(cluster, ["srun", "-N", "2", *in_slurm(), "true"], status=1)
    assert "the first host, h0, is not the one that this runs on" in done.stderr, done
    done = run(cluster, ["salloc", "-N", "3", "srun", "-N", "1", *in_slurm(), "true"], status=1)
    assert "a step of its own" in done.stderr, done


def test_step_with_pmix(cluster):
    """srun starts `emunic run` once per task; so does mpirun in the allocation."""
    inner = [emunic, "run", "-q", "--hosts", "mpirun", "--ppn", "2", "--", "sh", "-c"]
    kinds = run(cluster, ["srun", "--mpi=list"])
    if "pmix" in kinds.stdout + kinds.stderr:
        told = run(cluster, ["srun", "-N", "2", "--ntasks-per-node=2", "--mpi=pmix", *inner, TELL]).stdout
        assert [(rank, nid) for rank, nid, _ in places(told)] == [(0, 0), (1, 0), (2, 1), (3, 1)], told
        run(cluster, ["srun", "-N", "2", "--ntasks-per-node=2", "--mpi=pmix", *inner, "exit 4"], status=4)
    told = run(cluster, ["salloc", "-N", "3", "--ntasks-per-node=2", "mpirun", *inner, TELL]).stdout
    assert places(told) == [(0, 0, 0), (1, 0, 0), (2, 1, 1), (3, 1, 1), (4, 2, 2), (5, 2, 2)], told


def test_cancelled_job_leaves_nothing(cluster):
    folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
    up = folder / "up"
    os.mkfifo(f"{up}.hold")
    hold = os.open(f"{up}.hold", os.O_RDWR)
    up.touch()
    script = write_script(folder, [*in_slurm(), "sh", "-c", HOLD, up])
    job = run(cluster, ["sbatch", "--parsable", "-N", "3", "-o", folder / "out", script]).stdout.strip()
    assert wait_until(lambda: len(up.read_text().split()) == 3, 60), (folder / "out").read_text() + slurm.logs()
    run(cluster, ["scancel", job])
    assert wait_until(lambda: not run(cluster, ["squeue", "-h", "-j", job]).stdout.strip(), 60)
    os.close(hold)


if __name__ == "__main__":
    enter()
    if why_not():
        print(f"1..0 # SKIP {why_not()}")
        sys.exit(0)
    emunic = str(pathlib.Path(sys.argv[1]).resolve())
    sys.exit(run_tests(choose(globals(), sys.argv[2:]), n_hosts=3, surroundings=start_slurm, but=("slurm", "munged")))
