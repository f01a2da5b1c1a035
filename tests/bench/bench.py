#!/usr/bin/python3 -B
# SPDX-License-Identifier: BSD-3-Clause
"""The emulated NIC beside the alternatives and the machine's limits, all in one run.

Every repetition runs every part once, in turn, so that a noisy machine hits all alike. A bound holds if the worse
quartile of the ratios of single repetitions keeps it; the ratio of medians stands beside. The table goes to stdout and,
with bench.json, the ratios for a page (bench.md) and one plot for each metric, into the output folder.
"""

import argparse
import json
import pathlib
import platform
import sys

import alternatives
import ours
import plots
import process
import report
import sim_sizes
import virtual

DIRECT, CMA, ROUTED, ROUTED_CMA = ours.PATHS

LIBRARY_MEMORY = ("GNI has no call that returns memory, so there is none from the library; it would be mapped by peers "
                  "as adopted memory is, and cost nothing to register")


def pair_parts(build, path, n, programs):
    return [(path, f"{path}: {program}", lambda p=program: ours.pair(build, path, p, n)) for program in programs]


def parts(build, n, idle_s):
    """[(who, part, function that gives figures)], in the order of one repetition."""
    programs = ["gni_latency_rank", "gni_smsg_rank", "gni_bandwidth_rank"]
    return [
        ("limit", "limits: hand_over", lambda: alternatives.limits(build, "hand_over", n)),
        *pair_parts(build, DIRECT, n, programs),
        ("ucx posix", "UCX posix", lambda: alternatives.ucx(build, "posix", n)),
        ("limit", "limits: copies", lambda: alternatives.limits(build, "copies", n)),
        *pair_parts(build, CMA, n, programs),
        ("ucx cma", "UCX cma", lambda: alternatives.ucx(build, "cma", n)),
        *pair_parts(build, ROUTED, n // 4, programs),
        ("libfabric shm", "libfabric shm", lambda: alternatives.libfabric(build, n)),
        *pair_parts(build, ROUTED_CMA, n // 4, programs),
        *((who, f"Open MPI, {program} of {n_ranks}: {who}", lambda f=function, p=program, r=n_ranks: f(p, r))
          for program, n_ranks in (("mpi_pingpong", 2), ("mpi_group", 2), ("mpi_group", 4), ("mpi_group", 16))
          for who, function in (("open mpi", lambda p, r: alternatives.open_mpi(build, n, p, r)),
                                ("emunic mpi gni", lambda p, r: ours.mpi(build, n, "gni", p, r)),
                                ("emunic mpi portals", lambda p, r: ours.mpi(build, n, "portals", p, r)))),
        ("mpi over vader", "Open MPI from source, btl/vader",
         lambda: alternatives.open_mpi_of_source(build, n, "vader")),
        ("mpi over ugni", "Open MPI from source, btl/ugni", lambda: alternatives.open_mpi_of_source(build, n, "ugni")),
        *((who, f"DMAPP beside OpenSHMEM, {n_pes} PEs: {who}", lambda f=function, p=n_pes: f(p))
          for n_pes in (2, 4, 16)
          for who, function in (("emunic dmapp", lambda p: ours.dmapp(build, DIRECT, n, p)),
                                ("emunic shmem", lambda p: ours.shmem(build, DIRECT, n, p)),
                                ("open shmem", lambda p: alternatives.open_shmem(build, n, p)))),
        ("emunic dmapp", "DMAPP random access", lambda: ours.gups(build, DIRECT)),
        ("emunic portals", "Portals", lambda: ours.portals(build, DIRECT, n)),
        ("ucx posix", "UCX posix, tags", lambda: alternatives.ucx_tags(build, n)),
        ("emunic portals routed", "Portals, routed", lambda: ours.portals(build, ROUTED, n // 4)),
        *((who, f"virtual time beside SimGrid, {n_ranks} ranks: {who}", lambda f=function, p=n_ranks: f(build, n, p))
          for n_ranks in (2, 16, 64)
          for who, function in (("emunic virtual time", ours.virtual_mpi), ("simgrid", alternatives.simgrid))),
        ("emunic virtual time", "virtual time: packets of a live run", lambda: virtual.live_hop(build, 1)),
        ("emunic sim", "virtual time: packets of the simulator alone", lambda: virtual.bare_hop(build)),
        ("emunic sim", "packets of the simulator, 512 to 92 544 nodes", lambda: sim_sizes.hop_times(build)),
        ("emunic virtual time", "virtual time: idle nodes", lambda: virtual.idle_memory(build)),
        ("two hosts", "two hosts over veth, beside libfabric", lambda: ours.hosts(build, n // 4)),
        ("two hosts, secure", "two hosts over veth, secure, beside libfabric",
         lambda: ours.hosts(build, n // 4, ["--secure"])),
        (DIRECT, "registration, adopted", lambda: ours.register(build, DIRECT, n)),
        (CMA, "registration, cma", lambda: ours.register(build, CMA, n)),
        (DIRECT, "ring", lambda: ours.ring(build, DIRECT, n)),
        (ROUTED, "ring, routed", lambda: ours.ring(build, ROUTED, n)),
        (DIRECT, "idle emunic", lambda: ours.idle(build, DIRECT, idle_s)),
        (DIRECT, "idle emunic, memory of a port", lambda: ours.port_memory(build, DIRECT)),
        *((who, f"start of {n_ranks} ranks: {who}", lambda f=function, p=n_ranks: f(p))
          for n_ranks in (4, 256)
          for who, function in ((DIRECT, lambda p: ours.start(build, p)),
                                ("mpirun", alternatives.mpirun_start))),
    ]


def measure(everything, repetitions):
    """Results, and whether all of ours gave some."""
    results = report.Results()
    ours_failed = False
    for repetition in range(repetitions):
        for who, part, function in everything:
            if sys.stderr.isatty():
                print(f"\r\033[K{repetition + 1}/{repetitions} {part}", end="", file=sys.stderr, flush=True)
            try:
                results.add(who, function(), repetition)
            except (process.Failed, process.Missing) as reason:
                results.missing[part] = f"{reason} (repetition {repetition + 1})" if isinstance(
                    reason, process.Failed) else str(reason)
                ours_failed = ours_failed or who.startswith(("emunic", "limit"))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    return results, ours_failed


def machine():
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())
    return {"cpu": model, "n_cpus": len(process.cpus()), "kernel": platform.release()}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, epilog="example: bench.py build --quick --only latency")
    parser.add_argument("build", type=pathlib.Path, help="Meson build folder")
    parser.add_argument("-q", "--quick", action="store_true", help="few operations, one repetition: under a minute")
    parser.add_argument("-r", "--repetitions", type=int, help="default: 5, with --quick 1")
    parser.add_argument("-n", "--operations", type=int,
                        help="of a latency measurement; default: 20000, with --quick 4000")
    parser.add_argument("-o", "--output", type=pathlib.Path, default=pathlib.Path("bench-out"),
                        help="default: bench-out")
    parser.add_argument("--only", metavar="TEXT", action="append",
                        help="parts whose name contains the text; repeatable")
    parser.add_argument("--no-plots", action="store_true")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    args = parser.parse_args()
    args.repetitions = args.repetitions or (1 if args.quick else 5)
    args.operations = args.operations or (4000 if args.quick else 20000)
    return args


def main():
    args = arguments()
    build = args.build.resolve()
    everything = [part for part in parts(build, args.operations, 1 if args.quick else 5)
                  if not args.only or any(text in part[1] for text in args.only)]
    if not everything:
        print("bench.py: --only: no part has such a name", file=sys.stderr)
        return 2

    results, ours_failed = measure(everything, args.repetitions)
    if not args.only:
        results.missing["library-allocated memory"] = LIBRARY_MEMORY
    args.output.mkdir(parents=True, exist_ok=True)
    if not args.no_plots:
        try:
            plots.draw_all(results, args.output)
        except process.Missing as reason:
            results.missing["plots"] = str(reason)

    text = "\n".join(report.table(results, args.repetitions)) + "\n"
    whole = json.dumps(report.as_object(results, machine() | {"repetitions": args.repetitions})) + "\n"
    (args.output / "bench.json").write_text(whole)
    (args.output / "bench.txt").write_text(text)
    (args.output / "bench.md").write_text("\n".join(report.markdown(results)) + "\n")
    print(whole if args.json else text, end="")
    return 1 if ours_failed else 0


if __name__ == "__main__":
    sys.exit(main())
