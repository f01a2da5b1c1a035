# SPDX-License-Identifier: BSD-3-Clause
"""Scenes: what runs while something of it is killed. A scene stands for many steps; each step kills something, checks the
survivors, and puts back what was killed.

    scene = Workers(context, ...)       everything is up when this returns
    scene.step(draw)                    draw: random.Random of this step alone. Returns the kills, by kind
    scene.close()                       nothing is left, or it raises Finding
"""

import collections
import os
import shutil
import signal
import subprocess
import threading
import time

from board import (CHECK, CHECKED, DOOMED, ENDS, ENDS_BADLY, ENDS_SOON, GONE, BEATS, ITS_LIFE, LET_GO, LIFE,
                   PAUSE, PAUSED, Board, Finding, Surroundings, below, count_fds, is_stopped, processes, words_of)

PTAG, COOKIE = 100, 77
NOBODY = 65534
NAME = "kills"


def draw_way(draw, ways=("KILL", "KILL", "KILL", "STOP", "TERM")):
    return draw.choice(ways)


def kill(pid, way, waits):
    """STOP: it is stopped for a while, so that others meet it like that, and killed then."""
    try:
        if way == "STOP":
            os.kill(pid, signal.SIGSTOP)
            waits.until("is stopped", lambda: is_stopped(pid))
        os.kill(pid, signal.SIGTERM if way == "TERM" else signal.SIGKILL)
    except ProcessLookupError:
        pass                            # it was faster


def let_pass(seconds):
    """Not a wait: the moment of a kill is drawn."""
    time.sleep(seconds)


class Log:
    """What a process says, kept for the case of a finding."""

    def __init__(self, stream, said):
        self.said = said
        self.thread = threading.Thread(target=self.read, args=[stream], daemon=True)
        self.thread.start()

    def read(self, stream):
        for line in stream:
            self.said.append(line.rstrip("\n"))


class Scene:
    def __init__(self, context):
        self.context = context
        self.waits = context.waits
        self.said = collections.deque(maxlen=200)
        self.surroundings = Surroundings(context.folders)
        self.children = []

    def start(self, argv, environment=None, **options):
        process = subprocess.Popen(list(map(str, argv)), env=environment or self.context.environment,
                                   stdin=options.pop("stdin", subprocess.DEVNULL), stderr=subprocess.PIPE, text=True,
                                   errors="replace", **{"stdout": subprocess.DEVNULL, **options})
        self.children.append(process)
        return process

    def start_member(self, argv, job, user=None, **options):
        """A process of the domain, of `user` if that is given."""
        if user is not None:
            argv = ["setpriv", "--reuid", user, "--regid", user, "--clear-groups", *argv]
        job = {"EMUNIC_SERVER": NAME, "EMUNIC_COOKIE": str(COOKIE), "EMUNIC_PTAG": str(PTAG), **job}
        process = self.start(argv, self.context.environment | job, **options)
        Log(process.stderr, self.said)
        return process

    def reap(self, process, what):
        self.waits.until(what, lambda: process.poll() is not None)
        if process in self.children:
            self.children.remove(process)
        return process.returncode

    def abandon(self):
        for process in self.children:
            if process.poll() is None:
                process.kill()
            process.wait()


class Server:
    """`emunic serve`, until it is killed."""

    def __init__(self, scene, options=(), name=NAME, settings=None):
        self.scene = scene
        self.process = scene.start([scene.context.emunic, "serve", "--name", name, "--machine", "aries:groups=2",
                                    *options], scene.context.environment | (settings or {}))
        self.pid = self.process.pid
        line = ""
        while "is ready" not in line:
            line = self.process.stderr.readline()
            if not line:
                raise Finding(f"emunic serve does not start: {list(scene.said)[-5:]}")
            scene.said.append(line.rstrip("\n"))
        Log(self.process.stderr, scene.said)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        if self.scene.reap(self.process, "emunic serve ends") != 0:
            raise Finding(f"emunic serve ends with {self.process.returncode}")


