#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Man pages of the uGNI, DMAPP and Portals calls, one for each object, from the documentation in gni_pub.h, dmapp.h and
the headers of Portals.

    man_pages.py HEADER... FOLDER

The header is divided by comments that begin with an object's title; what stands between one and the next goes into its
page. A title that has no page here, or a page without calls, is an error: the list and the header belong together.

What a header says under "Reading the comments" stands on each of its pages, as CONVENTIONS. A row of it that has rows of
its own is a section of its name, on the pages that refer to it.
"""

import pathlib
import re
import sys

# Header: its library's name, its pkg-config module, and title in it: name of the page, what it is about
GNI_PAGES = {
    "Communication domains": ("gni_cdm", "communication domains and NIC handles"),
    "Job control": ("gni_job", "jobs, node translation, suspension"),
    "Device and library information": ("gni_device", "devices, versions, resources, statistics"),
    "Balanced injection": ("gni_injection", "balanced injection"),
    "Endpoints": ("gni_ep", "end points"),
    "Datagrams": ("gni_datagram", "datagrams"),
    "Memory registration": ("gni_mem", "memory registration and handles"),
    "Completion queues": ("gni_cq", "completion queues"),
    "Posts": ("gni_post", "posts: FMA, block transfers, queue writes"),
    "Events": ("gni_event", "events of completion queues"),
    "Short messages (SMSG)": ("gni_smsg", "short messages"),
    "Shared message queues (MSGQ)": ("gni_msgq", "shared message queues"),
    "Error subscription": ("gni_error", "error events"),
    "Collective engine (CE)": ("gni_ce", "collective engines"),
    "chained FMA": ("gni_chain", "chained posts"),
    "completion channels": ("gni_comp_chan", "completion channels"),
}

DMAPP_PAGES = {
    "Initialisation": ("dmapp_init", "start, end, attributes, job"),
    "Puts and gets": ("dmapp_put", "contiguous transfers, puts with flag"),
    "Strided, indexed and PE-list transfers": ("dmapp_iput", "strided, indexed and PE-list transfers"),
    "Atomics": ("dmapp_amo", "atomic operations"),
    "Completion": ("dmapp_syncid", "completion of non-blocking requests"),
    "Registration": ("dmapp_mem", "exported segments"),
    "Symmetric heap": ("dmapp_sheap", "the symmetric heap"),
    "Locks": ("dmapp_lock", "locks"),
    "Message queues": ("dmapp_queue", "message queues"),
    "Process sets": ("dmapp_pset", "process sets, barriers, reductions"),
    "Progress and checkpoints": ("dmapp_progress", "progress, checkpoints, threads"),
}
PORTALS_PAGES = {
    "Library": ("ptl_init", "begin and end"),
    "Interfaces": ("ptl_ni", "network interfaces"),
    "Identification": ("ptl_id", "user, job and process ids"),
    "Match entries": ("ptl_me", "match entries"),
    "Memory descriptors": ("ptl_md", "memory descriptors"),
    "Event queues": ("ptl_eq", "event queues"),
    "Access control": ("ptl_ac", "access control"),
    "Data movement": ("ptl_put", "puts, gets, swaps"),
    "Debugging": ("ptl_debug", "traces and simulated failures"),
    "Combined calls": ("ptl_combined", "combined calls, Cray dialect"),
    "Texts": ("ptl_strings", "names of codes and events, reference dialect"),
    "Dumps and progress": ("ptl_dump", "dumps and progress, reference dialect"),
    "Runtime": ("ptl_runtime", "ranks and maps, reference dialect"),
}
LIBRARIES = {
    "gni_pub.h": ("uGNI", "cray-ugni", GNI_PAGES),
    "dmapp.h": ("DMAPP", "cray-dmapp", DMAPP_PAGES),
    "p3_calls.h": ("Portals 3", "cray-portals", PORTALS_PAGES),
}

# Where a program includes something else than the file that is read: by header, by page. The same for modules.
INCLUDED = {
    "p3_calls.h": ["portals/portals3.h"],
    "ptl_strings": ["portals3.h"],
    "ptl_dump": ["portals3.h"],
    "ptl_runtime": ["portals3.h", "p3rt/p3rt.h"],
}
MODULES = {"ptl_strings": "portals-ref", "ptl_dump": "portals-ref", "ptl_runtime": "portals-ref"}

SECTION = re.compile(r"^/\*\n \* (.*)", re.M)
RETURNS = r"(?:gni_return_t |dmapp_return_t |void \*?|(?:unsigned )?int (?=Ptl)|const char \*(?=Ptl))"
CALL = re.compile(rf"/\*\*\n(?P<text>(?: \*.*\n)*?) \*/\n(?P<code>(?:{RETURNS}[^;]*;\n)+)")
NAME = re.compile(rf"^{RETURNS}(\w+)\(", re.M)
TAG = re.compile(r"^@(param|retval|return|note)(\[[a-z,]+\])?\s*(.*)$")
FONT = {"retval": "B", "param": "I"}
READING = re.compile(r"^ \* Reading the comments.*\n \*\n((?: \* .*\n)+)", re.M)
ROW = re.compile(r"^ \*( {3}| {7})(\S.*?)  +(\S.*)$")


def escape(text):
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return "\\&" + text if text[:1] in ".'" else text


def blocks(text):
    """[(tag or "", text)] of a comment: paragraphs, and what follows each tag."""
    found = [("", "")]
    for line in text.splitlines():
        line = line[2:].strip() if line.startswith(" *") else line.strip()
        tag = TAG.match(line)
        if tag:
            found.append((tag.group(1), tag.group(3)))
        elif not line:
            found.append(("", ""))
        else:
            found[-1] = (found[-1][0], (found[-1][1] + " " + line).strip())
    return [(tag, words) for tag, words in found if words]


def documentation(text):
    lines = []
    for tag, words in blocks(text):
        if tag in FONT:
            name, _, rest = words.partition(" ")
            lines += [".TP", f".{FONT[tag]} {escape(name)}", escape(rest.strip())]
        else:
            lines += [".PP", escape(("Returns: " if tag == "return" else "") + words)]
    return lines


def conventions(header):
    """[[term, text, [[term, text]]]] of what the headers say about their comments."""
    rows = []
    for line in "".join(READING.findall(header)).splitlines():
        row = ROW.match(line)
        if row and len(row[1]) == 3:
            rows.append([row[2], row[3], []])
        elif row:
            rows[-1][2].append([row[2], row[3]])
        else:
            last = rows[-1][2][-1] if rows[-1][2] else rows[-1]
            last[1] += " " + line[2:].strip()
    return rows


def explanations(rows, text):
    """Sections for the rows that concern a page with this text."""
    lines = [".SH CONVENTIONS"]
    for term, words, inner in rows:
        if not inner:
            lines += [".TP", f".B {escape(term)}", escape(words)]
    for term, words, inner in rows:
        if inner and re.search(rf"\b{term}\b", text):
            lines += [f".SH {term.upper()}", escape(words[:1].upper() + words[1:])]
            lines += [line for name, meaning in inner for line in (".TP", f".B {escape(name)}", escape(meaning))]
    return lines


def page(header, name, about, calls, rows):
    library, module, _ = LIBRARIES[header]
    included = INCLUDED.get(name, INCLUDED.get(header, [header]))
    module = MODULES.get(name, module)
    names = [n for _, code in calls for n in NAME.findall(code)]
    lines = [f'.TH {name.upper()} 3 "" "emunic" "{library}"', ".SH NAME", f"{', '.join(names)} \\- {escape(about)}",
             ".SH SYNOPSIS"]
    lines += [line for one in included for line in (f".B #include <{one}>", ".br")][:-1]
    lines += [".PP", "Link with the flags of", f".BR \"pkg\\-config {escape(module)}\" ."]
    lines += [".SH CALLS"]
    for text, code in calls:
        lines += [".SS " + ", ".join(NAME.findall(code)), ".nf"]
        lines += [escape(line) for line in code.rstrip("\n").splitlines()]
        lines += [".fi"] + documentation(text)
    lines += explanations(rows, "".join(text for text, _ in calls))
    return "\n".join(lines + [".SH SEE ALSO", ".BR emunic (1)"]) + "\n"


def title_of(pages, line):
    return next((title for title in pages if line.startswith(title) or
                 (line.startswith("Newer than 0x5c: ") and line.endswith(title))), None)


def main():
    header = "\n".join(pathlib.Path(path).read_text(encoding="utf-8") for path in sys.argv[1:-1])
    folder = pathlib.Path(sys.argv[-1])
    name_of_header = pathlib.Path(sys.argv[1]).name
    pages = LIBRARIES[name_of_header][2]
    rows = conventions(header)
    sections = list(SECTION.finditer(header))
    done = set()
    for here, after in zip(sections, sections[1:] + [None]):
        body = header[here.end():after.start() if after else len(header)]
        calls = [(c["text"], c["code"]) for c in CALL.finditer(body)]
        title = title_of(pages, here[1])
        if calls and not title:
            sys.exit(f"man_pages: calls below '{here[1]}', which has no page")
        if not calls:
            continue
        name, about = pages[title]
        (folder / f"{name}.3").write_text(page(name_of_header, name, about, calls, rows),
                                            encoding="utf-8")
        done.add(title)
    if done != set(pages):
        sys.exit(f"man_pages: no calls for {sorted(set(pages) - done)}")


if __name__ == "__main__":
    main()
