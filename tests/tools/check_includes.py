#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks that includes point one way and that every source file names its licence.

    mpi-shim -> libdmapp -> libugni -> emunic/client -> emunic/engine -> emunic/abi
    mpi-shim -> libportals -> emunic/client
    emunic/cli -> emunic/daemon -> {engine, fabric, transport, place} -> abi
    emunic/cli -> emunic/experiments -> emunic/model -> fabric

emunic/base serves everybody above abi but the engine. Examples see public headers only; tests may see anything.
Project headers are included in quotes by their path from the root of the tree, public ones in angle brackets.

    check_includes.py ROOT          one line per finding; status 1 if there are any
    check_includes.py --self-test   tries the checks on a small tree with known faults
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile

# Component -> components that it may include, besides itself. Longest path wins.
_CHAIN = ["mpi-shim", "libdmapp", "libugni", "emunic/client", "emunic/engine", "emunic/abi"]
ALLOWED = {name: set(_CHAIN[i + 1:]) | {"emunic/base"} for i, name in enumerate(_CHAIN)}
ALLOWED["mpi-shim"].add("libportals")
ALLOWED.update({
    "libportals": {"emunic/client", "emunic/engine", "emunic/base", "emunic/abi"},
    "emunic/engine": {"emunic/abi"},
    "emunic/abi": set(),
    "emunic/base": {"emunic/abi"},
    "emunic/fabric": {"emunic/base", "emunic/abi"},
    "emunic/transport": {"emunic/base", "emunic/abi"},
    "emunic/place": set(),
    "emunic/daemon": {"emunic/engine", "emunic/fabric", "emunic/model", "emunic/transport", "emunic/place", "emunic/base", "emunic/abi"},
    "emunic/model": {"emunic/fabric", "emunic/base", "emunic/abi"},
    "emunic/experiments": {"emunic/model", "emunic/fabric", "emunic/base", "emunic/abi"},
    "emunic/cli": {"emunic/daemon", "emunic/experiments", "emunic/model", "emunic/client", "emunic/engine",
                   "emunic/fabric", "emunic/base", "emunic/abi"},
    "emunic/mover": {"emunic/engine", "emunic/base", "emunic/abi"},
    "emunic/doctor": {"emunic/base", "emunic/cli", "emunic/transport", "emunic/place"},
    "examples": set(),
})
ANYTHING = {"tests"}

# Floors inside a component: a folder may include itself and those before it.
FLOORS = {
    "emunic/daemon": ["rights", "world", "core", "peers", "movers", "virtual", "places", "bind", "errors", "orders", "injection", "ce",
                      "portals", "faults", "network", "msgq", "datagrams", "commands", "memory", "jobs", "resources",
                      "reports"],
}

# The engine knows neither threads nor sockets, the fabric no processes; its simulator runs partitions in threads.
NOT_FOR = {
    "emunic/engine": {"pthread.h", "threads.h", "sys/socket.h", "sys/un.h"},
    "emunic/fabric": {"threads.h", "sys/socket.h", "sys/un.h", "sys/wait.h", "signal.h"},
}

# Made by Meson: the command and the wrapper that it starts ranks through know where things are installed.
GENERATED = {"emunic-config.h": {"emunic/cli", "mpi-shim"}}
# Public headers in angle brackets. libdmapp starts through PMI, as the original does; the map of Portals addresses that
# PMI gives is of Portals' types.
PUBLIC_FOR = {"examples": {"libugni", "libdmapp", "libportals", "mpi-shim"}, "libdmapp": {"mpi-shim"},
              "mpi-shim": {"libportals"}}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')
COMMENT_START = {".c": "/* {} */", ".h": "/* {} */", ".map": "/* {} */", ".py": "# {}", ".sh": "# {}", ".yaml": "# {}",
                 "meson.build": "# {}", "meson_options.txt": "# {}", "Makefile": "# {}"}
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"


def component_of(path):
    """Component that a file belongs to, or None."""
    parts = path.split("/")
    for depth in (2, 1):
        name = "/".join(parts[:depth])
        if name in ALLOWED or name in ANYTHING:
            return name
    return None


def source_files(root):
    """Files of the tree by their path from the root; build folders and what is hidden are left out."""
    for folder, subfolders, names in os.walk(root):
        at = pathlib.Path(folder)
        if at == root:
            subfolders[:] = [name for name in subfolders if not name.startswith("build")]
        subfolders[:] = [name for name in subfolders if not name.startswith(".") and name != "__pycache__"
                         and not (at / name / "meson-private").is_dir()]
        for name in sorted(names):
            yield (at / name).relative_to(root).as_posix()