class AtServer(Scene):
    """Processes at one `emunic serve`."""

    def __init__(self, context):
        super().__init__(context)
        self.fds = None

    def serve(self, n_nodes, user=None, options=(), settings=None):
        own = f":{user}" if user is not None else ""
        self.server = Server(self, ["--nodes", n_nodes, "--domain", f"{PTAG}:{COOKIE}{own}", *options],
                             settings=settings)

    def movers(self):
        """Their end is the end of the user's ports (emunic/daemon/movers/README.md)."""
        movers = [pid for pid, name in below(self.server.pid).items() if name == "emunic-mover"]
        if not movers:
            raise Finding("emunic has no mover")
        return movers

    def expect_no_growth(self):
        """A standing emunic keeps nothing of the dead."""
        if self.fds is None:
            self.fds = count_fds(self.server.pid)
        self.waits.until("descriptors are as before", lambda: count_fds(self.server.pid) <= self.fds,
                         lambda: f"but {count_fds(self.server.pid)} instead of {self.fds}")


class Workers(AtServer):
    """Programs without a launcher at one `emunic serve`, each step another life of one of them."""

    # Block transfers of the longest slot are then large ones, which emunic and the worker move together by slices.
    SHARED = {"EMUNIC_DIRECT_LIMIT": "20000", "EMUNIC_SLICE": "4096"}

    def __init__(self, context, program, n_ranks=6, n_nodes=4, routed=False, cma=False, user=None, shared=False):
        super().__init__(context)
        self.settings = self.SHARED if shared else {}
        self.program, self.n_ranks, self.n_nodes = program, n_ranks, n_nodes
        self.routed, self.cma, self.user = routed, cma, user
        self.board = Board(context.folder / f"board.{program}", n_ranks)
        self.processes = {}
        self.lives = {}
        self.dead = set()
        self.n_pauses = 0
        self.open()

    def open(self):
        self.serve(self.n_nodes, self.user, ["--datapath", "routed"] if self.routed else [],
                   self.settings)
        self.board.clear()
        self.begin_all()

    def begin_all(self):
        for rank in range(self.n_ranks):
            self.begin(rank)
        self.meet()

    def begin(self, rank, through_rank=False):
        self.context.n_lives += 1
        self.dead.discard(rank)
        self.lives[rank] = self.context.n_lives
        nid = rank * self.n_nodes // self.n_ranks
        job = {"PMI_GNI_COOKIE": str(COOKIE), "PMI_GNI_PTAG": str(PTAG), "EMUNIC_NID": str(nid),
               "EMUNIC_MEMORY": "cma" if self.cma else "auto", **self.settings}
        argv = [self.context.programs[self.program], self.board.path, rank, self.lives[rank], self.context.seed]
        if through_rank:
            argv = [self.context.emunic_rank, *argv]
            job["PMIX_RANK"] = str(nid)
        self.processes[rank] = self.start_member(argv, job, self.user)

    # ---- events ----

    def others(self, dead=()):
        return [rank for rank in range(self.n_ranks) if rank not in dead and rank not in self.dead]

    def have_met(self, alive):
        self.expect_alive(alive)
        return all(self.board.of(i, LIFE) == self.lives[i] and
                   self.board.towards(i, j, ITS_LIFE) == self.lives[j] for i in alive for j in alive)

    def expect_alive(self, ranks):
        for rank in ranks:
            if self.processes[rank].poll() is not None:
                raise Finding(f"worker {rank} ends with {self.processes[rank].returncode}")
        if self.server.process.poll() is not None:
            raise Finding(f"emunic ends with {self.server.process.returncode}")
        self.expect_no_finding()

    def expect_no_finding(self):
        if self.board.findings():
            raise Finding("a worker says that something is wrong")

    def meet(self, alive=None):
        alive = self.others() if alive is None else alive
        self.waits.until("workers meet", lambda: self.have_met(alive), lambda: self.tell(alive))

    def tell(self, alive):
        """For a finding: who waits for whom."""
        lines = [f"worker {i} life {self.lives[i]} beats {self.board.of(i, BEATS)} paused {self.board.of(i, PAUSED)}: " +
                 " ".join(f"{j}:{self.board.towards(i, j, ITS_LIFE)}/{self.board.towards(i, j, LET_GO)}"
                          for j in range(self.n_ranks)) for i in alive]
        return "\n  " + "\n  ".join(lines)

    def work_on(self, rank, beats):
        """Waits until a worker has done so many operations more."""
        goal = self.board.of(rank, BEATS) + beats
        alive = self.others()
        self.waits.until("works", lambda: (self.expect_alive(alive), self.board.of(rank, BEATS) >= goal)[1],
                         lambda: self.tell(alive))

    def check(self, alive, ends=0):
        """All of them hold still, and compare everything. ends: then they leave, with nothing under way to each other."""
        self.n_pauses += 1
        n, words = self.n_pauses, self.board.words
        words[PAUSE] = n
        for word, what in [(PAUSED, "workers hold still"), (CHECKED, "workers have compared")]:
            self.waits.until(what, lambda word=word: (self.expect_alive(alive),
                                                      all(self.board.of(i, word) == n for i in alive))[1],
                             lambda: self.tell(alive))
            words[CHECK] = n
        if ends:
            words[ENDS] = ends
        words[CHECK] = words[PAUSE] = 0
        self.expect_no_finding()
        self.context.n_checked += len(alive)

    # ---- kills ----

    def step(self, draw):
        if self.fds is None:
            self.check(self.others())
            self.expect_no_growth()
        what = draw.random()
        if what < 0.04:
            return self.kill_server(draw)
        if what < 0.2 and self.user is not None:
            return self.kill_movers(draw)
        victims = draw.sample(range(self.n_ranks), 2 if draw.random() < 0.15 else 1)
        kinds = []
        for victim in victims:
            if draw.random() < 0.2:
                kinds.append(self.kill_starting(victim, draw))
            else:
                kinds.append(self.kill_working(victim, draw))
        alive = self.others(victims)
        self.check(alive)
        for victim in victims:
            self.begin(victim)
        self.meet()
        self.expect_no_growth()
        return kinds

    def kill_working(self, victim, draw):
        self.work_on(victim, draw.randrange(200))
        way = draw_way(draw)
        self.end_worker(victim, way)
        return f"worker {self.program} {way}"

    def end_worker(self, victim, way):
        process, life = self.processes[victim], self.lives[victim]
        self.said.append(f"worker {victim}, life {life}: {way}")
        self.board.words[DOOMED + victim] = life
        kill(process.pid, way, self.waits)
        self.reap(process, "killed worker ends")
        self.board.forget(victim)
        self.board.words[GONE + victim] = life
        self.dead.add(victim)

    def kill_starting(self, victim, draw):
        """Its next life ends while it begins, also in emunic-rank."""
        through_rank = draw.random() < 0.5
        self.end_worker(victim, "KILL")
        if self.program == "portals":
            self.let_go(victim)
        self.begin(victim, through_rank)
        let_pass(draw.random() * 0.03)
        way = draw_way(draw)
        self.end_worker(victim, way)
        return f"{'emunic-rank' if through_rank else 'starting'} {self.program} {way}"

    def let_go(self, victim):
        """Portals knows a process by its numbers alone: what is under way to one life would reach the next."""
        life, others = self.lives[victim], self.others()
        self.waits.until("the others let go",
                         lambda: (self.expect_alive(others),
                                  all(self.board.towards(i, victim, ITS_LIFE) != life or
                                      self.board.towards(i, victim, LET_GO) >= life for i in others))[1],
                         lambda: self.tell(others))

    def end_all(self):
        """They notice by themselves that nothing goes on, and leave."""
        for rank, process in self.processes.items():
            self.waits.until("workers without emunic leave", lambda process=process: process.poll() is not None,
                             lambda: self.tell([i for i, p in self.processes.items() if p.poll() is None]))
            status = self.reap(process, "workers without emunic leave")
            if status not in (0, -signal.SIGKILL):
                raise Finding(f"worker {rank} ends with {status}")
        self.expect_no_finding()
        self.context.n_checked += self.n_ranks

    def kill_server(self, draw):
        self.work_on(draw.randrange(self.n_ranks), draw.randrange(200))
        way = draw_way(draw)
        self.board.words[ENDS] = ENDS_BADLY
        kill(self.server.pid, way, self.waits)
        self.reap(self.server.process, "killed emunic ends")
        self.end_all()
        self.fds = None
        self.open()
        return [f"emunic {way}"]

    def kill_movers(self, draw):
        movers = self.movers()
        self.work_on(draw.randrange(self.n_ranks), draw.randrange(200))
        way = draw_way(draw, ("KILL", "STOP", "TERM"))
        self.board.words[ENDS] = ENDS_BADLY
        for pid in movers:
            kill(pid, way, self.waits)
        self.end_all()
        self.board.clear()
        self.begin_all()
        self.check(self.others())
        self.expect_no_growth()
        return [f"mover {way}"]

    def close(self):
        self.check(self.others(), ENDS_SOON)
        for process in self.processes.values():
            if self.reap(process, "workers leave") != 0:
                raise Finding(f"a worker leaves with {process.returncode}")
        self.server.end()
        self.context.n_bytes += self.board.bytes_checked()
        self.board.close()
        self.surroundings.expect_nothing_left(self.waits)


