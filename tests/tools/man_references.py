#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does each man page refer only to what is there? `man_references.py PAGE|FOLDER...` or `man_references.py --self-test`

Pages of this project or known ones of others; sections of the same page, named as in "see NOTES" or "under COMMON"; what
the word Common stands for; calls, which some page describes.
"""

import pathlib
import re
import sys
import tempfile

from page import show

OTHERS = {"mpirun(1)", "aprun(1)", "srun(1)", "ssh(1)", "dmesg(1)", "jq(1)", "uname(2)", "gethostname(3)", "gethostid(3)",
          "gethostbyname(3)"}
PAGE = re.compile(r"^\.(?:BR|IR) +([\w\\-]+) +\((\d)\)", re.M)
SECTION = re.compile(r'^\.S[HS] +"?([^"\n]*)', re.M)
NAMED = re.compile(r'\b(?:[Ss]ee|under)\s+(?:\.BR?\s+)?(?:"([A-Z][\w ]*)"|([A-Z]{4,}(?: [A-Z]{2,})*)\b(?![_(]))')
BESIDE = re.compile(r'"([A-Z][\w ]*)" (?:above|below)')
CALL = re.compile(r"\b((?:GNI_|dmapp_|Ptl)\w+)\(\)")
PLACEHOLDERS = {"GNI_X"}


def check(paths):
    files = [file for path in map(pathlib.Path, paths) for file in (path.glob("*.[1-9]") if path.is_dir() else [path])]
    pages = {file.name: file.read_text(encoding="utf-8").replace("\\-", "-") for file in files}
    known = OTHERS | {f"{name.rpartition('.')[0]}({name.rpartition('.')[2]})" for name in pages}
    described = PLACEHOLDERS | {call for text in pages.values() for title in SECTION.findall(text)
                                for call in re.findall(r"\w+", title)}
    findings = []
    for name, text in sorted(pages.items()):
        sections = {title.strip().upper() for title in SECTION.findall(text)}
        findings += [f"{name}: no page {page}({number})" for page, number in PAGE.findall(text)
                     if f"{page}({number})" not in known]
        wanted = {(quoted or plain).upper() for quoted, plain in NAMED.findall(text)}
        wanted |= {title.upper() for title in BESIDE.findall(text)}
        wanted |= {"COMMON"} if re.search(r"^Common[.;]", text, re.M) else set()
        findings += [f"{name}: no section {title}" for title in sorted(wanted - sections)]
        findings += [f"{name}: no page describes {call}()" for call in sorted(set(CALL.findall(text)) - described)]
    return findings


def self_test():
    pages = {
        "a.1": ".SH NAME\na\n.SH NOTES\nAs under COMMON; see NOTES, see\n.B FILES\n.BR b (3),\n.BR mpirun (1)\n.BR c (1)\n",
        "b.3": ".SH CALLS\n.SS GNI_A, GNI_B\nAs GNI_B(), but not GNI_C() and GNI_X().\n.TP\n.B X\nCommon; more.\n",
        "d.3": '.SH COMMON\nA. See "Common" above, see "Other" too.\nCommon.\n',
    }
    expected = ["a.1: no page c(1)", "a.1: no section COMMON", "a.1: no section FILES", "b.3: no page describes GNI_C()",
                "b.3: no section COMMON", "d.3: no section OTHER"]
    with tempfile.TemporaryDirectory() as folder:
        for name, text in pages.items():
            (pathlib.Path(folder) / name).write_text(text)
        found = check([folder])
    return show([f"self-test: {line}" for line in set(found) ^ set(expected)])


if __name__ == "__main__":
    sys.exit(self_test() if sys.argv[1:] == ["--self-test"] else show(check(sys.argv[1:])))
