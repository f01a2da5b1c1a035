# SPDX-License-Identifier: BSD-3-Clause
"""The driver's side of board.h, waiting, and what may be left behind."""

import mmap
import os
import pathlib
import time

RANKS_MAX, SLOTS = 8, 6
HEAD = 4 + 2 * RANKS_MAX
TOWARDS = 10 + 2 * SLOTS
LINE = 18 + RANKS_MAX * TOWARDS
# Within a line, then within what it says of another worker.
LIFE, BEATS, FINDINGS, PAUSED, CHECKED, BYTES_CHECKED = range(6)
TOWARDS_AT = 18
ITS_LIFE, LET_GO = 0, TOWARDS - 1
# Of the head.
N_RANKS, PAUSE, CHECK, ENDS = range(4)
DOOMED, GONE = 4, 4 + RANKS_MAX
ENDS_SOON, ENDS_BADLY = 1, 2


class Finding(Exception):
    """Something that was promised is not so."""


class Board:
    def __init__(self, path, n_ranks):
        self.path = path
        self.n_ranks = n_ranks
        size = 8 * (HEAD + RANKS_MAX * LINE)
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o666)
        os.fchmod(fd, 0o666)
        os.ftruncate(fd, size)
        self.map = mmap.mmap(fd, size)
        os.close(fd)
        self.words = memoryview(self.map).cast("Q")
        self.words[N_RANKS] = n_ranks

    def close(self):
        self.words.release()
        self.map.close()
        os.unlink(self.path)

    def clear(self):
        for i in range(1, len(self.words)):
            self.words[i] = 0

    def of(self, rank, word):
        return self.words[HEAD + rank * LINE + word]

    def forget(self, rank):
        self.words[HEAD + rank * LINE + LIFE] = 0

    def towards(self, rank, other, word):
        return self.words[HEAD + rank * LINE + TOWARDS_AT + other * TOWARDS + word]

    def findings(self):
        return sum(self.of(rank, FINDINGS) for rank in range(self.n_ranks))

    def beats(self):
        return sum(self.of(rank, BEATS) for rank in range(self.n_ranks))

    def bytes_checked(self):
        return sum(self.of(rank, BYTES_CHECKED) for rank in range(self.n_ranks))


class Waits:
    """Waits for events that nobody announces, and knows how long each kind of them took at most."""

    def __init__(self, deadline):
        self.deadline = deadline
        self.longest = {}

    def until(self, what, is_true, explain=lambda: ""):
        """what: for the totals. explain(): what is so instead, for the finding."""
        begin = time.monotonic()
        pause = 0.0005
        while not is_true():
            took = time.monotonic() - begin
            if took > self.deadline:
                raise Finding(f"not within {self.deadline} s: {what} {explain()}")
            time.sleep(pause)           # asks again: there is no event to wait for
            pause = min(pause * 1.3, 0.02)
        self.longest[what] = max(self.longest.get(what, 0), time.monotonic() - begin)


# ---- processes ----

def processes():
    """Process id, parent and name of all that are no zombies."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            stat = pathlib.Path(f"/proc/{name}/stat").read_text()
        except OSError:
            continue
        rest = stat.rpartition(")")[2].split()
        if rest[0] not in "ZX":
            found[int(name)] = (int(rest[1]), stat[stat.index("(") + 1:stat.rindex(")")])
    return found


def below(ancestor):
    """What was started by it, and by that, with names; itself too."""
    all_of_them = processes()
    found = {}
    todo = [ancestor]
    while todo:
        pid = todo.pop()
        if pid in all_of_them:
            found[pid] = all_of_them[pid][1]
            todo += [child for child, (parent, _) in all_of_them.items() if parent == pid]
    return found


def words_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def is_stopped(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZX"
    except OSError:
        return True


def count_fds(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


class Surroundings:
    """What is there before a scene, and has to be all that is there after it."""

    def __init__(self, folders):
        self.folders = folders
        self.before = self.now()

    def now(self):
        things = {f"process {pid} ({name}) {words_of(pid)}" for pid, (parent, name) in processes().items()
                  if parent != 0 and not words_of(pid).startswith("ip ")}
        for folder in self.folders:
            things |= {os.path.join(path, file) for path, folders, files in os.walk(folder) for file in folders + files}
        sockets = pathlib.Path("/proc/net/unix").read_text().splitlines()
        return things | {"socket " + line.split()[-1] for line in sockets if "@emunic/" in line}

    def left(self):
        return sorted(self.now() - self.before)

    def expect_nothing_left(self, waits):
        waits.until("nothing is left", lambda: not self.left(), lambda: "but " + "; ".join(self.left())[:2000])
