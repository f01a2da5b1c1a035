# SPDX-License-Identifier: BSD-3-Clause
"""What virtual time costs emunic: processor time of a packet and hop beside the simulator by itself, and memory."""

import contextlib
import json
import os
import pathlib
import subprocess
import tempfile

import process

HOP_MACHINE, HOP_RANKS = "gemini", 64
# Machine, and what it has: emunic's memory grows with its nodes.
IDLE_MACHINE, IDLE_NODES = "aries:groups=61", 23424


@contextlib.contextmanager
def server(build, machine, *options):
    """The process of a daemon that is ready, and its name."""
    name = f"bench-{os.getpid()}"
    command = [build / "emunic/emunic", "serve", "--name", name, "--machine", machine, *options]
    daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        line = daemon.stderr.readline()
        if "is ready" not in line:
            raise process.Failed(line.strip() or "the daemon says nothing")
        yield daemon.pid, name
    finally:
        daemon.terminate()
        daemon.communicate()


def live_hop(build, mebibytes):
    """All neighbours of 64 nodes put at the same time. Hops are those between routers; answers are packets, too."""
    program = build / "examples/gni_topobw"
    with server(build, HOP_MACHINE, "--time", "virtual") as (pid, name), tempfile.NamedTemporaryFile() as out:
        process.run([build / "emunic/emunic", "run", "--quiet", "--server", name, "-n", str(HOP_RANKS), "--json", out.name,
                     "--", program, "-a", str(mebibytes)])
        used_s = process.cpu_s(pid)
        links = json.load(out)["links"]
    hops = sum(link["packets"] for link in links if not link["class"].startswith("processor"))
    if hops == 0:
        raise process.Failed("no packet has crossed a link")
    return [("simulated_hop_time", None, 1e9 * used_s / hops, "ns")]


def bare_hop(build):
    """The same machine and neighbours, full packets at half of the load that the links can carry."""
    text = process.run([build / "emunic/emunic", "sim", "traffic", HOP_MACHINE, "-p", "neighbour", "-l", "0.5", "-T", "200",
                        "--quiet", "--json"])
    run = json.loads(text)["runs"][0]
    return [("simulated_hop_time", None, 1e9 * run["speed"]["cpu_seconds"] / run["packet_hops"], "ns")]


def resident_bytes(pid):
    fields = pathlib.Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def idle_memory(build):
    """Of a node that nobody uses: what a daemon in virtual time has more than one in functional time."""
    used = []
    for options in (["--time", "virtual"], []):
        with server(build, IDLE_MACHINE, *options) as (pid, _):
            used.append(resident_bytes(pid))
    return [("idle_node_memory", None, (used[0] - used[1]) / 1024 / IDLE_NODES, "KiB")]
