#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Man pages of the uGNI calls, one for each object, from the documentation in gni_pub.h.

    man_pages.py HEADER FOLDER

The header is divided by comments that begin with an object's title; what stands between one and the next goes into its
page. A title that has no page here, or a page without calls, is an error: the list and the header belong together.
"""

import pathlib
import re
import sys

# Title in the header: name of the page, what it is about
PAGES = {
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

SECTION = re.compile(r"^/\*\n \* (.*)", re.M)
CALL = re.compile(r"/\*\*\n(?P<text>(?: \*.*\n)*?) \*/\n(?P<code>(?:gni_return_t [^;]*;\n)+)")
TAG = re.compile(r"^@(param|retval|return|note)(\[[a-z,]+\])?\s*(.*)$")
FONT = {"retval": "B", "param": "I"}


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


def page(name, about, calls):
    names = [n for _, code in calls for n in re.findall(r"gni_return_t (\w+)\(", code)]
    lines = [f'.TH {name.upper()} 3 "" "emunic" "uGNI"', ".SH NAME", f"{', '.join(names)} \\- {escape(about)}",
             ".SH SYNOPSIS", ".B #include <gni_pub.h>", ".PP", "Link with the flags of", ".BR \"pkg\\-config cray\\-ugni\" ."]
    lines += [".SH CALLS"]
    for text, code in calls:
        lines += [".SS " + ", ".join(re.findall(r"gni_return_t (\w+)\(", code)), ".nf"]
        lines += [escape(line) for line in code.rstrip("\n").splitlines()]
        lines += [".fi"] + documentation(text)
    return "\n".join(lines + [".SH SEE ALSO", ".BR emunic (1)"]) + "\n"


def title_of(line):
    return next((title for title in PAGES if line.startswith(title) or
                 (line.startswith("Newer than 0x5c: ") and line.endswith(title))), None)


def main():
    header = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
    folder = pathlib.Path(sys.argv[2])
    sections = list(SECTION.finditer(header))
    done = set()
    for here, after in zip(sections, sections[1:] + [None]):
        body = header[here.end():after.start() if after else len(header)]
        calls = [(c["text"], c["code"]) for c in CALL.finditer(body)]
        title = title_of(here[1])
        if calls and not title:
            sys.exit(f"man_pages: calls below '{here[1]}', which has no page")
        if not calls:
            continue
        name, about = PAGES[title]
        (folder / f"{name}.3").write_text(page(name, about, calls), encoding="utf-8")
        done.add(title)
    if done != set(PAGES):
        sys.exit(f"man_pages: no calls for {sorted(set(PAGES) - done)}")


if __name__ == "__main__":
    main()