class Queues(Workers):
    """Shared message queues: all instances begin anew for each step."""

    def __init__(self, context, routed=False, user=None):
        super().__init__(context, "msgq", n_ranks=4, n_nodes=2, routed=routed, user=user)

    def step(self, draw):
        if self.fds is None:
            self.expect_no_growth()
        what = draw.random()
        if what < 0.15:
            return self.kill_server(draw)
        if what < 0.35 and self.user is not None:
            return self.kill_movers(draw)
        victim = draw.randrange(self.n_ranks)
        if what > 0.8:
            self.leave(self.others())
            kinds = self.kill_all_starting(victim, draw)
        else:
            kinds = [self.kill_working(victim, draw)]
            alive = self.others()
            self.check(alive)
            self.work_on_among(alive)
            self.leave(alive)
        self.board.clear()
        self.begin_all()
        self.expect_no_growth()
        return kinds

    def leave(self, alive):
        self.check(alive, ENDS_SOON)    # else one could leave while another's message is under way to it
        for rank in alive:
            if self.reap(self.processes[rank], "workers leave") != 0:
                raise Finding(f"worker {rank} leaves with {self.processes[rank].returncode}")

    def kill_all_starting(self, victim, draw):
        """One of a node may be missing while the others wait for it."""
        self.board.clear()
        through_rank = draw.random() < 0.5
        way = draw_way(draw)
        for rank in range(self.n_ranks):
            self.begin(rank, through_rank)
        let_pass(draw.random() * 0.03)
        self.board.words[ENDS] = ENDS_BADLY
        self.end_worker(victim, way)
        let_pass(draw.random() * 0.01)
        for rank in self.others():
            self.end_worker(rank, "KILL")
        return [f"{'emunic-rank' if through_rank else 'starting'} {self.program} {way}"]

    def work_on_among(self, alive):
        goal = self.board.beats() + 50
        self.waits.until("works", lambda: (self.expect_alive(alive), self.board.beats() >= goal)[1],
                         lambda: self.tell(alive))


