#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the commands of a guide as they stand: `run_guide.py BUILD_DIR SOURCE_DIR GUIDE.md`. TAP, a line for each block.

The blocks of a Markdown file that are indented by four blanks, or fenced, are read by one shell, one after the other,
as by a reader who types them. The current folder is a scratch folder in which each entry of the source folder is a link,
`build` is one to the build folder, and PATH begins with build/emunic: so what a guide makes stays out of both, and no
path in a guide is changed. A block fails if a command of it does, or the last one of a pipe.

Comments before a block, which readers do not see, tell what else it is:

    <!-- not run: REASON -->    skipped, and counted
    <!-- needs: COMMAND -->     skipped unless the command succeeds
    <!-- file: NAME -->         a file of the reader's, written under that name
    <!-- before: COMMANDS -->   what the guide expects to be there (a program, a file); run first
    <!-- prints: TEXT -->       its output has this text
    <!-- fails: TEXT -->        ends with another status than 0, and its output has this text

--cluster N runs all of it on the first of N hosts in namespaces (tests/multihost/cluster.py).
"""

import argparse
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile

KINDS = ["not run", "needs", "file", "before", "prints", "fails"]
COMMENT = re.compile(r"<!-- ([a-z ]+): (.+?) -->$")
CLUSTER = pathlib.Path(__file__).resolve().parent.parent / "multihost" / "cluster.py"
LIMIT_S = 400

# Each block is a file of its own. `begin N` and `end N STATUS` tell the runner how far the shell came.
NORMAL = "echo begin {n} >>$guide_log; set -e\n. {path} >{path}.out 2>&1\nset +e; echo end {n} 0 >>$guide_log\n"
FAILING = "echo begin {n} >>$guide_log\n(set -e; . {path}) >{path}.out 2>&1\necho end {n} $? >>$guide_log\n"


class Wrong(Exception):
    """The guide is not written as it has to be."""


class Block:
    def __init__(self, line_number, notes, lines):
        self.line_number = line_number
        self.notes = notes              # by kind: texts
        self.lines = lines
        self.n = 0

    def note(self, kind):
        return self.notes[kind][0] if kind in self.notes else None

    def why_not_run(self, log):
        if ["skip", str(self.n)] in log:
            return f"without: {self.note('needs')}"
        return self.note("not run")

    def title(self, guide):
        # Behind a # TAP has its own words.
        return f"{guide}:{self.line_number} {self.lines[0].strip()[:60]}".replace("#", "")


# ---- reading ----

def read_note(line, line_number, notes):
    match = COMMENT.match(line)
    if not match or match.group(1) not in KINDS:
        raise Wrong(f"line {line_number}: not one of the comments {', '.join(KINDS)}: {line}")
    notes.setdefault(match.group(1), []).append(match.group(2))


def read_block(lines, i):
    """The block that begins at line i, without its indentation or fence, and the line behind it; or None."""
    if lines[i].startswith("```"):
        end = next((j for j in range(i + 1, len(lines)) if lines[j].startswith("```")), None)
        if end is None:
            raise Wrong(f"line {i + 1}: a fence without an end")
        return lines[i + 1:end], end + 1
    if not lines[i].startswith("    ") or (i > 0 and lines[i - 1].strip() and not lines[i - 1].startswith("<!--")):
        return None
    end = i
    for j in range(i, len(lines)):
        if lines[j].startswith("    "):
            end = j + 1
        elif lines[j].strip():
            break
    return [line[4:] for line in lines[i:end]], end


def read_guide(text):
    lines = text.split("\n")
    blocks = []
    notes = {}
    i = 0
    while i < len(lines):
        found = read_block(lines, i)
        if found:
            blocks.append(Block(i + 1, notes, found[0]))
            notes = {}
            i = found[1]
            continue
        if lines[i].startswith("<!--"):
            read_note(lines[i], i + 1, notes)
        elif lines[i].strip() and notes:
            raise Wrong(f"line {i + 1}: a comment without a block behind it")
        i += 1
    if notes:
        raise Wrong("the last comment has no block behind it")
    for n, block in enumerate(blocks):
        block.n = n + 1
    return blocks


# ---- running ----

def write_script(blocks, folder):
    """What the shell reads; all blocks in order."""
    script = "set -o pipefail\n"
    for block in blocks:
        if "not run" in block.notes:
            continue
        if "needs" in block.notes:
            script += f"if ({block.note('needs')}) >/dev/null 2>&1; then\n"
        for n, text in enumerate(block.notes.get("before", [])):
            path = folder / f"{block.n}.before{n}"
            path.write_text(text + "\n")
            script += f"echo before {block.n} >>$guide_log; set -e; . {path}; set +e\n"
        path = folder / str(block.n)
        path.write_text("\n".join(block.lines) + "\n")
        if "file" in block.notes:
            script += f"cp --remove-destination {path} '{block.note('file')}'\n"
        else:
            script += (FAILING if "fails" in block.notes else NORMAL).format(n=block.n, path=path)
        if "needs" in block.notes:
            script += f"else echo skip {block.n} >>$guide_log; fi\n"
    path = folder / "guide.sh"
    path.write_text(script)
    return path


def make_scratch(folder, source, build):
    scratch = folder / "project"
    scratch.mkdir()
    for entry in source.iterdir():
        # Build folders are known by Meson's folder in them.
        if entry.name != "build" and not entry.name.startswith(".git") and not (entry / "meson-info").exists():
            (scratch / entry.name).symlink_to(entry)
    (scratch / "build").symlink_to(build)
    return scratch


def environment(scratch, folder):
    variables = {name: value for name, value in os.environ.items()
                 if name not in ("CC", "CXX", "FC", "PKG_CONFIG_PATH", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR")
                 and not name.startswith("EMUNIC_")}
    variables["PATH"] = f"{scratch}/build/emunic:{variables['PATH']}"
    variables["guide_log"] = str(folder / "log")
    # For mpirun by itself, as root and on a host with few processors.
    variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                  "OMPI_MCA_rmaps_base_oversubscribe": "1"}
    return variables


def run_shell(script, scratch, folder, n_hosts):
    """Returns what the shell itself said: nothing, or why a cluster cannot be made."""
    command = ["bash", str(script)]
    if n_hosts:
        command = [sys.executable, str(CLUSTER), "-n", str(n_hosts), "--", *command]
    shell = subprocess.Popen(command, cwd=scratch, env=environment(scratch, folder), stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)
    try:
        said = shell.communicate(timeout=LIMIT_S)[0]
    except subprocess.TimeoutExpired:
        said = f"stopped after {LIMIT_S} s"
    finally:
        # What the guide has left in the background.
        try:
            os.killpg(shell.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        shell.wait()
    return said


def judge(block, log, folder):
    """None if the block did what it should; else what is wrong."""
    path = folder / f"{block.n}.out"
    output = path.read_text(errors="replace") if path.exists() else ""
    status = next((int(words[2]) for words in log if words[:2] == ["end", str(block.n)]), None)
    if status is None:
        return (f"a command failed\n{output}" if ["begin", str(block.n)] in log else "not reached: see above")
    if "fails" in block.notes and status == 0:
        return f"ended with status 0\n{output}"
    for text in block.notes.get("fails", []) + block.notes.get("prints", []):
        if text not in output:
            return f"does not print '{text}' but\n{output}"
    return None


def run_guide(text, guide, build, source, n_hosts):
    """Prints TAP; true if all was well."""
    blocks = read_guide(text)
    with tempfile.TemporaryDirectory(dir=build, prefix="guide.") as name:
        folder = pathlib.Path(name)
        (folder / "log").touch()
        scratch = make_scratch(folder, source, build)
        said = run_shell(write_script(blocks, folder), scratch, folder, n_hosts)
        log = [line.split() for line in (folder / "log").read_text().splitlines()]
        if not log and "# SKIP" in said:
            print(said.strip())
            return True
        shown = [block for block in blocks if "file" not in block.notes]
        print(f"1..{len(shown)}")
        is_well = True
        n_skipped = 0
        for n, block in enumerate(shown):
            title = block.title(guide)
            reason = block.why_not_run(log)
            if reason:
                print(f"ok {n + 1} - {title} # SKIP not run: {reason}")
                n_skipped += 1
                continue
            wrong = judge(block, log, folder)
            for line in (wrong or "").splitlines():
                print(f"# {line}")
            print(f"{'not ok' if wrong else 'ok'} {n + 1} - {title}")
            is_well = is_well and not wrong
        if not is_well:
            print("".join(f"# shell: {line}\n" for line in said.splitlines()), end="")
        print(f"# {len(shown) - n_skipped} blocks run, {n_skipped} not run")
        return is_well


def main():
    parser = argparse.ArgumentParser(description="Runs the commands of a guide as they stand.")
    parser.add_argument("--cluster", type=int, metavar="N", default=0)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("source", type=pathlib.Path)
    parser.add_argument("guide")
    arguments = parser.parse_args()
    source = arguments.source.resolve()
    try:
        is_well = run_guide((source / arguments.guide).read_text(), arguments.guide, arguments.build.resolve(), source,
                            arguments.cluster)
    except Wrong as wrong:
        print(f"1..1\n# {arguments.guide}: {wrong}\nnot ok 1 - {arguments.guide} can be read")
        is_well = False
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
