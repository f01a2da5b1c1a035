#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a reader of the wire sees of hosts with --secure and without, and hosts of which one has it.
`test_secure.py EMUNIC TELLER UGNI DMAPP PORTALS [TEST...]`: the last three are programs that check their own data."""

import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from cluster import ETH_P_ALL, FOLDER, PACKET_ADD_MEMBERSHIP, PACKET_MR_PROMISC, SOL_PACKET, address
from testing import Launch, choose, enter, run_tests, wait_until

KINDS = [b"smallput", b"largeput", b"largeget", b"datagram"]
WORDS = 64
KEY = b"a key of all hosts of the machine"
SO_RCVBUFFORCE = 33
emunic, teller, ugni, dmapp, portals = sys.argv[1:6]


class Reader:
    """Reads every frame at the bridge's end of a host's cable, and looks for words."""

    def __init__(self, host, words):
        self.words = words
        self.found = set()
        self.n_bytes = 0
        self.is_over = False
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        try:
            self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        except PermissionError:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 64 << 20)
        self.socket.bind((f"h{host}", ETH_P_ALL))
        self.socket.setsockopt(SOL_PACKET, PACKET_ADD_MEMBERSHIP,
                               struct.pack("IHH8s", socket.if_nametoindex(f"h{host}"), PACKET_MR_PROMISC, 0, b""))
        self.socket.settimeout(0.1)
        self.thread = threading.Thread(target=self.read)

    def read(self):
        while True:
            try:
                frame = self.socket.recv(1 << 17)
            except TimeoutError:
                if self.is_over:
                    return              # and nothing is left in the socket
                continue
            self.n_bytes += len(frame)
            self.found |= {word for word in self.words if word in frame}

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        self.thread.join()
        self.socket.close()


def what_is_read(cluster, options):
    """Kinds whose words were on the wire while the tellers ran."""
    words = {kind * (WORDS // len(kind)): kind for kind in KINDS}
    with Reader(1, list(words)) as reader:
        done = launch.expect(cluster, ["-q", "--hosts", "h0,h1", *options, "-n", "2", "--", teller])
        assert done.stdout == "told\n", done.stdout
    assert reader.n_bytes > 4 << 20, f"only {reader.n_bytes} bytes were on the wire"
    return sorted(words[word].decode() for word in reader.found)


def test_words_are_on_the_wire_only_without_secure(cluster):
    assert what_is_read(cluster, []) == sorted(kind.decode() for kind in KINDS)
    assert what_is_read(cluster, ["--secure"]) == []


def test_setting_does_what_the_option_does(cluster):
    cluster.environment["EMUNIC_SECURE"] = "1"
    try:
        assert what_is_read(cluster, []) == []
    finally:
        del cluster.environment["EMUNIC_SECURE"]


def test_programs_of_each_interface_run_with_secure(cluster):
    for program in [[ugni, "-i", "20", "-m", "65536"], [dmapp, "-s", "33", "-n", "20"], [portals, "-n", "50"]]:
        launch.expect(cluster, ["-q", "--hosts", "h0,h1", "--secure", "-n", "4", "--ppn", "2", "--", *program])


# ---- by hand ----

class Servers:
    """`emunic serve` on some hosts; what they say is in a file each."""

    def __init__(self, cluster, options):
        """options: of each host."""
        self.cluster = cluster
        self.folder = pathlib.Path(tempfile.mkdtemp(dir=FOLDER))
        (self.folder / "hosts").write_text("".join(f"h{host} {address(host)} 1\n" for host in range(len(options))))
        with open(os.open(self.folder / "key", os.O_CREAT | os.O_WRONLY, 0o600), "wb") as file:
            file.write(KEY)
        self.servers = []
        for host, words in enumerate(options):
            command = [launch.emunic, "serve", "--name", "machine", "--hosts", self.folder / "hosts", "--host", f"h{host}",
                       "--key-file", self.folder / "key", *words]
            with open(self.folder / f"err.{host}", "w", encoding="ascii") as err:
                self.servers.append(cluster.start(host, command, stderr=err, stdin=subprocess.DEVNULL))
        for host in range(len(options)):
            assert wait_until(lambda host=host: "is ready" in self.said(host)), self.said(host)

    def said(self, host):
        return (self.folder / f"err.{host}").read_text()

    def hosts(self, host):
        done = self.cluster.run(host, [launch.emunic, "status", "--json", "--server", "machine"], stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, check=True)
        return json.loads(done.stdout)["servers"][0]["hosts"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        # Our own children are nsenter, which goes when the server has gone.
        for host in range(len(self.servers)):
            for what in self.cluster.leftovers(host):
                if what.startswith("process") and " serve " in what:
                    os.kill(int(what.split()[1]), signal.SIGTERM)
        for server in self.servers:
            server.wait()


def test_secure_and_other_hosts_refuse_each_other_and_say_so(cluster):
    line = "host h1 has --secure and host h0 has not: they refuse each other; all hosts or none must have it"
    with Servers(cluster, [[], ["--secure"], []]) as machine:
        for host in [0, 1]:
            assert wait_until(lambda host=host: line in machine.said(host)), machine.said(host)
        # The others are a machine as far as they go.
        assert wait_until(lambda: machine.hosts(0)[2]["state"] == "up"), machine.said(0)
        assert wait_until(lambda: machine.hosts(0)[1]["refused"] > 0), machine.hosts(0)
        assert [peer["state"] for peer in machine.hosts(1)] == ["down", "here", "down"], machine.hosts(1)
        for host in [0, 1]:
            assert machine.said(host).count(line) == 1, machine.said(host)
            assert "only one side" not in machine.said(host), machine.said(host)


def test_status_tells_the_cipher_of_each_session(cluster):
    flags = pathlib.Path("/proc/cpuinfo").read_text().split()
    cipher = "aes-256-gcm" if "aes" in flags and "pclmulqdq" in flags else "chacha20-poly1305"
    for options, expected in [([], "none"), (["--secure"], cipher)]:
        with Servers(cluster, [options, options]) as machine:
            assert wait_until(lambda machine=machine: machine.hosts(0)[1]["state"] == "up"), machine.said(0)
            assert [peer["cipher"] for peer in machine.hosts(0)] == ["none", expected], machine.hosts(0)
            table = cluster.run(1, [launch.emunic, "status", "--server", "machine"], stdout=subprocess.PIPE, text=True)
            rows = [line.split() for line in table.stdout.splitlines()]
            assert [row[-1] for row in rows if row[:2] == ["0", "h0"]] == [expected], table.stdout


if __name__ == "__main__":
    enter()
    launch = Launch(emunic)
    sys.exit(run_tests(choose(globals(), sys.argv[6:]), 3))
