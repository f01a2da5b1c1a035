# SPDX-License-Identifier: BSD-3-Clause
"""LAMMPS: a Lennard-Jones melt, whose thermodynamic output and traffic are those of a run over vader."""

import re

from jobs import same_lines
from packages import Failed

HEADERS_OVER_GNI = 0.05   # of pml/ob1 and btl/gni, a share of the data; Portals has them outside of the payload
PACKAGES = ["lammps"]
VERIFIED = ["lammps", "liblammps0"]
MELT = """\
units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 8 0 8 0 8
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 10
run 100
"""


def thermo(text):
    """The lines below Step Temp ..."""
    table = re.search(r"^Step Temp .*\n((?: +\d+ .*\n)+)Loop time", text, re.MULTILINE)
    return table.group(1).splitlines() if table else []


def same_pairs(ours, theirs, headers=0.0):
    """Each two ranks have exchanged what Open MPI has counted; with headers at least that, and so much more in all."""
    for pair in sorted(set(ours) | set(theirs)):
        got, counted = ours.get(pair, 0), theirs.get(pair, 0)
        if got < counted or (got > counted and not headers):
            raise Failed(f"ranks {pair}: {got} bytes on the machine, Open MPI counts {counted}")
    excess = sum(ours.values()) / max(1, sum(theirs.values())) - 1
    if excess > headers:
        raise Failed(f"{excess:.1%} more bytes on the machine than Open MPI counts")
    return f"{sum(ours.values())} bytes of {len(ours)} pairs as pml/monitoring counts them, and {excess:.1%} of headers"


def check(setting):
    """Both runs, and two whose collective calls are Open MPI's own: one that it monitors. Rank N is on node N."""
    (setting.folder / "in.melt").write_text(MELT, encoding="utf-8")
    command = ["lmp", "-in", "in.melt", "-log", "none"]
    headers = HEADERS_OVER_GNI if setting.is_over_gni else 0.0
    ours = thermo(setting.on_machine("machine", *command, options=("--first-nid", "0")))
    said = same_lines("thermodynamic output", ours, thermo(setting.over_vader("vader", *command)))
    setting.on_machine("counted", *command, options=("--first-nid", "0", "-x", "OMPI_MCA_coll_flat_enable=0"))
    return f"{said}; {same_pairs(setting.pairs(), setting.monitored_pairs(*command), headers)}"
