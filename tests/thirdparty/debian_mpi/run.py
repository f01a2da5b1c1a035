#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs an MPI program of Debian, unmodified, over the emulated machine, and judges what it has computed.

    run.py BUILD EMUNIC PROGRAM [--ranks N] [--machine M] [--datapath P] [--layer L] [--whole]
           [--only-installed] [--limit S]

Exit status: 0 passed, 1 failed, 2 wrong usage, 77 the program cannot be installed.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile
import time

import gromacs
import hpcc
import jobs
import lammps
import mpi4py_suite
import netpipe
import nwchem
import packages
import printed_figures

PROGRAMS = {"figures": printed_figures, "gromacs": gromacs, "hpcc": hpcc, "lammps": lammps, "mpi4py": mpi4py_suite,
            "netpipe": netpipe, "nwchem": nwchem}


def run(args):
    """One case; the folder of a failed one stays."""
    program = PROGRAMS[args.program]
    work = args.build / "thirdparty" / "debian_mpi"
    (work / "run").mkdir(parents=True, exist_ok=True)
    packages.install(work, program.PACKAGES + packages.OPEN_MPI, not args.only_installed)
    packages.verify(program.VERIFIED)
    name = f"{args.program}-{args.ranks}-{args.machine}-{args.datapath}."
    folder = pathlib.Path(tempfile.mkdtemp(prefix=name, dir=work / "run"))
    begin = time.monotonic()
    said = program.check(jobs.Setting(args, folder))
    print(f"{args.program}, {args.ranks} ranks, {args.machine}, {args.datapath}: {said} "
          f"({time.monotonic() - begin:.0f} s)", flush=True)
    shutil.rmtree(folder)


def main():
    """Exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("emunic", type=lambda name: pathlib.Path(name).resolve())
    parser.add_argument("program", choices=sorted(PROGRAMS))
    parser.add_argument("--ranks", type=int, choices=sorted(hpcc.GRIDS), default=2)
    parser.add_argument("--machine", default="aries")
    parser.add_argument("--datapath", choices=("auto", "routed"), default="auto")
    parser.add_argument("--layer", choices=("auto", "gni", "portals"), default="auto", help="of emunic run --mpi")
    parser.add_argument("--whole", action="store_true", help="of mpi4py all tests, of figures all")
    parser.add_argument("--only-installed", action="store_true", help="install nothing")
    parser.add_argument("--limit", type=int, default=300, help="seconds of one job")
    args = parser.parse_args()
    try:
        run(args)
    except packages.Skip as why:
        packages.say(f"{args.program} skipped: {why}")
        return 77
    except packages.Failed as why:
        packages.say(f"{args.program} failed: {why}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
