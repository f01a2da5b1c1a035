#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which test provokes which return code of which uGNI call: checks that none is missing, and writes the table.

    coverage.py ROOT            one line per finding; status 1 if there are any
    coverage.py ROOT --write    writes docs/ugni-coverage.md
    coverage.py ROOT --map      JSON of every assertion, for emunic-conformance-ugni: "file:line" -> [call, code]
    coverage.py --self-test     tries the checks on a small tree with known faults

Three sources are compared, call by call:

  * tests/tools/ugni_codes.txt: what the original documents.
  * libugni/include/gni_pub.h: what this library gives (`@retval CODE  text`; a text that begins with `GNI_A() only:` or
    `GNI_A() and GNI_B() only:` is about those of the calls that share the comment), and what it never gives, with the
    reason (`@note Never CODE, CODE: reason`, or `@note Never CODE of GNI_A(): reason`).
  * tests/conformance/ugni/*.c: what is tested. Every code of the original must be in one of the header's two lists, and
    every @retval must have a test function (or the call is PENDING, below).

A test function (`static void test_x(void **state)`, registered in its program) covers a call's code by

  * an assertion in it, or in a function that it names, of one of these forms, where GNI_X(...) may also be a helper
    whose comment says `answers: GNI_X`:
        assert_int_equal(GNI_X(...), GNI_RC_Y)      FX_CHECK(GNI_X(...) == GNI_RC_Y)
        assert_int_equal(GNI_X(...), is_odd ? GNI_RC_Y : GNI_RC_Z)
  * a comment in it, above it, or in or above such a function, for what comes through variables and tables:
        /* covers: GNI_X: GNI_RC_Y, GNI_RC_Z */
