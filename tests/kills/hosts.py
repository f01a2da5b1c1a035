# SPDX-License-Identifier: BSD-3-Clause
"""Scenes on several hosts, each in namespaces of its own (tests/multihost/cluster.py)."""

import json
import os
import shutil
import signal
import subprocess
import time

from board import BEATS, DOOMED, ENDS, ENDS_BADLY, ENDS_SOON, GONE, Board, Finding, below, words_of
from cluster import FOLDER, Cluster, address
from scenes import COOKIE, NAME, PTAG, Log, Scene, Workers, draw_way, kill, let_pass

PEER_TIMEOUT = 2


def lines_of(scene, process):
    Log(process.stderr, scene.said)
    return process


class OnHosts:
    """A cluster, and processes on it."""

    def boot(self, n_hosts):
        self.cluster = Cluster(n_hosts, self.context.environment)
        self.cluster.__enter__()

    def start_on(self, host, argv, environment=None, **options):
        process = self.cluster.start(host, argv, env=self.cluster.environment | (environment or {}),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     text=True, errors="replace", **options)
        self.children.append(process)
        return process

    @staticmethod
    def inner(process):
        """Our own child is nsenter; its child is the process of the host."""
        found = [pid for pid in below(process.pid) if pid != process.pid]
        return min(found) if found else process.pid

    def kill_inner(self, process, way):
        """nsenter stops with its child, so it has to go on when the child has been killed."""
        kill(self.inner(process), way, self.waits)
        self.go_on(process)

    @staticmethod
    def go_on(process):
        try:
            os.kill(process.pid, signal.SIGCONT)
        except ProcessLookupError:
            pass

    def reap(self, process, what):
        """nsenter may stop itself only after it was told to go on."""
        def has_ended():
            if process.poll() is None:
                self.go_on(process)
            return process.poll() is not None
        self.waits.until(what, has_ended)
        return super().reap(process, what)

    def halt(self):
        """An nsenter that mpirun has left stopped keeps its dead child, and with it the host's namespace, for ever."""
        for pid in below(os.getpid()):
            try:
                os.kill(pid, signal.SIGCONT)
            except ProcessLookupError:
                pass
        self.cluster.__exit__()

    def expect_hosts_clean(self):
        def left():
            return [f"h{host}: {what}" for host in self.cluster.inits for what in self.cluster.leftovers(host)]
        self.waits.until("nothing is left on hosts", lambda: not left(), lambda: "but " + "; ".join(left())[:2000])