def public_headers(paths):
    """Name in angle brackets -> component, for all that is below an include folder."""
    found = {}
    for path in paths:
        before, folder, name = path.partition("/include/")
        if folder and name.endswith(".h") and not before.startswith("tests"):
            found[name] = component_of(path)
    return found


def floor_of(component, path):
    """Number of the floor that a file is on; what lies above all folders is on the last one. None: no such folder."""
    rest = path[len(component) + 1:]
    floors = FLOORS[component]
    if "/" not in rest:
        return len(floors)
    folder = rest.split("/")[0]
    return floors.index(folder) if folder in floors else None


def check_floor(component, path, name):
    """What is wrong with an include inside a component that has floors, or None."""
    own, other = floor_of(component, path), floor_of(component, name)
    if own is None or other is None:
        return f"{path if own is None else name} is on no floor of {component}"
    return f"an arrow up: {name} is on a floor above" if other > own else None


def check_include(component, path, name, is_quoted, public, paths):
    """What is wrong with one include, or None."""
    target = component_of(name) if is_quoted else public.get(name)
    if is_quoted and target == component and component in FLOORS:
        return check_floor(component, path, name)
    allowed = ALLOWED.get(component, set())
    if is_quoted and name in GENERATED:
        return None if component in GENERATED[name] else f"{component} may not know how it was configured"
    if is_quoted and name not in paths:
        return f'"{name}" is no path from the root of the tree'
    if is_quoted and target is None:
        return f'"{name}" belongs to no component'
    if not is_quoted and name in NOT_FOR.get(component, ()):
        return f"{component} may not use <{name}>"
    if target is None or target == component or target in allowed:
        return None
    if not is_quoted and target in PUBLIC_FOR.get(component, ()):
        return None
    return f"{component} may not include {target}"