"""

import argparse
import collections
import difflib
import json
import pathlib
import re
import sys
import tempfile

HEADER = "libugni/include/gni_pub.h"
CODES = "tests/tools/ugni_codes.txt"
SUITE = "tests/conformance/ugni"
SHARED = ["tests/conformance/pair.h", "tests/conformance/mailbox.h",
          "tests/conformance/tree.h", "tests/common/gni.h", "tests/common/gni.c"]
TABLE = "docs/ugni-coverage.md"

# Calls whose implementation and tests are on their way: their empty cells are shown, and no finding. Prefixes.
PENDING = []

CODE_NAMES = ["SUCCESS", "NOT_DONE", "INVALID_PARAM", "ERROR_RESOURCE", "TIMEOUT", "PERMISSION_ERROR",
              "DESCRIPTOR_ERROR", "ALIGNMENT_ERROR", "INVALID_STATE", "NO_MATCH", "SIZE_ERROR", "TRANSACTION_ERROR",
              "ILLEGAL_OP", "ERROR_NOMEM"]
ORDER = {name: i for i, name in enumerate(CODE_NAMES)}

CALLS = r"((?:GNI_\w+\(\)(?:, | and )?)+)"
ONLY = re.compile(CALLS + r" only\b")
NEVER = re.compile(r"Never ((?:GNI_RC_\w+(?:, | and )?)+)(?: of " + CALLS + r")?: (.+)")
DECLARATION = re.compile(r"^gni_return_t (GNI_\w+)\(", re.M)
COVERS = re.compile(r"covers: (GNI_\w+): ((?:GNI_RC_\w+(?:,\s*)?)+)")
ANSWERS = re.compile(r"answers: (GNI_\w+)")
DEFINITION = re.compile(r"^(?!\s|#|typedef)[\w* ]*?\b(\w+)\(((?:[^;{}]|\n)*?)\)\s*(?:\n__attribute__\S+\s*)?\n\{", re.M)
ASSERTION = re.compile(r"\b(assert_int_equal|assert_true|FX_CHECK)\(")

KINDS = ["tested", "never given", "pending", "missing"]

# How sure it is that the test is about this code: it says so; a helper does; a helper or a loop may get another one.
DIRECT, BY_HELPER, ONE_OF = 0, 1, 2

Place = collections.namedtuple("Place", "file number test doubt")


def fail(what):
    sys.exit(f"coverage: {what}")


# ---- what the original documents ----

def read_codes(text):
    """Call -> set of codes, in the order of the file."""
    calls = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        unknown = [w for w in words[1:] if w not in ORDER]
        if unknown or not words[0].startswith("GNI_"):
            fail(f"{CODES}:{number}: {' '.join(unknown) or words[0]}?")
        calls[words[0]] = set(words[1:])
    return calls


# ---- what the header says ----

def calls_in(text):
    return re.findall(r"GNI_\w+(?=\(\))", text)


def read_header(text, findings):
    """Call -> {code: None, or the reason why it never comes}."""
    calls = {}
    comment = None
    for piece in re.finditer(r"/\*(.*?)\*/|^gni_return_t (GNI_\w+)\(", text, re.S | re.M):
        if piece.group(2) is None:
            body = "/*" + piece.group(1)
            comment = body if body.startswith("/**") else None
            continue
        name = piece.group(2)
        calls[name] = {}
        if comment is None:
            findings.append(f"{HEADER}: {name}: no comment")
            continue
        plain = re.sub(r"\n \*+ ?", "\n", comment)
        for tag in re.split(r"\n(?=@)", plain)[1:]:
            words = " ".join(tag.split())
            retval = re.match(r"@retval GNI_RC_(\w+) ?(.*)", words)
            never = NEVER.match(words[6:]) if words.startswith("@note Never GNI_RC_") else None
            if retval:
                only = ONLY.match(retval.group(2))
                if only and name not in calls_in(only.group(1)):
                    continue
                calls[name][retval.group(1)] = None
            elif never:
                if never.group(2) and name not in calls_in(never.group(2)):
                    continue
                for code in re.findall(r"GNI_RC_(\w+)", never.group(1)):
                    if code in calls[name]:
                        findings.append(f"{HEADER}: {name}: {code} is given and never given")
                    calls[name][code] = never.group(3)
            elif words.startswith("@note Never GNI_RC_"):
                findings.append(f"{HEADER}: {name}: not understood: {words[:60]}")
    return calls


# ---- what the tests do ----

def strip(text):
    """Text with comments and literals blanked, and the comments as (start, end, text)."""
    comments = []

    def blank(found):
        if found.group(0).startswith("/"):
            comments.append((found.start(), found.end(), found.group(0)))
        return re.sub(r"[^\n]", " ", found.group(0))

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', blank, text, flags=re.S), comments


def arguments(text, start):
    """Arguments of the call whose opening parenthesis is at start - 1."""
    depth, begin, out = 1, start, []
    for at in range(start, len(text)):
        c = text[at]
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                out.append(" ".join(text[begin:at].split()))
                return out
        elif c == "," and depth == 1:
            out.append(" ".join(text[begin:at].split()))
            begin = at + 1
    return out


def called(expression):
    """Name of the function if the expression is one call of it."""
    found = re.match(r"(\w+)\(", expression)
    if not found:
        return None
    depth = 0
    for at in range(found.end() - 1, len(expression)):
        depth += {"(": 1, ")": -1}.get(expression[at], 0)
        if depth == 0:
            return found.group(1) if at == len(expression) - 1 else None
    return None


class Source:
    """Functions of one file: what each claims, and whom it names."""

    def __init__(self, name, text):
        self.name = name
        self.claims = collections.defaultdict(list)     # function -> [(call, code, line, doubt)]
        self.names = {}                                  # function -> identifiers in its body
        self.answers = {}                                # helper -> call
        self.tests = []
        code, comments = strip(text)
        self.code = code
        self.text = text
        spans = []
        for found in DEFINITION.finditer(code):
            end = code.find("\n}", found.end())
            spans.append((found.start(), found.end(), len(code) if end < 0 else end, found.group(1)))
            self.names[found.group(1)] = set(re.findall(r"\b[a-zA-Z_]\w*\b", code[found.end():end]))
            if found.group(1).startswith("test_") and re.search(r"void \*\*\w+", found.group(2)):
                self.tests.append(found.group(1))
        self.spans = spans
        for start, end, comment in comments:
            plain = " ".join(re.sub(r"\n\s*\*", " ", comment).split())
            owner = next((s[3] for s in spans if s[0] <= start < s[2]), None)
            follows = re.match(r"\s*(?:[\w*]+\s+)*?\**(\w+)\(", code[end:])
            if owner is None and follows:
                owner = follows.group(1)
            for call in ANSWERS.findall(plain):
                if owner:
                    self.answers[owner] = call
            for call, codes in COVERS.findall(plain):
                for name in re.findall(r"GNI_RC_(\w+)", codes):
                    self.claims[owner].append((call, name, self.line_of(start), DIRECT))

    def line_of(self, at):
        return self.text.count("\n", 0, at) + 1

    def read_assertions(self, answers):
        for start, begin, end, owner in self.spans:
            for found in ASSERTION.finditer(self.code, begin, end):
                args = arguments(self.code, found.end())
                if found.group(1) != "assert_int_equal":
                    args = args[0].split(" == ") if args else []
                if len(args) != 2:
                    continue
                if args[0].startswith("GNI_RC_"):
                    args.reverse()
                name = called(args[0])
                call = answers.get(name, name)
                code = re.fullmatch(r"(?:[^?]+ \? GNI_RC_(\w+) : )?GNI_RC_(\w+)", args[1])
                if call and call.startswith("GNI_") and code:
                    doubt = ONE_OF if code.group(1) else DIRECT
                    for name in filter(None, code.groups()):
                        self.claims[owner].append((call, name, self.line_of(found.start()), doubt))


def read_sources(root):
    shared = [Source(name, (root / name).read_text()) for name in SHARED if (root / name).exists()]
    programs = [Source(path.relative_to(root).as_posix(), path.read_text())
                for path in sorted((root / SUITE).glob("test_*.c"))]
    common = {}
    for source in shared:
        common.update(source.answers)
    for source in shared + programs:
        source.read_assertions({**common, **source.answers})
    return shared, programs


def claims_of(shared, programs, findings):
    """Call -> code -> [Place], and file:line -> (call, code)."""
    found = collections.defaultdict(lambda: collections.defaultdict(list))
    lines = {}
    for source in shared + programs:
        for claims in source.claims.values():
            for call, code, line, _ in claims:
                lines.setdefault(f"{source.name.split('/')[-1]}:{line}", (call, code))
    for source in programs:
        everything = {}
        for other in shared + [source]:
            for name, uses in other.names.items():
                everything[name] = (other, uses)
        for test in source.tests:
            if len(re.findall(rf"\b{test}\b", source.code)) < 2:
                findings.append(f"{source.name}: {test} is not registered")
                continue
            reached, ahead = set(), [test]
            while ahead:
                name = ahead.pop()
                if name in reached or name not in everything:
                    continue
                reached.add(name)
                ahead.extend(everything[name][1])
            for name in reached:
                for call, code, _, doubt in everything[name][0].claims.get(name, ()):
                    doubt = max(doubt, DIRECT if name == test else BY_HELPER)
                    place = Place(source.name.split("/")[-1], source.tests.index(test), test, doubt)
                    found[call][code].append(place)
    return found, lines


def best_place(call, code, found):
    """The place to show: the surest; of those in the program that knows most of this call's codes, the first."""
    known = collections.Counter()
    for places in found[call].values():
        for name in {p.file for p in places}:
            known[name] += 1
    return min(found[call][code], key=lambda p: (p.doubt, -known[p.file], p.file, p.number))


