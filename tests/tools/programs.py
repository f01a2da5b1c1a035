#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which test shows what known programs depend on: checks that none is missing, and writes the page.

    programs.py ROOT            one line per finding; status 1 if there are any
    programs.py ROOT --write    writes docs/generated/ugni-programs.md
    programs.py --self-test     tries the checks on a small tree with known faults

tests/tools/ugni_programs.txt lists the programs and, for each, the behaviours it depends on, by name. A test claims one
by a comment that says `shows: NAME` (or `shows: NAME, NAME`): above the test function or in it, or, in a shell script,
anywhere. Every behaviour needs a claim; a claim of a name that is not in the list, and one that belongs to no test, is
an error.
"""

import argparse
import collections
import pathlib
import re
import sys

import page

LIST = "tests/tools/ugni_programs.txt"
PAGE = "docs/generated/ugni-programs.md"
FOLDERS = ["tests/conformance", "tests/thirdparty", "tests/integration"]
SHOWS = re.compile(r"\bshows: ([a-z][\w-]*(?:,\s+(?:\* )?[a-z][\w-]*)*)")
FUNCTION = re.compile(r"^static [\w ]+[ *](test_\w+)\(", re.M)


def read_list(text, findings):
    """Program -> [(name, what it is)]."""
    programs = collections.OrderedDict()
    here = None
    names = set()
    for line in text.splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        title = re.fullmatch(r"\[(.+)\]", line)
        row = re.fullmatch(r"([a-z][\w-]*) +(\S.*)", line)
        if title:
            here = programs.setdefault(title.group(1), [])
        elif row and here is not None:
            if row.group(1) in names:
                findings.append(f"{LIST}: {row.group(1)} is there twice")
            names.add(row.group(1))
            here.append((row.group(1), row.group(2)))
        else:
            findings.append(f"{LIST}: not understood: {line}")
    return programs


def owner(text, start, end):
    """The test function that a comment is in, or directly above; or None."""
    behind = text[end:]
    above = re.match(r"\s*static [\w ]+[ *](test_\w+)\(", behind)
    if above:
        return above.group(1)
    last = None
    for found in FUNCTION.finditer(text, 0, start):
        last = found
    if last and "\n}\n" not in text[last.end():start]:
        return last.group(1)
    return None


def claims_in(path, text, findings):
    """(name, what is shown to readers) of each claim."""
    if path.suffix != ".c":
        return [(name, f"`{path.parent.name}/{path.name}`")
                for found in SHOWS.finditer(text) for name in re.split(r",\s+", found.group(1))]
    claims = []
    for comment in re.finditer(r"/\*.*?\*/", text, re.S):
        plain = " ".join(re.sub(r"\n\s*\*", " ", comment.group(0)).split())
        for found in SHOWS.finditer(plain):
            test = owner(text, comment.start(), comment.end())
            if test is None and "int main(" in text and "static void test_" not in text:
                label = f"`{path.parent.name}/{path.name}`"         # a program that is one test
            elif test is None:
                findings.append(f"{path.name}: '{found.group(0)}' belongs to no test")
                continue
            else:
                label = f"`{path.name}` {test[5:].replace('_', ' ')}"
            claims += [(name, label) for name in re.split(r",\s+", found.group(1))]
    return claims


def look(root):
    findings = []
    programs = read_list((root / LIST).read_text(), findings)
    known = {name for rows in programs.values() for name, _ in rows}
    shown = collections.defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".c", ".sh"):
                continue
            for name, label in claims_in(path, path.read_text(), findings):
                if name not in known:
                    findings.append(f"{path.relative_to(root)}: shows {name}, which {LIST} does not list")
                elif label not in shown[name]:
                    shown[name].append(label)
    n = 0
    text = ["# What known programs depend on", "",
            "Which test shows that a habit of a known program works. Made by `tests/tools/programs.py --write` from "
            "`tests/tools/ugni_programs.txt` and the tests, whose comments say `shows: NAME`; `make check` fails if "
            "this page is not what they give, or if a behaviour has no test.", ""]
    for program, rows in programs.items():
        text += [f"## {program}", "", "| behaviour | test |", "|---|---|"]
        for name, what in rows:
            n += 1
            if not shown[name]:
                findings.append(f"{LIST}: no test shows {name}")
            text.append(f"| {what} | {'; '.join(shown[name]) or '**missing**'} |")
        text.append("")
    text.insert(4, f"{n} behaviours of {len(programs)} programs and groups.\n")
    return findings, "\n".join(text)


def check(root):
    findings, text = look(root)
    return findings + page.stale(root, PAGE, text)


SELF_TEST = {
    LIST: """\
# comment
[One]
one-a  First.
one-b  Second.
one-a  Again.
[Two]
two-a  Third.
two-b  Nobody's.
""",
    "tests/conformance/test_x.c": """\
/* In front. shows: one-a,
 * one-b */
static void test_first(void **state)
{
    /* shows: two-a */
}

/* shows: two-b */
static int helper(void)
{
}

/* shows: three-a */
static void test_second(void **state)
{
}
""",
    "tests/thirdparty/run.sh": "# shows: one-a\n",
}
SELF_TEST_FINDINGS = [
    "one-a is there twice",
    "'shows: two-b' belongs to no test",
    "shows three-a, which",
    "no test shows two-b",
    "is stale",
]


def write_page(root):
    (root / PAGE).parent.mkdir(parents=True, exist_ok=True)
    (root / PAGE).write_text(look(root)[1])


def self_test():
    def more(root):
        write_page(root)
        text = (root / PAGE).read_text()
        return [] if "| First. | `test_x.c` first; `thirdparty/run.sh` |" in text else ["the page names both tests"]

    return page.self_test(SELF_TEST, FOLDERS, SELF_TEST_FINDINGS, check, more)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help=f"write {PAGE}")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if not args.root:
        parser.error("ROOT is missing")
    if args.write:
        write_page(args.root)
    return page.show(check(args.root))


if __name__ == "__main__":
    sys.exit(main())