def check_file(root, path, public, paths):
    """Findings in one file."""
    name = path.rsplit("/", 1)[-1]
    suffix = name if name in COMMENT_START else pathlib.PurePosixPath(name).suffix
    if suffix not in COMMENT_START:
        return
    text = (root / path).read_text(encoding="utf-8", errors="replace")
    lines = text.splitlines()
    first = 1 if lines and lines[0].startswith("#!") else 0
    if len(lines) <= first or lines[first] != COMMENT_START[suffix].format(LICENCE):
        yield f"{path}:{first + 1}: the first line is not the licence"
    component = component_of(path)
    if suffix not in (".c", ".h") or component in ANYTHING:
        return
    for number, line in enumerate(lines, 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        if component is None:
            yield f"{path}:{number}: belongs to no component"
            return
        fault = check_include(component, path, found.group(1) or found.group(2), found.group(1) is not None, public,
                              paths)
        if fault:
            yield f"{path}:{number}: {fault}"


def check(root):
    """All findings in a tree."""
    paths = list(source_files(root))
    public = public_headers(paths)
    known = set(paths)
    return [finding for path in paths for finding in check_file(root, path, public, known)]


# ---- self-test ----

C = f"/* {LICENCE} */\n"
GOOD = {
    "emunic/abi/abi.h": C + "#include <stdint.h>\n",
    "emunic/base/log.h": C + '#include "emunic/abi/abi.h"\n',
    "emunic/engine/completion_queue.h": C + '#include "emunic/abi/abi.h"\n',
    "emunic/client/port.h": C + '#include "emunic/engine/completion_queue.h"\n#include "emunic/base/log.h"\n#include <pthread.h>\n',
    "emunic/fabric/link.h": C + '#include "emunic/base/log.h"\n',
    "emunic/daemon/core/server.h": C + '#include "emunic/fabric/link.h"\n#include "emunic/engine/completion_queue.h"\n',
    "emunic/daemon/daemon.c": C + '#include "emunic/daemon/jobs/job_control.h"\n#include "emunic/daemon/server.h"\n',
    "emunic/daemon/world/domain.h": C,
    "emunic/daemon/jobs/job_control.h": C + '#include "emunic/daemon/world/domain.h"\n',
    "emunic/cli/main.c": C + '#include "emunic/daemon/core/server.h"\n#include "emunic/client/port.h"\n'
                             '#include "emunic-config.h"\n',
    "libugni/include/gni_pub.h": C,
    "libugni/src/ep.c": C + '#include <gni_pub.h>\n#include "emunic/client/port.h"\n',
    "libdmapp/src/put.c": C + "#include <gni_pub.h>\n",
    "mpi-shim/pmi/include/pmi.h": C,
    "mpi-shim/pmi/src/pmi.c": C + '#include <pmi.h>\n#include "emunic/base/log.h"\n',
    "examples/common.h": C + "#include <gni_pub.h>\n#include <pmi.h>\n",
    "examples/ring.c": C + '#include "examples/common.h"\n',
    "tests/unit/emunic/test_cq.c": C + '#include "emunic/daemon/core/server.h"\n#include "no/such/file.h"\n',
    "tools/run.py": f"#!/usr/bin/env python3\n# {LICENCE}\n",
    "tools/run.sh": f"#!/bin/sh\n# {LICENCE}\n",
    "meson.build": f"# {LICENCE}\nproject('x')\n",
    "README.md": "no licence line needed\n",
    "build/emunic-config.h": "not ours\n",
}
BAD = {
    "emunic/abi/bad.h": (C + '#include "emunic/base/log.h"\n', "2: emunic/abi may not include emunic/base"),
    "emunic/base/bad.c": (C + '#include "emunic/client/port.h"\n', "2: emunic/base may not include emunic/client"),
    "emunic/engine/bad1.c": (C + '\n#include "emunic/base/log.h"\n', "3: emunic/engine may not include emunic/base"),
    "emunic/engine/bad2.c": (C + "  #  include <pthread.h>\n", "2: emunic/engine may not use <pthread.h>"),
    "emunic/engine/bad3.c": (C + "#include <gni_pub.h>\n", "2: emunic/engine may not include libugni"),
    "emunic/client/bad.c": (C + '#include "emunic/daemon/core/server.h"\n',
                            "2: emunic/client may not include emunic/daemon"),
    "emunic/fabric/bad.c": (C + '#include "emunic/engine/completion_queue.h"\n', "2: emunic/fabric may not include emunic/engine"),
    "emunic/daemon/bad1.c": (C + '#include "emunic/client/port.h"\n', "2: emunic/daemon may not include emunic/client"),
    "emunic/daemon/bad2.c": (C + '#include "emunic-config.h"\n', "2: emunic/daemon may not know how it was configured"),
    "emunic/daemon/world/bad.c": (C + '#include "emunic/daemon/jobs/job_control.h"\n',
                                  "2: an arrow up: emunic/daemon/jobs/job_control.h is on a floor above"),
    "emunic/daemon/attic/bad.c": (C + '#include "emunic/daemon/world/domain.h"\n',
                                  "2: emunic/daemon/attic/bad.c is on no floor of emunic/daemon"),
    "emunic/cli/bad.c": (C + '#include "libugni/include/gni_pub.h"\n', "2: emunic/cli may not include libugni"),
    "libugni/src/bad1.c": (C + '#include "emunic/fabric/link.h"\n', "2: libugni may not include emunic/fabric"),
    "libugni/src/bad2.c": (C + '#include "ugni.h"\n', '2: "ugni.h" is no path from the root of the tree'),
    "libugni/src/bad3.c": (C + "#include <pmi.h>\n", "2: libugni may not include mpi-shim"),
    "examples/bad1.c": (C + '#include "emunic/abi/abi.h"\n', "2: examples may not include emunic/abi"),
    "examples/bad2.c": (C + '#include "libugni/include/gni_pub.h"\n', "2: examples may not include libugni"),
    "emunic/new/bad.c": (C + "#include <stdio.h>\n", "2: belongs to no component"),
    "tests/bad.c": ("\n" + C, "1: the first line is not the licence"),
    "tools/bad.sh": ("#!/bin/sh\n\n", "2: the first line is not the licence"),
    "libugni/meson.build": ("", "1: the first line is not the licence"),
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, text in list(GOOD.items()) + [(path, sample[0]) for path, sample in BAD.items()]:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        expected = {f"{path}:{sample[1]}" for path, sample in BAD.items()}
        actual = check(root)
    for finding in sorted(expected - set(actual)):
        print(f"not found: {finding}")
    for finding in sorted(set(actual) - expected):
        print(f"found without cause: {finding}")
    return 0 if set(actual) == expected and len(actual) == len(expected) else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path)
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if args.root is None or not (args.root / "emunic").is_dir():
        parser.error("ROOT is the folder that holds emunic/")
    findings = check(args.root)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
