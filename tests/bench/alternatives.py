# SPDX-License-Identifier: BSD-3-Clause
"""Other ways to the same memory: UCX (posix and cma), libfabric's shm provider, Open MPI; and the machine's limits."""

import os
import shutil
import socket
import subprocess
import tempfile
import time

import process

SIZES = [4096 * 4 ** i for i in range(7)]


def limits(build, program, n):
    return process.figures(process.run([build / "tests/bench" / program, "-p", "-n", str(n)]))


def libfabric(build, n):
    program = build / "bench/fabric_shm"
    if not program.exists():
        raise process.Missing("libfabric-dev is not installed")
    return process.figures(process.run([program, "-p", "-n", str(n)]))


def open_mpi(build, n, name, n_ranks):
    """The installed Open MPI over its own shared memory."""
    program = build / "bench" / name
    mpirun = shutil.which("mpirun.openmpi")
    if not program.exists() or mpirun is None:
        raise process.Missing("libopenmpi-dev is not installed")
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [mpirun, "-n", str(n_ranks), "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca",
               "btl", "self,vader", program, *(["-p"] if n_ranks == 2 else []), "-n", str(n)]
    return process.figures(process.run(command, env))


def mpirun_start(n_ranks, limit_s=process.START_LIMIT_S):
    """How long the installed mpirun takes for ranks that do nothing."""
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None:
        raise process.Missing("openmpi-bin is not installed")
    env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [mpirun, "-n", str(n_ranks), "--oversubscribe", "--bind-to", "none",
               process.idle_program(n_ranks)]
    return [(f"start{n_ranks}_time", None, process.run_ms(command, env, limit_s), "ms")]


def open_mpi_of_source(build, n, transport):
    """Two ranks of the Open MPI that tests/thirdparty/openmpi built, on two emulated nodes, over one of its BTLs."""
    program = build / "bench/mpi_pingpong_source"
    if not program.exists():
        raise process.Missing("Open MPI is not built from source (test openmpi-build)")
    env = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": f"self,{transport}"}
    command = [build / "emunic/emunic", "run", "-n", "2", "--quiet", "--", program, "-p", "-n", str(n)]
    return process.figures(process.run(command, env))


