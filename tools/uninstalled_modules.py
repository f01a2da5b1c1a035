#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Puts the pkg-config modules of the build folder right; Meson calls it after it has written them.

Meson lists every include folder that a library is compiled with, this project's root among them, so a program's
`#include "common.h"` could find one of ours. Here only public folders stay: those named include, and what is below
them. And a program gets a run path to the libraries, so that one that is started without `emunic run` can say itself
what it lacks.
"""

import os
import pathlib
import re


def is_public(flag):
    in_tree = flag.startswith(("-I${srcdir}/", "-I${prefix}/")) and "include" in flag.split("/")
    return not flag.startswith("-I") or in_tree


def mended(line):
    name, colon, flags = line.partition(": ")
    # A blank with a backslash before it belongs to the path.
    words = re.split(r"(?<!\\) ", flags)
    if name == "Cflags":
        words = [word for word in words if is_public(word)]
    elif name == "Libs":
        folders = [word[2:] for word in words if word.startswith("-L")]
        words += [flag for flag in (f"-Wl,-rpath,{folder}" for folder in folders) if flag not in words]
    return name + colon + " ".join(words)


def main():
    folder = pathlib.Path(os.environ["MESON_BUILD_ROOT"]) / "meson-uninstalled"
    for path in folder.glob("*-uninstalled.pc"):
        path.write_text("\n".join(mended(line) for line in path.read_text().split("\n")))


main()
