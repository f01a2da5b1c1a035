# SPDX-License-Identifier: BSD-3-Clause
"""Jobs: over the emulated machine, and over Open MPI's own shared memory for comparison."""

import collections
import json
import os
import re
import signal
import subprocess

from packages import Failed

VADER = ["mpirun", "--oversubscribe", "--mca", "btl", "vader,self"]


class Setting:
    """Where a program runs: emunic's command, ranks, machine, data path, folder of the run."""

    def __init__(self, args, folder):
        self.emunic = str(args.emunic)
        self.work = folder.parent.parent
        self.ranks = args.ranks
        self.machine = args.machine
        self.datapath = args.datapath
        self.layer = args.layer
        self.is_over_gni = args.layer == "gni" or (args.layer == "auto" and args.machine in ("aries", "gemini"))
        self.limit_s = args.limit
        self.folder = folder
        self.is_whole = args.whole

    def on_machine(self, name, *command, options=(), statuses=(0,)):
        """Output of a job on the emulated machine, which has carried it."""
        links = self.folder / f"{name}.json"
        output = self._run(name, [self.emunic, "run", f"--mpi={self.layer}", "-n", str(self.ranks), "--machine", self.machine,
                                  "--datapath", self.datapath, "--json", str(links), *options, "--", *command], statuses)
        self.flows = json.loads(links.read_text())["flows"]
        if sum(flow["payload_bytes"] for flow in self.flows) == 0 or any(flow["errors"] for flow in self.flows):
            raise Failed(f"{name}: the machine carried nothing, or with errors (see {links})")
        return output

    def in_virtual_time(self, name, options, *command):
        """Output of a job that sees the time of the machine that the options name. Computing takes none."""
        return self._run(name, [self.emunic, "run", "-q", f"--mpi={self.layer}", "-n", str(self.ranks), "--time", "virtual",
                                "--compute", "none", *options, "--", *command], (0,))

    def over_vader(self, name, *command, options=("--mca", "pml", "ob1"), statuses=(0,)):
        """Output of the same job over vader."""
        return self._run(name, [*VADER, "-n", str(self.ranks), *options, *command], statuses)

    def _run(self, name, command, statuses):
        log = self.folder / f"{name}.out"
        environment = dict(os.environ, OMP_NUM_THREADS="1", OMPI_ALLOW_RUN_AS_ROOT="1",
                           OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        with open(log, "w", encoding="utf-8") as out:
            job = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out,
                                   stderr=subprocess.STDOUT, env=environment, start_new_session=True)
            try:
                status = job.wait(self.limit_s)
            except subprocess.TimeoutExpired:
                os.killpg(job.pid, signal.SIGTERM)
                status = f"none after {self.limit_s} s"
                job.wait()
        text = log.read_text(errors="replace")
        if status not in statuses:
            tail = "\n".join(text.splitlines()[-30:])
            raise Failed(f"{name}: status {status}: {' '.join(command)}\n{tail}\n(whole output in {log})")
        return text

    def pairs(self):
        """Bytes between each two nodes, both ways together: a message is put by its sender or got by its receiver."""
        sums = collections.Counter()
        for flow in self.flows:
            sums[tuple(sorted((flow["src_nid"], flow["dst_nid"])))] += flow["payload_bytes"]
        return {pair: n for pair, n in sums.items() if n > 0 and pair[0] != pair[1]}

    def monitored_pairs(self, *command):
        """The same, of a job over vader, as Open MPI's own pml/monitoring counts them."""
        profile = self.folder / "monitored"
        self.over_vader("monitored", *command, options=(
            "--mca", "pml", "ob1,monitoring", "--mca", "pml_monitoring_enable", "1", "--mca",
            "pml_monitoring_enable_output", "3", "--mca", "pml_monitoring_filename", str(profile)))
        sums = collections.Counter()
        for file in self.folder.glob("monitored.*.prof"):
            for source, target, n in re.findall(r"^[EI]\t(\d+)\t(\d+)\t(\d+) bytes", file.read_text(), re.MULTILINE):
                sums[tuple(sorted((int(source), int(target))))] += int(n)
        return {pair: n for pair, n in sums.items() if n > 0 and pair[0] != pair[1]}


def same_lines(what, ours, theirs):
    """Both lists of lines are equal and not empty."""
    if not theirs:
        raise Failed(f"{what}: there are none")
    for number, (one, other) in enumerate(zip(ours, theirs)):
        if one != other:
            raise Failed(f"{what}, number {number}: {one!r}, over vader {other!r}")
    if len(ours) != len(theirs):
        raise Failed(f"{what}: {len(ours)} lines, over vader {len(theirs)}")
    return f"{len(ours)} lines of {what} as over vader"
