#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table of settings against its readers: the man page and the code.

    settings_page.py EMUNIC ROOT            one line per finding; status 1 if there are any
    settings_page.py --apply EMUNIC ROOT    writes the table of the man page

The table in docs/man/emunic-settings.1 must be what `emunic settings --json` gives. Every EMUNIC_* variable that the
product names in a string (or in a script) must be in the table, and every text of the table must be named somewhere.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

BEGIN = '.\\" begin of the table: tests/integration/cli/settings_page.py writes it\n'
END = '.\\" end of the table\n'
FOLDERS = ["emunic", "libugni", "libdmapp", "libportals", "mpi-shim", "examples"]
TABLE = "emunic/base/settings.h"
IN_CODE = re.compile(r'"(EMUNIC_[A-Z][A-Z0-9_]*)(?:=[^"]*)?"')
IN_SCRIPT = re.compile(r"(?<![A-Z_])(EMUNIC_[A-Z][A-Z0-9_]*)")


def settings_of(emunic):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("EMUNIC_")}
    answer = subprocess.run([emunic, "settings", "--json"], check=True, capture_output=True, text=True, env=environment)
    return json.loads(answer.stdout)["settings"]


def escape(text):
    return text.replace("\\", "\\e").replace("-", "\\-")


def rows(settings):
    lines = []
    for setter, title in (("user", "Set by users"), ("launcher", "Set by emunic for what it starts")):
        lines.append(f".SS {title}")
        for row in settings:
            if row["set_by"] != setter:
                continue
            meaning = escape(row["meaning"][0].upper() + row["meaning"][1:]) + "."
            if row["type"] == "number":
                meaning += f" {row['min']} to {row['max']} {row['unit']}; default {row['default']}."
            elif row["default"]:
                meaning += f" Default: {escape(row['default'])}."
            lines += [".TP", f".B {row['name']}", meaning]
    return "\n".join(lines) + "\n"


def names_in(root):
    """{variable: a file that names it} of the product."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            name = path.relative_to(root).as_posix()
            if not path.is_file() or name == TABLE or path.suffix in (".md", ".yaml"):
                continue
            is_code = path.suffix in (".c", ".h")
            text = path.read_text(encoding="utf-8", errors="replace")
            for variable in (IN_CODE if is_code else IN_SCRIPT).findall(text):
                found.setdefault(variable, name)
    return found


def main():
    applies = sys.argv[1] == "--apply"
    emunic, root = sys.argv[-2], pathlib.Path(sys.argv[-1])
    settings = settings_of(emunic)
    page = root / "docs" / "man" / "emunic-settings.1"
    text = page.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    wanted = before + BEGIN + rows(settings) + END + after
    if applies:
        page.write_text(wanted, encoding="utf-8")
        return 0
    findings = [] if text == wanted else [f"{page.name}: the table is old; tests/integration/cli/settings_page.py --apply"]
    found = names_in(root)
    known = {row["name"] for row in settings}
    findings += [f"{found[name]}: {name} is not in {TABLE}" for name in sorted(set(found) - known)]
    findings += [f"{TABLE}: nobody reads {row['name']}" for row in settings
                 if row["type"] == "text" and row["name"] not in found]
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