def open_shmem(build, n, n_pes):
    """Debian's OpenSHMEM. It often crashes in shmem_finalize(), behind the last figure: what it printed counts."""
    program = build / "bench/shmem_rank"
    if not program.exists():
        raise process.Missing("oshcc is not installed (libopenmpi-dev)")
    env = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", SHMEM_SYMMETRIC_SIZE="64M")
    command = ["oshrun", "-n", str(n_pes), "--oversubscribe", "--bind-to", "none", program,
               *(["-p"] if n_pes == 2 else []), "-n", str(n)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=process.LIMIT_S, env=env, check=False,
                              stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise process.Failed(f"oshrun: no end after {process.LIMIT_S} s") from None
    found = process.figures(done.stdout)
    if len(found) < (5 if n_pes == 2 else 2):
        raise process.Failed(f"oshrun: status {done.returncode}: {process.last_line(done.stderr)}")
    return found


SIMGRID_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="c" prefix="h" suffix="" radical="0-{last}" speed="1Gf" bw="10GBps" lat="1us"/>
</platform>
"""


def simgrid(build, n, n_ranks):
    """SimGrid's SMPI: the same program compiled for it, messages as flows between hosts of a cluster."""
    program = build / "bench/mpi_exchange_smpi"
    if not program.exists():
        raise process.Missing("libsimgrid-dev is not installed")
    with tempfile.TemporaryDirectory() as folder:
        platform, hosts = os.path.join(folder, "platform.xml"), os.path.join(folder, "hosts")
        with open(platform, "w", encoding="ascii") as file:
            file.write(SIMGRID_PLATFORM.format(last=n_ranks - 1))
        with open(hosts, "w", encoding="ascii") as file:
            file.writelines(f"h{i}\n" for i in range(n_ranks))
        return process.figures(process.run(
            ["smpirun", "-np", str(n_ranks), "-platform", platform, "-hostfile", hosts,
             "--cfg=smpi/simulate-computation:no", "--log=root.thresh:warning", program, "-n", str(n)]))


# ---- UCX ----

# Lines of a ucx_perftest batch: metric, size, test, data layout, iterations as a multiple of n.
def rounds(n, size):
    """As bench_rounds() in common.c."""
    return max(4, min(n, n * 8192 // size))


def posix_batch(n):
    small = [("put8_half_round_trip", 8, "put_lat", "short", n), ("put8_rate", 8, "put_bw", "short", 10 * n),
             ("get8_latency", 8, "get", "bcopy", n), ("fadd8_latency", 8, "fadd", "short", n),
             ("message8_half_round_trip", 8, "am_lat", "short", n), ("message8_rate", 8, "am_bw", "short", 10 * n)]
    return small + [("put_bandwidth", size, "put_bw", "short", rounds(n, size)) for size in SIZES]


def cma_batch(n):
    small = [("put8_half_round_trip", 8, "put_lat", "zcopy", n), ("put8_rate", 8, "put_bw", "zcopy", n),
             ("get8_latency", 8, "get", "zcopy", n)]
    return (small + [("put_bandwidth", size, "put_bw", "zcopy", rounds(n, size)) for size in SIZES] +
            [("get_bandwidth", size, "get", "zcopy", rounds(n, size)) for size in SIZES])


def free_port():
    with socket.socket() as one:
        one.bind(("", 0))
        return one.getsockname()[1]


def on_cpu(slot, command):
    cpus = process.cpus()
    return ["taskset", "-c", str(cpus[slot % len(cpus)]), *command]


def perftest(program, options, batch, env=None):
    """Output of ucx_perftest's client for a batch; the server is asked again until it listens."""
    common = [program, "-f", "-v", "-p", str(free_port())]
    client = on_cpu(0, [*common[:1], "127.0.0.1", *common[1:], *options, "-b", batch])
    env = dict(os.environ, **env or {})
    server = subprocess.Popen(on_cpu(1, [*common, "-b", batch]), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, env=env)
    try:
        end = time.monotonic() + 20
        while True:
            done = subprocess.run(client, capture_output=True, text=True, timeout=process.LIMIT_S, check=False, env=env)
            if "," in done.stdout.partition("\n")[2]:
                return done.stdout
            if server.poll() is not None or time.monotonic() > end:
                raise process.Failed(f"ucx_perftest: {process.last_line(done.stderr or done.stdout)}")
            time.sleep(0.02)
    except subprocess.TimeoutExpired:
        raise process.Failed(f"ucx_perftest: no end after {process.LIMIT_S} s") from None
    finally:
        server.kill()
        server.communicate()


def value_of(metric, columns):
    """A figure from: iterations; latency median, average, overall (us); bandwidth average, overall; rate likewise."""
    if metric.endswith("_rate"):
        return float(columns[7]) / 1e6, "M/s"
    if metric.endswith("_bandwidth"):
        return float(columns[5]) * (1 << 20) / 1e9, "GB/s"
    return float(columns[3]), "us"


def ucx_batch(build, name, batch, how, env=None):
    """The figures of a batch: how(layout) gives a line's options besides the test."""
    program = build / "thirdparty/ucx/install/bin/ucx_perftest"
    if not program.exists():
        program = shutil.which("ucx_perftest")  # Debian's ucx-utils, of the same version
    if program is None:
        raise process.Missing("UCX is not built (tests/thirdparty/ucx/build.sh)")
    with tempfile.NamedTemporaryFile("w", suffix=".batch") as file:
        for metric, size, test, layout, count in batch:
            print(f"{metric}/{size} -t {test} {how(layout)} -s {size} -n {count} -w {count // 10 + 1}", file=file)
        file.flush()
        options = [] if env else ["-x", name, "-d", "memory"]
        lines = perftest(program, options, file.name, env).splitlines()
        rows = dict(line.split(",", 1) for line in lines if "/" in line)
    found = []
    for metric, size, *_ in batch:
        row = rows.get(f"{metric}/{size}")
        if row is None:
            raise process.Failed(f"ucx_perftest over {name}: no result for {metric}/{size}")
        found.append((metric, size if metric.endswith("_bandwidth") else None, *value_of(metric, row.split(","))))
    return found


def ucx(build, transport, n):
    batch = {"posix": posix_batch, "cma": cma_batch}[transport](n)
    return ucx_batch(build, transport, batch, lambda layout: f"-D {layout}")


def ucx_tags(build, n):
    """UCX's tag matching over its posix transport."""
    batch = [(f"tag{size}_half_round_trip", size, "tag_lat", None, n) for size in (0, 8)]
    return ucx_batch(build, "posix, tags", batch, lambda layout: "", {"UCX_TLS": "posix,self"})