class Reductions(AtServer):
    """A reduction tree over four processes (tests/multihost/reducer.c)."""

    N = 4

    def __init__(self, context, user=None):
        super().__init__(context)
        self.user = user
        self.folder = context.folder / "ce"
        self.folder.mkdir()
        os.chmod(self.folder, 0o777)
        self.members = {}
        self.lines = {}
        self.open()

    def open(self):
        self.serve(self.N, self.user)
        self.begin_all()

    def begin_all(self):
        for rank in range(self.N):
            self.begin(rank)
            self.expect(rank, "ready")
        self.reduce()

    def begin(self, rank):
        member = self.start_member([self.context.emunic_rank, self.context.programs["reducer"], self.folder],
                                   {"PMIX_RANK": str(rank)}, self.user, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.members[rank] = member
        self.lines[rank] = collections.deque()
        Log(member.stdout, self.lines[rank])

    def tell(self, rank, line):
        self.members[rank].stdin.write(line + "\n")
        self.members[rank].stdin.flush()

    def next(self, rank, what):
        self.waits.until(what, lambda: self.lines[rank], lambda: f"of {rank}")
        return self.lines[rank].popleft()

    def expect(self, rank, wanted, passing="at "):
        line = self.next(rank, wanted.partition(" ")[0])
        while line.startswith(passing):
            line = self.next(rank, wanted.partition(" ")[0])
        if not line.startswith(wanted):
            raise Finding(f"reducer {rank} says '{line}', not '{wanted}'")

    def reduce(self):
        for rank in range(self.N):
            self.tell(rank, "join " + " ".join(map(str, range(self.N))))
        for rank in range(self.N):
            self.expect(rank, "joined")
        for rank in range(self.N):
            self.tell(rank, "reduce 20")
        for rank in range(self.N):
            self.expect(rank, "reduced 20")

    def step(self, draw):
        self.expect_no_growth()
        victim = draw.randrange(self.N)
        way = draw_way(draw)
        for rank in range(self.N):
            self.tell(rank, "reduce 100000000")
        for _ in range(draw.randrange(1, 5)):
            self.next((victim + 1) % self.N, "reduces")
        let_pass(draw.random() * 0.002)
        what = draw.random()
        if what < 0.15:
            return self.kill_server(way)
        if what < 0.35 and self.user is not None:
            return self.kill_movers(way)
        kill(self.members[victim].pid, way, self.waits)
        self.reap(self.members[victim], "killed worker ends")
        for rank in range(self.N):
            if rank != victim:
                self.expect(rank, "failed")
        kinds = [f"reducer {way}"]
        if draw.random() < 0.2:
            kinds.append(self.kill_starting(victim, draw))
        self.begin(victim)
        self.expect(victim, "ready")
        self.reduce()
        self.context.n_checked += self.N
        self.expect_no_growth()
        return kinds

    def kill_starting(self, victim, draw):
        """Its next life ends while it begins, also in emunic-rank."""
        self.begin(victim)
        let_pass(draw.random() * 0.03)
        way = draw_way(draw)
        kill(self.members[victim].pid, way, self.waits)
        self.reap(self.members[victim], "killed worker ends")
        return f"starting reducer {way}"

    def end_all(self):
        """Nothing goes on for them: they are killed by their library, or say that it failed."""
        for rank, member in self.members.items():
            self.waits.until("workers without emunic leave", lambda rank=rank: self.has_failed(rank),
                             lambda rank=rank: f"of {rank}")
            member.stdin.close()
            self.reap(member, "workers without emunic leave")
        self.context.n_checked += self.N

    def has_failed(self, rank):
        if any(line.startswith(("wrong", "reduced")) for line in self.lines[rank]):
            raise Finding(f"reducer {rank} says {self.lines[rank]}")
        return self.members[rank].poll() is not None or any(line.startswith("failed") for line in self.lines[rank])

    def kill_server(self, way):
        kill(self.server.pid, way, self.waits)
        self.reap(self.server.process, "killed emunic ends")
        self.end_all()
        self.fds = None
        self.open()
        return [f"emunic {way}"]

    def kill_movers(self, way):
        for pid in self.movers():
            kill(pid, way, self.waits)
        self.end_all()
        self.begin_all()
        self.expect_no_growth()
        return [f"mover {way}"]

    def close(self):
        for member in self.members.values():
            member.stdin.close()
            if self.reap(member, "workers leave") != 0:
                raise Finding(f"a reducer leaves with {member.returncode}")
        self.server.end()
        shutil.rmtree(self.folder)
        self.surroundings.expect_nothing_left(self.waits)


class Jobs(Workers):
    """Jobs of `emunic run`, of their own or at a server, beside workers in another domain of that server, who must not
    notice anything. All of a job has to end, whatever of it is killed."""

    def __init__(self, context):
        super().__init__(context, "gni", n_ranks=3, n_nodes=3)
        self.job_board = Board(context.folder / "board.job", 4)

    def command(self, draw, at_server):
        program = draw.choice(["gni", "portals", "dmapp"])
        argv = [self.context.emunic, "run", "-q", "-n", 4, "--ppn", draw.choice([1, 2])]
        argv += ["--server", NAME, "--first-nid", 8] if at_server else []
        argv += draw.choice([[], ["--datapath", "routed"]])
        if program == "dmapp":
            return program, argv + ["--", self.context.programs["dmapp"], 600]
        script = 'exec "$0" "$1" $EMUNIC_RANK $((EMUNIC_RANK + $2)) "$3"'
        self.context.n_lives += 4
        return program, argv + ["--", "sh", "-c", script, self.context.programs[program], self.job_board.path,
                                self.context.n_lives - 3, self.context.seed]

    def is_up(self, job, program):
        names = list(below(job.pid).values())
        if job.poll() is not None:
            return False
        if program == "dmapp":
            return names.count("soak-dmapp") == 4
        return all(self.job_board.of(rank, BEATS) > 20 for rank in range(4))

    @staticmethod
    def victims(job, program, what):
        parts = below(job.pid)
        wanted = {"rank": {"soak-dmapp", "kills-gni", "kills-portals"}, "mpirun": {"mpirun"},
                  "emunic-rank": {"emunic-rank"}}
        if what == "run":
            return [job.pid]
        if what == "any":
            return list(parts)
        found = [pid for pid, name in parts.items() if name in wanted.get(what, ())]
        if what in ("keeper", "emunic"):
            children = [pid for pid, (parent, name) in processes().items()
                        if parent == job.pid and name not in ("mpirun", "sh")]
            found = [pid for pid in children if ("keeper" in words_of(pid)) == (what == "keeper")]
        return found

    def step(self, draw):
        at_server = draw.random() < 0.5
        self.job_board.clear()
        program, argv = self.command(draw, at_server)
        what = draw.choice(["run", "mpirun", "rank", "rank", "keeper", "any", "any early", "any early", "run mpirun"] +
                           ([] if at_server else ["emunic", "emunic", "run emunic"]))
        surroundings = Surroundings(self.context.folders)
        if self.fds is None:
            self.check(self.others())
            self.expect_no_growth()
        job = self.start(argv)
        Log(job.stderr, self.said)
        if what.endswith("early"):
            let_pass(draw.random() * 0.5)
        else:
            self.waits.until("the job is up", lambda: self.is_up(job, program) or job.poll() is not None)
            if job.poll() is not None:
                raise Finding(f"the job ends with {job.returncode} before anything is killed")
            let_pass(draw.random() * 0.02)
        way = draw_way(draw, ("KILL", "KILL", "STOP"))
        self.job_board.words[ENDS] = ENDS_BADLY
        pids = [self.pick(self.victims(job, program, word), draw) for word in what.removesuffix(" early").split()]
        said = [words_of(pid) for pid in pids if pid]
        self.said.append(f"killed by {way}: {said}")
        for pid in pids:
            if pid:
                kill(pid, way, self.waits)
        self.end_if_it_goes_on(job, program, what, any("keeper" in words for words in said))
        status = self.end_of(job, program, what)
        surroundings.expect_nothing_left(self.waits)
        self.check(self.others())
        self.expect_no_growth()
        if status == 0:
            raise Finding(f"status 0 though {what} was killed")
        return [f"job: {what} {way}"]

    def end_if_it_goes_on(self, job, program, what, is_keeper):
        """Without its keeper a job goes on, and is told to end. Early nobody can say which process that is."""
        if what == "any early":
            self.waits.until(f"a job of which was killed: {what}, ends or comes up",
                             lambda: job.poll() is not None or self.is_up(job, program),
                             lambda: f"{program} " + str({pid: words_of(pid)[:150] for pid in below(job.pid)}))
        if (is_keeper or what == "any early") and job.poll() is None:
            job.terminate()

    def end_of(self, job, program, what):
        status = self.reap(job, f"a job of which was killed: {what}")
        if program != "dmapp" and self.job_board.findings():
            raise Finding("a rank says that something is wrong")
        return status

    @staticmethod
    def pick(pids, draw):
        return draw.choice(sorted(pids)) if pids else None

    def close(self):
        self.job_board.close()
        super().close()
