#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The judges of the programs' output find known faults."""

import gromacs
import hpcc
import jobs
import lammps
import mpi4py_suite
import netpipe
import nwchem
import printed_figures
from packages import Failed

HPCC = """\
    5 tests completed and passed residual checks.
||Ax-b||_oo/(eps*(||A||_oo*||x||_oo+||b||_oo)*N)=        0.0076117 ...... PASSED
Success=1
MPIRandomAccess_LCG_Errors=0
MPIRandomAccess_LCG_ErrorsFraction=0
MPIRandomAccess_Errors=0
MPIRandomAccess_ErrorsFraction=0
MPIFFT_maxErr=9.5e-16
"""
NETPIPE = "  0:       1 bytes     20 times -->  Integrity check passed\n  1:  131072 bytes     20 times -->  Integrity check passed\n"
MEASURED = "  0:       1 bytes     20 times -->   2.5 Mbps in       5.5 usec\n  1:  131075 bytes     20 times -->   79.5 Mbps in 6 usec\n"
MELT = "Step Temp E_pair \n       0    3   -6.7 \n     100    1.6  -4.7 \nLoop time of 1\n"
SUITE = "ERROR: testMemory (test_win.{0}.testMemory)\n\nRan 1358 tests in 1.2s\n\nFAILED (errors=1)\n"
SUITE_OK = "Ran 1358 tests in 1.2s\n\nOK (skipped=3)\n"
CURVE = [(4096, 11.11), (6144, 12.99), (8192, 14.78), (12288, 18.50)]
FIGURE = printed_figures.Figure("XT3-2", "xt3", "one way", "8 B", printed_figures.LATENCY, 29.0, 0.02)
HALF_WAY = next(figure for figure in printed_figures.FIGURES if figure.row == "SEASTAR-6a")
ENERGIES = [float(n) for n in range(1, 49)]


def refuses(function, *arguments):
    """True if it finds a fault."""
    try:
        function(*arguments)
    except Failed:
        return True
    return False


def accepts(function, *arguments):
    """True if it finds none."""
    return not refuses(function, *arguments)


def changed(numbers, at, factor):
    """A copy with one number changed."""
    return [n * factor if i == at else n for i, n in enumerate(numbers)]


CASES = [
    ("hpcc: good", accepts(hpcc.judge, HPCC)),
    ("hpcc: a part failed", refuses(hpcc.judge, HPCC.replace("PASSED", "FAILED"))),
    ("hpcc: no success", refuses(hpcc.judge, HPCC.replace("Success=1", "Success=0"))),
    ("hpcc: no test of PTRANS", refuses(hpcc.judge, HPCC.replace("    5 tests", "    0 tests"))),
    ("hpcc: HPL is missing", refuses(hpcc.judge, HPCC.replace("||Ax", "Ax"))),
    ("hpcc: random access", refuses(hpcc.judge, HPCC.replace("LCG_ErrorsFraction=0", "LCG_ErrorsFraction=0.02"))),
    ("hpcc: transform", refuses(hpcc.judge, HPCC.replace("9.5e-16", "1e-3"))),
    ("netpipe: good", accepts(netpipe.judge_integrity, NETPIPE) and accepts(netpipe.judge_rows, MEASURED)),
    ("netpipe: a byte differs", refuses(netpipe.judge_integrity, NETPIPE.replace("check passed", "check failed", 1))),
    ("netpipe: ends early", refuses(netpipe.judge_integrity, NETPIPE.splitlines()[0] + "\n")),
    ("netpipe: no rate", refuses(netpipe.judge_rows, MEASURED.replace("2.5 Mbps", "0.0 Mbps"))),
    ("figures: latency", printed_figures.value_of(CURVE, FIGURE) == 11.11),
    ("figures: rate", printed_figures.value_of(CURVE[2:3], FIGURE._replace(kind=printed_figures.RATE)) == 8192 / 14.78),
    ("figures: half of the rate", 8150 < printed_figures.value_of(CURVE, HALF_WAY) < 8230),
    ("figures: half of it is beyond", printed_figures.value_of(CURVE[:2], HALF_WAY) is None),
    ("figures: nothing printed", not printed_figures.judge(FIGURE, printed_figures.value_of([], FIGURE))[1]),
    ("figures: within the tolerance", printed_figures.judge(FIGURE, 29.5)[1]),
    ("figures: beyond it", not printed_figures.judge(FIGURE, 29.6)[1]),
    ("lammps: the table is read", len(lammps.thermo(MELT)) == 2),
    ("lammps: a digit differs", refuses(jobs.same_lines, "output", lammps.thermo(MELT),
                                        lammps.thermo(MELT.replace("1.6", "1.7")))),
    ("lammps: no table", refuses(jobs.same_lines, "output", [], [])),
    ("lammps: traffic", refuses(lammps.same_pairs, {(0, 1): 8}, {(0, 1): 16})),
    ("lammps: a pair is missing", refuses(lammps.same_pairs, {}, {(0, 1): 16})),
    ("gromacs: good", accepts(gromacs.same_energies, ENERGIES, changed(ENERGIES, 3, 1 + 1e-7))),
    ("gromacs: an energy differs", refuses(gromacs.same_energies, ENERGIES, changed(ENERGIES, 3, 1.001))),
    ("gromacs: too few", refuses(gromacs.same_energies, ENERGIES[:8], ENERGIES[:8])),
    ("nwchem: the energy is read", nwchem.results("         Total SCF energy =    -76.010496172412\n") ==
     ["Total SCF energy =    -76.010496"]),
    ("mpi4py: no failure", accepts(mpi4py_suite.judge, SUITE_OK, SUITE_OK)),
    ("mpi4py: an explained failure", accepts(mpi4py_suite.judge, SUITE.format("TestWinAllocateSharedWorld"), SUITE_OK)),
    ("mpi4py: another failure", refuses(mpi4py_suite.judge, SUITE.format("TestWinCreateWorld"), SUITE_OK)),
    ("mpi4py: it fails over vader, too", accepts(mpi4py_suite.judge, SUITE.format("TestX"), SUITE.format("TestX"))),
    ("mpi4py: tests are missing", refuses(mpi4py_suite.judge, SUITE_OK.replace("1358", "12"), SUITE_OK)),
    ("mpi4py: two ranks in one line", accepts(mpi4py_suite.judge, "Ran 1358 tests in 1.2sOK\n\n\nOK\n", SUITE_OK)),
    ("mpi4py: two ranks, one has failed", refuses(mpi4py_suite.judge, SUITE_OK.replace("OK", "") +
                                                  SUITE.format("TestWinCreateWorld"), SUITE_OK)),
    ("mpi4py: no total", refuses(mpi4py_suite.judge, "", SUITE_OK)),
]

print(f"1..{len(CASES)}")
for number, (name, is_so) in enumerate(CASES, 1):
    print(f"{'' if is_so else 'not '}ok {number} {name}")
