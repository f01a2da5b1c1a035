# SPDX-License-Identifier: BSD-3-Clause
"""NWChem: energy and forces of a water molecule, over Global Arrays, as over vader."""

import re

from jobs import same_lines

PACKAGES = ["nwchem"]
VERIFIED = ["nwchem-openmpi"]
WATER = """\
start water
memory 100 mb
geometry units angstroms
 O 0.0 0.0 0.0
 H 0.0 0.757 0.587
 H 0.0 -0.757 0.587
end
basis
 * library 6-31g*
end
task scf gradient
"""


def results(text):
    """Total energy, its parts, and the forces on each atom."""
    energy = re.findall(r"^ +((?:Total SCF|One-electron|Two-electron|Nuclear repulsion) energy = +-?\d+\.\d{6})", text,
                        re.MULTILINE)
    forces = re.findall(r"^ +\d [OH] (?: +-?\d+\.\d{6}){6}$", text, re.MULTILINE)
    zero = [re.sub(r"-(0\.0+)\b", r" \1", line) for line in forces]
    return energy + zero


def check(setting):
    """Both runs."""
    (setting.folder / "water.nw").write_text(WATER, encoding="utf-8")
    ours = results(setting.on_machine("machine", "nwchem", "water.nw"))
    return same_lines("energies and forces", ours, results(setting.over_vader("vader", "nwchem", "water.nw")))
