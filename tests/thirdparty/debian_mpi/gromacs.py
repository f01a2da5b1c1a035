# SPDX-License-Identifier: BSD-3-Clause
"""GROMACS: a box of water, whose energies are those of a run over vader within rounding."""

import math
import re
import subprocess

from packages import Failed

PACKAGES = ["gromacs"]
VERIFIED = ["gromacs", "libgromacs7"]
BOX_NM = "3.7"
# Single precision, sums in the order of the ranks; -reprod makes it the same in all runs we know.
TOLERANCE = 1e-5
TOPOLOGY = '#include "oplsaa.ff/forcefield.itp"\n#include "oplsaa.ff/spce.itp"\n[ system ]\nwater\n[ molecules ]\n'
PARAMETERS = """\
integrator = md
nsteps = 50
dt = 0.001
nstlog = 10
nstenergy = 10
nstcalcenergy = 10
cutoff-scheme = Verlet
coulombtype = PME
rcoulomb = 0.8
rvdw = 0.8
fourierspacing = 0.12
constraints = h-bonds
gen-vel = yes
gen-temp = 300
gen-seed = 173529
"""


def energies(log):
    """The numbers of each table of energies."""
    numbers = []
    for table in re.findall(r"Energies \(kJ/mol\)\n((?:.+\n)+)", log):
        numbers += [float(word) for word in re.findall(r"-?\d\.\d+e[+-]\d+", table)]
    return numbers


def same_energies(ours, theirs):
    """All within rounding; returns how many."""
    if len(ours) != len(theirs) or len(theirs) < 6 * 8:
        raise Failed(f"{len(ours)} energies, over vader {len(theirs)}")
    for one, other in zip(ours, theirs):
        if not math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE):
            raise Failed(f"an energy of {one}, over vader {other}")
    return sum(one == other for one, other in zip(ours, theirs))


def prepare(folder):
    """The box and the input of the run, by the serial tools."""
    (folder / "water.top").write_text(TOPOLOGY, encoding="utf-8")
    (folder / "md.mdp").write_text(PARAMETERS, encoding="utf-8")
    for arguments in (["solvate", "-cs", "spc216", "-box", BOX_NM, BOX_NM, BOX_NM, "-o", "water.gro", "-p", "water.top"],
                      ["grompp", "-f", "md.mdp", "-c", "water.gro", "-p", "water.top", "-o", "water.tpr", "-maxwarn", "2"]):
        done = subprocess.run(["gmx", *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise Failed(f"gmx {arguments[0]}: {done.stderr[-2000:]}")


def check(setting):
    """Both runs."""
    prepare(setting.folder)
    command = ["gmx_mpi", "mdrun", "-s", "water.tpr", "-reprod", "-ntomp", "1", "-pin", "off", "-npme", "0", "-dlb",
               "no", "-notunepme", "-deffnm"]
    setting.on_machine("machine", *command, "ours")
    setting.over_vader("vader", *command, "theirs")
    ours, theirs = (energies((setting.folder / f"{name}.log").read_text()) for name in ("ours", "theirs"))
    return f"{same_energies(ours, theirs)} of {len(ours)} energies are equal, the others within {TOLERANCE}"
