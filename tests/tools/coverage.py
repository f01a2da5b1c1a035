#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which test provokes which return code of which call: checks that none is missing, and writes the table.

    coverage.py ROOT              one line per finding; status 1 if there are any
    coverage.py ROOT --write      writes docs/generated/ugni-coverage.md
    coverage.py ROOT --map        JSON of every assertion, for emunic-conformance-ugni: "file:line" -> [call, code]
    coverage.py --api dmapp ...   the same for DMAPP
    coverage.py --self-test       tries the checks on small trees with known faults

Three sources are compared, call by call (below, X is what the API's calls begin with, RC its codes):

  * tests/tools/<api>_codes.txt: what the original documents. `F*` stands for F, F_nb and F_nbi; of the codes that
    follow, TRANSACTION_ERROR belongs to F alone and NO_SPACE to F_nb alone.
  * The public header: what this library gives (`@retval CODE  text`; a text that begins with `XA() only:` or
    `XA() and XB() only:` is about those of the calls that share the comment; so are `The _nb calls only` and
    `The blocking calls only`), and what it never gives, with the reason (`@note Never CODE, CODE: reason`, or
    `@note Never CODE of XA(): reason`).
  * tests/conformance/<api>/*.c: what is tested. Every code of the original must be in one of the header's two lists,
    and every @retval must have a test function (or the call is pending, below).

A test function (`static void test_x(void **state)`, registered in its program) covers a call's code by

  * an assertion in it, or in a function that it names, of one of these forms, where X(...) may also be a helper
    whose comment says `answers: X`:
        assert_int_equal(X(...), RC_Y)      FX_CHECK(X(...) == RC_Y)
        assert_int_equal(X(...), is_odd ? RC_Y : RC_Z)
        assert_row_equal(row, X(...), RC_Y)
  * a comment in it, above it, or in or above such a function, for what comes through variables and tables:
        /* covers: X: RC_Y, RC_Z */         /* covers: XA*, XB: RC_Y */

For Portals there is a table of events, too: tests/tools/portals_events.txt says which events an operation has with an
option, and which it has not; each needs a test function with a comment that says the same (one operation, its events,
`no` before what must not come):

        /* events: put with ack: SEND_START, SEND_END, ACK, PUT_START, no PUT_END */
"""

import argparse
import collections
import json
import pathlib
import re
import sys

import page

FLAVOURS = ["", "_nb", "_nbi"]


class Api:
    """What differs between the interfaces, and the patterns that follow from it."""

    def __init__(self, name, title, header, prefix, code_prefix, returns, code_names, shared, pending=(),
                 more_headers=(), event_names=()):
        self.name, self.title, self.header, self.prefix, self.code_prefix = name, title, header, prefix, code_prefix
        self.headers = [header, *more_headers]
        # What can be posted: there is a second table, of operations and events, if there are any.
        self.event_names = list(event_names)
        self.events = f"tests/tools/{name}_events.txt"
        self.codes = f"tests/tools/{name}_codes.txt"
        self.suite = f"tests/conformance/{name}"
        self.table = f"docs/generated/{name}-coverage.md"
        self.shared = shared
        # Calls whose implementation and tests are on their way: their empty cells are shown, and no finding. Prefixes.
        self.pending = pending
        self.order = {code: i for i, code in enumerate(code_names)}
        calls = rf"((?:{prefix}\w+\(\)(?:, | and )?)+)"
        codes = rf"((?:{code_prefix}\w+(?:, | and )?)+)"
        self.only = re.compile(calls + r" only\b")
        self.never = re.compile(r"Never " + codes + r"(?: of " + calls + r")?: (.+)")
        self.pieces = re.compile(rf"/\*(.*?)\*/|^{returns} ({prefix}\w+)\(", re.S | re.M)
        self.covers = re.compile(rf"covers: ({prefix}\w+\*?(?:,\s*{prefix}\w+\*?)*): ((?:{code_prefix}\w+(?:,\s*)?)+)")
        self.answers = re.compile(rf"answers: ({prefix}\w+)")
        self.retval = re.compile(rf"@retval {code_prefix}(\w+) ?(.*)")
        self.asserted = re.compile(rf"(?:[^?]+ \? {code_prefix}(\w+) : )?{code_prefix}(\w+)")

    def calls_in(self, text):
        return re.findall(rf"{self.prefix}\w+(?=\(\))", text)

    def codes_in(self, text):
        return re.findall(rf"{self.code_prefix}(\w+)", text)

    def is_pending(self, call):
        return any(call.startswith(prefix) for prefix in self.pending)

    def is_about(self, call, text):
        """Is this @retval's text about that one of the calls that share a comment?"""
        only = self.only.match(text)
        if only:
            return call in self.calls_in(only.group(1))
        if re.match(r"(The )?_nb (calls )?only\b", text):
            return call.endswith("_nb")
        if re.match(r"The blocking calls only\b", text):
            return not call.endswith(("_nb", "_nbi"))
        return True


UGNI = Api("ugni", "uGNI", "libugni/include/gni_pub.h", "GNI_", "GNI_RC_", "gni_return_t",
           ["SUCCESS", "NOT_DONE", "INVALID_PARAM", "ERROR_RESOURCE", "TIMEOUT", "PERMISSION_ERROR", "DESCRIPTOR_ERROR",
            "ALIGNMENT_ERROR", "INVALID_STATE", "NO_MATCH", "SIZE_ERROR", "TRANSACTION_ERROR", "ILLEGAL_OP",
            "ERROR_NOMEM"],
           ["tests/conformance/*.h", "tests/common/gni.h", "tests/common/gni.c"])
DMAPP = Api("dmapp", "DMAPP", "libdmapp/include/dmapp.h", "dmapp_", "DMAPP_RC_", "dmapp_return_t",
            ["SUCCESS", "INVALID_PARAM", "ALIGNMENT_ERROR", "TRANSACTION_ERROR", "RESOURCE_ERROR", "PERMISSION_ERROR",
             "NO_SPACE", "NOT_DONE", "NOT_SUPPORTED", "NOT_FOUND", "BUSY"],
            ["tests/conformance/dmapp/*.h", "tests/common/dmapp.h", "tests/common/dmapp.c"])
PORTALS = Api("portals", "Portals 3", "libportals/include/portals/p3_calls.h", "Ptl", "PTL_", "int",
              ["OK", "NO_INIT", "SEGV", "NI_INVALID", "ME_INVALID", "MD_INVALID", "EQ_INVALID", "HANDLE_INVALID",
               "IFACE_INVALID", "IFACE_DUP", "PID_INVALID", "PID_IN_USE", "PROCESS_INVALID", "PT_INDEX_INVALID",
               "AC_INDEX_INVALID", "SR_INDEX_INVALID", "ME_IN_USE", "ME_LIST_TOO_LONG", "MD_ILLEGAL", "MD_IN_USE",
               "MD_NO_UPDATE", "VAL_FAILED", "PT_FULL", "EQ_EMPTY", "EQ_DROPPED", "EQ_IN_USE", "INV_EQ_SIZE",
               "NO_SPACE", "FAIL"],
              ["tests/conformance/portals/*.h", "tests/common/portals.h", "tests/common/portals.c"],
              more_headers=["libportals/include/portals/portals3.h", "libportals/include/ref/portals3.h",
                            "libportals/include/ref/p3rt/p3rt.h"],
              event_names=["SEND_START", "SEND_END", "ACK", "REPLY_START", "REPLY_END", "PUT_START", "PUT_END",
                           "GET_START", "GET_END", "GETPUT_START", "GETPUT_END", "UNLINK"])
APIS = {api.name: api for api in [UGNI, DMAPP, PORTALS]}

DEFINITION = re.compile(r"^(?!\s|#|typedef)[\w* ]*?\b(\w+)\(((?:(?!\n\n)[^;{}])*?)\)\s*(?:\n__attribute__\S+\s*)?\n\{",
                        re.M)
EVENTS = re.compile(r"\bevents: ([^:]+): ((?:no )?[A-Z_]+(?:, (?:no )?[A-Z_]+)*)")
ASSERTION = re.compile(r"\b(assert_int_equal|assert_row_equal|assert_true|FX_CHECK)\(")

KINDS = ["tested", "never given", "pending", "missing"]

# How sure it is that the test is about this code: it says so; a helper does; a helper or a loop may get another one.
DIRECT, BY_HELPER, ONE_OF = 0, 1, 2

Place = collections.namedtuple("Place", "file number test doubt")


def fail(what):
    sys.exit(f"coverage: {what}")


# ---- what the original documents ----

def codes_of_flavour(flavour, codes):
    left_out = {"": {"NO_SPACE"}, "_nb": {"TRANSACTION_ERROR"}, "_nbi": {"NO_SPACE", "TRANSACTION_ERROR"}}
    return set(codes) - left_out[flavour]


def read_codes(api, text):
    """Call -> set of codes, in the order of the file."""
    calls = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        unknown = [w for w in words[1:] if w not in api.order]
        if unknown or not words[0].startswith(api.prefix):
            fail(f"{api.codes}:{number}: {' '.join(unknown) or words[0]}?")
        if words[0].endswith("*"):
            for flavour in FLAVOURS:
                calls[words[0][:-1] + flavour] = codes_of_flavour(flavour, words[1:])
        else:
            calls[words[0]] = set(words[1:])
    return calls


# ---- what the header says ----

def read_headers(api, root, findings):
    """Call -> {code: None, or the reason why it never comes}."""
    calls = {}
    for header in api.headers:
        read_header(api, (root / header).read_text(), calls, findings)
    return calls


def read_header(api, text, calls, findings):
    comment = None
    for piece in api.pieces.finditer(text):
        if piece.group(2) is None:
            body = "/*" + piece.group(1)
            comment = body if body.startswith("/**") else None
            continue
        name = piece.group(2)
        calls[name] = {}
        if comment is None:
            findings.append(f"{api.header}: {name}: no comment")
            continue
        plain = re.sub(r"\n \*+ ?", "\n", comment)
        for tag in re.split(r"\n(?=@)", plain)[1:]:
            words = " ".join(tag.split())
            retval = api.retval.match(words)
            says_never = words.startswith(f"@note Never {api.code_prefix}")
            never = api.never.match(words[6:]) if says_never else None
            if retval:
                if api.is_about(name, retval.group(2)):
                    calls[name][retval.group(1)] = None
            elif never:
                if never.group(2) and name not in api.calls_in(never.group(2)):
                    continue
                for code in api.codes_in(never.group(1)):
                    if code in calls[name]:
                        findings.append(f"{api.header}: {name}: {code} is given and never given")
                    calls[name][code] = never.group(3)
            elif says_never:
                findings.append(f"{api.header}: {name}: not understood: {words[:60]}")


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

    def __init__(self, api, name, text):
        self.api = api
        self.name = name
        self.claims = collections.defaultdict(list)     # function -> [(call, code, line, doubt)]
        self.events = []                                 # [(function, operation, event, is it posted)]
        self.names = {}                                  # function -> identifiers in its body
        self.answers = {}                                # helper -> call
        self.includes = re.findall(r'^#include "([^"]+)"', text, re.M)
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
            for call in api.answers.findall(plain):
                if owner:
                    self.answers[owner] = call
            for operation, events in EVENTS.findall(plain):
                self.events += [(owner, operation, event.split()[-1], not event.startswith("no "))
                                for event in re.split(r",\s*", events)]
            for calls, codes in api.covers.findall(plain):
                for call in re.split(r",\s*", calls):
                    self.claim(owner, call, api.codes_in(codes), self.line_of(start))

    def claim(self, owner, call, codes, line):
        for flavour in FLAVOURS if call.endswith("*") else [""]:
            given = codes_of_flavour(flavour, codes) if call.endswith("*") else codes
            self.claims[owner] += [(call.rstrip("*") + flavour, code, line, DIRECT) for code in given]

    def line_of(self, at):
        return self.text.count("\n", 0, at) + 1

    def read_assertions(self, answers):
        api_order = self.api.order
        for start, begin, end, owner in self.spans:
            for found in ASSERTION.finditer(self.code, begin, end):
                args = arguments(self.code, found.end())
                if found.group(1) == "assert_row_equal":
                    args = args[1:]
                elif found.group(1) != "assert_int_equal":
                    args = args[0].split(" == ") if args else []
                if len(args) != 2:
                    continue
                if args[0].startswith(self.api.code_prefix):
                    args.reverse()
                name = called(args[0])
                call = answers.get(name, name)
                code = self.api.asserted.fullmatch(args[1])
                if call and call.startswith(self.api.prefix) and code:
                    doubt = ONE_OF if code.group(1) else DIRECT
                    for name in (name for name in code.groups() if name in api_order):
                        self.claims[owner].append((call, name, self.line_of(found.start()), doubt))


def read_sources(api, root):
    shared = [Source(api, path.relative_to(root).as_posix(), path.read_text())
              for pattern in api.shared for path in sorted(root.glob(pattern))]
    programs = [Source(api, path.relative_to(root).as_posix(), path.read_text())
                for path in sorted((root / api.suite).glob("test_*.c"))]
    for source in shared + programs:
        common = {}
        for other in seen_by(source, shared):
            common.update(other.answers)
        source.read_assertions({**common, **source.answers})
    return shared, programs


def seen_by(source, shared):
    """The shared sources that one includes, directly or not; those in tests/common everybody sees."""
    names, ahead = set(), [source]
    while ahead:
        for name in ahead.pop().includes:
            ahead += [s for s in shared if s.name == name and name not in names]
            names.add(name)
    return [s for s in shared if s.name in names or s.name.startswith("tests/common/")]


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
        for other in seen_by(source, shared) + [source]:
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

def compare(api, original, header, found, findings):
    for call in sorted(set(original) - set(header)):
        findings.append(f"{api.codes}: {call} is not in {api.header}")
    for call in header:
        if call not in original:
            findings.append(f"{api.header}: {call} is not in {api.codes}")
            continue
        for code in sorted(original[call] - set(header[call]), key=api.order.get):
            if not api.is_pending(call):
                findings.append(f"{api.header}: {call}: {code} of the original has neither @retval nor `@note Never`")
        for code, reason in header[call].items():
            if reason is None and not found[call].get(code) and not api.is_pending(call):
                findings.append(f"{api.suite}: no test provokes {code} of {call}")
            if reason is not None and found[call].get(code):
                place = best_place(call, code, found)
                findings.append(f"{api.suite}/{place.file}: {place.test} covers {code} of {call}, which never comes")
        for code in sorted(set(found[call]) - set(header[call]), key=lambda c: api.order.get(c, 99)):
            place = best_place(call, code, found)
            findings.append(f"{api.suite}/{place.file}: {place.test} covers {code} of {call}, "
                            "which the header does not list")
    for call in sorted(set(found) - set(header)):
        findings.append(f"{api.suite}: {call} is covered and not in {api.header}")


def table(api, original, header, found):
    n = collections.Counter()
    rows = []
    for call in header:
        for code in sorted(set(header[call]) | original.get(call, set()), key=api.order.get):
            reason = header[call].get(code)
            if found[call].get(code):
                place = best_place(call, code, found)
                what, kind = f"`{place.file}` {place.test[5:].replace('_', ' ')}", "tested"
            elif reason is not None:
                what, kind = f"never: {reason}", "never given"
            elif api.is_pending(call):
                what, kind = "pending", "pending"
            else:
                what, kind = "**missing**", "missing"
            n[kind] += 1
            mark = "" if code in original.get(call, ()) else " (ours)"
            rows.append((call, code + mark, what))
    headers = dict.fromkeys(h.split("/")[-1] for h in api.headers)
    text = [f"# {api.title} conformance coverage", "",
            f"Which test of `{api.suite}` provokes which return code of which call. Made by "
            f"`tests/tools/coverage.py{'' if api is UGNI else ' --api ' + api.name} --write` from "
            f"{', '.join(f'`{name}`' for name in headers)}, the tests and `{api.codes}` (what the "
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


# ---- operations and events ----

def read_events(api, text):
    """(operation, event) -> is it posted, in the order of the file."""
    cells = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].strip()
        if not words:
            continue
        found = EVENTS.fullmatch("events: " + words)
        events = re.split(r",\s*", found.group(2)) if found else []
        if not found or any(event.split()[-1] not in api.event_names for event in events):
            fail(f"{api.events}:{number}: {words}?")
        for event in events:
            cells[found.group(1), event.split()[-1]] = not event.startswith("no ")
    return cells


def event_table(api, root, programs, findings):
    wanted = read_events(api, (root / api.events).read_text())
    shown = {}
    for source in programs:
        for owner, operation, event, is_posted in source.events:
            cell = (operation, event)
            if owner not in source.tests:
                findings.append(f"{source.name}: `events: {operation}` belongs to no test")
            elif wanted.get(cell) is not is_posted:
                findings.append(f"{source.name}: {owner} shows that `{operation}` has "
                                f"{'' if is_posted else 'no '}{event}; {api.events} does not say so")
            else:
                shown.setdefault(cell, f"`{source.name.split('/')[-1]}` {owner[5:].replace('_', ' ')}")
    for (operation, event), is_posted in wanted.items():
        if (operation, event) not in shown:
            findings.append(f"{api.suite}: no test shows that `{operation}` has {'' if is_posted else 'no '}{event}")
    rows = ["", "## Operations and events", "",
            f"Which events an operation has with an option (`{api.events}`), and the test that shows it: yes, or no "
            "where the event must not come; a dot where it is no part of the operation. SEND events of gets are "
            "CRAY's alone; UNLINK without the option is REF's alone.", "",
            "| operation | " + " | ".join(api.event_names) + " | test |", "|---" * (len(api.event_names) + 2) + "|"]
    for operation in dict.fromkeys(operation for operation, _ in wanted):
        cells = [{None: "·", True: "yes", False: "no"}[wanted.get((operation, event))] for event in api.event_names]
        cells = [text if text == "·" or (operation, event) in shown else "**missing**"
                 for text, event in zip(cells, api.event_names)]
        tests = dict.fromkeys(shown[operation, event] for event in api.event_names if (operation, event) in shown)
        rows.append(f"| {operation} | " + " | ".join(cells) + " | " + "; ".join(tests) + " |")
    return "\n".join(rows) + "\n"


def look(api, root):
    findings = []
    original = read_codes(api, (root / api.codes).read_text())
    header = read_headers(api, root, findings)
    shared, programs = read_sources(api, root)
    found, lines = claims_of(shared, programs, findings)
    compare(api, original, header, found, findings)
    text = table(api, original, header, found)
    if api.event_names:
        text += event_table(api, root, programs, findings)
    return findings, text, lines


def check(api, root):
    findings, text, _ = look(api, root)
    return findings + page.stale(root, api.table, text)


# ---- the checks themselves ----

SELF_TEST = {
    UGNI.codes: """\
GNI_A  SUCCESS INVALID_PARAM TIMEOUT ERROR_NOMEM
GNI_B  SUCCESS SIZE_ERROR
GNI_Gone  SUCCESS
""",
    UGNI.header: """\
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
    assert_row_equal(rows[i].name, GNI_A(strlen("a)(,")), GNI_RC_INVALID_PARAM);
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


SELF_TEST_DMAPP = {
    DMAPP.codes: """\
dmapp_a*  SUCCESS NO_SPACE TRANSACTION_ERROR
dmapp_b   SUCCESS BUSY
""",
    DMAPP.header: """\
/**
 * Three.
 * @retval DMAPP_RC_SUCCESS            Fine.
 * @retval DMAPP_RC_NO_SPACE           The _nb calls only.
 * @retval DMAPP_RC_TRANSACTION_ERROR  The blocking calls only.
 */
dmapp_return_t dmapp_a(int x);
dmapp_return_t dmapp_a_nb(int x);
dmapp_return_t dmapp_a_nbi(int x);
/**
 * @retval DMAPP_RC_SUCCESS  dmapp_b() only: fine.
 */
dmapp_return_t dmapp_b(void);
""",
    "tests/conformance/dmapp/test_x.c": """\
static void test_all(void **state)
{
    /* covers: dmapp_a*, dmapp_b: DMAPP_RC_SUCCESS, DMAPP_RC_NO_SPACE */
}

int main(void)
{
    return run(test_all);
}
""",
}
SELF_TEST_DMAPP_FINDINGS = [
    "no test provokes TRANSACTION_ERROR of dmapp_a",
    "dmapp_b: BUSY of the original has neither",
    "test_all covers NO_SPACE of dmapp_b, which the header does not list",
    "is stale",
]


def write_table(api, root):
    (root / api.table).parent.mkdir(parents=True, exist_ok=True)
    (root / api.table).write_text(look(api, root)[1])


def self_test():
    def more_ugni(root):
        write_table(UGNI, root)
        return [] if look(UGNI, root)[2].get("test_x.c:9") == ("GNI_A", "INVALID_PARAM") else ["the map misses line 9"]

    def more_dmapp(root):
        write_table(DMAPP, root)
        return []

    status = page.self_test(SELF_TEST, [], SELF_TEST_FINDINGS, lambda root: check(UGNI, root), more_ugni)
    return status | page.self_test(SELF_TEST_DMAPP, [], SELF_TEST_DMAPP_FINDINGS, lambda root: check(DMAPP, root),
                                   more_dmapp)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", nargs="?", type=pathlib.Path)
    parser.add_argument("--api", choices=APIS, default="ugni", help="(ugni)")
    parser.add_argument("--write", action="store_true", help="write docs/generated/<api>-coverage.md")
    parser.add_argument("--map", action="store_true", help="print the assertions as JSON")
    parser.add_argument("--self-test", action="store_true")
    args = parser.parse_args()
    if args.self_test:
        return self_test()
    if not args.root:
        parser.error("ROOT is missing")
    api = APIS[args.api]
    if args.map:
        json.dump(look(api, args.root)[2], sys.stdout, indent=0, sort_keys=True)
        return 0
    if args.write:
        write_table(api, args.root)
    return page.show(check(api, args.root))


if __name__ == "__main__":
    sys.exit(main())