# ---- comparing ----

def is_pending(call):
    return any(call.startswith(prefix) for prefix in PENDING)


def compare(original, header, found, findings):
    for call in sorted(set(original) - set(header)):
        findings.append(f"{CODES}: {call} is not in {HEADER}")
    for call in header:
        if call not in original:
            findings.append(f"{HEADER}: {call} is not in {CODES}")
            continue
        for code in sorted(original[call] - set(header[call]), key=ORDER.get):
            if not is_pending(call):
                findings.append(f"{HEADER}: {call}: {code} of the original has neither @retval nor `@note Never`")
        for code, reason in header[call].items():
            if reason is None and not found[call].get(code) and not is_pending(call):
                findings.append(f"{SUITE}: no test provokes {code} of {call}")
            if reason is not None and found[call].get(code):
                place = best_place(call, code, found)
                findings.append(f"{SUITE}/{place.file}: {place.test} covers {code} of {call}, which never comes")
        for code in sorted(set(found[call]) - set(header[call]), key=lambda c: ORDER.get(c, 99)):
            place = best_place(call, code, found)
            findings.append(f"{SUITE}/{place.file}: {place.test} covers {code} of {call}, which the header does not "
                            "list")
    for call in sorted(set(found) - set(header)):
        findings.append(f"{SUITE}: {call} is covered and not in {HEADER}")


def table(original, header, found):
    n = collections.Counter()
    rows = []
    for call in header:
        for code in sorted(set(header[call]) | original.get(call, set()), key=ORDER.get):
            reason = header[call].get(code)
            if found[call].get(code):
                place = best_place(call, code, found)
                what, kind = f"`{place.file}` {place.test[5:].replace('_', ' ')}", "tested"
            elif reason is not None:
                what, kind = f"never: {reason}", "never given"
            elif is_pending(call):
                what, kind = "pending", "pending"
            else:
                what, kind = "**missing**", "missing"
            n[kind] += 1
            mark = "" if code in original.get(call, ()) else " (ours)"
            rows.append((call, code + mark, what))
    text = ["# uGNI conformance coverage", "",
            "Which test of `tests/conformance/ugni` provokes which return code of which call. Made by "
            "`tests/tools/coverage.py --write` from `gni_pub.h`, the tests and `tests/tools/ugni_codes.txt` (what the "
            "original documents); `make check` fails if this page is not what they give. One test is named where there "
            "are several. (ours): a code that the original does not document for the call. never: this library "
            "does not give it, and why.", "",
            ", ".join(f"{n[kind]} codes {kind}" for kind in KINDS if n[kind]) + f"; {len(header)} calls.", "",
            "| call | code | test |", "|---|---|---|"]
    last = None
    for call, code, what in rows:
        text.append(f"| {'`' + call + '`' if call != last else ''} | {code} | {what} |")
        last = call
    return "\n".join(text) + "\n"


