#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Kills at random, and what must hold after each: `kills.py [OPTION]... BUILD-FOLDER`

Everything runs in namespaces of its own (tests/multihost/cluster.py), so that whatever is left behind is seen, and ends
with this program. The steps are the same for the same seed; `--step` repeats one alone, in a scene made for it.
"""

import argparse
import collections
import os
import pathlib
import random
import shutil
import subprocess
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "multihost"))

from board import Finding, Waits  # noqa: E402
from cluster import FOLDER, enter  # noqa: E402
from hosts import HostJobs, Hosts  # noqa: E402
from mpi import MpiJobs  # noqa: E402
from scenes import NOBODY, Jobs, Queues, Reductions, Workers  # noqa: E402

# Of each round of kills: the scene, its part, the most steps that one such scene stands.
SCENES = {
    "gni": (0.15, lambda c: Workers(c, "gni")),
    "gni-shared": (0.05, lambda c: Workers(c, "gni", shared=True)),
    "gni-routed": (0.17, lambda c: Workers(c, "gni", routed=True)),
    "gni-cma": (0.1, lambda c: Workers(c, "gni", cma=True)),
    "gni-user": (0.1, lambda c: Workers(c, "gni", routed=True, cma=True, user=NOBODY)),
    "portals": (0.1, lambda c: Workers(c, "portals")),
    "portals-routed": (0.09, lambda c: Workers(c, "portals", routed=True)),
    "msgq": (0.03, Queues),
    "msgq-routed": (0.02, lambda c: Queues(c, routed=True)),
    "msgq-user": (0.02, lambda c: Queues(c, user=NOBODY)),
    "ce": (0.03, Reductions),
    "ce-user": (0.02, lambda c: Reductions(c, user=NOBODY)),
    "jobs": (0.05, Jobs),
    "mpi-gni": (0, lambda c: MpiJobs(c, "gni")),
    "mpi-portals": (0, lambda c: MpiJobs(c, "portals")),
    "hosts": (0.03, Hosts),
    "hosts-portals": (0.02, lambda c: Hosts(c, "portals")),
    "host-jobs": (0.01, HostJobs),
    "host-jobs-portals": (0.005, lambda c: HostJobs(c, "portals")),
    "host-jobs-dmapp": (0.005, lambda c: HostJobs(c, "dmapp")),
}
ROUND = 400


class Context:
    """What the scenes share."""

    def __init__(self, build, seed, deadline):
        self.seed = seed
        self.folder = FOLDER / "kills"
        self.folder.mkdir()
        os.chmod(FOLDER, 0o755)
        temporary = FOLDER / "tmp"
        temporary.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=1777", "none", "/dev/shm"], check=True)
        self.folders = [self.folder, temporary, "/dev/shm"]
        build = pathlib.Path(build).resolve()
        self.emunic = build / "emunic/emunic"
        self.emunic_rank = build / "mpi-shim/rank/emunic-rank"
        self.programs = {"gni": build / "tests/kills/kills-gni", "portals": build / "tests/kills/kills-portals",
                         "msgq": build / "tests/kills/kills-msgq", "dmapp": build / "tests/soak/soak-dmapp",
                         "reducer": build / "tests/multihost/multihost-reducer",
                         "mpi": build / "tests/integration/mpi/mpi_endless"}
        unwanted = ["XDG_RUNTIME_DIR", "EMUNIC_SERVER", "EMUNIC_COOKIE", "EMUNIC_LOG"]
        self.environment = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.environment |= {"TMPDIR": str(temporary), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                             "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        self.waits = Waits(deadline)
        self.n_lives = 0
        self.n_checked = 0
        self.n_bytes = 0

    def why_not(self, scene):
        """The reason why a scene cannot be here, or None."""
        if scene.endswith("-user"):
            if os.environ.get("KILLS_UID", "0") != "0":
                return "only root serves other users"
            done = subprocess.run(["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", "test",
                                   "-x", self.programs["gni"]])
            return "another user cannot execute what is in the build folder" if done.returncode else None
        if (scene == "jobs" or scene.startswith("host-jobs")) and not shutil.which("mpirun"):
            return "mpirun is not installed"
        if scene.startswith("mpi-") and not self.programs["mpi"].exists():
            return "Open MPI 4.1 is not installed, or this is a build with a sanitizer"
        return None


def plan(n_kills, seed, only):
    """Scenes with the numbers of their steps, in an order by seed."""
    steps, number = [], 0
    # Of no part: only when named.
    weights = {name: part or 1 for name, (part, _) in SCENES.items() if name in (only or ()) or (part and not only)}
    while number < n_kills:
        size = min(ROUND, n_kills - number)
        draw = random.Random(f"{seed}:{number}")
        names = sorted(weights)
        draw.shuffle(names)
        left = size
        for i, name in enumerate(names):
            n = left if i == len(names) - 1 else min(left, max(1, round(size * weights[name] / sum(weights.values()))))
            if n:
                steps.append((name, range(number, number + n)))
            number, left = number + n, left - n
    return steps


class Totals:
    def __init__(self):
        self.kills = collections.Counter()
        self.findings = []
        self.begin = time.monotonic()

    def line(self, context):
        return (f"{sum(self.kills.values())} kills, {context.n_checked} survivors checked, {len(self.findings)} findings, "
                f"{time.monotonic() - self.begin:.0f} s")

    def tell(self, context):
        for kind, n in sorted(self.kills.items()):
            print(f"# {n:6} {kind}")
        for what, seconds in sorted(context.waits.longest.items(), key=lambda item: -item[1])[:8]:
            print(f"# at most {seconds:.2f} s: {what}")
        print(f"# {self.line(context)}, {context.n_bytes >> 20} MiB compared")


def run_scene(name, numbers, context, totals):
    """False: a finding has ended it."""
    scene = None
    number = numbers[0]
    try:
        scene = SCENES[name][1](context)
        for number in numbers:
            totals.kills.update(scene.step(random.Random(f"{context.seed}:step:{number}")))
        scene.close()
        return True
    except Exception as finding:        # also what a fault of this program raises
        text = str(finding) if isinstance(finding, Finding) else traceback.format_exc()
        totals.findings.append(f"scene {name}, step {number}: {text}")
        print(f"# FINDING in scene {name}, step {number}: {text}".replace("\n", "\n# "))
        for line in list(scene.said)[-30:] if scene else []:
            print(f"#   {line}")
        print(f"# repeat: make kills SEED={context.seed} KILLS_ARGS='--scene {name} --step {number}'", flush=True)
        if scene:
            scene.abandon()
        return False


def test_who_survives_kills_keeps_its_data_and_nothing_is_left():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build")
    parser.add_argument("--kills", type=int, default=60, help="steps, most of which kill one process (default: 60)")
    parser.add_argument("--seed", type=int, default=20261123)
    parser.add_argument("--scene", action="append", choices=sorted(SCENES), help="only these scenes")
    parser.add_argument("--step", type=int, help="only this step, of the scene given")
    parser.add_argument("--seconds", type=float, help="no new scene after so many")
    parser.add_argument("--deadline", type=float, default=20, help="for each event, in seconds (default: 20)")
    arguments = parser.parse_args()
    os.environ.setdefault("KILLS_UID", str(os.geteuid()))
    enter()
    context = Context(arguments.build, arguments.seed, arguments.deadline)
    totals = Totals()
    steps = plan(arguments.kills, arguments.seed, arguments.scene)
    if arguments.step is not None:
        steps = [(arguments.scene[0], range(arguments.step, arguments.step + 1))]
    print(f"1..1\n# seed {arguments.seed}, {arguments.kills} kills", flush=True)
    for name, numbers in steps:
        if arguments.seconds and time.monotonic() - totals.begin > arguments.seconds:
            print(f"# time is over before step {numbers[0]}")
            break
        reason = context.why_not(name)
        if reason:
            print(f"# SKIP scene {name}: {reason}")
            continue
        if not run_scene(name, numbers, context, totals):
            break
        print(f"# scene {name}, to step {numbers[-1]}: {totals.line(context)}", flush=True)
    totals.tell(context)
    result = "not ok" if totals.findings else "ok"
    print(f"{result} 1 - who survives kills keeps its data and nothing is left", flush=True)
    return 1 if totals.findings else 0


if __name__ == "__main__":
    sys.exit(test_who_survives_kills_keeps_its_data_and_nothing_is_left())
