#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""A cluster of hosts on this one: `cluster.py [OPTION]... COMMAND...` runs a command on host h0.

A host has namespaces of its own for network, host name, processes, IPC and mounts (/dev/shm, /etc/hosts), so nothing
but the network and the files of this machine joins it to the others. h0, h1, ... have the addresses 10.99.8.1,
10.99.8.2, ... on eth0, one end of a veth pair; the other ends are ports of a bridge. `mpirun --host h0,h1,...` spans
them through `agent`, which does what ssh would do.

All of it lives below a process namespace that is made first. Whatever ends its first process, or the process that made
it, ends every process of the cluster, and the kernel takes back namespaces, links and mounts; nothing is named on this
machine.

    enter()                            in a new namespace, or says why not and leaves
    with Cluster(4) as cluster:
        cluster.run(1, ["hostname"])   subprocess.run() there; start(): subprocess.Popen()
        cluster.link(2, is_up=False)   the cable of h2 is pulled
        cluster.impair(1, 20)          1 % of all frames are lost, the others take 20 ms longer
        cluster.kill(3)                h3 has lost power

Loss and delay need nothing of the kernel: a relay takes the bridge's place (relay()).
"""

import argparse
import collections
import json
import os
import pathlib
import random
import select
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import sys
import threading
import time

FOLDER = pathlib.Path("/run/emunic-cluster")    # of the cluster alone: /run is a mount of its own
PORTER = str(FOLDER / "porter")
INSIDE = "EMU_CLUSTER_INSIDE"
NAMESPACES = ["--net", "--uts", "--ipc", "--mount", "--pid"]

# The first process of a host: prepares it, tells so, and takes in orphans until it is killed.
INIT = """
hostname "$1" && mount -t tmpfs -o mode=1777 none /dev/shm && mount --bind "$2" /etc/hosts || exit 1
ip link set lo up || exit 1
echo ready
while :; do read -r _ || exit; done
"""


def address(host):
    return f"10.99.8.{host + 1}"


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


# ---- where everything lives ----

def why_not():
    """The reason why no cluster can be made here, or None."""
    for name in ["ip", "unshare", "nsenter", "mount"]:
        if not shutil.which(name):
            return f"{name} is not installed"
    script = "mount -t tmpfs none /run && ip link add p0 type veth peer name p1 && ip link add bridge0 type bridge"
    done = subprocess.run([*unshare(), "sh", "-c", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    # In a line: it goes behind TAP's SKIP.
    return f"namespaces are not permitted here: {' '.join(done.stdout.split())}" if done.returncode else None


def unshare():
    own_user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    return ["unshare", *own_user, "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]


def enter():
    """Goes on in namespaces of its own, which end with it. Where that is not permitted, leaves with a TAP line."""
    if os.environ.get(INSIDE) != "1":
        reason = why_not()
        if reason:
            print(f"1..0 # SKIP {reason}")
            sys.exit(0)
        os.environ[INSIDE] = "1"
        # The first process takes in orphans: a host ends only when somebody has waited for all its processes.
        os.execvp("unshare", [*unshare(), "bash", "-c", '"$@"; exit $?', "bash", sys.executable, *sys.argv])
    del os.environ[INSIDE]
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    FOLDER.mkdir()
    ip("link", "set", "lo", "up")


# ---- hosts ----

class Cluster:
    def __init__(self, n_hosts, environment=None):
        self.n_hosts = n_hosts
        self.environment = dict(os.environ if environment is None else environment)
        self.environment["OMPI_MCA_plm_rsh_agent"] = f"{pathlib.Path(__file__).resolve()} agent"
        for variable in ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"]:
            self.environment[variable] = "1"
        self.environment.pop("XDG_RUNTIME_DIR", None)
        self.inits = {}                 # by host: (unshare, process id of the first process)
        self.relay = None
        self.porter = None

    def __enter__(self):
        lines = ["127.0.0.1 localhost"] + [f"{address(host)} h{host}" for host in range(self.n_hosts)]
        (FOLDER / "hosts").write_text("\n".join(lines) + "\n")
        ip("link", "add", "bridge0", "type", "bridge")
        ip("link", "set", "bridge0", "up")
        for host in range(self.n_hosts):
            self.boot(host)
        self.porter = Porter(self)
        return self

    def __exit__(self, *_):
        self.heal()
        self.porter.shutdown()
        for host in list(self.inits):
            self.kill(host)
        ip("link", "del", "bridge0")

    def boot(self, host):
        """Starts a host; one that was killed comes back with nothing but its name and address."""
        process = subprocess.Popen(["unshare", *NAMESPACES, "--fork", "--kill-child=KILL", "--mount-proc", "bash", "-c",
                                    INIT, "init", f"h{host}", FOLDER / "hosts"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if process.stdout.readline() != b"ready\n":
            raise OSError(f"host {host} does not start")
        init = int(pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        self.inits[host] = (process, init)
        subprocess.run(["ip", "link", "del", f"h{host}"], stderr=subprocess.DEVNULL)
        ip("link", "add", f"h{host}", "type", "veth", "peer", "name", "eth0", "netns", str(init))
        ip("link", "set", f"h{host}", "master", "bridge0", "up")
        self.run(host, ["sh", "-c", f"ip addr add {address(host)}/24 dev eth0 && ip link set eth0 up"], check=True)

    def kill(self, host):
        """All processes of the host end at once, and its link is down."""
        process, init = self.inits.pop(host)
        ip("link", "set", f"h{host}", "down")
        os.kill(init, signal.SIGKILL)
        process.wait()
        process.stdin.close()
        process.stdout.close()

    def command(self, host, argv):
        return ["nsenter", "-t", str(self.inits[host][1]), *NAMESPACES, "--wd=" + os.getcwd(), *map(str, argv)]

    def start(self, host, argv, **options):
        options.setdefault("env", self.environment)
        return subprocess.Popen(self.command(host, argv), **options)

    def run(self, host, argv, **options):
        options.setdefault("env", self.environment)
        return subprocess.run(self.command(host, argv), **options)

    def networks(self):
        """Addresses and network namespaces, for programs that go from one to the other (tests/common/fixture.h)."""
        return ",".join(f"{address(host)}=/proc/{init}/ns/net" for host, (_, init) in self.inits.items())

    def leftovers(self, host):
        """What is on the host beside its first process: processes, files in memory, sockets of emunic."""
        init = self.inits[host][1]
        own = os.readlink(f"/proc/{init}/ns/pid")
        found = []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if process.name != str(init) and os.readlink(process / "ns/pid") == own:
                    words = (process / "cmdline").read_bytes()
                    if words:           # else a zombie
                        found.append(f"process {process.name} " + words.replace(b"\0", b" ").decode(errors="replace"))
            except OSError:             # it has just ended
                continue
        found += [f"/dev/shm/{file}" for file in os.listdir(f"/proc/{init}/root/dev/shm")]
        sockets = pathlib.Path(f"/proc/{init}/net/unix").read_text().splitlines()
        return found + [f"socket {line.split()[-1]}" for line in sockets if "@emunic/" in line]

    # ---- faults ----

    def link(self, host, is_up):
        ip("link", "set", f"h{host}", "up" if is_up else "down")

    def impair(self, loss_percent, delay_ms, seed=1):
        """All frames, those that get lost and those that take longer, through a relay."""
        ports = [f"h{host}" for host in self.inits]
        for host in self.inits:
            self.run(host, ["ip", "link", "set", "eth0", "gso_max_segs", "1"], check=True)
        words = ["relay", str(loss_percent), str(delay_ms), str(seed), *ports]
        self.relay = subprocess.Popen([sys.executable, __file__, *words], stdout=subprocess.PIPE)
        if self.relay.stdout.readline() != b"ready\n":
            raise OSError("the relay does not start")
        for port in ports:
            ip("link", "set", port, "nomaster")

    def heal(self):
        if not self.relay:
            return
        for host in self.inits:
            ip("link", "set", f"h{host}", "master", "bridge0")
            self.run(host, ["ip", "link", "set", "eth0", "gso_max_segs", "65535"], check=True)
        self.relay.kill()
        self.relay.wait()
        self.relay.stdout.close()
        self.relay = None


# ---- from one host to another ----

def has_living_child(pid):
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return any(pathlib.Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
                   for child in children)
    except OSError:
        return False


def wait_for(process):
    """Of nsenter: it stops when its child does. If the child dies then, nobody else continues it."""
    while True:
        _, status = os.waitpid(process.pid, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode
        while has_living_child(process.pid):
            time.sleep(0.02)            # asks again: the child is not ours to wait for
        os.kill(process.pid, signal.SIGCONT)


class Porter:
    """Runs what `agent` asks for: hosts do not see each other's processes, so somebody above them has to."""

    def __init__(self, cluster):
        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                data, fds, _, _ = socket.recv_fds(self.request, 1 << 20, 3)
                try:
                    host, command = json.loads(data)
                    process = subprocess.Popen(cluster.command(host, ["sh", "-c", command]), stdin=fds[0],
                                               stdout=fds[1], stderr=fds[2], env=self.environment())
                finally:
                    for fd in fds:
                        os.close(fd)
                self.request.send(bytes([wait_for(process) & 255]))

            # What sshd would set.
            @staticmethod
            def environment():
                return {name: os.environ[name] for name in ["HOME", "PATH", "USER", "LANG"] if name in os.environ}

        class Server(socketserver.ThreadingUnixStreamServer):
            daemon_threads = True

            def handle_error(self, request, client_address):
                pass                    # the host is gone, or the caller

        self.server = Server(PORTER, Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def shutdown(self):
        self.server.shutdown()
        self.server.server_close()
        os.unlink(PORTER)


def agent(host, *command):
    """`agent HOST COMMAND...`, for mpirun: as ssh, through the shell of that host."""
    numbers = {f"h{number}": number for number in range(254)} | {address(number): number for number in range(254)}
    if host not in numbers:
        print(f"agent: {host} is no name of a host", file=sys.stderr)
        return 255
    with socket.socket(socket.AF_UNIX) as porter:
        porter.connect(PORTER)
        socket.send_fds(porter, [json.dumps([numbers[host], " ".join(command)]).encode()], [0, 1, 2])
        status = porter.recv(1)
    return status[0] if status else 255


# ---- loss and delay ----

SOL_PACKET, PACKET_VNET_HDR, PACKET_OUTGOING = 263, 15, 4
PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC = 1, 1
ETH_P_ALL = 3


def relay(loss_percent, delay_ms, seed, *ports):
    """A switch between ports that loses frames at random and holds the others for a while."""
    loss, delay, draw = float(loss_percent) / 100, float(delay_ms) / 1000, random.Random(int(seed))
    sockets = []
    for port in ports:
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        # With each frame its checksum's state, which the kernel leaves to a network card that a veth does not have.
        s.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        s.bind((port, ETH_P_ALL))
        s.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                     struct.pack("IHH8s", socket.if_nametoindex(port), PACKET_MR_PROMISC, 0, b""))
        s.setblocking(False)
        sockets.append(s)
    print("ready", flush=True)
    places = {}                         # address of a card: its port
    waiting = collections.deque()       # (due, ports, frame); all wait equally long
    while True:
        patience = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for s in select.select(sockets, [], [], patience)[0]:
            try:
                frame, (_, _, kind, *_) = s.recvfrom(1 << 17)
            except OSError:             # a port that is down
                continue
            if kind == PACKET_OUTGOING or draw.random() < loss:
                continue
            to, source = frame[10:16], frame[16:22]
            places[source] = s
            others = [places[to]] if to in places else [other for other in sockets if other is not s]
            waiting.append((time.monotonic() + delay, others, frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, others, frame = waiting.popleft()
            for s in others:
                try:
                    s.send(frame)
                except OSError:         # full or down: lost
                    pass


# ---- command ----

def main():
    if sys.argv[1:2] == ["agent"]:
        return agent(*sys.argv[2:])
    if sys.argv[1:2] == ["relay"]:
        return relay(*sys.argv[2:])
    parser = argparse.ArgumentParser(description="Runs a command on the first host of a cluster in namespaces.")
    parser.add_argument("-n", type=int, default=4, help="hosts (default: 4)")
    parser.add_argument("--loss", type=float, default=0, help="percent of frames that are lost")
    parser.add_argument("--delay", type=float, default=0, help="milliseconds that each frame takes longer")
    parser.add_argument("--cut", type=float, default=0,
                        help="seconds for which the cable of h1 is pulled, from the tenth second on")
    parser.add_argument("--above", action="store_true",
                        help="run the command above the hosts, with FX_NETWORKS naming their networks")
    parser.add_argument("--tap", metavar="NAME", help="print whether the command ended with status 0 as TAP")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    arguments = parser.parse_args()
    enter()
    with Cluster(arguments.n) as cluster:
        if arguments.loss or arguments.delay:
            cluster.impair(arguments.loss, arguments.delay)
        if arguments.cut:
            threading.Thread(target=cut, args=[cluster, 1, 10, arguments.cut], daemon=True).start()
        if arguments.above:
            command = arguments.command[arguments.command[:1] == ["--"]:]
            return subprocess.run(command, env=cluster.environment | {"FX_NETWORKS": cluster.networks()}).returncode
        if arguments.tap:
            return tell(arguments.tap, cluster.run(0, arguments.command, stdout=subprocess.PIPE,
                                                   stderr=subprocess.STDOUT, text=True))
        return cluster.run(0, arguments.command or ["bash"]).returncode


def cut(cluster, host, begin, seconds):
    time.sleep(begin)
    cluster.link(host, is_up=False)
    time.sleep(seconds)
    cluster.link(host, is_up=True)


def tell(name, done):
    print("".join(f"# {line}\n" for line in done.stdout.splitlines()) + "1..1")
    print(f"{'not ok' if done.returncode else 'ok'} 1 - {name}")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
