#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What breaks between hosts, and what goes on: emunics that are started by hand, `emunic serve --hosts`, and a process
on each host, of which the first moves data to the others and checks it, or all reduce.
`test_faults.py EMUNIC EMUNIC-RANK MOVER REDUCER`"""

import json
import os
import pathlib
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

from cluster import FOLDER, address
from testing import PATIENCE, choose, enter, run_tests, wait_until

PTAG, COOKIE = 100, 77
NAME = "machine"
emunic, emunic_rank, mover, reducer = sys.argv[1:5]


class Process:
    """Of one host; what it says is kept line by line."""

    def __init__(self, cluster, host, argv, stream, **options):
        self.process = cluster.start(host, argv, stdin=subprocess.PIPE, text=True, bufsize=1,
                                     **{stream: subprocess.PIPE}, **options)
        self.lines = queue.Queue()
        self.said = []
        source = getattr(self.process, stream)
        self.reader = threading.Thread(target=self.read, args=[source], daemon=True)
        self.reader.start()

    def read(self, source):
        for line in source:
            self.lines.put(line.rstrip("\n"))

    def tell(self, line):
        self.process.stdin.write(line + "\n")

    def wait_for(self, pattern, seconds=PATIENCE):
        """The first line from here on that matches, after all those before it."""
        end = time.monotonic() + seconds
        while True:
            try:
                line = self.lines.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                raise AssertionError(f"no '{pattern}' within {seconds} s, but {self.said[-5:]}") from None
            self.said.append(line)
            if re.search(pattern, line):
                return line

    def ask(self, line, seconds=PATIENCE):
        """The answer, without what tells of progress."""
        self.tell(line)
        return self.wait_for("^(found|moved|failed|wrong)", seconds)

    def end(self):
        try:
            self.process.stdin.close()
            self.process.wait(PATIENCE)
        except (OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


class Machine:
    """An emunic and a process per host."""

    def __init__(self, cluster, n_hosts, options=()):
        self.cluster = cluster
        self.n_hosts = n_hosts
        self.options = options
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        self.write_key("key", b"a key of all hosts of the machine")
        (self.folder / "hosts").write_text("".join(f"h{host} {address(host)} 1\n" for host in range(n_hosts)))
        self.servers = {}
        self.targets = {}
        self.mover = None

    def write_key(self, name, key):
        with open(os.open(self.folder / name, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(key)

    def serve(self, host, key="key"):
        domain = ["--domain", f"{PTAG}:{COOKIE}"] if host == 0 else []
        machine = ["--hosts", self.folder / "hosts", "--host", f"h{host}", "--key-file", self.folder / key]
        command = [emunic, "serve", "--name", NAME, *machine, *self.options, *domain]
        self.servers[host] = Process(self.cluster, host, command, "stderr")
        self.servers[host].wait_for("is ready")

    def status(self, host=0):
        done = self.cluster.run(host, [emunic, "status", "--json", "--server", NAME], stdout=subprocess.PIPE,
                                check=True)
        return json.loads(done.stdout)["servers"][0]

    def fault(self, host, *words):
        """`emunic fault` on a host; what it says on stderr."""
        done = self.cluster.run(host, [emunic, "fault", "--server", NAME, *words], stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, done.stderr
        return done.stderr

    def broken(self, host):
        done = self.cluster.run(host, [emunic, "fault", "--server", NAME, "--json", "list"], stdout=subprocess.PIPE,
                                check=True)
        return json.loads(done.stdout)["servers"][0]["network"]["broken"]

    def states(self, host=0):
        return [peer["state"] for peer in self.status(host)["hosts"]]

    def wait_for_hosts(self, n_up, seconds=PATIENCE):
        assert wait_until(lambda: len(self.states()) - self.states().count("down") == n_up, seconds), self.states()

    def process(self, host, *program):
        job = {"EMUNIC_SERVER": NAME, "EMUNIC_COOKIE": str(COOKIE), "EMUNIC_PTAG": str(PTAG), "PMIX_RANK": str(host)}
        environment = self.cluster.environment | job
        command = [emunic_rank, program[0], self.folder, *program[1:]]
        return Process(self.cluster, host, command, "stdout", env=environment)

    def start_target(self, host):
        (self.folder / str(host)).unlink(missing_ok=True)
        self.targets[host] = self.process(host, mover, "target")
        assert wait_until(lambda: (self.folder / str(host)).exists()), f"target {host} does not come up"

    def start(self):
        for host in range(self.n_hosts):
            self.serve(host)
        self.wait_for_hosts(self.n_hosts)
        for host in range(1, self.n_hosts):
            self.start_target(host)
        self.mover = self.process(0, mover, "mover")
        self.mover.wait_for("ready")
        for host in range(1, self.n_hosts):
            assert self.mover.ask(f"find {host}") == f"found {host}"

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()             # nothing is left for the next test to trip over
            raise
        return self

    def __exit__(self, *_):
        for process in [self.mover, *self.targets.values()]:
            if process:
                process.end()
        for host in self.servers:
            self.signal(host, signal.SIGTERM)
        for server in self.servers.values():
            server.end()
        for host in range(self.n_hosts):
            self.cluster.link(host, is_up=True)

    def signal(self, host, number):
        """To the server; our own child is nsenter, which goes when the server has gone."""
        for what in self.cluster.leftovers(host):
            if what.startswith("process") and " serve " in what:
                os.kill(int(what.split()[1]), number)


class Reducers:
    """A process on each host of a machine, with an engine and a leaf in a reduction tree."""

    def __init__(self, machine):
        self.processes = [machine.process(host, reducer) for host in range(machine.n_hosts)]

    def __enter__(self):
        for process in self.processes:
            process.wait_for("^ready")
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.end()

    def ask(self, hosts, line, seconds=PATIENCE):
        """All answers: they wait for each other."""
        for host in hosts:
            self.processes[host].tell(line)
        return [self.processes[host].wait_for("^(joined|reduced|failed|wrong)", seconds) for host in hosts]

    def reduce(self, hosts):
        assert self.ask(hosts, "join " + " ".join(map(str, hosts))) == ["joined"] * len(hosts)
        assert self.ask(hosts, "reduce 50") == ["reduced 50"] * len(hosts)

    def break_by(self, fault, hosts):
        """Does it in the middle of reductions over all; those of `hosts` must hear of it."""
        self.reduce(range(len(self.processes)))
        for process in self.processes:
            process.tell("reduce 1000000")
        self.processes[0].wait_for("at 200")
        fault()
        for host in hosts:
            said = self.processes[host].wait_for("^(reduced|failed|wrong)")
            assert re.fullmatch("failed [0-9]+ 1", said), f"h{host}: {said}"


def test_all_hosts_are_one_machine(cluster):
    with Machine(cluster, 4) as machine:
        for host in [1, 2, 3]:
            assert machine.mover.ask(f"move {host} 20") == f"moved {host} 20"
        names = [peer["name"] for peer in machine.status()["hosts"]]
        assert names == ["h0", "h1", "h2", "h3"], names


def test_link_down_for_three_seconds_loses_nothing(cluster):
    with Machine(cluster, 3) as machine:
        machine.mover.tell("move 1 2000")
        machine.mover.wait_for("at 50")
        cluster.link(1, is_up=False)
        time.sleep(3)                   # the length of the cut
        cluster.link(1, is_up=True)
        assert machine.mover.wait_for("^(moved|failed|wrong)", 120) == "moved 1 2000"
        assert machine.mover.ask("move 2 20") == "moved 2 20", machine.mover.said


def test_link_that_stays_down_is_an_error_in_time_and_heals(cluster):
    with Machine(cluster, 3, ["--peer-timeout", "2"]) as machine:
        machine.mover.tell("move 1 100000")
        machine.mover.wait_for("at 50")
        cluster.link(1, is_up=False)
        assert machine.mover.wait_for("^(moved|failed|wrong)").startswith("failed 1 "), machine.mover.said
        assert machine.mover.ask("move 2 20") == "moved 2 20", machine.mover.said
        machine.wait_for_hosts(2)
        cluster.link(1, is_up=True)
        machine.wait_for_hosts(3, 60)


def test_killed_host_is_an_error_others_go_on_and_it_comes_back(cluster):
    with Machine(cluster, 3, ["--peer-timeout", "2"]) as machine:
        machine.mover.tell("move 1 100000")
        machine.mover.wait_for("at 50")
        cluster.kill(1)
        assert machine.mover.wait_for("^(moved|failed|wrong)").startswith("failed 1 "), machine.mover.said
        assert machine.mover.ask("move 1 1").startswith("failed 1 1 ")
        assert machine.mover.ask("move 2 20") == "moved 2 20", machine.mover.said
        machine.wait_for_hosts(2)
        machine.targets.pop(1).end()
        machine.servers.pop(1).end()
        cluster.boot(1)
        machine.serve(1)
        machine.wait_for_hosts(3, 60)
        machine.start_target(1)
        assert machine.mover.ask("find 1") == "found 1"
        assert machine.mover.ask("move 1 20") == "moved 1 20"
        assert machine.mover.ask("move 2 20") == "moved 2 20", machine.mover.said


def test_faults_asked_of_any_host_hold_on_all_and_on_one_that_comes_back(cluster):
    with Machine(cluster, 3, ["--peer-timeout", "2"]) as machine:
        assert machine.fault(2, "fail", "node", "c0-0c0s0n1") == ""
        assert machine.mover.ask("move 1 5").startswith("failed 1 "), machine.mover.said
        assert machine.mover.ask("move 2 5") == "moved 2 5"
        assert [thing["name"] for thing in machine.broken(1)] == ["c0-0c0s0n1"]
        cluster.kill(1)
        machine.wait_for_hosts(2)
        assert "not on host h1: " in machine.fault(2, "repair", "all")
        assert "not on host h1: " in machine.fault(2, "fail", "node", "c0-0c0s0n2")
        machine.targets.pop(1).end()
        machine.servers.pop(1).end()
        cluster.boot(1)
        machine.serve(1)
        machine.wait_for_hosts(3, 60)
        assert wait_until(lambda: machine.broken(1) == machine.broken(0)), machine.broken(1)
        machine.start_target(1)
        assert machine.mover.ask("find 1") == "found 1"
        assert machine.mover.ask("move 1 20") == "moved 1 20"
        assert machine.mover.ask("move 2 5").startswith("failed 2 "), machine.mover.said
        assert machine.fault(1, "repair", "all") == ""
        assert machine.mover.ask("move 2 20") == "moved 2 20", machine.mover.said


def test_killed_emunic_is_an_error_and_others_go_on(cluster):
    with Machine(cluster, 3) as machine:
        machine.mover.tell("move 2 100000")
        machine.mover.wait_for("at 20")
        machine.signal(2, signal.SIGKILL)
        assert machine.mover.wait_for("^(moved|failed|wrong)").startswith("failed 2 "), machine.mover.said
        assert machine.mover.ask("move 1 20") == "moved 1 20"


def test_reductions_over_a_link_that_stays_down_fail_on_both_sides_and_go_on_when_it_heals(cluster):
    with Machine(cluster, 3, ["--peer-timeout", "2"]) as machine, Reducers(machine) as reducers:
        reducers.break_by(lambda: cluster.link(1, is_up=False), [0, 1, 2])
        reducers.reduce([0, 2])
        cluster.link(1, is_up=True)
        machine.wait_for_hosts(3, 60)
        reducers.reduce([0, 1, 2])


def test_killed_host_fails_the_reductions_of_the_others_which_go_on_without_it(cluster):
    with Machine(cluster, 3, ["--peer-timeout", "2"]) as machine, Reducers(machine) as reducers:
        reducers.break_by(lambda: cluster.kill(1), [0, 2])
        reducers.reduce([0, 2])
        machine.targets.pop(1).end()
        machine.servers.pop(1).end()
        cluster.boot(1)


def test_loss_and_delay_are_slow_and_right(cluster):
    with Machine(cluster, 3, ["--peer-timeout", "30"]) as machine:
        cluster.impair(1, 20)
        try:
            for host in [1, 2]:
                assert machine.mover.ask(f"move {host} 10", 120) == f"moved {host} 10"
        finally:
            cluster.heal()
        assert machine.mover.ask("move 1 10", 60) == "moved 1 10"


def test_strangers_are_refused_and_logged(cluster):
    with Machine(cluster, 2) as machine:
        # One that speaks another language.
        script = ("import socket; s = socket.create_connection(('%s', 7117), 10); s.settimeout(10); "
                  "s.sendall(b'GET / HTTP/1.0\\r\\n\\r\\n' * 100); print(s.recv(1))" % address(0))
        cluster.run(3, [sys.executable, "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert machine.mover.ask("move 1 20") == "moved 1 20"
    machine = Machine(cluster, 3)
    machine.write_key("wrong", b"some other key, as long as it is")
    machine.serve(0)
    machine.serve(1)
    machine.serve(2, "wrong")
    machine.wait_for_hosts(2)
    machine.servers[0].wait_for("refused")
    assert machine.states()[2] != "up", machine.states()
    machine.__exit__()


if __name__ == "__main__":
    enter()
    sys.exit(run_tests(choose(globals(), sys.argv[5:])))
