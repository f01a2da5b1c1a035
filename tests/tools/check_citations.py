#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does each citation lead somewhere? `check_citations.py ROOT` or `check_citations.py --self-test`

- `spec/NAME.md PLACE` in any file: docs/spec/NAME.md exists and has the place (docs/spec/README.md gives the forms).
- Names of experiments (XC-13) anywhere, questions (Q9) of libportals, readings (7.9) of libugni and libdmapp, sections
  behind a source in machine files, sections that a specification names as its own: the document has them.
- The specifications are cited in that form only, and nothing outside the repository is cited.
- Links and paths of Markdown files and of `docs/`: the file exists, and so does the heading.
- A header that is installed cites installed documents only, and says where they are.
"""

import pathlib
import re
import sys
import tempfile

from page import show

SUFFIXES = {".c", ".h", ".py", ".sh", ".md", ".yaml", ".build", ".txt", ".in", ".map", ".supp", ".options"}
NAMES = {"Makefile", "run", "emunic-ipogif0", "meson_options.txt"}
OWN = {"check_citations.py"}  # its self-test holds what is wrong
INSTALLED = "share/doc/emunic/spec"
NOWHERE = {"XC-999", "AUD-YY", "AUD-YYZ"}  # names that tests use because no document has them

FENCE = re.compile(r"^ *```.*?^ *```", re.M | re.S)
HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.M)
NUMBER = re.compile(r"(?:Appendix )?((?:\d+|[A-Z](?=\.\d)|(?<=Appendix )[A-Z])(?:\.\d+)*)\b")
LEAD = re.compile(r"^(?:\| *| *[-*] +)(?:\*\*(.+?)\*\*|(`[^`]+`|[^|:\n]*?) *(?:\||: ))", re.M)
ITEM = re.compile(r"^(?:(\d+)\. |(?:- \*\*|\| )(\d+)(?:\*\*| \|))", re.M)
NAME = r"[A-Z][A-Z0-9]*-[A-Z0-9]+[a-z]?|[QTD]\d+"

GAP = r"(?:[ \t]+|[ \t]*\n[ \t]*(?:\*|#|//)?[ \t]*)"
PLACE = rf'(?:Appendix{GAP}[A-Z](?:\.\d+)?|[A-Z]\.\d+|{NAME}|\d+(?:\.\d+)*|"[^"]+")(?![\w%])'
ITEMS = rf"(?:{GAP}no\.{GAP}\d+(?:,{GAP}\d+\b(?!\.\d))*)?"
SEPARATOR = rf"(?:,?{GAP}(?:and|to|-){GAP}|,{GAP}|-)"
CITATION = re.compile(rf"spec/([\w-]+)\.md(?:{GAP}({PLACE}{ITEMS}(?:{SEPARATOR}{PLACE}{ITEMS})*))?")
ONE_PLACE = re.compile(rf"({PLACE})({ITEMS})")

EXPERIMENT = re.compile(r"\b(?:XC|TITAN|SEASTAR|XT3|BGL|X1|XD1|CMP|AUD)-(?:\d+[a-z]?\b|(?<=AUD-)[A-Z0-9]+\b)")
QUESTION = re.compile(r"\bQ\d+\b")
READING = re.compile(rf"[Rr]eadings?{GAP}\(?(\d+\.\d+{ITEMS})")
SECTION = re.compile(r"\bsections?\s+(\d+(?:\.\d+)*)")
MACHINE = re.compile(r"(?:\b(?:XCWP|BGL|CUG05|SEA|TITAN),|\[(?:OUR|D)\]) (\d+\.\d+)\b(?! ?[\w%])")
OTHER_FORM = re.compile(r"(?<![\w/.\[(-])(?:ugni|dmapp|portals3|cray-runtime|machines|figures|design|style)\.md\b"
                        rf"|\b(?:uGNI|[Dd]mapp|DMAPP|[Pp]ortals3?){GAP}spec{GAP}(?:sections?|\d|[A-C]\.\d)"
                        r"|\bspec \d+(?:\.\d+)*\b|\.\./shared\b")
LINK = re.compile(r"\[[^\]\n]*\]\(([^)\s]+)\)")
PAGE = re.compile(r"(?<![\w./$*<-])(docs/[\w./-]*\w|[\w./-]+/[\w-]+\.md)(?![\w*<{/])")
SOURCE = re.compile(r"(?<![\w./<-])(?:docs|tests|tools|emunic|examples|libugni|libdmapp|libportals|mpi-shim)"
                    r"/[\w./-]*\w")


def slug(title):
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def plain(text):
    return re.sub(r"\s+", " ", re.sub(r"[*`]", "", text)).strip()


class Document:
    """What a specification has: sections, numbered items of sections, names of rows, titles."""

    def __init__(self, text):
        text = FENCE.sub("", text)
        self.sections, self.items, self.titles = set(), set(), set()
        parts = HEADING.split(text)
        for title, body in zip(parts[2::3], parts[3::3]):
            number = NUMBER.match(title)
            self.titles.add(plain(title).lower())
            if number:
                self.sections.add(number[1])
                self.items |= {(number[1], one or other) for one, other in ITEM.findall(body)}
        leads = {plain(bold or other) for bold, other in LEAD.findall(text)}
        self.titles |= {lead.lower() for lead in leads}
        self.names = {name for lead in leads for name in re.findall(rf"^(?:{NAME})\b", lead)}
        self.sections |= {bold for bold, _ in LEAD.findall(text) if re.fullmatch(r"\d+\.\d+", bold)}

    def has_name(self, name):
        return (name in self.names or name.rstrip("abcdefghi") in self.names
                or any(re.fullmatch(re.escape(name) + "[a-z]", other) for other in self.names))

    def has(self, place, items=()):
        place = re.sub(r"^Appendix\W+", "", plain(place))
        if place.startswith('"'):
            return any(place.strip('"').lower() in title for title in self.titles)
        if re.fullmatch(NAME, place):
            return self.has_name(place)
        section, _, item = place.rpartition(".")
        is_there = place in self.sections or (section, item) in self.items
        return is_there and all((place, item) in self.items for item in items)


def places_of(text):
    """("9.2", ["1", "4"]) of "9.2 no. 1, 4"."""
    for place, items in ONE_PLACE.findall(text):
        yield re.sub(r"\s*\n\s*(?:\*|#|//)?\s*", " ", place), re.findall(r"\d+", items)


class Tree:
    def __init__(self, root):
        self.root = root
        self.findings = set()
        self.documents = {path.stem: Document(path.read_text(encoding="utf-8"))
                          for path in (root / "docs" / "spec").glob("*.md") if path.stem != "README"}
        build = root / "docs" / "spec" / "meson.build"
        listed = build.read_text(encoding="utf-8") if build.exists() else ""
        self.installed = set(re.findall(r"'([\w-]+)\.md'", listed))
        self.anchors = {}

    def say(self, name, text, at, what):
        line = text.count("\n", 0, at) + 1
        self.findings.add((name, line, what))

    def files(self):
        for path in sorted(self.root.rglob("*")):
            parts = path.relative_to(self.root).parts
            if any((self.root.joinpath(*parts[:n]) / "meson-private").is_dir() or parts[n - 1] == ".git"
                   for n in range(1, len(parts))):
                continue
            is_text = path.suffix in SUFFIXES or path.name in NAMES or re.fullmatch(r"\.\d", path.suffix)
            if path.is_file() and is_text and path.name not in OWN:
                text = path.read_text(encoding="utf-8", errors="replace")
                yield "/".join(parts), text.replace("\\-", "-") if re.fullmatch(r"\.\d", path.suffix) else text

    def check_places(self, name, text, at, document, places):
        for place, items in places_of(places):
            if document in self.documents and not self.documents[document].has(place, items):
                numbers = f" no. {', '.join(items)}" if items else ""
                self.say(name, text, at, f"spec/{document}.md has no {place}{numbers}")

    def check_specifications(self, name, text):
        for match in CITATION.finditer(text):
            if match[1] not in self.documents and match[1] not in ("README", "NAME"):
                self.say(name, text, match.start(), f"there is no spec/{match[1]}.md")
            self.check_places(name, text, match.start(), match[1], match[2] or "")
        for match in SECTION.finditer(text) if name.startswith("docs/spec/") else ():
            self.check_places(name, text, match.start(), name[len("docs/spec/"):-len(".md")], match[1])
        for match in EXPERIMENT.finditer(text):
            if match[0] not in NOWHERE:
                self.check_places(name, text, match.start(), "machines", match[0])
        if "portals" in name:
            for match in QUESTION.finditer(text):
                self.check_places(name, text, match.start(), "portals3", match[0])
        for folder, document in (("libugni/", "ugni"), ("libdmapp/", "dmapp")):
            for match in READING.finditer(text) if name.startswith(folder) else ():
                self.check_places(name, text, match.start(), document, match[1])
        for match in MACHINE.finditer(text) if name.startswith("emunic/machines/") else ():
            self.check_places(name, text, match.start(), "machines", match[1])

    def check_forms(self, name, text):
        for match in OTHER_FORM.finditer(text) if not name.startswith("docs/spec/") else ():
            what = re.sub(r"\s+[*#]?\s*", " ", match[0])
            self.say(name, text, match.start(), f"`{what}` is not a form of citation: spec/NAME.md PLACE")

    def anchors_of(self, path):
        if path not in self.anchors:
            titles = HEADING.findall(FENCE.sub("", path.read_text(encoding="utf-8")))
            self.anchors[path] = {slug(title) for _, title in titles}
        return self.anchors[path]

    def check_links(self, name, text):
        folder = (self.root / name).parent
        text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), text)
        for match in LINK.finditer(text):
            target, _, anchor = match[1].partition("#")
            path = folder / target if target else self.root / name
            if re.match(r"\w+:", match[1]):
                continue
            if not path.exists():
                self.say(name, text, match.start(), f"link to {match[1]}: no such file")
            elif anchor and path.suffix == ".md" and anchor not in self.anchors_of(path):
                self.say(name, text, match.start(), f"link to {match[1]}: no such heading")

    def check_paths(self, name, text):
        folder = (self.root / name).parent
        if name.startswith(("docs/spec/", "tests/tools/")):  # sources of facts; trees of self-tests
            return
        for match in PAGE.finditer(text):
            if match[1].startswith(("spec/", INSTALLED)) or "NAME" in match[1]:
                continue
            if not any((base / match[1]).exists() for base in (self.root, folder)):
                self.say(name, text, match.start(), f"no such file: {match[1]}")

    def check_header(self, name, text):
        for match in SOURCE.finditer(text):
            self.say(name, text, match.start(), f"installed, and cites {match[0]}, which is not")
        for match in CITATION.finditer(text):
            if match[1] not in self.installed:
                self.say(name, text, match.start(), f"installed, and cites spec/{match[1]}.md, which is not")
        if CITATION.search(text) and INSTALLED not in text:
            self.say(name, text, 0, f"installed, and does not say where spec/ is: {INSTALLED}")

    def check(self):
        for name, text in self.files():
            self.check_specifications(name, text)
            self.check_forms(name, text)
            self.check_paths(name, text)
            if name.endswith(".md"):
                self.check_links(name, text)
            if re.match(r"(?:lib\w+|mpi-shim/[\w-]+)/include/.*\.h$", name):
                self.check_header(name, text)
        return [f"{name}:{line}: {what}" for name, line, what in sorted(self.findings)]


def self_test():
    tree = {
        "docs/spec/meson.build": "install_data('ugni.md', 'machines.md')\n",
        "docs/spec/ugni.md": "# U\n\n## 4.9 Queues\n\n- **7.9**\n  - *Why*: x\n\n1. one\n2. two\n\n"
                             "# Appendix B. Bits\n\n## A.1 C\n",
        "docs/spec/machines.md": "# M\n\n### 2.3 NIC\n\n| ID | x |\n|---|---|\n| XC-1 | y |\n| XC-2a | y |\n\n"
                                 "- **T1 Passive**: x, section 2.3, section 5\n",
        "docs/spec/dmapp.md": "# D\n\n## 9.2 Readings\n\n- **11**\n  - x\n",
        "docs/spec/portals3.md": "# P\n\n| # | x |\n|---|---|\n| Q9 | y |\n",
        "a.c": "/* spec/ugni.md 4.9, 7.9 and Appendix B, A.1; spec/ugni.md 4.9.2, 8.1; spec/none.md 1; XC-1 to\n"
               " * XC-3, XC-2\n"
               " * spec/machines.md T1,\n * XC-2a, Appendix C; ugni.md 4.9, uGNI spec\n * 4.9 */\n",
        "b.c": "/* spec/ugni.md \"queues\", spec/ugni.md \"pipes\"; docs/none.md, docs/NAME.md */\n",
        "libdmapp/src/c.c": "/* reading 9.2 no. 11, reading 9.2 no. 12 */\n",
        "libugni/src/d.c": "/* Reading 7.9 (reading\n * 7.8) */\n",
        "libportals/portals.c": "/* Q9, Q8 */\n",
        "libugni/include/e.h": "/* spec/ugni.md 4.9 */\n",
        "libugni/include/f.h": "/* share/doc/emunic/spec/dmapp.md; tests/x.c */\n",
        "emunic/machines/g.yaml": "a: 1 # (XCWP, 2.3), [OUR] 2.4, [OUR] 3.5 us\n",
        "g.md": "# One `two`\n[a](b.c) [b](#one-two) [c](none.c) [d](docs/spec/ugni.md#49-queues) [e](#three)\n"
                "[f](http://x/y)\n",
        "Makefile": "# as ../shared/x says; spec 7.3\n",
    }
    expected = {
        "a.c:1: spec/ugni.md has no 8.1", "a.c:1: there is no spec/none.md", "a.c:2: spec/machines.md has no XC-3",
        "a.c:3: spec/machines.md has no Appendix C", "a.c:4: `ugni.md` is not a form of citation: spec/NAME.md PLACE",
        "a.c:4: `uGNI spec 4` is not a form of citation: spec/NAME.md PLACE", 'b.c:1: spec/ugni.md has no "pipes"',
        "b.c:1: no such file: docs/none.md", "libdmapp/src/c.c:1: spec/dmapp.md has no 9.2 no. 12",
        "libugni/src/d.c:1: spec/ugni.md has no 7.8", "libportals/portals.c:1: spec/portals3.md has no Q8",
        "libugni/include/e.h:1: installed, and does not say where spec/ is: share/doc/emunic/spec",
        "libugni/include/f.h:1: installed, and cites spec/dmapp.md, which is not",
        "libugni/include/f.h:1: installed, and cites tests/x.c, which is not",
        "docs/spec/machines.md:10: spec/machines.md has no 5",
        "emunic/machines/g.yaml:1: spec/machines.md has no 2.4", "g.md:2: link to none.c: no such file",
        "g.md:2: link to #three: no such heading",
        "Makefile:1: `../shared` is not a form of citation: spec/NAME.md PLACE",
        "Makefile:1: `spec 7.3` is not a form of citation: spec/NAME.md PLACE",
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree.items():
            path = pathlib.Path(folder) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        found = set(Tree(pathlib.Path(folder)).check())
    return show([f"self-test: not found: {line}" for line in sorted(expected - found)]
                + [f"self-test: found, but fine: {line}" for line in sorted(found - expected)])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(self_test() if sys.argv[1] == "--self-test" else show(Tree(pathlib.Path(sys.argv[1])).check()))
