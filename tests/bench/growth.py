#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""How an emunic grows: ranks of one host, registrations, datagrams, jobs one after another.

Each number is measured once, on a host that should be quiet; mpirun stands beside the ranks. Lines are METRIC/N VALUE
UNIT, as those of the other measuring programs.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import time

import alternatives
import ours
import process

RANKS = (64, 256, 1024)
MACHINE = "aries:groups=11"  # 4224 nodes: each rank has one
REGISTERING_RANKS = 32
REGISTRATIONS = 3125  # of each rank: 100 000 in all
DATAGRAMS = 313       # of each rank: 10 000 in all
PATH = "emunic direct adopted"
LIMIT_S = 600
MPIRUN_LIMIT_S = 60


def tell(metric, n, value, unit):
    print(f"{metric}/{n} {value:.5g} {unit}", flush=True)


def name_of(pid):
    """The name of a job's own server, which has the launcher's process id in it."""
    launcher = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
    found = re.search(rf"@emunic/(run-\d+-[0-9a-f]+-{launcher})/ctl", pathlib.Path("/proc/net/unix").read_text())
    if not found:
        raise process.Failed(f"process {pid} listens to nobody")
    return found.group(1)


def status_ms(build, name):
    """How long `emunic status` of a server takes."""
    return process.run_ms([build / "emunic/emunic", "status", "--server", name, "--json"])


def await_server(build, name):
    end = time.monotonic() + process.START_LIMIT_S
    while True:
        try:
            return status_ms(build, name)
        except process.Failed:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def ranks(build, n):
    """Start until all are attached, what they hold, status, end."""
    start = time.monotonic()
    with ours.idle_job(build, PATH, n, limit_s=LIMIT_S, options=("--machine", MACHINE)) as pid:
        tell("attached", n, time.monotonic() - start, "s")
        tell("emunic_memory", n, process.resident_kib(pid) / n, "KiB/rank")
        tell("status", n, status_ms(build, name_of(pid)), "ms")
        end = time.monotonic()
    tell("end", n, time.monotonic() - end, "s")
    try:
        tell("mpirun", n, alternatives.mpirun_start(n, MPIRUN_LIMIT_S)[0][2] / 1e3, "s")
    except process.Failed as reason:  # Debian's often does not end where a hundred ranks have ended at once
        print(f"mpirun/{n} has no figure: {reason}", flush=True)


def many(build):
    """100 000 registrations and 10 000 datagrams in one emunic."""
    command, env = ours.emunic_run(build, PATH, REGISTERING_RANKS, "gni_growth_rank", str(REGISTRATIONS),
                                   str(DATAGRAMS))
    counts = {"register": REGISTRATIONS, "deregister": REGISTRATIONS, "datagram": DATAGRAMS}
    for metric, _, value, unit in process.figures(process.run(command, env, LIMIT_S)):
        tell(metric, counts[metric.partition("_")[0]] * REGISTERING_RANKS, value, unit)


def jobs(build, n):
    """What a server holds after a fifth of the jobs, and after all."""
    name = f"growth-{os.getpid()}"
    server = subprocess.Popen([build / "emunic/emunic", "serve", "--name", name], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    command = [build / "emunic/emunic", "run", "--quiet", "--server", name, "-n", "2", "--",
               build / "examples/gni_datagram_exchange"]
    try:
        await_server(build, name)
        start = time.monotonic()
        for i in range(1, n + 1):
            process.run(command)
            if i in (n // 5, n):
                tell("server_memory", i, process.resident_kib(server.pid), "KiB")
                tell("server_descriptors", i, len(os.listdir(f"/proc/{server.pid}/fd")), "descriptors")
        tell("job", n, (time.monotonic() - start) / n, "s")
    finally:
        server.terminate()
        server.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("build", type=pathlib.Path, help="Meson build folder")
    parser.add_argument("--ranks", type=int, nargs="*", default=RANKS)
    parser.add_argument("--jobs", type=int, default=500)
    args = parser.parse_args()
    build = args.build.resolve()
    try:
        for n in args.ranks:
            ranks(build, n)
        many(build)
        if args.jobs:
            jobs(build, args.jobs)
    except (process.Failed, process.Missing) as reason:
        print(f"growth: {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
