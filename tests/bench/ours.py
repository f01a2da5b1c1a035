# SPDX-License-Identifier: BSD-3-Clause
"""What the emulated NIC does, through GNI programs under `emunic run`."""

import contextlib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import process

RING_RANKS = 32
IDLE_PORTS = 8
MANY_PORTS = 136

# name in results: options of emunic run, value of EMUNIC_MEMORY
PATHS = {
    "emunic direct adopted": ("auto", "adopt"),
    "emunic direct cma": ("auto", "cma"),
    "emunic routed adopted": ("routed", "adopt"),
    "emunic routed cma": ("routed", "cma"),
}


def emunic_run(build, path, n_ranks, program, *arguments, options=()):
    datapath, memory = PATHS[path]
    command = [build / "emunic/emunic", "run", "-n", str(n_ranks), "--quiet", "--datapath", datapath, *options, "--",
               build / "tests/bench" / program, *arguments]
    return command, {"EMUNIC_MEMORY": memory}


def pair(build, path, program, n):
    """A program of two ranks. On the direct path each has a CPU; the routed path needs room for emunic to move."""
    pin = ["-p"] if PATHS[path][0] == "auto" else []
    command, env = emunic_run(build, path, 2, program, *pin, "-n", str(n))
    return process.figures(process.run(command, env))


def dmapp(build, path, n, n_pes):
    """DMAPP beside OpenSHMEM; on the direct path two PEs have a CPU each."""
    pin = ["-p"] if PATHS[path][0] == "auto" and n_pes == 2 else []
    command, env = emunic_run(build, path, n_pes, "dmapp_rank", *pin, "-n", str(n))
    return process.figures(process.run(command, env))


def shmem(build, path, n, n_pes):
    """libsma: the program that alternatives.sh compiles with oshcc."""
    pin = ["-p"] if PATHS[path][0] == "auto" and n_pes == 2 else []
    command, env = emunic_run(build, path, n_pes, "sma_rank", *pin, "-n", str(n))
    return process.figures(process.run(command, env))


def portals(build, path, n):
    """Portals between two ranks; on the direct path each has a CPU and does the matching itself."""
    command, env = emunic_run(build, path, 2, "portals_rank", *(["-p"] if PATHS[path][0] == "auto" else ["-r"]), "-n",
                              str(n))
    return process.figures(process.run(command, env))


def mpi(build, n, layer, name, n_ranks):
    """The same program of the installed Open MPI as in alternatives.open_mpi(), each rank on a node of its own."""
    program = build / "bench" / name
    if not program.exists():
        raise process.Missing("libopenmpi-dev is not installed")
    command = [build / "emunic/emunic", "run", "--quiet", f"--mpi={layer}", "-n", str(n_ranks), "--ppn", "1",
               "--machine", "aries", "--", program, *(["-p"] if n_ranks == 2 else []), "-n", str(n)]
    return process.figures(process.run(command))


def virtual_mpi(build, n, n_ranks):
    """The installed Open MPI over our component in virtual time: each packet crosses the simulated network."""
    program = build / "bench/mpi_exchange"
    if not program.exists():
        raise process.Missing("libopenmpi-dev is not installed")
    command = [build / "emunic/emunic", "run", "--quiet", "--mpi", "-n", str(n_ranks), "--ppn", "1", "--machine", "aries",
               "--time", "virtual", "--", program, "-n", str(n)]
    return process.figures(process.run(command, {"OMPI_ALLOW_RUN_AS_ROOT": "1",
                                                 "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}))


def hosts(build, n, options=()):
    """Two hosts in namespaces of their own, beside libfabric by itself between the same two processes."""
    cluster = pathlib.Path(__file__).resolve().parent.parent / "multihost/cluster.py"
    output = process.run([sys.executable, cluster, "-n", "2", build / "emunic/emunic", "run", "--quiet", "--hosts", "h0,h1",
                          *options, "-n", "2", "--", build / "tests/bench/hosts_pair", "-n", str(n)])
    if "# SKIP" in output:
        raise process.Missing(output.split("# SKIP", 1)[1].strip())
    return process.figures(output)


def gups(build, path):
    command, env = emunic_run(build, path, 4, "../../examples/dmapp_gups", "-l", "18", "-n", "4000000")
    found = re.search(r"([0-9.]+) M updates/s per PE", process.run(command, env))
    return [("gups_per_pe", None, float(found.group(1)), "M/s")]


def register(build, path, n):
    command, env = emunic_run(build, path, 1, "gni_register_rank", "-n", str(n))
    return process.figures(process.run(command, env))


def ring(build, path, n):
    command, env = emunic_run(build, path, RING_RANKS, "gni_ring_rank", "-n", str(n))
    return process.figures(process.run(command, env))


def serving_process(parent):
    """The emunic that a launcher started."""
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text()
            command = (folder / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if int(status.rsplit(")", 1)[1].split()[1]) == parent and command.startswith(b"emunic serve "):
            return int(folder.name)
    raise process.Failed("no emunic below `emunic run`")


def start(build, n_ranks):
    """How long a job takes whose ranks do nothing, or next to nothing."""
    command = [build / "emunic/emunic", "run", "--quiet", "-n", str(n_ranks), "--", process.idle_program(n_ranks)]
    return [(f"start{n_ranks}_time", None, process.run_ms(command), "ms")]


@contextlib.contextmanager
def idle_job(build, path, n_ports, limit_s=process.LIMIT_S, options=()):
    """The process id of an emunic with so many ports, while nobody does anything."""
    with tempfile.TemporaryDirectory() as folder:
        fifo = os.path.join(folder, "go")
        os.mkfifo(fifo)
        go = os.open(fifo, os.O_RDWR)
        command, env = emunic_run(build, path, n_ports, "gni_idle_rank", fifo, options=options)
        job = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               env=dict(os.environ, **env), text=True)
        try:
            if job.stdout.readline() != "attached\n":
                raise process.Failed("idle job did not start")
            yield serving_process(job.pid)
            os.write(go, b"x" * n_ports)
            if job.wait(timeout=limit_s) != 0:
                raise process.Failed(f"idle job ended with {job.returncode}")
        finally:
            os.close(go)
            if job.poll() is None:
                job.terminate()
                job.wait()


def idle(build, path, seconds):
    """Share of a CPU that emunic uses while 8 ports are attached and nobody does anything."""
    with idle_job(build, path, IDLE_PORTS) as pid:
        time.sleep(0.2)
        before, start_s = process.cpu_s(pid), time.monotonic()
        time.sleep(seconds)
        used = (process.cpu_s(pid) - before) / (time.monotonic() - start_s)
    return [("idle_cpu", None, 100 * used, "%")]


def port_memory(build, path):
    """What emunic's resident memory, shared pages included, grows by for each port more."""
    resident = []
    for n_ports in (IDLE_PORTS, MANY_PORTS):
        with idle_job(build, path, n_ports) as pid:
            resident.append(process.resident_kib(pid))
    return [("port_memory", None, (resident[1] - resident[0]) / (MANY_PORTS - IDLE_PORTS), "KiB")]
