# SPDX-License-Identifier: BSD-3-Clause
"""Debian packages of the programs: installed on demand, and proved unmodified."""

import fcntl
import os
import pathlib
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
OPEN_MPI = ["openmpi-bin", "libopenmpi3"]
INSTALL_LIMIT_S = 600


class Skip(Exception):
    """The program cannot be had here."""


class Failed(Exception):
    """It ran, and something is wrong."""


def say(*words):
    """To stderr, at once."""
    subprocess.sys.stderr.write("debian-mpi: " + " ".join(str(word) for word in words) + "\n")


def missing(packages):
    """Those that are not installed."""
    def is_installed(package):
        command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout == "installed"
    return [package for package in packages if not is_installed(package)]


def apt_get(log, *arguments):
    """True if it succeeded. Waits for the locks of another apt."""
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=120", "-o", "Acquire::Retries=2",
               "-o", "Acquire::http::Timeout=20"] + list(arguments)
    if os.geteuid() != 0:
        command = ["sudo", "-n"] + command
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    log.write(f"\n== {' '.join(command)}\n")
    log.flush()
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment,
                              timeout=INSTALL_LIMIT_S, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def install(work, packages, may_install):
    """Installs what is missing; one process at a time."""
    if not shutil.which("dpkg-query") or not shutil.which("apt-get"):
        raise Skip("this is not a Debian system")
    with open(work / "lock", "w", encoding="utf-8") as lock, open(work / "apt.log", "a", encoding="utf-8") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)
        absent = missing(packages)
        if not absent:
            return
        if not may_install:
            raise Skip(f"not installed: {' '.join(absent)}, which is large; `make check-debian-mpi` installs it")
        if os.geteuid() != 0 and not shutil.which("sudo"):
            raise Skip(f"not installed: {' '.join(absent)}; neither root nor sudo")
        say("installing", *absent)
        command = ["install", "-y", "--no-install-recommends"] + absent
        if not apt_get(log, *command) and not (apt_get(log, "update") and apt_get(log, *command)):
            raise Skip(f"apt cannot install {' '.join(absent)} (details in {log.name})")


def verify(packages):
    """Each file is as Debian's package has it."""
    packages = packages + OPEN_MPI
    done = subprocess.run(["dpkg", "--verify"] + packages, capture_output=True, text=True, check=False)
    # Documentation may be left out of small systems.
    changed = [line for line in done.stdout.splitlines() if "/usr/share/" not in line]
    if changed:
        raise Failed("files differ from Debian's packages:\n" + "\n".join(changed))