def look(root):
    findings = []
    original = read_codes((root / CODES).read_text())
    header = read_header((root / HEADER).read_text(), findings)
    shared, programs = read_sources(root)
    found, lines = claims_of(shared, programs, findings)
    compare(original, header, found, findings)
    return findings, table(original, header, found), lines


def check(root):
    findings, text, _ = look(root)
    page = root / TABLE
    present = page.read_text() if page.exists() else ""
    if present != text:
        change = [line for line in difflib.unified_diff(present.splitlines(), text.splitlines(), lineterm="", n=0)
                  if line[0] in "+-" and not line.startswith(("+++", "---"))]
        findings.append(f"{TABLE} is stale; write it anew with {sys.argv[0]} {root} --write. First: "
                        f"{change[0] if change else '?'}")
    return findings


# ---- the checks themselves ----

SELF_TEST = {
    CODES: """\
GNI_A  SUCCESS INVALID_PARAM TIMEOUT ERROR_NOMEM
GNI_B  SUCCESS SIZE_ERROR
GNI_Gone  SUCCESS
""",
    HEADER: """\
/**
 * Both.
 * @retval GNI_RC_SUCCESS        Fine.
 * @retval GNI_RC_INVALID_PARAM  GNI_A() only: bad,
 *                               in two lines.
 * @retval GNI_RC_NOT_DONE       GNI_A() only: nobody tests it.
 * @note Never GNI_RC_TIMEOUT of GNI_A(): it does
 *       not wait.
 */
gni_return_t GNI_A(int x);
gni_return_t GNI_B(int x);
""",
    "tests/conformance/ugni/test_x.c": """\
/* answers: GNI_B */
static int helper(int x)
{
    return GNI_B(x);
}

static void deeper(void)
{
    assert_int_equal(GNI_A(strlen("a)(,")), GNI_RC_INVALID_PARAM);
    /* assert_int_equal(GNI_A(1), GNI_RC_NOT_DONE); */
}

static void test_one(void **state)
{
    deeper();
    assert_int_equal(helper(1), GNI_RC_SUCCESS);
    /* covers: GNI_A: GNI_RC_SUCCESS, GNI_RC_TIMEOUT */
    FX_CHECK(GNI_B(f(1, 2)) == GNI_RC_ILLEGAL_OP);
}

static void test_two(void **state)
{
    assert_int_equal(GNI_A(1), GNI_RC_NOT_DONE);
}

int main(void)
{
    return run(test_one);
}
""",
}
SELF_TEST_FINDINGS = [
    "test_two is not registered",
    "GNI_Gone is not in",
    "GNI_A: ERROR_NOMEM of the original has neither",
    "no test provokes NOT_DONE of GNI_A",
    "test_one covers TIMEOUT of GNI_A, which never comes",
    "GNI_B: SIZE_ERROR of the original has neither",
    "test_one covers ILLEGAL_OP of GNI_B, which the header does not list",
    "is stale",
]


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in SELF_TEST.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        findings = check(root)
        wrong = [e for e in SELF_TEST_FINDINGS if not any(e in f for f in findings)]
        surplus = [f for f in findings if not any(e in f for e in SELF_TEST_FINDINGS)]
        (root / TABLE).parent.mkdir()
        (root / TABLE).write_text(look(root)[1])
        wrong += ["a fresh table is stale"] if any("stale" in f for f in check(root)) else []
        lines = look(root)[2]
        wrong += [] if lines.get("test_x.c:9") == ("GNI_A", "INVALID_PARAM") else ["the map misses line 9"]
    for line in wrong:
        print(f"self-test: not found: {line}")
    for line in surplus:
        print(f"self-test: found, but fine: {line}")
    return 1 if wrong or surplus else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path)
    parser.add_argument("--write", action="store_true", help=f"write {TABLE}")
    parser.add_argument("--map", action="store_true", help="print the assertions as JSON")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if not args.root:
        parser.error("ROOT is missing")
    if args.map:
        json.dump(look(args.root)[2], sys.stdout, indent=0, sort_keys=True)
        return 0
    if args.write:
        (args.root / TABLE).write_text(look(args.root)[1])
    findings = check(args.root)
    for line in findings:
        print(line)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
