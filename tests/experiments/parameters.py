#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that experiments use no parameter but those of the machine files and of the ledger.

    parameters.py ROOT EMUNIC     one line per finding; status 1 if there are any
    parameters.py --self-test     tries the check on sources and files with known faults

- A named constant of emunic/experiments (#define, enum with a value, static const number) is in constants.txt with what
  it is: run (how something is measured), workload (what is sent), source (a figure to compare with), unit, shape (of the
  machine, which the source gives), limit (of an array), name (numbers things). There is no word for a parameter of the
  model: that belongs into a machine file or the ledger.
- A member of a host, router or NIC is set in an experiment only where constants.txt says so ("set").
- A key of a machine file whose comment says "K: ID" is in the ledger as fitted, and the other way round.
- A row of the ledger without a value names keys of its machine's file.
"""

import json
import pathlib
import re
import subprocess
import sys

SORTS = {"run", "workload", "source", "unit", "shape", "limit", "name", "set"}
DEFINE = re.compile(r"^#define\s+(\w+)\s+(?=.*\d)(?![^/]*\\$)", re.M)
ENUM = re.compile(r"\benum(?:\s+\w+)?\s*\{([^}]*)\}")
CONST = re.compile(r"^\s*static const (?:double|float|u?int\d*_t|int|size_t)\s+(\w+)(?:\[[^=]*)?\s*=", re.M)
MEMBER = re.compile(r"(?:\bhost|params\.(?:router|nic|link\[\w+\]|host|torus\.bgl))\.(\w+)\s*[-+*/]?=(?!=)")
COMMENT = re.compile(r"/\*.*?\*/", re.S)


def constants(text):
    """Named numbers of a source, and members of hosts that it sets."""
    text = COMMENT.sub(" ", text)
    names = [(m.group(1), "constant") for m in DEFINE.finditer(text)]
    names += [(m.group(1), "constant") for m in CONST.finditer(text)]
    for body in ENUM.findall(text):
        names += [(m.group(1), "constant") for m in re.finditer(r"(\w+)\s*=(?!\s*0\s*(?:,|$))(?!\s*sizeof)[^,]*\d", body)]
    names += [(m.group(1), "set") for m in MEMBER.finditer(text)]
    return dict.fromkeys(names)


def read_allowed(text):
    allowed = {}
    for line in text.splitlines():
        words = line.split("#")[0].split(None, 3)
        if words:
            allowed[words[0], words[1]] = words[2] if len(words) > 2 else ""
    return allowed


def source_findings(sources, allowed):
    seen = set()
    for name, text in sources.items():
        for constant, what in constants(text):
            seen.add((name, constant))
            sort = allowed.get((name, constant))
            if sort not in SORTS or (sort == "set") != (what == "set"):
                yield (f"{name}: {constant}: a parameter belongs into a machine file or the ledger; what is none is "
                       "listed in tests/experiments/constants.txt")
    for name, constant in sorted(set(allowed) - seen):
        yield f"constants.txt: {name} has no {constant}"


def keys_of(text):
    """Keys of a machine file, as paths, with the comment on the line."""
    keys, path = {}, []
    for line in text.splitlines():
        match = re.match(r"( *)([a-z_0-9]+):\s*(\S[^#]*?)?\s*(#.*)?$", line)
        if match:
            depth = len(match.group(1)) // 2
            path = path[:depth] + [match.group(2)]
            if match.group(3):
                keys[".".join(path)] = match.group(4) or ""
    return keys


def ledger_findings(ledger, machines):
    files = {name: keys_of(text) for name, text in machines.items()}
    fitted = set()
    for row in ledger:
        own = files.get(row["machine"], {})
        for key in row["parameter"].split("+") if "value" not in row and row["machine"] != "all" else []:
            if key not in own:
                yield f"ledger: {row['machine']} has no {key}"
            elif row["sort"] == "fitted":
                fitted.add((row["machine"], key))
                if f"K: {row['experiment']}" not in own[key]:
                    yield f"{row['machine']}.yaml: {key}: the ledger has it as fitted by {row['experiment']}"
    for name, keys in files.items():
        for key, comment in keys.items():
            if re.search(r"\bK: [A-Z]", comment) and (name, key) not in fitted:
                yield f"{name}.yaml: {key}: fitted, but not in the ledger"


def self_test():
    allowed = read_allowed("a.c N limit\na.c MB unit # of text\na.c send_ps set\n")
    good = "enum { N = 4 };\n#define MB 1e6\nx->host.send_ps = 0;\n"
    bad = 0
    for text, n in {good: 0, good + "#define GAP_NS 365.0\n": 1, good + "enum { A, GAP_NS = 5 };\n": 1,
                    good + "static const double gap_us = 0.05;\n": 1, good + "b->setup.host.recv_ps = 9;\n": 1,
                    good + "/* #define GAP_NS 3 */ if (host.gap_ps == 3)\n": 0, good.replace("MB", "GAP"): 2}.items():
        found = list(source_findings({"a.c": text}, allowed))
        if len(found) != n:
            bad = print(f"self-test: {found} instead of {n} findings: {text}") or 1
    row = {"machine": "m", "parameter": "host.a_ns+host.b_ns", "sort": "fitted", "experiment": "M-1"}
    good = "host:\n  a_ns: 1   # K: M-1\n  b_ns: 2   # half (K: M-1)\n  c_ns: 3   # [OUR]\n"
    for text, n in {good: 0, good.replace("# [OUR]", "# K: M-2"): 1, good.replace("b_ns", "d_ns"): 2,
                    good.replace("# K: M-1", "# [OUR]"): 1}.items():
        found = list(ledger_findings([row], {"m": text}))
        if len(found) != n:
            bad = print(f"self-test: {found} instead of {n} findings: {text}") or 1
    return bad


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    root = pathlib.Path(sys.argv[1])
    done = subprocess.run([sys.argv[2], "sim", "list", "--json"], stdout=subprocess.PIPE, check=True)
    folder = root / "emunic" / "experiments"
    sources = {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.[ch]"))
               if not path.name.startswith("ledger.")}
    machines = {path.stem: path.read_text(encoding="utf-8")
                for path in sorted((root / "emunic" / "machines").glob("*.yaml"))}
    allowed = read_allowed((root / "tests" / "experiments" / "constants.txt").read_text(encoding="utf-8"))
    found = [*source_findings(sources, allowed), *ledger_findings(json.loads(done.stdout)["ledger"], machines)]
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
