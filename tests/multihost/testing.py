# SPDX-License-Identifier: BSD-3-Clause
"""What the tests on several hosts share: TAP, waiting, and jobs of `emunic run --hosts`.

A test is a function test_NAME(cluster); a failed assertion fails it and the next one goes on. After each the cluster
must be as it was: no process, file in memory or socket left on any host.

No test sleeps. Ranks of a held job tell on a named pipe that they run and wait for a line on another; where the kernel
offers no event, wait_until asks again every 20 ms for at most PATIENCE seconds.
"""

import contextlib
import os
import pathlib
import subprocess
import tempfile
import time
import traceback

from cluster import FOLDER, Cluster, enter

PATIENCE = 20
HELD = """
echo $EMUNIC_RANK > "$0/up.$EMUNIC_RANK"
read -r line < "$0/hold.$EMUNIC_RANK"
"""


def wait_until(is_true, patience=PATIENCE):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if is_true():
            return True
        time.sleep(0.02)
    return False


def expect_nothing_left(cluster, but=()):
    """but: words of what may be there."""
    def left_over():
        return [f"h{host}: {what}" for host in cluster.inits for what in cluster.leftovers(host)
                if not any(word in what for word in but)]
    wait_until(lambda: not left_over())
    left = left_over()
    assert not left, "left behind: " + "; ".join(left)


def choose(names, words):
    """Of the functions test_NAME those that the words name, without words all; `--but` turns it around."""
    tests = {name.removeprefix("test_"): function for name, function in names.items() if name.startswith("test_")}
    others = words[:1] == ["--but"]
    unknown = set(words[others:]) - set(tests)
    assert not unknown, f"no such tests: {unknown}"
    return [test for name, test in tests.items() if not words or (name in words) != others]


def run_tests(tests, n_hosts=4, surroundings=contextlib.nullcontext, but=()):
    """Runs them on one cluster, as a TAP program. surroundings(cluster): what is there meanwhile; but: its processes."""
    print(f"1..{len(tests)}", flush=True)
    n_bad = 0
    with Cluster(n_hosts) as cluster, surroundings(cluster):
        for number, test in enumerate(tests, 1):
            name = test.__name__.removeprefix("test_").replace("_", " ")
            try:
                test(cluster)
                expect_nothing_left(cluster, but)
                print(f"ok {number} - {name}", flush=True)
            except Exception:           # also what a fault of the test itself raises
                print("".join(f"# {line}\n" for line in traceback.format_exc().splitlines()), end="")
                print(f"not ok {number} - {name}", flush=True)
                n_bad += 1
    return 1 if n_bad else 0


class Launch:
    """`emunic run` on the first host of the cluster, by the command of a build folder."""

    def __init__(self, emunic):
        self.emunic = str(pathlib.Path(emunic).resolve())

    def run(self, cluster, arguments, seconds=60, **options):
        """Returns the ended process, with output and errors as text."""
        return cluster.run(0, ["timeout", "-k", "5", seconds, self.emunic, "run", *arguments], stdin=subprocess.DEVNULL,
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)

    def expect(self, cluster, arguments, status=0, **options):
        done = self.run(cluster, arguments, **options)
        said = done.stdout[-2000:] + done.stderr[-2000:]
        assert done.returncode == status, f"status {done.returncode}, not {status}: {said}"
        return done


class HeldJob:
    """A job whose ranks run and wait."""

    def __init__(self, launch, cluster, hosts, n_ranks, outer=()):
        """outer: words of a command that starts `emunic run`."""
        self.n_ranks = n_ranks
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        for rank in range(n_ranks):
            os.mkfifo(self.folder / f"up.{rank}")
            os.mkfifo(self.folder / f"hold.{rank}")
        # Open for both, so that nobody waits for the other end.
        self.up = [os.open(self.folder / f"up.{rank}", os.O_RDWR) for rank in range(n_ranks)]
        self.hold = [os.open(self.folder / f"hold.{rank}", os.O_RDWR) for rank in range(n_ranks)]
        self.err = open(self.folder / "err", "w+")
        command = [*outer, launch.emunic, "run", "-q", "--hosts", hosts, "-n", n_ranks, "--", "sh", "-c", HELD, self.folder]
        self.process = cluster.start(0, ["env", "--default-signal=INT,HUP,TERM", *command],
                                     stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self.err)
        self.cluster = cluster
        for fd in self.up:
            assert wait_until(lambda fd=fd: self.is_up(fd), 60), f"the ranks do not come up: {self.errors()}"

    @staticmethod
    def is_up(fd):
        os.set_blocking(fd, False)
        try:
            return bool(os.read(fd, 64))
        except BlockingIOError:
            return False

    def errors(self):
        return pathlib.Path(self.err.name).read_text()[-2000:]

    def release(self):
        for fd in self.hold:
            os.write(fd, b"go\n")

    def find(self, host, name):
        """Process ids on a host whose program has this name; ours above all hosts."""
        own = os.readlink(f"/proc/{self.cluster.inits[host][1]}/ns/pid")
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                program = (process / "cmdline").read_bytes().split(b"\0")[0].decode()
                if os.readlink(process / "ns/pid") == own and os.path.basename(program) == name:
                    found.append(int(process.name))
            except OSError:
                continue
        return sorted(found)

    def wait(self, seconds=PATIENCE):
        """The status of `emunic run`, which ends soon."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"run does not end within {seconds} s: {self.errors()}") from None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for fd in self.up + self.hold:
            os.close(fd)
        self.err.close()
