# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of MPI, of which one rank is killed at any moment of its life: one clear line, soon, and nothing is left."""

import pathlib
import re

from board import Finding, Surroundings, below
from scenes import Log, Scene, draw_way, kill, let_pass

MACHINES = {"gni": ["aries", "gemini"], "portals": ["seastar", "xt3"]}
END_WITHIN_S = 5                        # as the project promises
ONE_LINE = re.compile(r"emunic run: rank (\d+) on node \S+ \(nid \d+\) was ended by (?:signal 9 \(Killed\)|"
                      r"a signal; mpirun did not end after that and was killed)")


def rank_of(pid):
    """As mpirun has numbered it; None: no rank, or it is gone."""
    try:
        text = pathlib.Path(f"/proc/{pid}/environ").read_bytes().decode(errors="replace")
    except OSError:
        return None
    found = re.search(r"(?:^|\0)OMPI_COMM_WORLD_RANK=(\d+)\0", text)
    return int(found.group(1)) if found else None


class MpiJobs(Scene):
    """Each step is a job of its own (`mpi_endless endless`)."""

    def __init__(self, context, kind):
        super().__init__(context)
        self.kind = kind

    def command(self, draw):
        n_ranks = draw.choice([2, 3, 4, 6])
        argv = [self.context.emunic, "run", f"--mpi={self.kind}", "-n", n_ranks, "--ppn", draw.choice([1, 2]),
                "--machine", draw.choice(MACHINES[self.kind]), *draw.choice([[], ["--datapath", "routed"]])]
        return n_ranks, [*argv, "--", self.context.programs["mpi"], "endless"]

    def ranks(self, job):
        return {rank_of(pid): pid for pid, name in below(job.pid).items() if name in ("emunic-rank", "mpi_endless")}

    def step(self, draw):
        n_ranks, argv = self.command(draw)
        surroundings = Surroundings(self.context.folders)
        said, lines = [], []
        job = self.start(argv, stdout=-1)
        logs = [Log(job.stdout, said), Log(job.stderr, lines)]
        victim = draw.randrange(n_ranks)
        is_early = draw.random() < 0.4
        self.waits.until("a rank is there", lambda: victim in self.ranks(job) or job.poll() is not None)
        if not is_early:
            self.waits.until("the ranks exchange", lambda: said or job.poll() is not None)
        let_pass(draw.random() * (0.4 if is_early else 0.3))
        way = draw_way(draw, ("KILL", "KILL", "KILL", "STOP"))
        pid = self.ranks(job).get(victim)
        if job.poll() is not None or not pid:
            raise Finding(f"the job ends with {job.poll()} before anything is killed: {lines}")
        self.said.append(f"{way} to rank {victim} of: {' '.join(map(str, argv))}")
        kill(pid, way, self.waits)
        self.check_end(job, victim, logs, lines)
        surroundings.expect_nothing_left(self.waits)
        return [f"rank of mpi-{self.kind} {'early ' if is_early else ''}{way}"]

    def check_end(self, job, victim, logs, lines):
        what = f"a job of mpi-{self.kind} of which a rank was killed"
        status = self.reap(job, what)
        for log in logs:
            log.thread.join()
        self.said += lines
        if self.waits.longest[what] > END_WITHIN_S:
            raise Finding(f"the job ended after {self.waits.longest[what]:.1f} s")
        if len(lines) != 1:
            raise Finding(f"{len(lines)} lines instead of one: {lines}")
        found = ONE_LINE.fullmatch(lines[0])
        if not found or int(found.group(1)) != victim:
            raise Finding(f"rank {victim} was killed, and the line is: {lines[0]}")
        if status != 137:
            raise Finding(f"status {status} instead of 137")

    def close(self):
        self.surroundings.expect_nothing_left(self.waits)