class Hosts(OnHosts, Workers):
    """A machine of three hosts, an emunic and a worker on each. A worker, an emunic or a whole host is killed."""

    N = 3

    def __init__(self, context, program="gni"):
        self.servers = {}
        Scene.__init__(self, context)
        self.program, self.n_ranks = program, self.N
        self.processes, self.lives, self.dead, self.fds, self.n_pauses = {}, {}, set(), None, 0
        self.board = Board(context.folder / "board.hosts", self.N)
        self.hosts_file = FOLDER / "hosts.kills"
        self.hosts_file.write_text("".join(f"h{host} {address(host)} 1\n" for host in range(self.N)))
        self.key = FOLDER / "key.kills"
        with open(os.open(self.key, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(b"a key of all hosts of the machine")
        self.boot(self.N)
        self.open()

    def open(self):
        self.board.clear()
        for host in range(self.N):
            self.serve(host)
        self.begin_all()

    def serve(self, host):
        domain = ["--domain", f"{PTAG}:{COOKIE}"] if host == 0 else []
        process = self.start_on(host, [self.context.emunic, "serve", "--name", NAME, "--hosts", self.hosts_file,
                                       "--host", f"h{host}", "--key-file", self.key, "--peer-timeout", PEER_TIMEOUT,
                                       *domain])
        for line in process.stderr:
            self.said.append(line.rstrip("\n"))
            if "is ready" in line:
                break
        else:
            raise Finding(f"emunic on host {host} does not start")
        Log(process.stderr, self.said)
        self.servers[host] = process

    def begin(self, rank, through_rank=True):
        self.context.n_lives += 1
        self.dead.discard(rank)
        self.lives[rank] = self.context.n_lives
        self.waits.until("a host joins", self.all_are_up)
        job = {"EMUNIC_SERVER": NAME, "EMUNIC_COOKIE": str(COOKIE), "EMUNIC_PTAG": str(PTAG), "PMIX_RANK": str(rank)}
        self.processes[rank] = lines_of(self, self.start_on(
            rank, [self.context.emunic_rank, self.context.programs[self.program], self.board.path, rank,
                   self.lives[rank], self.context.seed], job))

    def all_are_up(self):
        """Each host knows of all others: until then its own operations to one that comes back fail."""
        return all(self.knows_domain(host) for host, server in self.servers.items() if server.poll() is None)

    def knows_domain(self, host):
        """All hosts are up for it, so it has the domain."""
        done = self.cluster.run(host, [self.context.emunic, "status", "--json", "--server", NAME],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode:
            return False
        server = json.loads(done.stdout)["servers"][0]
        return all(peer["state"] != "down" for peer in server["hosts"]) and bool(server["domains"])

    def expect_alive(self, ranks):
        for rank in ranks:
            if self.processes[rank].poll() is not None:
                raise Finding(f"worker {rank} ends with {self.processes[rank].returncode}")
        for host, server in self.servers.items():
            if server.poll() is not None:
                raise Finding(f"emunic on host {host} ends with {server.returncode}")
        self.expect_no_finding()

    def step(self, draw):
        what = draw.choice(["worker", "worker", "emunic", "host", "head"])
        if what == "head":
            return self.kill_head(draw)
        host = draw.randrange(0 if what == "worker" else 1, self.N)
        self.work_on(host, draw.randrange(200))
        way = draw_way(draw) if what != "host" else "off"
        self.board.words[DOOMED + host] = self.lives[host]
        if what == "worker":
            self.kill_inner(self.processes[host], way)
        else:
            self.end_server(host, what, way)
        status = self.reap(self.processes[host], f"worker leaves whose {what} was killed")
        self.board.forget(host)
        self.board.words[GONE + host] = self.lives[host]
        self.dead.add(host)
        alive = self.others()
        self.check(alive)
        if what == "host":
            self.cluster.boot(host)
        if what != "worker":
            self.serve(host)
        self.begin(host)
        self.meet()
        return [f"hosts: {what} {self.program} {way}"]

    def end_server(self, host, what, way):
        server = self.servers.pop(host)
        if what == "host":
            self.cluster.kill(host)
        else:
            self.kill_inner(server, way)
        self.reap(server, "killed emunic ends")

    def kill_head(self, draw):
        """Everything fails, and begins anew."""
        way = draw_way(draw)
        self.work_on(0, draw.randrange(200))
        self.board.words[ENDS] = ENDS_BADLY
        self.end_server(0, "emunic", way)
        for host in list(self.servers):
            self.end_server(host, "emunic", way)
        for rank, process in self.processes.items():
            self.reap(process, "workers without emunic leave")
        self.expect_no_finding()
        self.context.n_checked += self.N
        self.expect_hosts_clean()
        self.open()
        return [f"hosts: all emunics {way}"]

    def close(self):
        self.check(self.others(), ENDS_SOON)
        for process in self.processes.values():
            if self.reap(process, "workers leave") != 0:
                raise Finding(f"a worker leaves with {process.returncode}")
        for host in list(self.servers):
            self.end_server(host, "emunic", "TERM")
        self.expect_hosts_clean()
        self.halt()
        self.context.n_bytes += self.board.bytes_checked()
        self.board.close()
        self.surroundings.expect_nothing_left(self.waits)

    def abandon(self):
        super().abandon()
        self.halt()


ALONE_S = 3

# A job may go on without them: whatever mpirun's daemon on the other host was started through, once it is there.
DISPENSABLE = ("emunic-agent", "keeper", "none", "python3", "sh")


class HostJobs(OnHosts, Scene):
    """Jobs of `emunic run --hosts`, by itself or as a program of mpirun. Whatever of a job is killed, all of it ends."""

    N = 2

    def __init__(self, context, program="gni"):
        super().__init__(context)
        self.program = program
        self.board = Board(context.folder / "board.job", 4)
        self.boot(self.N)

    def command(self, draw):
        self.context.n_lives += 4
        script = 'exec "$0" "$1" $EMUNIC_RANK $((EMUNIC_RANK + $2)) "$3"'
        program = ["sh", "-c", script, self.context.programs[self.program], self.board.path, self.context.n_lives - 3,
                   self.context.seed]
        if self.program == "dmapp":
            program = [self.context.programs["dmapp"], 600]
        rest = ["-n", 4, "--peer-timeout", PEER_TIMEOUT, "--", *program]
        if draw.random() < 0.3:
            return ["mpirun", "--host", "h0:1,h1:1", "-np", 2, self.context.emunic, "run", "-q", "--hosts", "mpirun", *rest]
        return [self.context.emunic, "run", "-q", "--hosts", "h0,h1", *rest]

    def processes(self):
        """By name, on all hosts."""
        found = {}
        for host in self.cluster.inits:
            for what in self.cluster.leftovers(host):
                if what.startswith("process "):
                    _, pid, words = what.split(" ", 2)
                    name = os.path.basename(words.split()[0]) if words.split() else ""
                    if "keeper" in words[:20]:
                        name = "keeper"
                    elif name == "emunic" and "run" in words.split()[1:2]:
                        name = "run"
                    found.setdefault(name, []).append(int(pid))
        return found

    def is_up(self, job):
        if self.program == "dmapp" and job.poll() is None:
            return len(self.processes().get("soak-dmapp", [])) == 4
        return all(self.board.of(rank, BEATS) > 20 for rank in range(4)) or job.poll() is not None

    def step(self, draw):
        self.board.clear()
        job = lines_of(self, self.start_on(0, self.command(draw)))
        is_early = draw.random() < 0.4
        if is_early:
            let_pass(draw.random() * 1.5)
        else:
            self.waits.until("the job is up", lambda: self.is_up(job))
            if job.poll() is not None:
                raise Finding(f"the job ends with {job.returncode} before anything is killed")
        self.board.words[ENDS] = ENDS_BADLY
        what, way = self.kill_one(draw)
        self.go_on(job)
        self.waits.until("a job on hosts ends or goes on", lambda: self.is_up(job) or what == "host 1",
                         lambda: f"{what}: {self.processes()}")
        if job.poll() is None and (is_early or what in DISPENSABLE):
            pids = self.processes()
            for pid in pids.get("run", []) + pids.get("mpirun", []):
                kill(pid, "TERM", self.waits)
        if what == "host 1":
            self.end_outer_mpirun(job)
        status = self.reap(job, f"a job on hosts of which was killed: {what}")
        if what == "host 1":
            self.cluster.boot(1)
        self.waits.until("nothing is left on hosts", lambda: not self.left(),
                         lambda: "but " + "; ".join(self.left())[:2000])
        if self.board.findings():
            raise Finding("a rank says that something is wrong")
        if status == 0 and what not in DISPENSABLE:
            raise Finding(f"status 0 though {what} was killed")
        return [f"host job: {what} {way}"]

    def end_outer_mpirun(self, job):
        """The mpirun around `emunic run` is the user's own. Open MPI's may wait for ever for a daemon whose host went while
        it was started, when all of ours has ended."""
        alone_since = None

        def is_over():
            nonlocal alone_since
            if job.poll() is not None:
                return True
            left = self.left()
            if len(left) != 1 or " mpirun --host " not in left[0]:
                alone_since = None
                return False
            alone_since = alone_since or time.monotonic()
            return time.monotonic() - alone_since > ALONE_S

        self.waits.until("a job on hosts of which was killed: host 1", is_over,
                         lambda: "but " + "; ".join(self.left())[:2000])
        if job.poll() is None:
            for pid in self.processes().get("mpirun", []):
                kill(pid, "KILL", self.waits)

    def left(self):
        return [f"h{host}: {what}" for host in self.cluster.inits for what in self.cluster.leftovers(host)]

    def kill_one(self, draw):
        if draw.random() < 0.2:
            self.cluster.kill(1)
            return "host 1", "off"
        found = self.processes()
        names = sorted(found)
        if not names:
            return "none", "-"
        name = draw.choice(names)
        way = draw_way(draw, ("KILL", "KILL", "STOP"))
        victim = draw.choice(sorted(found[name]))
        self.said.append(f"{way} to {victim}: {words_of(victim)}")
        kill(victim, way, self.waits)
        return name, way

    def close(self):
        self.halt()
        self.halt = lambda: None
        self.forget_outer_folders()
        self.board.close()
        self.surroundings.expect_nothing_left(self.waits)

    def forget_outer_folders(self):
        """Of the mpirun around `emunic run`, the user's own, which may crash in its PMIx_Finalize() after a SIGTERM."""
        for folder in (self.context.folder.parent / "tmp").glob("ompi.*"):
            shutil.rmtree(folder)

    def abandon(self):
        super().abandon()
        self.halt()
