#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Checks the rules of this tree that no formatter knows.

    check_dialect.py ROOT            one line per finding; status 1 if there are any
    check_dialect.py --self-test     tries the checks on a small tree with known faults

    function    no function is longer than 60 lines, from its type to its closing brace
    parameters  no function of our own has more than six; those of the APIs have what their documents say
    null        pointers are tested as !p and p, never against NULL
    heading     a heading between functions is /* ---- name ---- */
    markdown    no line of a page written by hand is longer than 120 columns
    name        no two source files of the product have one name
    struct      no struct of the daemon has more than 25 members

The product is what is outside tests/. Functions' lengths, headings and Markdown are looked at everywhere. Generated pages
are in docs/generated/.
"""

import argparse
import os
import pathlib
import re
import sys
import tempfile

FUNCTION_LINES = 60
PARAMETERS = 6
COLUMNS = 120
MEMBERS = 25
GENERATED = "docs/generated/"

# Functions whose parameters are those of somebody else's documents.
API = re.compile(r"(GNI_|gni_|dmapp_|_?Ptl|PMI|UDREG_|rca_|alps|cnos_|MPI_|pmix_event_|mp3_isend|mp3_improbe|mg_prepare|"
                 r"mg_sendi|mg_put|mg_get|mg_atomic_|cce_allreduce|cce_reduce|cfl_allreduce|osc_query|osc_select|"
                 r"osc_r?accumulate|osc_r?get_accumulate|osc_fetch_and_op|osc_compare_and_swap|osc_r?put|osc_r?get|pml_isend_init|gethostby)")
ATTRIBUTE = re.compile(r"__attribute__\s*\(\(.*?\)\)\s*")
SIGNATURE = re.compile(r"^[^(=]*?\b(\w+)\((.*)\)\s*$")
NULL = re.compile(r"[!=]= *NULL\b|\bNULL *[!=]=")
RULE_LINE = re.compile(r"^\s*/\*\s*[-=*]{2,}")
HEADING = re.compile(r"^\s*/\* ---- \S.*\S ---- \*/$|^\s*/\* ---- \S ---- \*/$")
TYPE = re.compile(r"^(?:struct|union) (\w+) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


def sources(root):
    """Files of the tree by their path from its root, without build folders and what is hidden."""
    for folder, subfolders, names in os.walk(root):
        at = pathlib.Path(folder)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith(".") and
                               not (at / name / "meson-private").is_dir() and
                               not (at == root and name.startswith("build")))
        for name in sorted(names):
            yield (at / name).relative_to(root).as_posix()


def functions(text):
    """Name, length in lines and number of parameters of each function that is defined in formatted C."""
    lines = text.split("\n")
    for i, line in enumerate(lines):
        if line != "{" or i == 0:
            continue
        first = i - 1
        while first > 0 and not re.match(r"[A-Za-z_]", lines[first]):
            first -= 1
        found = SIGNATURE.match(ATTRIBUTE.sub("", " ".join(part.strip() for part in lines[first:i])))
        if found:
            last = next((j for j in range(i, len(lines)) if lines[j] == "}"), len(lines) - 1)
            yield found.group(1), last - first + 1, parameters(found.group(2))


def parameters(text):
    """How many parameters a list has; commas within the parentheses of a function pointer divide nothing."""
    depth = 0
    count = 1
    for char in text:
        depth += (char in "([") - (char in ")]")
        count += char == "," and depth == 0
    return count


def without_comments(text):
    """The same lines, with comments blank."""
    return COMMENT.sub(lambda found: "\n" * found.group().count("\n"), text)


def check_lengths(path, text):
    for name, n_lines, _ in functions(text):
        if n_lines > FUNCTION_LINES:
            yield "function", path, f"{name} has {n_lines} lines; {FUNCTION_LINES} are the most"


def check_product(path, text):
    """Findings that only a C file of the product can have: (rule, path, line of text)."""
    for name, _, n_parameters in functions(text):
        if n_parameters > PARAMETERS and not API.match(name):
            yield "parameters", path, f"{name} has {n_parameters} parameters; {PARAMETERS} are the most"
    code = without_comments(text)
    for number, line in enumerate(code.split("\n"), 1):
        if NULL.search(line):
            yield "null", path, f"line {number}: a pointer is tested as !p or p, not against NULL"
    if path.startswith("emunic/daemon/"):
        for found in TYPE.finditer(code):
            n_members = found.group(2).count(";")
            if n_members > MEMBERS:
                yield "struct", path, f"{found.group(1)} has {n_members} members; {MEMBERS} are the most"


def check(root):
    """All findings in a tree: (rule, path, text)."""
    names = {}
    for path in sources(root):
        if not path.endswith((".c", ".h", ".md")):
            continue
        text = (root / path).read_text(errors="replace")
        if path.endswith(".md"):
            for number, line in enumerate(text.split("\n"), 1):
                if len(line) > COLUMNS and not path.startswith(GENERATED):
                    yield "markdown", path, f"line {number}: {len(line)} columns; {COLUMNS} are the most"
            continue
        for number, line in enumerate(text.split("\n"), 1):
            if RULE_LINE.match(line) and not HEADING.match(line):
                yield "heading", path, f"line {number}: a heading is /* ---- name ---- */"
        yield from check_lengths(path, text)
        if path.startswith("tests/"):
            continue
        yield from check_product(path, text)
        name = pathlib.PurePosixPath(path).name
        if name.endswith(".c"):
            if name in names:
                yield "name", path, f"{names[name]} has the same name"
            names.setdefault(name, path)


# ---- self-test ----

_LONG = "int f(void)\n{\n" + "    g();\n" * 58 + "}\n"
FAULTY = {
    "emunic/a/long.c": (_LONG, "function"),
    "emunic/a/wide.c": ("int f(int a, int b, int c, int d, int e,\n      int f, int g)\n{\n    return 0;\n}\n", "parameters"),
    "emunic/a/null.c": ("int f(void *p)\n{\n    return p == NULL;\n}\n", "null"),
    "emunic/a/yoda.c": ("int f(void *p)\n{\n    return NULL != p;\n}\n", "null"),
    "tests/long.c": (_LONG, "function"),
    "tests/heading.c": ("/* --- three ------ */\n", "heading"),
    "docs/page.md": ("x" * 121 + "\n", "markdown"),
    "libugni/src/long.c": ("int other;\n", "name"),
    "emunic/daemon/wide_struct.h": ("struct s {\n" + "    int a;\n" * 26 + "};\n", "struct"),
}
CLEAN = {
    "emunic/a/short.c": ("/* ---- one ---- */\n\n/* p == NULL */\n" + _LONG.replace("    g();\n", "", 1), ""),
    "emunic/a/pointer.c": ("int f(int (*a)(int, int), int b, int c, int d, int e, int g)\n{\n    return 0;\n}\n", ""),
    "libugni/src/api.c": ("int GNI_F(int a, int b, int c, int d, int e, int f, int g)\n{\n    return 0;\n}\n", ""),
    "docs/generated/page.md": ("x" * 121 + "\n", ""),
    "libugni/src/attribute.c": ("__attribute__((cold)) void f(int a)\n{\n}\n", ""),
    "tests/null.c": ("int f(void *p)\n{\n    return p == NULL;\n}\n", ""),
    "emunic/daemon/struct.h": ("struct s {\n" + "    int a; /* one; and two */\n" * 25 + "};\n", ""),
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for path, (text, _) in {**FAULTY, **CLEAN}.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        got = sorted((finding[1], finding[0]) for finding in check(root))
        want = sorted((path, rule) for path, (_, rule) in FAULTY.items())
        if got != want:
            print(f"check_dialect: found {got}\n  instead of {want}")
            return 1
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=pathlib.Path, nargs="?")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if not args.root:
        parser.error("ROOT is missing")
    lines = [f"{path}: {rule}: {text}" for rule, path, text in check(args.root)]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
